"""A control group for what is watched: its CPU to the nanosecond, and its I/O by device.

The group is made inside the group that we are in, so that all limits still hold. In version 2 it
has what the group above hands out: CPU time always, I/O if ``io`` is there. In version 1 it has CPU
time (cpuacct) alone: blkio counts only what a limit is set for, and charges to nobody what is
written back. Bytes are therefore taken from ``/proc`` in any case, and memory too, since a group
counts the page cache as well.

A group's name tells which process made it, so the next one removes what a killed one left.
"""

from __future__ import annotations

import os
import re
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tonnage.measure.observe.processes import PROC, process

PREFIX = "tonnage-observe"
TRIES = 20
"""How often, 10 ms apart, a group is tried to be removed: the last process may still be leaving."""


@dataclass(frozen=True)
class Charged:
    """What a group has used."""

    cpu_seconds: float | None = None
    reads: int | None = None
    writes: int | None = None
    device_bytes: dict[str, tuple[int, int]] | None = None
    """Bytes read and written by ``major:minor``."""


@dataclass(frozen=True)
class Group:
    """One group."""

    version: int
    directory: Path

    @property
    def entrance(self) -> Path:
        """A file to which a process writes 0 to enter."""
        return self.directory / "cgroup.procs"

    def members(self) -> list[int]:
        """The processes in it, and in groups that they made in it."""
        inside = self.directory.rglob("cgroup.procs")
        return [int(line) for entrance in inside for line in entrance.read_text().split()]

    def charged(self) -> Charged:
        """What those in it have used so far, and those that have ended."""
        return (_second if self.version == 2 else _first)(self.directory)

    def remove(self) -> None:
        """Removes it; processes that are left go back to the group above."""
        _remove(self.directory)


def make(proc: Path = PROC) -> Group:
    """A new group; those of watchers that were killed are removed first.

    Raises:
        OSError: It may not be made here, or no hierarchy is mounted.
    """
    found = place((proc / "self" / "cgroup").read_text(), (proc / "self" / "mountinfo").read_text())
    if found is None:
        raise OSError("no control groups are mounted")
    version, parent = found
    sweep(parent, proc)
    me = process(os.getpid(), proc)
    made = Group(version, parent / f"{PREFIX}-{os.getpid()}-{me.started if me else 0}")
    made.directory.mkdir()
    return made


def sweep(parent: Path, proc: Path = PROC) -> None:
    """Removes the groups in ``parent`` whose maker is no more."""
    for directory in parent.glob(f"{PREFIX}-*-*"):
        found = re.fullmatch(rf"{PREFIX}-(\d+)-(\d+)", directory.name)
        maker = process(int(found[1]), proc) if found else None
        if found and (maker is None or maker.started != int(found[2])):
            _remove(directory)


def place(membership: str, mounts: str) -> tuple[int, Path] | None:
    """Which version to use, and the directory of the group that we are in; None if there is none.

    Args:
        membership: As ``/proc/self/cgroup`` has it.
        mounts: As ``/proc/self/mountinfo`` has it.
    """
    second = None
    for line in membership.splitlines():
        _, controllers, group = line.split(":", 2)
        if "cpuacct" in controllers.split(","):
            first = _mounted(mounts, "cgroup", "cpuacct", group)
            if first:
                return 1, first
        elif not controllers:
            second = _mounted(mounts, "cgroup2", "", group)
    return (2, second) if second else None


def _mounted(mounts: str, kind: str, controller: str, group: str) -> Path | None:
    """Where a group of a hierarchy is, if that is mounted."""
    for line in mounts.splitlines():
        fields, _, source = line.partition(" - ")
        mounted, _, options = source.split(" ", 2)
        if mounted != kind or (controller and controller not in options.split(",")):
            continue
        root, point = fields.split()[3:5]
        inside = os.path.relpath(group, root)
        # A group outside of what is mounted cannot be seen: then its top is the nearest.
        return Path(point) if inside.startswith("..") else Path(point) / inside
    return None


def _first(directory: Path) -> Charged:
    cpu = _text(directory / "cpuacct.usage")
    return Charged(int(cpu) / 1e9 if cpu else None)


def _second(directory: Path) -> Charged:
    cpu = _text(directory / "cpu.stat") or ""
    used = dict(line.split() for line in cpu.splitlines()).get("usage_usec")
    moved = _text(directory / "io.stat")
    seconds = int(used) / 1e6 if used else None
    if moved is None:
        return Charged(cpu_seconds=seconds)
    reads = writes = 0
    devices = {}
    for line in moved.splitlines():
        device, *pairs = line.split()
        values = {name: int(value) for name, _, value in (pair.partition("=") for pair in pairs)}
        devices[device] = (values.get("rbytes", 0), values.get("wbytes", 0))
        reads += values.get("rios", 0)
        writes += values.get("wios", 0)
    return Charged(seconds, reads, writes, devices)


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
