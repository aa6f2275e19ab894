"""Files as devices: loop devices, the file systems on them, and where those are mounted."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from tonnage.base.system.undo_journal import Command, Change, Undo

OPTIONS = {"xfs": "noatime", "ext4": "noatime", "btrfs": "noatime,nodatasum"}
"""With checksums of data, btrfs takes what is to go past the page cache through it (Linux 6.18)."""

LOOPS = Path("/sys/block")
MOUNTS = Path("/proc/self/mountinfo")


def attach_loop_device(file: Path, device: str) -> Change:
    """A file as a loop device, past the page cache if what holds the file can do that."""
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


def loop_devices() -> dict[Path, str]:
    """The files that loop devices stand for, each with its device."""
    found = {}
    for backing in LOOPS.glob("loop*/loop/backing_file"):
        with suppress(OSError):  # Detached meanwhile.
            file = Path(backing.read_text().removesuffix("\n"))
            found[file] = f"/dev/{backing.parent.parent.name}"
    return found


def mounts_below(directory: Path) -> list[Path]:
    """Where something is mounted in a directory, or on it."""
    points = (line.split()[4] for line in MOUNTS.read_text().splitlines())
    # As proc(5) has it: a space, a tab, a line's end and a backslash are written in octal.
    paths = (Path(re.sub(r"\\(\d{3})", lambda code: chr(int(code[1], 8)), each)) for each in points)
    return [path for path in paths if path.is_relative_to(directory)]


def uses_page_cache(device: str) -> bool:
    """Whether a loop device's file has the page cache in the way."""
    direct = LOOPS / Path(device).name / "loop" / "dio"
    return direct.exists() and direct.read_text().strip() == "0"


def mkfs_command(name: str, identity: str, *, discard: bool = True) -> Command:
    """What makes a file system of this name and identity; the devices follow.

    Without ``discard`` (not of btrfs) a file below a device keeps the space that it has.
    """
    if name == "xfs":
        return ("mkfs.xfs", "-q", *(() if discard else ("-K",)), "-m", f"uuid={identity}")
    if name == "ext4":
        # Without the option the kernel goes on making it while it is measured.
        options = f"lazy_itable_init=0,lazy_journal_init=0{'' if discard else ',nodiscard'}"
        return ("mkfs.ext4", "-q", "-U", identity, "-E", options)
    return ("mkfs.btrfs", "-q", "-U", identity)


def make_dir(path: Path) -> Change:
    """A directory that is empty when it is to go."""
    made = Undo(
        commands=(("rmdir", str(path)),),
        question=("stat", "--format=%F", str(path)),
        answers=("directory",),
    )
    return Change(("mkdir", str(path)), (made,))


def mount_steps(name: str, devices: Sequence[str], point: Path) -> list[Change]:
    """A file system on a directory of its own."""
    path = str(point)
    together = [f"device={device}" for device in devices] if name == "btrfs" else []
    options = ",".join([OPTIONS[name], *together])
    undo = Undo(
        commands=(("umount", path),),
        question=("findmnt", "--noheadings", "--output", "TARGET", "--mountpoint", path),
        answers=(path,),
    )
    return [
        make_dir(point),
        Change(("mount", "-t", name, "-o", options, devices[0], path), (undo,)),
    ]
