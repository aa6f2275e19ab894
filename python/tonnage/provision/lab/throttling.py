"""What holds a node to its cores, its memory and its disks' rates: its control groups.

Version 2 of a controller is used where it is (``cpu.max``, ``memory.max``, ``io.max``), version 1
otherwise (``cpu.cfs_quota_us``, ``memory.limit_in_bytes``, ``blkio.throttle.*``); each controller
may be of either. Documents:
Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/blkio-controller.rst of Linux.

In version 1 what the page cache writes back is charged to the top group alone. So a node's disks
have their rates for writing there too: writes through the page cache are throttled as well, in
addition to direct writes. In version 2 it is charged to who wrote it where the group
has memory and io.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tonnage.base.system import Change, Command, Undo
from tonnage.base.system.cgroups import create_group, group_dir, write_setting
from tonnage.provision.lab.config import DiskConfig
from tonnage.provision.lab.nodes import Node

MOUNTS = Path("/proc/self/mountinfo")
PERIOD_MICROSECONDS = 20_000
"""Period of a node's CPU quota: short compared to the time that a link's queue holds."""
MIN_QUOTA_MICROSECONDS = 1000
"""The kernel deals out no less."""
FIRST = {"cpu": "cpu", "io": "blkio", "memory": "memory"}
"""What version 1 calls the controllers."""
FIRST_WORDS = 'while read -r word _; do if [ "$word" = "$1" ]; then echo "$word"; fi; done < "$2"'
"""Prints a word once for each line that begins with it."""


@dataclass(frozen=True)
class Controller:
    """The top group of the hierarchy that has a controller."""

    name: str
    """cpu, io or memory, which in version 2 also lets io know who wrote."""
    version: int
    top: Path


def controllers(mounts: str | None = None) -> dict[str, Controller]:
    """The controllers that a lab needs and this machine has, by name.

    ``mounts`` has the format of ``/proc/self/mountinfo``, which is read by default.
    """
    mounts = MOUNTS.read_text() if mounts is None else mounts
    second = group_dir(mounts, "cgroup2", "", "/")
    has = set[str]()
    found: dict[str, Controller] = {}
    with suppress(OSError):
        has = set((second / "cgroup.controllers").read_text().split() if second else ())
    for name, first in FIRST.items():
        top = group_dir(mounts, "cgroup", first, "/")
        if second and name in has and (name != "memory" or _is_second(found.get("io"))):
            found[name] = Controller(name, 2, second)
        elif top:
            found[name] = Controller(name, 1, top)
    return found


def _is_second(controller: Controller | None) -> bool:
    return controller is not None and controller.version == 2


def group_directories(node: Node, known: Iterable[Controller]) -> list[Path]:
    return [top / node.group for top in dict.fromkeys(each.top for each in known)]


def enable_controllers(known: Iterable[Controller]) -> list[Command]:
    """What lets groups below the top of version 2 have the controllers.

    They stay handed out: others may count on them by the time that the lab goes.
    """
    return [
        write_setting(each.top / "cgroup.subtree_control", f"+{each.name}")
        for each in known
        if each.version == 2
    ]


def create_groups(node: Node, known: Iterable[Controller]) -> list[Change]:
    known = list(known)
    steps = [create_group(directory) for directory in group_directories(node, known)]
    for each in known:
        if each.name == "cpu" and node.machine.cpus is not None:
            steps += map(Change, cpu_quota(each, node.group, node.machine.cpus))
        if each.name == "memory" and node.machine.memory_bytes is not None:
            file = "memory.max" if each.version == 2 else "memory.limit_in_bytes"
            limit = write_setting(each.top / node.group / file, str(node.machine.memory_bytes))
            steps.append(Change(limit))
    return steps


def cpu_quota(cpu: Controller, group: str, cpus: float | None) -> list[Command]:
    """A share of cores for a group; ``None`` for all."""
    period = PERIOD_MICROSECONDS
    quota = None if cpus is None else max(round(cpus * period), MIN_QUOTA_MICROSECONDS)
    directory = cpu.top / group
    if cpu.version == 2:
        return [
            write_setting(directory / "cpu.max", f"{'max' if quota is None else quota} {period}")
        ]
    return [
        write_setting(directory / "cpu.cfs_period_us", str(period)),
        write_setting(directory / "cpu.cfs_quota_us", str(-1 if quota is None else quota)),
    ]


def throttle_steps(
    io: Controller, group: str, device: str, disk: DiskConfig, factor: float
) -> Iterator[Change]:
    """Limit a device (``major:minor``) for a group, ``factor`` times slower than the disk."""
    names = ("read_bps", "write_bps", "read_iops", "write_iops")
    rates = {
        name: max(round(limit / factor), 1)
        for name, limit in zip(names, disk.limits.values(), strict=True)
        if limit is not None
    }
    if io.version == 2:
        words = [f"{name[0]}{name.partition('_')[2]}={rate}" for name, rate in rates.items()]
        if text := " ".join(words):
            yield Change(write_setting(io.top / group / "io.max", f"{device} {text}"))
        return
    for name, rate in rates.items():
        file = f"blkio.throttle.{name}_device"
        yield Change(write_setting(io.top / group / file, f"{device} {rate}"))
        if name.startswith("write"):
            yield _of_the_top(io.top / file, device, rate)


def remove_throttles(io: Controller, pattern: str, devices: Iterable[str]) -> None:
    """Lift the limits of devices in groups of this pattern, and in the top group.

    What waits for the devices gets through.
    """
    first = "blkio.throttle.*s_device"
    if io.version == 2:
        free, files = "rbps=max wbps=max riops=max wiops=max", [*io.top.glob(f"{pattern}/io.max")]
    else:
        free, files = "0", [*io.top.glob(f"{pattern}/**/{first}"), *io.top.glob(first)]
    ours = set(devices)
    for file in files:
        with suppress(OSError):  # The group is gone, or the device.
            for number in (line.split()[0] for line in file.read_text().splitlines()):
                if number in ours:
                    file.write_text(f"{number} {free}\n")


def device_number(device: str) -> str:
    """A device's numbers, ``major:minor``."""
    number = os.stat(device).st_rdev
    return f"{os.major(number)}:{os.minor(number)}"


def _of_the_top(file: Path, device: str, rate: int) -> Change:
    """A device's rate in the top group, which stays with the device when the lab is gone."""
    undo = Undo(
        commands=(write_setting(file, f"{device} 0"),),
        question=("sh", "-c", FIRST_WORDS, "sh", device, str(file)),
        answers=(device,),
    )
    return Change(write_setting(file, f"{device} {rate}"), (undo,))
