"""Block devices: which ones hold a directory, loop devices on files, file systems and mounts.

A file system over a network, in memory, or on top of another one has no block device here.
"""

import os
import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from tonnage.base.system.undo_journal import Change, Command, Undo

MOUNTS = Path("/proc/self/mounts")
MOUNT_INFO = Path("/proc/self/mountinfo")
NUMBERED = Path("/sys/dev/block")
BLOCK = Path("/sys/class/block")
DEVICES = Path("/sys/block")
BTRFS = Path("/sys/fs/btrfs")

MOUNT_OPTIONS = {"xfs": "noatime", "ext4": "noatime", "btrfs": "noatime,nodatasum"}
"""With data checksums, btrfs sends direct I/O through the page cache (Linux 6.18)."""


class Mount(NamedTuple):
    source: str
    file_system: str
    options: str


def devices_of(directory: Path) -> list[str]:
    """Block devices that hold ``directory``; if none is visible, its device number."""
    number = directory.stat().st_dev
    numbers = f"{os.major(number)}:{os.minor(number)}"
    device = NUMBERED / numbers
    if device.exists():
        return [device.resolve().name]
    return _devices_of_source(mount_of(directory).source) or [numbers]


def mount_of(directory: Path) -> Mount:
    mount, longest = Mount("unknown", "unknown", ""), -1
    resolved = str(directory.resolve())
    # A path may not be text.
    for line in MOUNTS.read_text(errors="surrogateescape").splitlines():
        source, point, kind, options, *_ = map(_unescape, line.split(" "))
        inside = resolved == point or resolved.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= longest:
            mount, longest = Mount(source, kind, options), len(point)
    return mount


def mounts_below(directory: Path) -> list[Path]:
    """The mount points in a directory, or the directory itself."""
    points = (line.split()[4] for line in MOUNT_INFO.read_text().splitlines())
    return [path for path in map(Path, map(_unescape, points)) if path.is_relative_to(directory)]


def queue_dir(device: str) -> Path:
    """The sysfs directory of a device's queue; a partition has that of its disk."""
    block = BLOCK / device
    queue = block / "queue"
    return queue if queue.is_dir() else block.resolve().parent / "queue"


def device_names() -> dict[str, str]:
    """The name of each block device by its ``major:minor``, as control groups have it."""
    names = {}
    for entry in DEVICES.iterdir() if DEVICES.is_dir() else ():
        try:
            names[(entry / "dev").read_text().strip()] = entry.name
        except OSError:
            continue
    return names


def loop_devices() -> dict[Path, str]:
    """The loop device of each file that has one."""
    devices = {}
    for backing in DEVICES.glob("loop*/loop/backing_file"):
        with suppress(OSError):  # Just detached.
            file = Path(backing.read_text().removesuffix("\n"))
            devices[file] = f"/dev/{backing.parent.parent.name}"
    return devices


def uses_page_cache(device: str) -> bool:
    """Whether a loop device reads and writes its file through the page cache."""
    direct = DEVICES / Path(device).name / "loop" / "dio"
    return direct.exists() and direct.read_text().strip() == "0"


def attach_loop_device(file: Path, device: str) -> Change:
    """Make ``file`` a loop device, with direct I/O if the file's own file system can do it."""
    return Change(
        ("losetup", "--direct-io=on", device, str(file)),
        (
            Undo(
                commands=(("losetup", "--detach", device),),
                question=("cat", f"/sys/block/{Path(device).name}/loop/backing_file"),
                answers=(str(file), f"{file} (deleted)"),
            ),
        ),
    )


def mkfs_command(file_system: str, uuid: str, *, discard: bool = True) -> Command:
    """The command that makes a file system with this UUID; append the devices.

    Without ``discard`` (which btrfs ignores) a file below a device keeps its allocated space.
    """
    if file_system == "xfs":
        return ("mkfs.xfs", "-q", *(() if discard else ("-K",)), "-m", f"uuid={uuid}")
    if file_system == "ext4":
        # Otherwise the kernel initialises the file system in the background during a measurement.
        options = f"lazy_itable_init=0,lazy_journal_init=0{'' if discard else ',nodiscard'}"
        return ("mkfs.ext4", "-q", "-U", uuid, "-E", options)
    return ("mkfs.btrfs", "-q", "-U", uuid)


def make_dir(path: Path) -> Change:
    """Create a directory; undoing expects it to be empty."""
    undo = Undo(
        commands=(("rmdir", str(path)),),
        question=("stat", "--format=%F", str(path)),
        answers=("directory",),
    )
    return Change(("mkdir", str(path)), (undo,))


def mount_steps(file_system: str, devices: Sequence[str], point: Path) -> list[Change]:
    path = str(point)
    members = [f"device={device}" for device in devices] if file_system == "btrfs" else []
    options = ",".join([MOUNT_OPTIONS[file_system], *members])
    undo = Undo(
        commands=(("umount", path),),
        question=("findmnt", "--noheadings", "--output", "TARGET", "--mountpoint", path),
        answers=(path,),
    )
    return [
        make_dir(point),
        Change(("mount", "-t", file_system, "-o", options, devices[0], path), (undo,)),
    ]


def _devices_of_source(source: str) -> list[str]:
    """The block device that a mount names as its source, and all that btrfs joined to it."""
    if not source.startswith("/"):
        return []
    name = Path(source).resolve().name
    for member in BTRFS.glob(f"*/devices/{name}"):
        return sorted(device.name for device in member.parent.iterdir())
    return [name] if (BLOCK / name).exists() else []


def _unescape(path: str) -> str:
    """Resolve the octal escapes of spaces, tabs, newlines and backslashes; see proc(5)."""
    return re.sub(r"\\([0-7]{3})", lambda escape: chr(int(escape[1], 8)), path)
