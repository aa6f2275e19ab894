"""A description of the machine for the results."""

import os
import platform
import re
from pathlib import Path


def describe(scratch: Path) -> dict[str, str | int | float]:
    """Describe the machine, with the file system of `scratch`, where the files are."""
    return {
        "kernel": f"{platform.system()} {platform.release()} {platform.machine()}",
        "cpu": _first(r"model name\s*:\s*(.+)", "/proc/cpuinfo"),
        "cpus_used": len(os.sched_getaffinity(0)),
        "memory_bytes": int(_first(r"MemTotal:\s*(\d+) kB", "/proc/meminfo")) * 1024,
        "file_system": _file_system(scratch),
        "load_average_at_start": os.getloadavg()[0],
    }


def _first(pattern: str, path: str) -> str:
    found = re.search(pattern, Path(path).read_text())
    return found.group(1).strip() if found else "0"


def _file_system(path: Path) -> str:
    """Return type and options of the mount of `path`: the longest mount point above it."""
    best, described = "", "unknown"
    for line in Path("/proc/self/mounts").read_text().splitlines():
        _, point, kind, options, *_ = line.split()
        if path.resolve().is_relative_to(point) and len(point) >= len(best):
            best, described = point, f"{kind} ({options})"
    return described
