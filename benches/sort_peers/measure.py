"""Measure one command: seconds to its exit and to `sync`, CPU, peak memory, exit status."""

import os
import resource
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from cgroup import MemoryGroup
from processes import Sampler, end_descendants

LOG_TAIL_LINES = 12


@dataclass(frozen=True)
class Sample:
    """One run. `peak_cgroup_bytes` and `oom_kills` are None without a cgroup."""

    exit_code: int
    timed_out: bool
    wall_seconds: float
    wall_with_sync_seconds: float
    cpu_seconds: float
    peak_rss_bytes: int
    peak_cgroup_bytes: int | None
    oom_kills: int | None
    log_tail: list[str]


def start_cold(path: Path) -> None:
    """Write back dirty pages, so that they do not slow the next run; drop the file's cache."""
    os.sync()
    file = os.open(path, os.O_RDONLY)
    try:
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(file)


def measure(
    command: Sequence[str],
    environment: Mapping[str, str],
    log: Path,
    timeout_seconds: float,
    limit_bytes: int | None,
) -> Sample:
    """Run `command` to its end, inside a memory cgroup of `limit_bytes` if there is a limit."""
    with ExitStack() as stack:
        group = stack.enter_context(MemoryGroup(limit_bytes)) if limit_bytes else None
        output = stack.enter_context(log.open("w"))
        cpu_before = _waited_cpu_seconds()
        with Sampler() as sampler:
            began = time.perf_counter()
            process = subprocess.Popen(
                group.command(command) if group else command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=environment,
            )
            try:
                timed_out = _wait(process, timeout_seconds)
                exited = time.perf_counter()
                os.sync()
                synced = time.perf_counter()
            finally:
                end_descendants()
        return Sample(
            exit_code=process.returncode,
            timed_out=timed_out,
            wall_seconds=exited - began,
            wall_with_sync_seconds=synced - began,
            # Waiting misses processes without a waiting parent; sampling misses their last moments.
            cpu_seconds=max(_waited_cpu_seconds() - cpu_before, sampler.cpu_seconds),
            peak_rss_bytes=sampler.peak_rss_bytes,
            peak_cgroup_bytes=group.peak_bytes() if group else None,
            oom_kills=group.oom_kills() if group else None,
            log_tail=_tail(log) if process.returncode else [],
        )


def _tail(log: Path) -> list[str]:
    """Return the last output of a command."""
    return log.read_text(errors="replace").splitlines()[-LOG_TAIL_LINES:]


def _wait(process: subprocess.Popen[bytes], timeout_seconds: float) -> bool:
    """Wait for the process; return whether it exceeded the timeout and was killed."""
    try:
        process.wait(timeout_seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return True
    return False


def _waited_cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
