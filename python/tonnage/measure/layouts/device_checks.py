"""Devices and files that are given to be laid out: what may not be is refused before it is touched.

Nothing allows a device that is in use: the kernel's own answer to an exclusive opening is asked,
which knows of mounts in every namespace, of swap and of whatever is built on a device. A signature
of a file system, of a part of an array or of a partition table is refused too, unless what is
there may be destroyed.
"""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tonnage.base import core
from tonnage.base.system import Change, Execute
from tonnage.base.system.block_devices import attach_loop_device

DEVICES = Path("/sys/dev/block")
LOOPS = Path("/sys/block")
SWAPS = Path("/proc/swaps")


@dataclass(frozen=True)
class TargetDevice:
    """A block device, or a regular file that can become one."""

    path: Path
    is_file: bool
    size_bytes: int
    signatures: tuple[str, ...]
    """What it holds: names of file systems, arrays, partition tables."""


def check_devices(names: Sequence[Path], execute: Execute, *, destroy: bool) -> list[TargetDevice]:
    """What the names stand for, all of it usable.

    Raises:
        UsageError: One is no device and no file, is given twice, is in use, or holds something and
            ``destroy`` does not allow that.
    """
    found = [_look_at(name, execute, destroy) for name in names]
    _refuse_twice(found)
    return found


def preparation(
    given: Sequence[TargetDevice], devices: dict[str, TargetDevice], execute: Execute
) -> Iterator[Change]:
    """Files become loop devices, and what may be destroyed goes; ``devices`` are filled in."""
    for each in given:
        device = str(each.path)
        if each.is_file:
            device = execute(("losetup", "--find"))
            yield attach_loop_device(each.path, device)
        if each.signatures:
            yield Change(("wipefs", "--all", device))
        devices[device] = each


def _look_at(name: Path, execute: Execute, destroy: bool) -> TargetDevice:
    try:
        path = name.resolve(strict=True)
        about = path.stat()
    except OSError as why:
        raise core.UsageError(f"{name}: {why.strerror}: give a device or a file") from why
    is_file = stat.S_ISREG(about.st_mode)
    if not is_file and not stat.S_ISBLK(about.st_mode):
        raise core.UsageError(f"{name} is no block device and no regular file: give one")
    for user in _users(path, is_file, execute):
        raise core.UsageError(f"{name} {user}: give a device or a file that nothing uses")
    found = execute(("wipefs", "--no-act", "--noheadings", "--output", "TYPE", str(path)))
    signatures = tuple(dict.fromkeys(found.split()))
    if signatures and not destroy:
        raise core.UsageError(
            f"{name} holds {', '.join(signatures)}: give an empty one, or --destroy to lose what "
            "it holds"
        )
    size = about.st_size if is_file else _sectors(about.st_rdev) * 512
    return TargetDevice(path, is_file, size, signatures)


def _users(path: Path, is_file: bool, execute: Execute) -> Iterator[str]:
    """Who uses it, in words that follow its name."""
    for loop in LOOPS.glob("loop*/loop/backing_file"):
        if _is_same(Path(loop.read_text().removesuffix("\n")), path):
            yield f"is attached as /dev/{loop.parent.parent.name}"
    if is_file:
        swaps = [line.split()[0] for line in SWAPS.read_text().splitlines()[1:]]
        if any(_is_same(Path(swap), path) for swap in swaps):
            yield "is used as swap"
        return
    columns = ("--output", "PATH,TYPE,MOUNTPOINTS")
    trees = json.loads(execute(("lsblk", "--json", *columns, str(path))))["blockdevices"]
    for tree in trees:  # Partitions of a loop device stand beside it, others below theirs.
        yield from _users_in(tree)
    try:
        os.close(os.open(path, os.O_RDONLY | os.O_EXCL))
    except OSError as why:
        in_use = why.errno == errno.EBUSY
        yield "is in use" if in_use else f"cannot be opened ({why.strerror})"
    if (DEVICES / _number(path.stat().st_rdev) / "ro").read_text().strip() != "0":
        yield "can only be read"


def _users_in(tree: dict[str, Any]) -> Iterator[str]:
    """Mounts of a device and of its partitions, and what is built on them."""
    for point in filter(None, tree["mountpoints"]):
        yield "is used as swap" if point == "[SWAP]" else f"is mounted at {point} ({tree['path']})"
    for child in tree.get("children", []):
        if child["type"] != "part":
            yield f"is part of {child['path']}"
        yield from _users_in(child)


def _refuse_twice(given: Sequence[TargetDevice]) -> None:
    """Refuses what is the same under two names, or a part of another."""
    places: dict[Path, Path] = {}
    for each in given:
        about = each.path.stat()
        place = Path(f"{about.st_dev}:{about.st_ino}")
        if not each.is_file:
            place = (DEVICES / _number(about.st_rdev)).resolve()
        for other, name in places.items():
            if place == other:
                raise core.UsageError(f"{each.path} is given twice: give each device once")
            if other in place.parents or place in other.parents:
                raise core.UsageError(f"{each.path} and {name} overlap: give one of them")
        places[place] = each.path


def _is_same(path: Path, other: Path) -> bool:
    try:
        return path.samefile(other)
    except OSError:
        return False  # It has lost its name.


def _sectors(device: int) -> int:
    return int((DEVICES / _number(device) / "size").read_text())


def _number(device: int) -> str:
    return f"{os.major(device)}:{os.minor(device)}"
