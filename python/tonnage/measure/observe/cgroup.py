"""A control group for what is watched: its CPU to the nanosecond, and its I/O by device.

The group is made inside the group that we are in, so that all limits still hold. In version 2 it
has what the group above hands out: CPU time and pressure always, I/O if ``io`` is there. In version
1 it is two, of cpuacct and blkio. That blkio counts only where a limit is set, so it gets one that
nobody meets where there is none; it charges to nobody what is written back. Bytes are therefore
taken from ``/proc`` in any case, and memory too, since a group counts the page cache as well. Where
version 2 is mounted beside version 1, a third one there tells pressure: how long what is in it
waited for I/O (Documentation/accounting/psi).

A group's name tells which process made it, so the next one removes what a killed one left.
"""

from __future__ import annotations

import dataclasses
import os
import re
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tonnage.base.system.cgroups import group_dir, processes_in
from tonnage.measure.observe.host_counters import device_numbers
from tonnage.measure.observe.processes import PROC, process

PREFIX = "tonnage-observe"
TRIES = 20
"""How often, 10 ms apart, a group is tried to be removed: the last process may still be leaving."""

NO_LIMIT = 10**15
"""Bytes a second."""


@dataclass(frozen=True)
class GroupUsage:
    """What a group has used."""

    cpu_seconds: float | None = None
    reads: int | None = None
    writes: int | None = None
    device_bytes: dict[str, tuple[int, int]] | None = None
    """Bytes read and written by ``major:minor``."""
    io_waits_seconds: float | None = None
    """How long somebody waited for I/O, the mean over cores in use; None if it is not told."""


@dataclass(frozen=True)
class MonitoredGroup:
    """One group, which is a directory in each hierarchy that it is in."""

    version: int
    directories: tuple[Path, ...]

    @property
    def procs_files(self) -> list[Path]:
        """Files to which a process writes 0 to enter."""
        return [directory / "cgroup.procs" for directory in self.directories]

    def members(self) -> list[int]:
        """The processes in it, and in groups that they made in it."""
        return sorted(processes_in(self.directories[:1]))

    def usage(self) -> GroupUsage:
        """What those in it have used so far, and those that have ended."""
        used = (_second if self.version == 2 else _first)(self.directories)
        return dataclasses.replace(used, io_waits_seconds=_pressure(self.directories))

    def remove(self) -> None:
        """Removes it; processes that are left go back to the group above."""
        for directory in self.directories:
            _remove(directory)


def make_monitored_group(proc: Path = PROC) -> MonitoredGroup:
    """A new group; those of watchers that were killed are removed first.

    Raises:
        OSError: It may not be made here, or no hierarchy is mounted.
    """
    version, parents = own_groups(
        (proc / "self" / "cgroup").read_text(), (proc / "self" / "mountinfo").read_text()
    )
    if not parents:
        raise OSError("no control groups are mounted")
    for parent in parents:
        remove_stale_groups(parent, proc)
    me = process(os.getpid(), proc)
    name = f"{PREFIX}-{os.getpid()}-{me.started if me else 0}"
    made = MonitoredGroup(version, tuple(parent / name for parent in parents))
    try:
        for directory in made.directories:
            directory.mkdir()
            _let_count(directory)
    except OSError:
        made.remove()
        raise
    return made


def remove_stale_groups(parent: Path, proc: Path = PROC) -> None:
    """Removes the groups in ``parent`` whose maker is no more."""
    for directory in parent.glob(f"{PREFIX}-*-*"):
        found = re.fullmatch(rf"{PREFIX}-(\d+)-(\d+)", directory.name)
        maker = process(int(found[1]), proc) if found else None
        if found and (maker is None or maker.started != int(found[2])):
            _remove(directory)


def own_groups(membership: str, mounts: str) -> tuple[int, list[Path]]:
    """Which version counts I/O, and the directories of the groups that we are in.

    Args:
        membership: As ``/proc/self/cgroup`` has it.
        mounts: As ``/proc/self/mountinfo`` has it.
    """
    first: list[Path | None] = []
    second: list[Path | None] = []
    for line in membership.splitlines():
        _, controllers, group = line.split(":", 2)
        for controller in {"cpuacct", "blkio"} & {*controllers.split(",")}:
            first.append(group_dir(mounts, "cgroup", controller, group))
        if not controllers:
            second.append(group_dir(mounts, "cgroup2", "", group))
    seen = [sorted({path for path in found if path}) for found in (first, second)]
    return (1, seen[0] + seen[1]) if seen[0] else (2, seen[1])


def _let_count(directory: Path) -> None:
    """Has blkio of version 1, if this is one of its groups, count the I/O of each device.

    Its groups do not hold those inside them to their limits, so ours gets those of the one above.
    """
    for limit in directory.glob("blkio.throttle.*s_device"):
        above = (_text(directory.parent / limit.name) or "").splitlines()
        held = {line.split()[0] for line in above}
        free = device_numbers().keys() - held if "_bps_" in limit.name else ()
        for rule in (*above, *(f"{number} {NO_LIMIT}" for number in free)):
            with suppress(OSError):  # A device without a queue has no limits.
                limit.write_text(rule)


def _first(directories: Iterable[Path]) -> GroupUsage:
    cpu = reads = writes = moved = None
    for directory in directories:
        cpu = cpu or _text(directory / "cpuacct.usage")
        counted = _text(directory / "blkio.throttle.io_serviced_recursive")
        if counted is not None:
            operations = _by_device(counted).values()
            reads = sum(read for read, _ in operations)
            writes = sum(written for _, written in operations)
            moved = _by_device(_text(directory / "blkio.throttle.io_service_bytes_recursive") or "")
    return GroupUsage(int(cpu) / 1e9 if cpu else None, reads, writes, moved)


def _by_device(text: str) -> dict[str, tuple[int, int]]:
    """Reads and writes of lines like ``254:0 Read 4096``."""
    found: dict[str, tuple[int, int]] = {}
    for line in text.splitlines():
        device, what, *value = line.split()
        if value and what in ("Read", "Write"):
            read, written = found.get(device, (0, 0))
            found[device] = (int(value[0]), written) if what == "Read" else (read, int(value[0]))
    return found


def _second(directories: Iterable[Path]) -> GroupUsage:
    (directory,) = directories
    cpu = _text(directory / "cpu.stat") or ""
    used = dict(line.split() for line in cpu.splitlines()).get("usage_usec")
    moved = _text(directory / "io.stat")
    seconds = int(used) / 1e6 if used else None
    if moved is None:
        return GroupUsage(cpu_seconds=seconds)
    reads = writes = 0
    devices = {}
    for line in moved.splitlines():
        device, *pairs = line.split()
        values = {name: int(value) for name, _, value in (pair.partition("=") for pair in pairs)}
        devices[device] = (values.get("rbytes", 0), values.get("wbytes", 0))
        reads += values.get("rios", 0)
        writes += values.get("wios", 0)
    return GroupUsage(seconds, reads, writes, devices)


def _pressure(directories: Iterable[Path]) -> float | None:
    for directory in directories:
        for line in (_text(directory / "io.pressure") or "").splitlines():
            kind, *_, total = line.split()
            if kind == "some":
                return int(total.removeprefix("total=")) / 1e6
    return None


def _remove(directory: Path) -> None:
    for inner in [*directory.glob("*/")]:
        _remove(inner)
    for _ in range(TRIES):
        try:
            directory.rmdir()
            return
        except FileNotFoundError:
            return
        except OSError:
            with suppress(OSError):
                for pid in (directory / "cgroup.procs").read_text().split():
                    (directory.parent / "cgroup.procs").write_text(pid)
            time.sleep(0.01)


def _text(path: Path) -> str | None:
    try:
        return path.read_text()
    except OSError:
        return None
