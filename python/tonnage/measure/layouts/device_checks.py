"""Check the devices and files to lay out, and refuse unusable ones before anything is changed.

A device in use is always refused. An exclusive open asks the kernel, which knows of mounts in every
namespace, of swap, and of whatever is built on a device. A signature of a file system, an array
member or a partition table is refused, too, unless the data may be destroyed.
"""

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
from tonnage.base.system.block_devices import NUMBERED, attach_loop_device, loop_devices
from tonnage.base.system.procfs import SECTOR_BYTES

SWAPS = Path("/proc/swaps")


@dataclass(frozen=True)
class TargetDevice:
    """A block device, or a regular file that can become one."""

    path: Path
    is_file: bool
    size_bytes: int
    signatures: tuple[str, ...]
    """What it contains: names of file systems, arrays, partition tables."""


def check_devices(names: Sequence[Path], execute: Execute, *, destroy: bool) -> list[TargetDevice]:
    """Check that devices and files are distinct, unused and, unless ``destroy``, empty."""
    targets = [_check(name, execute, destroy) for name in names]
    _require_distinct(targets)
    return targets


def preparation(
    targets: Sequence[TargetDevice], devices: dict[str, TargetDevice], execute: Execute
) -> Iterator[Change]:
    """Attach files as loop devices and wipe old signatures; fills in ``devices``."""
    for target in targets:
        device = str(target.path)
        if target.is_file:
            device = execute(("losetup", "--find"))
            yield attach_loop_device(target.path, device)
        if target.signatures:
            yield Change(("wipefs", "--all", device))
        devices[device] = target


def _check(name: Path, execute: Execute, destroy: bool) -> TargetDevice:
    try:
        path = name.resolve(strict=True)
        status = path.stat()
    except OSError as why:
        raise core.UsageError(f"{name}: {why.strerror}; specify a device or a file") from why
    is_file = stat.S_ISREG(status.st_mode)
    if not is_file and not stat.S_ISBLK(status.st_mode):
        raise core.UsageError(
            f"{name} is neither a block device nor a regular file; specify one of these"
        )
    for user in _users(path, is_file, execute):
        raise core.UsageError(f"{name} {user}; use an unused device or file")
    output = execute(("wipefs", "--no-act", "--noheadings", "--output", "TYPE", str(path)))
    signatures = tuple(dict.fromkeys(output.split()))
    if signatures and not destroy:
        raise core.UsageError(
            f"{name} contains a file system, partition table or other signature "
            f"({', '.join(signatures)}); use an empty device, or allow destroying its data",
            setting="destroy",
        )
    size = status.st_size if is_file else _sectors(status.st_rdev) * SECTOR_BYTES
    return TargetDevice(path, is_file, size, signatures)


def _users(path: Path, is_file: bool, execute: Execute) -> Iterator[str]:
    """How a device or file is in use, in words that follow its name."""
    for file, device in loop_devices().items():
        if _is_same(file, path):
            yield f"is attached as {device}"
    if is_file:
        swaps = [line.split()[0] for line in SWAPS.read_text().splitlines()[1:]]
        if any(_is_same(Path(swap), path) for swap in swaps):
            yield "is used as swap"
        return
    columns = ("--output", "PATH,TYPE,MOUNTPOINTS")
    trees = json.loads(execute(("lsblk", "--json", *columns, str(path))))["blockdevices"]
    # Partitions of a loop device are listed next to it, others below their disk.
    for tree in trees:
        yield from _users_in(tree)
    try:
        os.close(os.open(path, os.O_RDONLY | os.O_EXCL))
    except OSError as why:
        in_use = why.errno == errno.EBUSY
        yield "is in use" if in_use else f"cannot be opened ({why.strerror})"
    if (NUMBERED / _number(path.stat().st_rdev) / "ro").read_text().strip() != "0":
        yield "is read-only"


def _users_in(tree: dict[str, Any]) -> Iterator[str]:
    """Mounts of a device and its partitions, and devices built on them."""
    for point in filter(None, tree["mountpoints"]):
        yield "is used as swap" if point == "[SWAP]" else f"is mounted at {point} ({tree['path']})"
    for child in tree.get("children", []):
        if child["type"] != "part":
            yield f"is part of {child['path']}"
        yield from _users_in(child)


def _require_distinct(targets: Sequence[TargetDevice]) -> None:
    """Raise `UsageError` if two are the same, or one is part of another."""
    places: dict[Path, Path] = {}
    for target in targets:
        status = target.path.stat()
        place = Path(f"{status.st_dev}:{status.st_ino}")
        if not target.is_file:
            place = (NUMBERED / _number(status.st_rdev)).resolve()
        for other, name in places.items():
            if place == other:
                raise core.UsageError(f"{target.path} is listed twice; list each device once")
            if other in place.parents or place in other.parents:
                raise core.UsageError(f"{target.path} and {name} overlap; use only one of them")
        places[place] = target.path


def _is_same(path: Path, other: Path) -> bool:
    try:
        return path.samefile(other)
    except OSError:
        return False  # The file was removed.


def _sectors(device: int) -> int:
    return int((NUMBERED / _number(device) / "size").read_text())


def _number(device: int) -> str:
    return f"{os.major(device)}:{os.minor(device)}"
