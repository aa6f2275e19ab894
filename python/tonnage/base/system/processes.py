"""Read one process's state, resource usage, threads and sockets from /proc/PID.

The kernel adds what a child used to its parent's counters when the parent waits for it: CPU
(``cutime``) and I/O (``/proc/PID/io``) alike.

``read_bytes`` and ``write_bytes`` count I/O at the block layer. Direct I/O counts at once, through
io_uring too. A write to the page cache counts when it makes a page dirty, although the device gets
it later; ``cancelled_write_bytes`` counts what was deleted before it was written back.
"""

from __future__ import annotations

import operator
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

from tonnage.base.system.procfs import PROC, TICKS

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
SIGCHLD_BIT = 1 << 16


@dataclass(frozen=True)
class ResourceUsage:
    """What a process, or several together, have used since they began."""

    cpu_seconds: float = 0.0
    read_bytes: int = 0
    written_bytes: int = 0
    cancelled_bytes: int = 0

    def __add__(self, other: ResourceUsage) -> ResourceUsage:
        return self._map_fields(other, operator.add)

    def since(self, start: ResourceUsage) -> ResourceUsage:
        """The usage after ``start``; never negative."""
        return self._map_fields(start, lambda now, then: max(now - then, 0))

    def at_least(self, floor: ResourceUsage) -> ResourceUsage:
        return self._map_fields(floor, max)

    def _map_fields(
        self, other: ResourceUsage, function: Callable[[Any, Any], Any]
    ) -> ResourceUsage:
        return ResourceUsage(*map(function, astuple(self), astuple(other)))


@dataclass(frozen=True)
class Process:
    pid: int
    name: str
    parent: int
    started: int
    """In ticks since boot: a pid may be reused, but not with the same start."""
    threads: int
    cpu_seconds: float
    """Without its children."""
    children_cpu_seconds: float
    memory_bytes: int
    is_zombie: bool


@dataclass(frozen=True)
class ThreadTimes:
    """How long a thread has run, and waited for a core, since it began."""

    ran_seconds: float
    waited_seconds: float


def read_process(pid: int, proc: Path = PROC) -> Process | None:
    """A process, from ``/proc/PID/stat``; None if there is none."""
    try:
        text = (proc / str(pid) / "stat").read_text(errors="replace")
    except OSError:
        return None
    head, _, tail = text.rpartition(")")
    # proc_pid_stat(5), from the third field on.
    fields = tail.split()
    return Process(
        pid=pid,
        name=head.partition("(")[2],
        parent=int(fields[1]),
        started=int(fields[19]),
        threads=int(fields[17]),
        cpu_seconds=(int(fields[11]) + int(fields[12])) / TICKS,
        children_cpu_seconds=(int(fields[13]) + int(fields[14])) / TICKS,
        memory_bytes=int(fields[21]) * PAGE_BYTES,
        is_zombie=fields[0] in "ZX",
    )


def all_processes(proc: Path = PROC) -> dict[int, Process]:
    processes = (read_process(int(name), proc) for name in os.listdir(proc) if name.isdigit())
    return {process.pid: process for process in processes if process}


def resource_usage(pid: int, cpu_seconds: float, proc: Path = PROC) -> ResourceUsage:
    """A process's usage; `PermissionError` if it is another user's, `OSError` if it has ended."""
    lines = (proc / str(pid) / "io").read_text().splitlines()
    counters = {name: int(value) for name, _, value in (line.partition(":") for line in lines)}
    return ResourceUsage(
        cpu_seconds,
        counters["read_bytes"],
        counters["write_bytes"],
        counters["cancelled_write_bytes"],
    )


def thread_times(pid: int, proc: Path = PROC) -> dict[int, ThreadTimes]:
    times = {}
    tasks = proc / str(pid) / "task"
    try:
        names = os.listdir(tasks)
    except OSError:
        return {}
    for name in names:
        with suppress(OSError):  # It has ended, or this kernel has no schedstat.
            ran, waited, _ = (tasks / name / "schedstat").read_text().split()
            times[int(name)] = ThreadTimes(int(ran) / 1e9, int(waited) / 1e9)
    return times


def has_socket(pid: int, proc: Path = PROC) -> bool:
    """Whether a process holds a socket; True if that may not be read."""
    try:
        with os.scandir(proc / str(pid) / "fd") as files:
            return any(_target(file.path).startswith("socket:") for file in files)
    except PermissionError:
        return True
    except OSError:
        return False  # It has ended.


def ignores_children(pid: int, proc: Path = PROC) -> bool:
    """Whether a process ignores SIGCHLD, so that its children end without being counted in it."""
    try:
        for line in (proc / str(pid) / "status").read_text(errors="replace").splitlines():
            if line.startswith("SigIgn:"):
                return bool(int(line.split()[1], 16) & SIGCHLD_BIT)
    except OSError:
        pass
    return False


def _target(link: str) -> str:
    try:
        return os.readlink(link)
    except OSError:
        return ""  # Just closed.
