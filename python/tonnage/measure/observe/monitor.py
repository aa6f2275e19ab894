"""Watches until the command, or the processes, have ended: a sample every so often."""

from __future__ import annotations

import datetime
import os
import resource
import signal
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from tonnage.base import core
from tonnage.measure.observe import cgroup, host_counters
from tonnage.measure.observe.cgroup import GroupUsage, MonitoredGroup
from tonnage.measure.observe.launch import FORWARDED, WATCHED, RunningCommand, start_command
from tonnage.measure.observe.processes import (
    PROC,
    ProcessTree,
    ResourceUsage,
    TreeSample,
    process,
    resource_usage,
)
from tonnage.measure.observe.series import DEVICES, SERIES, Series

FLUSH_SECONDS = 1.0
FINEST = 10_000
"""A sample is not nearer to the next than this part of the time so far: phases of what lasts long
are long, and so are its records."""
TYPED = 0x80
"""``si_code`` of a signal that the kernel sent, as a terminal's are: the command has it already."""


@dataclass
class MonitorResult:
    """What came of it."""

    name: str
    began_at: str
    exit_code: int | None
    series: dict[str, list[float]]
    devices: dict[str, list[float | str]]
    control_group: str
    cpu_from: str
    operations_of: str
    network_of: str
    device_bytes: dict[str, tuple[int, int]] = field(default_factory=dict)
    own_cpu_seconds: float = 0.0
    notes: list[str] = field(default_factory=list)


def monitor_command(
    command: Sequence[str], out: Path, interval_seconds: float, *, to_stderr: bool = False
) -> MonitorResult:
    """Runs a command and watches it, and all that it starts, until it ends.

    Signals that we get are passed on to it, unless a terminal sent them to both.

    Args:
        command: The program and its arguments.
        out: Where the series go.
        interval_seconds: From one sample to the next.
        to_stderr: Its standard output goes to standard error.

    Raises:
        NotStarted: There is no such program, or it may not be run.
    """
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, WATCHED)
    group, why = _group()
    try:
        watcher = _Monitor(out, group, why)
        began = time.monotonic()
        watcher.record(0.0, TreeSample(ResourceUsage(), 0, 0, 0.0, 0.0, False))
        entrances = group.procs_files if group else []
        launched = start_command(command, entrances, {int(each) for each in mask}, to_stderr)
        try:
            watcher.follow(ProcessTree([launched.reaper], launched.reaper), launched.pid)
            _until_ended(watcher, launched, began, interval_seconds)
            left = watcher.sample(time.monotonic() - began).processes
            if left:
                watcher.notes.append(
                    f"{left} of its processes outlived the command: what they did then is not seen"
                )
        finally:
            launched.close()
        watched = watcher.finish(Path(command[0]).name, launched.exit_code)
        if launched.was_lost:
            watched.exit_code = 1
            watched.notes.append(
                "the process between us and the command was killed: how and when the command ended "
                "is not known"
            )
        return watched
    finally:
        if group:
            group.remove()
        _unblock(mask)


def monitor_processes(pids: Sequence[int], out: Path, interval_seconds: float) -> MonitorResult:
    """Watches processes that run already, and all that they start, until they end or a Ctrl-C.

    Args:
        pids: Roots of the trees.
        out: Where the series go.
        interval_seconds: From one sample to the next.

    Raises:
        UsageError: There is no such process, or its counters may not be read.
    """
    names = [_watchable(pid) for pid in pids]
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, WATCHED)
    try:
        watcher = _Monitor(out, None, "none: the processes ran already")
        watcher.follow(ProcessTree(pids), pids[0])
        began = time.monotonic()
        watcher.sample(0.0)
        while True:
            until = began + _next(time.monotonic() - began, interval_seconds)
            got = _wait(until, WATCHED - {signal.SIGCHLD})
            seen = watcher.sample(time.monotonic() - began)
            if not seen.processes:
                break
            if got is not None:
                ended = signal.Signals(got.si_signo).name
                watcher.notes.append(f"the processes still ran when {ended} ended the watching")
                break
        return watcher.finish(names[0], None)
    finally:
        _unblock(mask)


class _Monitor:
    """Takes samples: of a tree, its group, and the machine beside."""

    def __init__(self, out: Path, group: MonitoredGroup | None, why: str) -> None:
        self._group, self._why = group, why
        self._tree: ProcessTree | None = None
        self._pid = 0
        self._start: ResourceUsage | None = ResourceUsage()
        self._series = Series(out, "series", SERIES)
        self._devices = Series(out, "devices", DEVICES)
        self._flushed = time.monotonic()
        self._own = _own_seconds()
        self._began_at = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        self._namespace = host_counters.network(os.getpid()) or host_counters.Network()
        self._network = host_counters.Network()
        self._network_of = ""
        self._was_connected = False
        self._charged = group.usage() if group else GroupUsage()
        self.notes: list[str] = []

    def follow(self, tree: ProcessTree, pid: int) -> None:
        """From now on samples are of this tree, and of the network namespace of ``pid``."""
        self._tree, self._pid = tree, pid
        self._network_of = host_counters.network_scope(pid)
        self._start = ResourceUsage() if tree.reaper else None

    def sample(self, seconds: float) -> TreeSample:
        """A sample of the tree."""
        assert self._tree is not None
        members = None
        if self._group:
            with suppress(OSError):
                members = self._group.members()
        seen = self._tree.sample(seconds, members)
        if self._start is None:
            self._start = seen.usage  # What ran already has used something before.
        self.record(seconds, seen)
        return seen

    def record(self, seconds: float, seen: TreeSample) -> None:
        """Puts a sample on file, with the machine's counters beside it."""
        if self._group:
            self._charged = self._group.usage()
        used = seen.usage.since(self._start or ResourceUsage())
        cpu = self._charged.cpu_seconds
        host, disks = host_counters.host(), host_counters.devices()
        self._count_network(seen.is_connected)
        reads, writes = self._charged.reads, self._charged.writes
        if reads is None or writes is None:
            reads = sum(disk.reads for disk in disks.values())
            writes = sum(disk.writes for disk in disks.values())
        self._series.append(
            seconds,
            used.cpu_seconds if cpu is None else cpu,
            used.read_bytes,
            used.written_bytes,
            used.cancelled_bytes,
            reads,
            writes,
            self._network.received_bytes,
            self._network.sent_bytes,
            self._network.loopback_bytes,
            seen.memory_bytes,
            seen.processes,
            seen.busiest_core,
            seen.core_waits_seconds,
            self._charged.io_waits_seconds or 0.0,
            host.busy_seconds,
            host.idle_seconds,
            host.iowait_seconds,
            host.steal_seconds,
            host.dirty_bytes,
        )
        for name, disk in disks.items():
            self._devices.append(
                seconds,
                name,
                disk.read_bytes,
                disk.written_bytes,
                disk.reads,
                disk.writes,
                disk.busy_seconds,
                disk.waited_seconds,
            )
        if time.monotonic() - self._flushed > FLUSH_SECONDS:
            self._series.flush()
            self._devices.flush()
            self._flushed = time.monotonic()

    def _count_network(self, is_connected: bool) -> None:
        """What the namespace moved is another's while nothing that is watched holds a socket."""
        now = (host_counters.network(self._pid) if self._pid else None) or self._namespace
        if is_connected or self._was_connected:
            self._network = self._network.and_since(self._namespace, now)
        self._namespace, self._was_connected = now, is_connected

    def finish(self, name: str, exit_code: int | None) -> MonitorResult:
        """Closes the series; what they come to."""
        own = _own_seconds() - self._own
        self._series.close()
        self._devices.close()
        if self._tree and self._tree.unreadable:
            self.notes.append(
                f"{len(self._tree.unreadable)} processes of other users: what they read and wrote "
                "counts from when they ended, if at all; watch as root"
            )
        charged = self._charged
        names = host_counters.device_numbers()
        moved = {
            names[number]: both
            for number, both in (charged.device_bytes or {}).items()
            if number in names and any(both)
        }
        return MonitorResult(
            name=name,
            began_at=self._began_at,
            exit_code=exit_code,
            series={
                column: [float(value) for value in values]
                for column, values in self._series.columns.items()
            },
            devices=self._devices.columns,
            control_group=self._why,
            cpu_from="/proc/PID/stat" if charged.cpu_seconds is None else "the control group",
            operations_of="all on the devices" if charged.reads is None else "the control group",
            network_of=self._network_of,
            device_bytes=moved,
            own_cpu_seconds=own,
            notes=self.notes,
        )


def _until_ended(
    watcher: _Monitor, launched: RunningCommand, began: float, interval_seconds: float
) -> None:
    while not launched.poll():
        got = _wait(began + _next(time.monotonic() - began, interval_seconds), WATCHED)
        if got is None:
            watcher.sample(time.monotonic() - began)
        elif got.si_signo in FORWARDED and got.si_code != TYPED:
            launched.send(got.si_signo)


def _next(passed: float, interval_seconds: float) -> float:
    """When the next sample is due; those that were missed are left out."""
    step = max(interval_seconds, passed / FINEST)
    return (int(passed / step) + 1) * step


def _wait(until: float, signals: set[signal.Signals]) -> signal.struct_siginfo | None:
    """A signal that comes before that moment."""
    return signal.sigtimedwait(signals, max(until - time.monotonic(), 0.0))


def _unblock(mask: set[signal.Signals | int]) -> None:
    """As it was before; signals that came too late to be passed on are dropped."""
    while signal.sigtimedwait(WATCHED, 0) is not None:
        pass
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _group() -> tuple[MonitoredGroup | None, str]:
    try:
        made = cgroup.make_monitored_group()
    except OSError as why:
        return None, f"none: {why.strerror or why}"
    return made, f"version {made.version}"


def _watchable(pid: int) -> str:
    found = process(pid)
    if found is None or found.is_zombie:
        raise core.UsageError(f"--pid {pid}: there is no such process: give one that runs")
    try:
        resource_usage(pid, 0.0)
    except OSError:
        raise core.UsageError(
            f"--pid {pid}: {PROC / str(pid) / 'io'} may not be read: run this as the process's own "
            "user, or as root"
        ) from None
    return found.name


def _own_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime
