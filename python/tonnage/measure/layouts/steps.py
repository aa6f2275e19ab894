"""Layouts of devices as data: which commands make one, and what undoes each.

    single      a file system on the first device
    separate    a file system on each
    jbod        one file system over all, one device after another
    raid0       one file system over all, striped

btrfs joins devices itself. Other file systems have them joined by LVM, which takes the kernel's
device mapper: its linear volumes are a jbod, its striped ones a raid0. All layouts of a measurement
have the same file system, so that what differs is the layout.

Every file system and every part of a volume is made with an identity that is drawn before, so what
is wiped afterwards is what was made here and nothing else. After a reboot a file is no loop device
any more, so what is in it can be wiped in the file too.
"""

from __future__ import annotations

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
"""In the order in which they are preferred, each with the package that makes it."""
STRIPE_BYTES = 512 << 10
"""Of LVM, if nothing else is asked for. Those of btrfs are always 64 KiB."""
LEAST_STRIPE_BYTES = 4 << 10

CONTROL = Path("/dev/mapper/control")
"""Can be opened if the kernel has a device mapper, or can load it."""
LVM_IDENTITY = (6, 4, 4, 4, 4, 4, 6)


@dataclass(frozen=True)
class Method:
    """How layouts are made here."""

    file_system: str
    joined_by: str
    """lvm or btrfs."""
    why_not_lvm: str
    """Why devices are not joined by it; empty if they can be."""
    stripe_bytes: int | None
    """`None` where it cannot be chosen."""


@dataclass(frozen=True)
class LayoutPlan:
    """A layout as it can be made."""

    changes: tuple[Change, ...]
    mounts: tuple[Path, ...]
    devices: tuple[str, ...]


def choose_method(
    layouts: Sequence[str], file_system: str | None, stripe_bytes: int | None
) -> Method:
    """How this machine can make the layouts.

    Args:
        layouts: Of `LAYOUTS`.
        file_system: Of `FILE_SYSTEMS`; ``None`` for the first that will do.
        stripe_bytes: How much of a raid0 lies together on a device; ``None`` for the default.

    Raises:
        UsageError: It cannot; the message says what is missing.
    """
    if stripe_bytes is not None and not _is_a_stripe(stripe_bytes):
        raise core.UsageError("--stripe: give a power of two from 4KiB on")
    joined = [layout for layout in layouts if layout in JOINED]
    no_lvm = lvm_obstacle()
    reasons = []
    for name in [file_system] if file_system else FILE_SYSTEMS:
        if shutil.which(f"mkfs.{name}") is None:
            reasons.append(f"mkfs.{name} is missing (install {FILE_SYSTEMS[name]})")
        elif name == "btrfs" and stripe_bytes and "raid0" in layouts:
            reasons.append("--stripe is not for btrfs, whose stripes are 64 KiB")
        elif name == "btrfs":
            return Method(name, "btrfs", no_lvm, None)
        elif joined and no_lvm:
            reasons.append(f"{' and '.join(joined)} of {name} take LVM, and {no_lvm}")
        else:
            return Method(name, "lvm", no_lvm, stripe_bytes or STRIPE_BYTES)
    flag = f"--file-system {file_system}: " if file_system else ""
    raise core.UsageError(
        f"{flag}{'; '.join(reasons)}: mend that, or give another --file-system or --layout"
    )


def _is_a_stripe(size_bytes: int) -> bool:
    return size_bytes >= LEAST_STRIPE_BYTES and size_bytes.bit_count() == 1


def lvm_obstacle() -> str:
    """Why LVM cannot join devices here; empty if it can."""
    try:
        os.close(os.open(CONTROL, os.O_RDONLY))
    except OSError:
        return "this kernel has no device mapper"
    return "" if shutil.which("lvm") else "there is no lvm (install lvm2)"


def plan_layout(
    layout: str,
    devices: Sequence[str],
    method: Method,
    room: Path,
    files: Mapping[str, Path] = MappingProxyType({}),
) -> LayoutPlan:
    """How to make a layout.

    Args:
        layout: Of `LAYOUTS`.
        devices: All that there are; a single one is the first.
        manner: How layouts are made.
        room: Where mount points are made.
        files: What those of the devices stand for that are loop devices.
    """
    used = (devices[0],) if layout == SINGLE else tuple(devices)
    groups = [used] if layout in JOINED else [(device,) for device in used]
    steps: list[Change] = []
    if layout in JOINED and method.joined_by == "lvm":
        joining, volume = _joined_by_lvm(layout, used, method.stripe_bytes or STRIPE_BYTES, files)
        steps, groups = joining, [(volume,)]
    mounts = []
    for number, group in enumerate(groups):
        mounts.append(room / f"{layout}-{number}")
        steps.append(_file_system(method.file_system, group, files, layout == "raid0"))
        steps += mount_steps(method.file_system, group, mounts[-1])
    return LayoutPlan(tuple(steps), tuple(mounts), used)


def describe_method(layout: str, method: Method) -> str:
    """What makes a layout, in words."""
    if layout not in JOINED:
        return f"{method.file_system} on {'each' if layout == 'separate' else 'one'}"
    if method.joined_by == "btrfs":
        why = f" ({method.why_not_lvm})" if method.why_not_lvm else ""
        return f"btrfs {'single' if layout == 'jbod' else 'raid0'}{why}"
    striped = f"striped by {(method.stripe_bytes or STRIPE_BYTES) >> 10} KiB"
    return f"{method.file_system} on LVM, {'linear' if layout == 'jbod' else striped}"


def _joined_by_lvm(
    layout: str, devices: Sequence[str], stripe_bytes: int, files: Mapping[str, Path]
) -> tuple[list[Change], str]:
    """Steps that make one volume of the devices, and its name."""
    group = f"tonnage-{secrets.token_hex(6)}"
    steps = []
    for device in devices:
        identity = _lvm_identity()
        make = ("lvm", "pvcreate", "--uuid", identity, "--norestorefile", device)
        wiped = _wiped(device, identity, ("lvm", "pvremove", "--yes", "--force", device))
        steps.append(Change(make, (*_wiped_in(files, [device], identity), wiped)))
    undo = Undo(
        commands=(("lvm", "vgremove", "--yes", "--force", group),),
        question=("lvm", "vgs", "--noheadings", "--options", "vg_name", group),
        answers=(group,),
    )
    steps.append(Change(("lvm", "vgcreate", group, *devices), (undo,)))
    volume = ("lvm", "lvcreate", "--yes", "--extents", "100%FREE", "--name", "data")
    striped = ("--stripes", str(len(devices)), "--stripesize", f"{stripe_bytes}b")
    steps.append(Change((*volume, *(striped if layout == "raid0" else ()), group)))
    return steps, f"/dev/{group}/data"


def _file_system(
    name: str, devices: Sequence[str], files: Mapping[str, Path], striped: bool
) -> Change:
    identity = str(uuid.uuid4())
    make = mkfs_command(name, identity)
    forget: list[Command] = []
    if name == "btrfs":
        profile = "raid0" if striped else "single"
        make = (*make, "-d", profile, "-m", profile)
        forget = [("btrfs", "device", "scan", "--forget", *devices)]
    undos = [_wiped(device, identity, *forget) for device in devices]
    return Change((*make, *devices), (*_wiped_in(files, devices, identity), *undos))


def _wiped(device: str, identity: str, *first: Command) -> Undo:
    """Nothing on a device any more, if it holds what has this identity."""
    return Undo(
        # Where it can be discarded, the blocks are free for the device, or a file's holder, again.
        commands=(*first, ("wipefs", "--all", device), ("blkdiscard", device)),
        question=("blkid", "--probe", "--match-tag", "UUID", "--output", "value", device),
        answers=(identity,),
    )


def _wiped_in(files: Mapping[str, Path], devices: Sequence[str], identity: str) -> list[Undo]:
    """The same of the files below devices: before it in the list, and so undone after it."""
    return [_wiped(str(files[device]), identity) for device in devices if device in files]


def _lvm_identity() -> str:
    letters = string.ascii_letters + string.digits
    parts = ("".join(secrets.choice(letters) for _ in range(count)) for count in LVM_IDENTITY)
    return "-".join(parts)
