"""What a tree of processes has used, those that have ended included.

The kernel adds what a child used to its parent's counters when the parent waits for it: CPU
(``cutime``) and I/O (``/proc/PID/io``) alike. So a tree's sum is that of its living processes, as
long as its root lives, and processes that come and go between two samples are in it. What would be
lost is kept: a process whose parent is outside the tree, or ignores that children end.

``read_bytes`` and ``write_bytes`` are what passed the block layer: direct I/O, by io_uring too, at
once; a write to the page cache when it makes a page dirty, though the device gets it later;
``cancelled_write_bytes`` what was deleted before it was written back.

What a thread ran, and how long it stood ready while others had the cores, is in its ``schedstat``.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

PROC = Path("/proc")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
TICKS = os.sysconf("SC_CLK_TCK")
CHILD_SIGNAL = 1 << 16
"""SIGCHLD in a mask of signals."""
BUSY = 0.1
"""A process of several threads that used less of a core is not asked for them."""


@dataclass(frozen=True)
class ResourceUsage:
    """What one process, or a tree, has used since it began."""

    cpu_seconds: float = 0.0
    read_bytes: int = 0
    written_bytes: int = 0
    cancelled_bytes: int = 0

    def __add__(self, other: ResourceUsage) -> ResourceUsage:
        return ResourceUsage(
            self.cpu_seconds + other.cpu_seconds,
            self.read_bytes + other.read_bytes,
            self.written_bytes + other.written_bytes,
            self.cancelled_bytes + other.cancelled_bytes,
        )

    def since(self, start: ResourceUsage) -> ResourceUsage:
        """What was used after ``start``; never less than nothing."""
        return ResourceUsage(
            max(self.cpu_seconds - start.cpu_seconds, 0.0),
            max(self.read_bytes - start.read_bytes, 0),
            max(self.written_bytes - start.written_bytes, 0),
            max(self.cancelled_bytes - start.cancelled_bytes, 0),
        )

    def at_least(self, before: ResourceUsage) -> ResourceUsage:
        """This, or what was known before where that is more."""
        return ResourceUsage(
            max(self.cpu_seconds, before.cpu_seconds),
            max(self.read_bytes, before.read_bytes),
            max(self.written_bytes, before.written_bytes),
            max(self.cancelled_bytes, before.cancelled_bytes),
        )


@dataclass(frozen=True)
class Process:
    """A process as it is now."""

    pid: int
    name: str
    parent: int
    started: int
    """In ticks since boot: a pid may come again, both together do not."""
    threads: int
    cpu_seconds: float
    """Its own, without that of its children."""
    children_cpu_seconds: float
    memory_bytes: int
    is_zombie: bool


@dataclass(frozen=True)
class ThreadTimes:
    """How long a thread ran, and stood ready while others did, since it began."""

    ran_seconds: float
    waited_seconds: float


@dataclass(frozen=True)
class TreeSample:
    """A tree at one moment."""

    usage: ResourceUsage
    memory_bytes: int
    """Resident, summed: pages that processes share count in each."""
    processes: int
    busiest_core: float
    """The share of a core that the busiest thread had since the sample before."""
    core_waits_seconds: float
    """How long threads stood ready while others had the cores, summed."""
    is_connected: bool
    """Whether a process holds a socket, of whatever kind: without one nothing is sent."""


@dataclass
class ProcessTree:
    """The processes below some roots; of the ``keeper``, a root, only what it waited for counts."""

    roots: Iterable[int]
    reaper: int | None = None
    proc: Path = PROC
    unreadable: set[int] = field(default_factory=set)
    """Processes whose I/O may not be read; it counts once they have ended and were waited for."""

    def __post_init__(self) -> None:
        self._known: dict[tuple[int, int], tuple[Process, ResourceUsage]] = {}
        self._gone = ResourceUsage()
        self._most = ResourceUsage()
        self._threads: dict[int, tuple[float, dict[int, ThreadTimes]]] = {}
        self._own_before: dict[int, float] = {}
        self._moment = 0.0
        self._core_waits = 0.0
        self._connected: set[tuple[int, int]] = set()
        self._followed = {*self.roots}

    def sample(self, moment: float, members: Iterable[int] | None = None) -> TreeSample:
        """The tree now; ``members`` are its processes where a control group knows them."""
        # Parents first, who began first: a child that is waited for meanwhile is in the next
        # sample, and not in this one twice.
        processes = sorted(self._members(members), key=lambda each: (each.started, each.pid))
        total = self._kept_by_keeper()
        known = {}
        for process in processes:
            used, is_there = self._used(process)
            known[process.pid, process.started] = (process, used)
            # Who has ended since it was found may be in the counters of whoever waited for it
            # already; if not, it is in the next sample, and the sum never becomes less.
            total += used if is_there else ResourceUsage()
        self._keep_lost(known)
        self._known = known
        self._most = (total + self._gone).at_least(self._most)
        busiest, waits = self._turns(moment, processes)
        self._core_waits += waits
        return TreeSample(
            usage=self._most,
            memory_bytes=sum(process.memory_bytes for process in processes),
            processes=sum(not process.is_zombie for process in processes),
            busiest_core=busiest,
            core_waits_seconds=self._core_waits,
            is_connected=self._is_connected(processes),
        )

    def _members(self, members: Iterable[int] | None) -> list[Process]:
        if members is not None:
            found = (process(pid, self.proc) for pid in members)
            return [each for each in found if each and each.pid != self.reaper]
        everything = all_processes(self.proc)
        below: dict[int, list[Process]] = {}
        for each in everything.values():
            below.setdefault(each.parent, []).append(each)
        # What was in the tree stays in it, also when its parent has ended.
        kept = {pid for pid, started in self._known if _is(everything.get(pid), started)}
        waiting = sorted({*self._followed, *kept})
        self._followed &= everything.keys()
        tree: dict[int, Process] = {}
        while waiting:
            pid = waiting.pop()
            if pid in tree or pid not in everything:
                continue
            tree[pid] = everything[pid]
            waiting += [child.pid for child in below.get(pid, [])]
        tree.pop(self.reaper or 0, None)
        return list(tree.values())

    def _used(self, process: Process) -> tuple[ResourceUsage, bool]:
        """What a process has used, as far as that is known, and whether it is still there."""
        is_there = True
        cpu = process.cpu_seconds + process.children_cpu_seconds
        try:
            return resource_usage(process.pid, cpu, self.proc), True
        except PermissionError:
            self.unreadable.add(process.pid)
        except OSError:
            is_there = False
        before = self._known.get((process.pid, process.started))
        return before[1] if before else ResourceUsage(cpu_seconds=cpu), is_there

    def _kept_by_keeper(self) -> ResourceUsage:
        if self.reaper is None:
            return ResourceUsage()
        keeper = process(self.reaper, self.proc)
        if keeper is None:
            return ResourceUsage()
        # Its own CPU is ours; of I/O it does none.
        return resource_usage(self.reaper, keeper.children_cpu_seconds, self.proc)

    def _keep_lost(self, known: dict[tuple[int, int], tuple[Process, ResourceUsage]]) -> None:
        inside = {pid for pid, _ in known} | {pid for pid, _ in self._known}
        if self.reaper is not None:
            inside.add(self.reaper)
        for key, (process, used) in self._known.items():
            if key in known:
                continue
            waited_for = process.parent in inside and not _ignores_children(
                process.parent, self.proc
            )
            if not waited_for:
                self._gone += used

    def _is_connected(self, processes: list[Process]) -> bool:
        """Who had a socket once is not asked again: there may be many files to look at."""
        keys = {(each.pid, each.started) for each in processes}
        self._connected &= keys
        self._connected |= {key for key in keys - self._connected if has_socket(key[0], self.proc)}
        return bool(self._connected)

    def _turns(self, moment: float, processes: list[Process]) -> tuple[float, float]:
        """The busiest thread's share of a core, and how long all stood ready; since the last."""
        now: dict[int, tuple[float, dict[int, ThreadTimes]]] = {}
        most = waits = 0.0
        for each in processes:
            used = each.cpu_seconds - self._own_before.get(each.pid, 0.0)
            if (
                each.threads > 1
                and each.pid in self._threads
                and used < BUSY * (moment - self._moment)
            ):
                now[each.pid] = self._threads[each.pid]
                continue
            turns = thread_times(each.pid, self.proc)
            then, before = self._threads.get(each.pid, (moment, {}))
            for thread, turn in turns.items():
                if thread in before and moment > then:
                    ran = turn.ran_seconds - before[thread].ran_seconds
                    waited = turn.waited_seconds - before[thread].waited_seconds
                    most = max(most, ran / (moment - then))
                    waits += waited
            now[each.pid] = (moment, turns)
        self._threads, self._moment = now, moment
        self._own_before = {each.pid: each.cpu_seconds for each in processes}
        return min(most, 1.0), waits


def process(pid: int, proc: Path = PROC) -> Process | None:
    """A process as ``/proc/PID/stat`` has it; None if it is not there."""
    try:
        text = (proc / str(pid) / "stat").read_text(errors="replace")
    except OSError:
        return None
    head, _, tail = text.rpartition(")")
    # man proc_pid_stat, from the third field on.
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
    """Every process that can be seen, by its pid."""
    found = (process(int(name), proc) for name in os.listdir(proc) if name.isdigit())
    return {each.pid: each for each in found if each}


def resource_usage(pid: int, cpu_seconds: float, proc: Path = PROC) -> ResourceUsage:
    """What a process used, with the I/O of its threads and of the children it waited for.

    Raises:
        PermissionError: It is another user's.
        OSError: It has ended.
    """
    lines = (proc / str(pid) / "io").read_text().splitlines()
    counters = {name: int(value) for name, _, value in (line.partition(":") for line in lines)}
    return ResourceUsage(
        cpu_seconds,
        counters["read_bytes"],
        counters["write_bytes"],
        counters["cancelled_write_bytes"],
    )


def thread_times(pid: int, proc: Path = PROC) -> dict[int, ThreadTimes]:
    """What each thread of a process had of the cores."""
    found = {}
    tasks = proc / str(pid) / "task"
    try:
        names = os.listdir(tasks)
    except OSError:
        return {}
    for name in names:
        with suppress(OSError):  # It has ended, or this kernel does not keep it.
            ran, waited, _ = (tasks / name / "schedstat").read_text().split()
            found[int(name)] = ThreadTimes(int(ran) / 1e9, int(waited) / 1e9)
    return found


def has_socket(pid: int, proc: Path = PROC) -> bool:
    """Whether a process holds a socket; where that may not be known, it may."""
    try:
        with os.scandir(proc / str(pid) / "fd") as files:
            return any(_target(file.path).startswith("socket:") for file in files)
    except PermissionError:
        return True
    except OSError:
        return False  # It has ended.


def _target(link: str) -> str:
    try:
        return os.readlink(link)
    except OSError:
        return ""  # Closed meanwhile.


def _is(process: Process | None, started: int) -> bool:
    return process is not None and process.started == started


def _ignores_children(pid: int, proc: Path) -> bool:
    """Whether children of this process end without being counted in it."""
    try:
        for line in (proc / str(pid) / "status").read_text(errors="replace").splitlines():
            if line.startswith("SigIgn:"):
                return bool(int(line.split()[1], 16) & CHILD_SIGNAL)
    except OSError:
        pass
    return False
