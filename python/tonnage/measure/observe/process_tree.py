"""Follow a tree of processes: what it has used, including the processes that have ended.

Since a parent's counters include the children that it waited for, a tree's usage is the sum over
its living processes as long as its root lives; processes that start and end between two samples are
included. Usage that would be lost is kept: that of a process whose parent is outside the tree, or
ignores its children.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from tonnage.base.system import processes
from tonnage.base.system.processes import Process, ResourceUsage, ThreadTimes, read_process
from tonnage.base.system.procfs import PROC

BUSY = 0.1
"""The threads of a process that used less than this share of a core are not read."""


@dataclass(frozen=True)
class TreeSample:
    usage: ResourceUsage
    memory_bytes: int
    """Resident memory, summed; pages that processes share count in each."""
    processes: int
    busiest_core: float
    """The share of a core that the busiest thread had since the previous sample."""
    core_waits_seconds: float
    """How long threads have waited for a core, summed."""
    is_connected: bool
    """Whether a process holds a socket of any kind: without one nothing is sent."""


@dataclass
class ProcessTree:
    """The processes below some roots; of the ``reaper`` only the children that it waited for."""

    roots: Iterable[int]
    reaper: int | None = None
    proc: Path = PROC
    unreadable: set[int] = field(default_factory=set)
    """Processes whose I/O may not be read; it counts once they were waited for."""

    def __post_init__(self) -> None:
        self._known: dict[tuple[int, int], tuple[Process, ResourceUsage]] = {}
        self._ended = ResourceUsage()
        self._highest = ResourceUsage()
        self._threads: dict[int, tuple[float, dict[int, ThreadTimes]]] = {}
        self._cpu_before: dict[int, float] = {}
        self._sampled_at = 0.0
        self._core_waits = 0.0
        self._connected: set[tuple[int, int]] = set()
        self._followed = {*self.roots}

    def sample(self, moment: float, members: Iterable[int] | None = None) -> TreeSample:
        """The tree now; ``members`` are its processes if a control group lists them."""
        # Oldest first, so parents first: a child that its parent reaps during the scan is in the
        # next sample, and not twice in this one.
        tree = sorted(self._members(members), key=lambda each: (each.started, each.pid))
        total = self._usage_of_reaped()
        known = {}
        for process in tree:
            usage, is_alive = self._usage(process)
            known[process.pid, process.started] = (process, usage)
            # A process that has ended since it was listed may be in its parent's counters already.
            # If not, it is in the next sample; the sum never decreases.
            total += usage if is_alive else ResourceUsage()
        self._keep_unreaped(known)
        self._known = known
        self._highest = (total + self._ended).at_least(self._highest)
        busiest, waits = self._thread_load(moment, tree)
        self._core_waits += waits
        return TreeSample(
            usage=self._highest,
            memory_bytes=sum(process.memory_bytes for process in tree),
            processes=sum(not process.is_zombie for process in tree),
            busiest_core=busiest,
            core_waits_seconds=self._core_waits,
            is_connected=self._is_connected(tree),
        )

    def _members(self, members: Iterable[int] | None) -> list[Process]:
        if members is not None:
            listed = (read_process(pid, self.proc) for pid in members)
            return [each for each in listed if each and each.pid != self.reaper]
        everything = processes.all_processes(self.proc)
        children: dict[int, list[Process]] = {}
        for each in everything.values():
            children.setdefault(each.parent, []).append(each)
        # A process stays in the tree when its parent has ended.
        alive = {pid for pid, started in self._known if _is_same(everything.get(pid), started)}
        pending = sorted({*self._followed, *alive})
        self._followed &= everything.keys()
        tree: dict[int, Process] = {}
        while pending:
            pid = pending.pop()
            if pid in tree or pid not in everything:
                continue
            tree[pid] = everything[pid]
            pending += [child.pid for child in children.get(pid, [])]
        tree.pop(self.reaper or 0, None)
        return list(tree.values())

    def _usage(self, process: Process) -> tuple[ResourceUsage, bool]:
        is_alive = True
        cpu = process.cpu_seconds + process.children_cpu_seconds
        try:
            return processes.resource_usage(process.pid, cpu, self.proc), True
        except PermissionError:
            self.unreadable.add(process.pid)
        except OSError:
            is_alive = False
        before = self._known.get((process.pid, process.started))
        return before[1] if before else ResourceUsage(cpu_seconds=cpu), is_alive

    def _usage_of_reaped(self) -> ResourceUsage:
        reaper = read_process(self.reaper, self.proc) if self.reaper is not None else None
        if reaper is None:
            return ResourceUsage()
        # The reaper's own CPU time is ours, and it does no I/O.
        return processes.resource_usage(reaper.pid, reaper.children_cpu_seconds, self.proc)

    def _keep_unreaped(self, known: dict[tuple[int, int], tuple[Process, ResourceUsage]]) -> None:
        """Keep the usage of ended processes that no process of the tree waited for."""
        inside = {pid for pid, _ in known} | {pid for pid, _ in self._known}
        if self.reaper is not None:
            inside.add(self.reaper)
        for key, (process, usage) in self._known.items():
            if key in known:
                continue
            parent = process.parent
            if parent not in inside or processes.ignores_children(parent, self.proc):
                self._ended += usage

    def _is_connected(self, tree: list[Process]) -> bool:
        # Once a process had a socket it is not checked again: it may have many open files.
        keys = {(each.pid, each.started) for each in tree}
        self._connected &= keys
        self._connected |= {
            key for key in keys - self._connected if processes.has_socket(key[0], self.proc)
        }
        return bool(self._connected)

    def _thread_load(self, moment: float, tree: list[Process]) -> tuple[float, float]:
        """Since the previous sample: the busiest thread's share of a core, and all core waits."""
        threads: dict[int, tuple[float, dict[int, ThreadTimes]]] = {}
        busiest = waits = 0.0
        for each in tree:
            cpu = each.cpu_seconds - self._cpu_before.get(each.pid, 0.0)
            if (
                each.threads > 1
                and each.pid in self._threads
                and cpu < BUSY * (moment - self._sampled_at)
            ):
                threads[each.pid] = self._threads[each.pid]
                continue
            times = processes.thread_times(each.pid, self.proc)
            then, before = self._threads.get(each.pid, (moment, {}))
            for thread, now in times.items():
                if thread in before and moment > then:
                    ran = now.ran_seconds - before[thread].ran_seconds
                    busiest = max(busiest, ran / (moment - then))
                    waits += now.waited_seconds - before[thread].waited_seconds
            threads[each.pid] = (moment, times)
        self._threads, self._sampled_at = threads, moment
        self._cpu_before = {each.pid: each.cpu_seconds for each in tree}
        return min(busiest, 1.0), waits


def _is_same(process: Process | None, started: int) -> bool:
    return process is not None and process.started == started
