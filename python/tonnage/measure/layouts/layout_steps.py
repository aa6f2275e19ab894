"""Layouts of devices as data: the commands that make one, and how to undo each.

    single      a file system on the first device
    separate    a file system on each device
    jbod        one file system over all, one device after another
    raid0       one file system over all, striped

btrfs joins devices itself. For other file systems LVM joins them, which needs the kernel's device
mapper: linear volumes make a jbod, striped ones a raid0. All layouts of a measurement have the same
file system, so that only the layout differs.

Every file system and every physical volume gets a UUID that is drawn in advance, so that undoing
wipes only what was made here. After a reboot a file is not a loop device any more, so it can be
wiped as a file, too.
"""

import os
import secrets
import shutil
import string
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from tonnage.base import core
from tonnage.base.records import SINGLE
from tonnage.base.system import Change, Command, Undo
from tonnage.base.system.block_devices import mkfs_command, mount_steps

LAYOUTS = (SINGLE, "separate", "jbod", "raid0")
JOINED = ("jbod", "raid0")
FILE_SYSTEMS = {"xfs": "xfsprogs", "ext4": "e2fsprogs", "btrfs": "btrfs-progs"}
"""In order of preference, each with the package of its mkfs."""
STRIPE_BYTES = 512 << 10
"""LVM's stripe by default. Stripes of btrfs are always 64 KiB."""
MIN_STRIPE_BYTES = 4 << 10

CONTROL = Path("/dev/mapper/control")
"""Can be opened if the kernel has a device mapper or can load it."""
LVM_UUID_GROUPS = (6, 4, 4, 4, 4, 4, 6)


@dataclass(frozen=True)
class Method:
    """How this machine makes layouts."""

    file_system: str
    joined_by: str
    """lvm or btrfs."""
    lvm_obstacle: str
    """Why LVM cannot join devices; empty if it can."""
    stripe_bytes: int | None
    """`None` if it cannot be chosen."""


@dataclass(frozen=True)
class LayoutPlan:
    changes: tuple[Change, ...]
    mounts: tuple[Path, ...]
    devices: tuple[str, ...]


def choose_method(
    layouts: Sequence[str], file_system: str | None, stripe_bytes: int | None
) -> Method:
    """Choose how this machine makes the layouts; `UsageError` says what is missing if it cannot."""
    if stripe_bytes is not None and (
        stripe_bytes < MIN_STRIPE_BYTES or stripe_bytes.bit_count() != 1
    ):
        raise core.UsageError("must be a power of two, and at least 4KiB", setting="stripe_bytes")
    joined = [layout for layout in layouts if layout in JOINED]
    no_lvm = lvm_obstacle()
    reasons = []
    for name in [file_system] if file_system else FILE_SYSTEMS:
        if shutil.which(f"mkfs.{name}") is None:
            reasons.append(f"mkfs.{name} is missing (install {FILE_SYSTEMS[name]})")
        elif name == "btrfs" and stripe_bytes and "raid0" in layouts:
            reasons.append("btrfs stripes are always 64 KiB, so omit the stripe size")
        elif name == "btrfs":
            return Method(name, "btrfs", no_lvm, None)
        elif joined and no_lvm:
            reasons.append(f"{' and '.join(joined)} with {name} need LVM, and {no_lvm}")
        else:
            return Method(name, "lvm", no_lvm, stripe_bytes or STRIPE_BYTES)
    raise core.UsageError(
        f"{'; '.join(reasons)}; fix this, or choose another file system or layout",
        setting="file_system" if file_system else None,
    )


def lvm_obstacle() -> str:
    try:
        os.close(os.open(CONTROL, os.O_RDONLY))
    except OSError:
        return "this kernel has no device mapper"
    return "" if shutil.which("lvm") else "lvm is missing (install lvm2)"


def plan_layout(
    layout: str,
    devices: Sequence[str],
    method: Method,
    room: Path,
    files: Mapping[str, Path] = MappingProxyType({}),
) -> LayoutPlan:
    """Plan the commands that make a layout; ``files`` are those below loop devices."""
    used = (devices[0],) if layout == SINGLE else tuple(devices)
    groups = [used] if layout in JOINED else [(device,) for device in used]
    changes: list[Change] = []
    if layout in JOINED and method.joined_by == "lvm":
        joining, volume = _joined_by_lvm(layout, used, method.stripe_bytes or STRIPE_BYTES, files)
        changes, groups = joining, [(volume,)]
    mounts = []
    for number, group in enumerate(groups):
        mounts.append(room / f"{layout}-{number}")
        changes.append(_make_file_system(method.file_system, group, files, layout == "raid0"))
        changes += mount_steps(method.file_system, group, mounts[-1])
    return LayoutPlan(tuple(changes), tuple(mounts), used)


def describe_method(layout: str, method: Method) -> str:
    if layout not in JOINED:
        return f"{method.file_system} on {'each' if layout == 'separate' else 'one'}"
    if method.joined_by == "btrfs":
        why = f" ({method.lvm_obstacle})" if method.lvm_obstacle else ""
        return f"btrfs {'single' if layout == 'jbod' else 'raid0'}{why}"
    striped = f"striped by {(method.stripe_bytes or STRIPE_BYTES) >> 10} KiB"
    return f"{method.file_system} on LVM, {'linear' if layout == 'jbod' else striped}"


def _joined_by_lvm(
    layout: str, devices: Sequence[str], stripe_bytes: int, files: Mapping[str, Path]
) -> tuple[list[Change], str]:
    """The changes that join the devices to one volume, and its path."""
    group = f"tonnage-{secrets.token_hex(6)}"
    changes = []
    for device in devices:
        uuid_ = _lvm_uuid()
        make = ("lvm", "pvcreate", "--uuid", uuid_, "--norestorefile", device)
        wipe = _wipe(device, uuid_, ("lvm", "pvremove", "--yes", "--force", device))
        changes.append(Change(make, (*_wipe_files(files, [device], uuid_), wipe)))
    undo = Undo(
        commands=(("lvm", "vgremove", "--yes", "--force", group),),
        question=("lvm", "vgs", "--noheadings", "--options", "vg_name", group),
        answers=(group,),
    )
    changes.append(Change(("lvm", "vgcreate", group, *devices), (undo,)))
    volume = ("lvm", "lvcreate", "--yes", "--extents", "100%FREE", "--name", "data")
    striped = ("--stripes", str(len(devices)), "--stripesize", f"{stripe_bytes}b")
    changes.append(Change((*volume, *(striped if layout == "raid0" else ()), group)))
    return changes, f"/dev/{group}/data"


def _make_file_system(
    name: str, devices: Sequence[str], files: Mapping[str, Path], striped: bool
) -> Change:
    uuid_ = str(uuid.uuid4())
    make = mkfs_command(name, uuid_)
    forget: list[Command] = []
    if name == "btrfs":
        profile = "raid0" if striped else "single"
        make = (*make, "-d", profile, "-m", profile)
        forget = [("btrfs", "device", "scan", "--forget", *devices)]
    undos = [_wipe(device, uuid_, *forget) for device in devices]
    return Change((*make, *devices), (*_wipe_files(files, devices, uuid_), *undos))


def _wipe(device: str, uuid_: str, *first: Command) -> Undo:
    """Wipe a device if it holds something with this UUID."""
    return Undo(
        # Discarding frees the blocks on the device, or in the file system that holds a file.
        commands=(*first, ("wipefs", "--all", device), ("blkdiscard", device)),
        question=("blkid", "--probe", "--match-tag", "UUID", "--output", "value", device),
        answers=(uuid_,),
    )


def _wipe_files(files: Mapping[str, Path], devices: Sequence[str], uuid_: str) -> list[Undo]:
    """Wipe the files of loop devices; earlier in the list, so undone after the devices."""
    return [_wipe(str(files[device]), uuid_) for device in devices if device in files]


def _lvm_uuid() -> str:
    letters = string.ascii_letters + string.digits
    parts = ("".join(secrets.choice(letters) for _ in range(count)) for count in LVM_UUID_GROUPS)
    return "-".join(parts)
