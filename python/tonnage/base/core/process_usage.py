"""What this process has used of the machine."""

import resource
from pathlib import Path


def cpu_seconds() -> float:
    """CPU time of this process, in user mode and in the kernel."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def peak_memory_bytes() -> int:
    """The most memory that this process has had resident, buffers and interpreter included."""
    # Not ru_maxrss, which counts what the process had been before it became this program.
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
