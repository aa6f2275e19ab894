"""Control groups: find them, create and remove them, end their processes, read their counters.

A `MonitoredGroup` counts the CPU time and the I/O of its processes. It is made inside the group of
this process, so that all limits still hold. Its name contains the maker's process id, so that the
next one can remove what a killed process left.

In cgroup v2 it has the controllers that the parent group delegates: CPU time and pressure always,
I/O if ``io`` is among them. In v1 it is two groups, of cpuacct and of blkio. blkio counts only
devices with a limit, so each gets one that is never reached; and it charges writeback to nobody. So
bytes are read from ``/proc`` in any case. So is memory, since a group counts the page cache as
well. Where v2 is mounted alongside v1, a third group gives the pressure: how long processes waited
for I/O (Documentation/accounting/psi).
"""

import dataclasses
import os
import re
import signal
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tonnage.base.core import RunError
from tonnage.base.system.block_devices import device_names
from tonnage.base.system.processes import read_process
from tonnage.base.system.procfs import PROC, optional_text
from tonnage.base.system.undo_journal import Change, Command, Undo

MEMBERSHIP = PROC / "self" / "cgroup"
ROOT = Path("/sys/fs/cgroup")

KILL_TIMEOUT_SECONDS = 30.0
"""How long killed processes may take to end: one that waits for a device ends when it answers."""
PAUSE_SECONDS = 0.01
REMOVE_ATTEMPTS = 20
"""How often removing a group is tried, 10 ms apart: its last process may still be ending."""
MONITORED_PREFIX = "tonnage-observe"
NO_LIMIT = 10**15
"""Bytes per second."""


def group_dir(mounts: str, kind: str, controller: str, group: str) -> Path | None:
    """The directory of ``group``, if its hierarchy is mounted; ``mounts`` is the text of mountinfo.

    ``kind`` is ``cgroup`` or ``cgroup2``; an empty ``controller`` means any.
    """
    for line in mounts.splitlines():
        fields, _, source = line.partition(" - ")
        file_system, _, options = source.split(" ", 2)
        if file_system != kind or (controller and controller not in options.split(",")):
            continue
        root, point = fields.split()[3:5]
        inside = os.path.relpath(group, root)
        # A group outside of what is mounted is not visible: then the mount's top is the nearest.
        return Path(point) if inside.startswith("..") else Path(point) / inside
    return None


def processes_in(directories: Iterable[Path]) -> set[int]:
    pids: set[int] = set()
    for directory in directories:
        for file in directory.rglob("cgroup.procs"):
            with suppress(OSError):  # Just removed.
                pids |= set(map(int, file.read_text().split()))
    return pids


def create_group(directory: Path) -> Change:
    """Create a group; undoing removes it and all groups in it, once they have no processes."""
    path = str(directory)
    undo = Undo(
        commands=(("find", path, "-depth", "-type", "d", "-delete"),),
        question=("stat", "--format=%F", path),
        answers=("directory",),
    )
    return Change(("mkdir", path), (undo,))


def write_setting(file: Path, text: str) -> Command:
    """The command that writes a line to one of a group's files."""
    return ("sh", "-c", 'printf "%s\\n" "$1" > "$2"', "sh", text, str(file))


def kill_all(directories: Iterable[Path], spared: Iterable[int] = ()) -> None:
    """Kill all processes in these groups but the ``spared``; `RunError` if one does not end."""
    groups, spared_pids = list(directories), set(spared)
    deadline = time.monotonic() + KILL_TIMEOUT_SECONDS
    while pids := processes_in(groups) - spared_pids:
        if time.monotonic() > deadline:
            raise RunError(
                f"processes {sorted(pids)} do not end; check what they are waiting for, then retry"
            )
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(PAUSE_SECONDS)


def memory_limit() -> int | None:
    """The smallest memory limit in bytes of the control groups of this process, if any."""
    limits: list[int] = []
    for line in (optional_text(MEMBERSHIP) or "").splitlines():
        _, controllers, group = line.split(":", 2)
        if controllers == "memory":  # version 1
            root, name = ROOT / "memory", "memory.limit_in_bytes"
        elif not controllers:
            root, name = ROOT, "memory.max"
        else:
            continue
        # Parent groups limit too; in a container the group itself may not be visible.
        inner = Path(group.strip("/"))
        texts = [optional_text(root / path / name) for path in (inner, *inner.parents)]
        limits += [int(limit) for limit in texts if limit and limit.isdigit()]
    return min((limit for limit in limits if limit < 1 << 60), default=None)


@dataclass(frozen=True)
class GroupUsage:
    cpu_seconds: float | None = None
    reads: int | None = None
    writes: int | None = None
    device_bytes: dict[str, tuple[int, int]] | None = None
    """Bytes read and written by ``major:minor``."""
    io_waits_seconds: float | None = None
    """How long some process waited for I/O, averaged over the cores in use."""


@dataclass(frozen=True)
class MonitoredGroup:
    """One group, which has a directory in each hierarchy that it belongs to."""

    version: int
    directories: tuple[Path, ...]

    @property
    def procs_files(self) -> list[Path]:
        return [directory / "cgroup.procs" for directory in self.directories]

    def members(self) -> list[int]:
        return sorted(processes_in(self.directories[:1]))

    def usage(self) -> GroupUsage:
        """What its processes have used so far, including those that have ended."""
        usage = (_usage_v2 if self.version == 2 else _usage_v1)(self.directories)
        return dataclasses.replace(usage, io_waits_seconds=_io_pressure(self.directories))

    def remove(self) -> None:
        """Remove it; processes that are left move to the parent group."""
        for directory in self.directories:
            _remove(directory)


def make_monitored_group(proc: Path = PROC) -> MonitoredGroup:
    """Make a new group, and remove those of killed processes; `OSError` if that is refused."""
    version, parents = own_groups(
        (proc / "self" / "cgroup").read_text(), (proc / "self" / "mountinfo").read_text()
    )
    if not parents:
        raise OSError("no control groups are mounted")
    for parent in parents:
        remove_stale_groups(parent, proc)
    maker = read_process(os.getpid(), proc)
    name = f"{MONITORED_PREFIX}-{os.getpid()}-{maker.started if maker else 0}"
    group = MonitoredGroup(version, tuple(parent / name for parent in parents))
    try:
        for directory in group.directories:
            directory.mkdir()
            _enable_io_counters(directory)
    except OSError:
        group.remove()
        raise
    return group


def remove_stale_groups(parent: Path, proc: Path = PROC) -> None:
    for directory in parent.glob(f"{MONITORED_PREFIX}-*-*"):
        name = re.fullmatch(rf"{MONITORED_PREFIX}-(\d+)-(\d+)", directory.name)
        maker = read_process(int(name[1]), proc) if name else None
        if name and (maker is None or maker.started != int(name[2])):
            _remove(directory)


def own_groups(membership: str, mounts: str) -> tuple[int, list[Path]]:
    """The cgroup version that counts I/O, and this process's groups, from its ``/proc`` texts."""
    v1: list[Path | None] = []
    v2: list[Path | None] = []
    for line in membership.splitlines():
        _, controllers, group = line.split(":", 2)
        for controller in {"cpuacct", "blkio"} & {*controllers.split(",")}:
            v1.append(group_dir(mounts, "cgroup", controller, group))
        if not controllers:
            v2.append(group_dir(mounts, "cgroup2", "", group))
    first, second = (sorted({path for path in paths if path}) for paths in (v1, v2))
    return (1, first + second) if first else (2, second)


def _enable_io_counters(directory: Path) -> None:
    """Make blkio (v1) count I/O. A group is not held to its parent's limits, so copy them."""
    for limit in directory.glob("blkio.throttle.*s_device"):
        inherited = (optional_text(directory.parent / limit.name) or "").splitlines()
        limited = {line.split()[0] for line in inherited}
        unlimited = device_names().keys() - limited if "_bps_" in limit.name else ()
        for rule in (*inherited, *(f"{number} {NO_LIMIT}" for number in unlimited)):
            with suppress(OSError):  # A device without a queue has no limits.
                limit.write_text(rule)


def _usage_v1(directories: Iterable[Path]) -> GroupUsage:
    cpu = reads = writes = device_bytes = None
    for directory in directories:
        cpu = cpu or optional_text(directory / "cpuacct.usage")
        counted = optional_text(directory / "blkio.throttle.io_serviced_recursive")
        if counted is not None:
            operations = _by_device(counted).values()
            reads = sum(read for read, _ in operations)
            writes = sum(written for _, written in operations)
            counted = optional_text(directory / "blkio.throttle.io_service_bytes_recursive")
            device_bytes = _by_device(counted or "")
    return GroupUsage(int(cpu) / 1e9 if cpu else None, reads, writes, device_bytes)


def _by_device(text: str) -> dict[str, tuple[int, int]]:
    """Reads and writes of lines like ``254:0 Read 4096``."""
    counters: dict[str, tuple[int, int]] = {}
    for line in text.splitlines():
        device, direction, *value = line.split()
        if value and direction in ("Read", "Write"):
            read, written = counters.get(device, (0, 0))
            amount = int(value[0])
            counters[device] = (amount, written) if direction == "Read" else (read, amount)
    return counters


def _usage_v2(directories: Iterable[Path]) -> GroupUsage:
    (directory,) = directories
    cpu = dict(line.split() for line in (optional_text(directory / "cpu.stat") or "").splitlines())
    seconds = int(cpu["usage_usec"]) / 1e6 if cpu.get("usage_usec") else None
    io = optional_text(directory / "io.stat")
    if io is None:
        return GroupUsage(cpu_seconds=seconds)
    reads = writes = 0
    device_bytes = {}
    for line in io.splitlines():
        device, *pairs = line.split()
        values = {name: int(value) for name, _, value in (pair.partition("=") for pair in pairs)}
        device_bytes[device] = (values.get("rbytes", 0), values.get("wbytes", 0))
        reads += values.get("rios", 0)
        writes += values.get("wios", 0)
    return GroupUsage(seconds, reads, writes, device_bytes)


def _io_pressure(directories: Iterable[Path]) -> float | None:
    for directory in directories:
        for line in (optional_text(directory / "io.pressure") or "").splitlines():
            kind, *_, total = line.split()
            if kind == "some":
                return int(total.removeprefix("total=")) / 1e6
    return None


def _remove(directory: Path) -> None:
    for child in [*directory.glob("*/")]:
        _remove(child)
    for _ in range(REMOVE_ATTEMPTS):
        try:
            directory.rmdir()
            return
        except FileNotFoundError:
            return
        except OSError:
            with suppress(OSError):
                for pid in (directory / "cgroup.procs").read_text().split():
                    (directory.parent / "cgroup.procs").write_text(pid)
            time.sleep(PAUSE_SECONDS)
