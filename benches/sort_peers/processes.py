"""Memory and CPU of this process's descendants, sampled while they run."""

import ctypes
import os
import signal
import threading
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
PERIOD_SECONDS = 0.2
PR_SET_CHILD_SUBREAPER = 36


@dataclass(frozen=True)
class Process:
    pid: int
    parent: int
    cpu_seconds: float
    rss_bytes: int


def adopt_orphans() -> None:
    """Become the parent of orphaned daemons, so that they can be counted and ended."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def descendants(leave: Collection[int] = ()) -> list[Process]:
    """Return all descendants, without those in `leave` and their descendants."""
    children: dict[int, list[Process]] = {}
    for entry in os.scandir("/proc"):
        if not entry.name.isdigit() or int(entry.name) in leave:
            continue
        if process := _read(int(entry.name)):
            children.setdefault(process.parent, []).append(process)
    found: list[Process] = []
    waiting = [os.getpid()]
    while waiting:
        below = children.get(waiting.pop(), [])
        found += below
        waiting += [process.pid for process in below]
    return found


def end_descendants(leave: Collection[int] = ()) -> None:
    """Kill and reap all processes that a command left behind."""
    while left := descendants(leave):
        for process in left:
            with suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGKILL)
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def _read(pid: int) -> Process | None:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = stat.rpartition(")")[2].split()
    ticks = int(fields[11]) + int(fields[12])
    return Process(pid, int(fields[1]), ticks / TICKS_PER_SECOND, int(fields[21]) * PAGE_BYTES)


class Sampler(threading.Thread):
    """Records the peak of the summed resident memory, and the last CPU time of every process.

    Shared pages are counted once for each process, so the sum can be too large.
    """

    def __init__(self, leave: Collection[int] = ()) -> None:
        super().__init__(daemon=True)
        self._leave = leave
        self.peak_rss_bytes = 0
        self._cpu_seconds: dict[int, float] = {}
        self._over = threading.Event()

    @property
    def cpu_seconds(self) -> float:
        return sum(self._cpu_seconds.values())

    def run(self) -> None:
        while not self._over.wait(PERIOD_SECONDS):
            self.sample()

    def sample(self) -> None:
        """Take a sample now; callable from any thread."""
        running = descendants(self._leave)
        self._cpu_seconds |= {process.pid: process.cpu_seconds for process in running}
        self.peak_rss_bytes = max(self.peak_rss_bytes, sum(p.rss_bytes for p in running))

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._over.set()
        self.join()
