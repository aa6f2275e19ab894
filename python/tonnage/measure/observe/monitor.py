"""Sample a command, or running processes, at intervals until they have ended."""

import datetime
import os
import signal
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from tonnage.base import core
from tonnage.base.core.process_usage import cpu_seconds
from tonnage.base.system import cgroups, procfs
from tonnage.base.system.block_devices import device_names
from tonnage.base.system.cgroups import GroupUsage, MonitoredGroup
from tonnage.base.system.processes import ResourceUsage, read_process, resource_usage
from tonnage.base.system.procfs import PROC
from tonnage.measure.observe.launch import FORWARDED, WATCHED, RunningCommand, start_command
from tonnage.measure.observe.process_tree import ProcessTree, TreeSample
from tonnage.measure.observe.series import DEVICES, SERIES, Series

FLUSH_SECONDS = 1.0
MAX_SAMPLES = 10_000
"""The interval grows, to keep about this many samples: long jobs have long phases."""
SI_KERNEL = 0x80
"""``si_code`` of a signal from the kernel, like a terminal's: the command received it, too."""


@dataclass
class MonitorResult:
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
    """Run a command and sample it, with all that it starts, until it ends.

    Signals to this process are passed on, unless a terminal has sent them to both. ``out`` is for
    the series, ``to_stderr`` for the command's standard output. Raises `CommandNotStarted`.
    """
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, WATCHED)
    group, how = _make_group()
    try:
        monitor = _Monitor(out, group, how)
        began = time.monotonic()
        monitor.record(0.0, TreeSample(ResourceUsage(), 0, 0, 0.0, 0.0, False))
        entrances = group.procs_files if group else []
        running = start_command(command, entrances, {int(each) for each in mask}, to_stderr)
        try:
            monitor.follow(ProcessTree([running.reaper], running.reaper), running.pid)
            _sample_until_ended(monitor, running, began, interval_seconds)
            survivors = monitor.sample(time.monotonic() - began).processes
            if survivors:
                monitor.notes.append(
                    f"{survivors} of the command's processes ran after its end; what they did "
                    "then is not counted"
                )
        finally:
            running.close()
        result = monitor.finish(Path(command[0]).name, running.exit_code)
        if running.was_lost:
            result.exit_code = 1
            result.notes.append(
                "the process that waits for the command was killed, so how and when the command "
                "ended is unknown"
            )
        return result
    finally:
        if group:
            group.remove()
        _unblock(mask)


def monitor_processes(pids: Sequence[int], out: Path, interval_seconds: float) -> MonitorResult:
    """Sample processes, with all that they start, until they end or Ctrl-C; see `monitor_command`.

    Raises `UsageError` if there is no such process, or its counters may not be read.
    """
    names = [_name_of(pid) for pid in pids]
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, WATCHED)
    try:
        monitor = _Monitor(out, None, "none, since the processes were running already")
        monitor.follow(ProcessTree(pids), pids[0])
        began = time.monotonic()
        monitor.sample(0.0)
        while True:
            until = began + _next(time.monotonic() - began, interval_seconds)
            received = _wait(until, WATCHED - {signal.SIGCHLD})
            sample = monitor.sample(time.monotonic() - began)
            if not sample.processes:
                break
            if received is not None:
                name = signal.Signals(received.si_signo).name
                monitor.notes.append(
                    f"the processes were still running when {name} ended the observation"
                )
                break
        return monitor.finish(names[0], None)
    finally:
        _unblock(mask)


class _Monitor:
    def __init__(self, out: Path, group: MonitoredGroup | None, group_text: str) -> None:
        self._group, self._group_text = group, group_text
        self._tree: ProcessTree | None = None
        self._pid = 0
        self._start: ResourceUsage | None = ResourceUsage()
        self._series = Series(out, "series", SERIES)
        self._devices = Series(out, "devices", DEVICES)
        self._flushed = time.monotonic()
        self._own = cpu_seconds()
        self._began_at = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        self._namespace = procfs.network(os.getpid()) or procfs.NetworkCounters()
        self._network = procfs.NetworkCounters()
        self._network_scope = ""
        self._was_connected = False
        self._group_usage = group.usage() if group else GroupUsage()
        self.notes: list[str] = []

    def follow(self, tree: ProcessTree, pid: int) -> None:
        """Sample this tree from now on, and the network namespace of ``pid``."""
        self._tree, self._pid = tree, pid
        self._network_scope = procfs.network_scope(pid)
        self._start = ResourceUsage() if tree.reaper else None

    def sample(self, seconds: float) -> TreeSample:
        assert self._tree is not None
        members = None
        if self._group:
            with suppress(OSError):
                members = self._group.members()
        sample = self._tree.sample(seconds, members)
        if self._start is None:
            self._start = sample.usage  # Used before the observation began.
        self.record(seconds, sample)
        return sample

    def record(self, seconds: float, sample: TreeSample) -> None:
        if self._group:
            self._group_usage = self._group.usage()
        usage = sample.usage.since(self._start or ResourceUsage())
        cpu = self._group_usage.cpu_seconds
        cores, disks = procfs.core_seconds(), procfs.base_disks()
        self._count_network(sample.is_connected)
        reads, writes = self._group_usage.reads, self._group_usage.writes
        if reads is None or writes is None:
            reads = sum(disk.reads for disk in disks.values())
            writes = sum(disk.writes for disk in disks.values())
        self._series.append(
            seconds,
            usage.cpu_seconds if cpu is None else cpu,
            usage.read_bytes,
            usage.written_bytes,
            usage.cancelled_bytes,
            reads,
            writes,
            self._network.received_bytes,
            self._network.sent_bytes,
            self._network.loopback_bytes,
            sample.memory_bytes,
            sample.processes,
            sample.busiest_core,
            sample.core_waits_seconds,
            self._group_usage.io_waits_seconds or 0.0,
            cores.busy,
            cores.idle,
            cores.waiting,
            cores.stolen,
            procfs.meminfo_bytes("Dirty", "Writeback"),
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
        """While no process of the tree holds a socket, the namespace's traffic is not its own."""
        now = (procfs.network(self._pid) if self._pid else None) or self._namespace
        if is_connected or self._was_connected:
            self._network = self._network.plus_increase(self._namespace, now)
        self._namespace, self._was_connected = now, is_connected

    def finish(self, name: str, exit_code: int | None) -> MonitorResult:
        own = cpu_seconds() - self._own
        self._series.close()
        self._devices.close()
        if self._tree and self._tree.unreadable:
            self.notes.append(
                f"no permission to read the I/O of {len(self._tree.unreadable)} processes of other "
                "users, so it is counted at their end or not at all; run as root"
            )
        group_usage = self._group_usage
        names = device_names()
        device_bytes = {
            names[number]: both
            for number, both in (group_usage.device_bytes or {}).items()
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
            control_group=self._group_text,
            cpu_from="/proc/PID/stat" if group_usage.cpu_seconds is None else "the control group",
            operations_of="all on the devices"
            if group_usage.reads is None
            else "the control group",
            network_of=self._network_scope,
            device_bytes=device_bytes,
            own_cpu_seconds=own,
            notes=self.notes,
        )


def _sample_until_ended(
    monitor: _Monitor, running: RunningCommand, began: float, interval_seconds: float
) -> None:
    while not running.poll():
        received = _wait(began + _next(time.monotonic() - began, interval_seconds), WATCHED)
        if received is None:
            monitor.sample(time.monotonic() - began)
        elif received.si_signo in FORWARDED and received.si_code != SI_KERNEL:
            running.send(received.si_signo)


def _next(passed: float, interval_seconds: float) -> float:
    """When the next sample is due; missed ones are skipped."""
    step = max(interval_seconds, passed / MAX_SAMPLES)
    return (int(passed / step) + 1) * step


def _wait(until: float, signals: set[signal.Signals]) -> signal.struct_siginfo | None:
    return signal.sigtimedwait(signals, max(until - time.monotonic(), 0.0))


def _unblock(mask: set[signal.Signals | int]) -> None:
    """Restore the signal mask; signals that arrived too late to be passed on are dropped."""
    while signal.sigtimedwait(WATCHED, 0) is not None:
        pass
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _make_group() -> tuple[MonitoredGroup | None, str]:
    try:
        group = cgroups.make_monitored_group()
    except OSError as why:
        return None, f"none: {why.strerror or why}"
    return group, f"version {group.version}"


def _name_of(pid: int) -> str:
    process = read_process(pid)
    if process is None or process.is_zombie:
        raise core.UsageError(
            f"process {pid} does not exist; specify a running process", setting="pid"
        )
    try:
        resource_usage(pid, 0.0)
    except OSError:
        raise core.UsageError(
            f"no permission to read {PROC / str(pid) / 'io'}; run as that process's user, or as "
            "root",
            setting="pid",
        ) from None
    return process.name
