"""Which block devices hold a directory, and how the kernel treats them.

A file system over a network, in memory, or over another one has none that can be seen from here.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import NamedTuple

MOUNTS = Path("/proc/self/mounts")
NUMBERED = Path("/sys/dev/block")
BLOCK = Path("/sys/class/block")
BTRFS = Path("/sys/fs/btrfs")


class Mount(NamedTuple):
    """What is mounted somewhere."""

    source: str
    file_system: str
    options: str


def devices_of(directory: Path) -> list[str]:
    """The kernel's names of all block devices that hold ``directory``.

    Where none can be seen it is the number of what holds it, of which nothing is counted.
    """
    number = directory.stat().st_dev
    numbers = f"{os.major(number)}:{os.minor(number)}"
    own = NUMBERED / numbers
    if own.exists():
        return [own.resolve().name]
    return _named(mount_of(directory).source) or [numbers]


def mount_of(directory: Path) -> Mount:
    """The mount that holds ``directory``."""
    found, longest = Mount("unknown", "unknown", ""), -1
    resolved = str(directory.resolve())
    for line in MOUNTS.read_text(errors="surrogateescape").splitlines():  # A path may be no text.
        source, point, kind, options, *_ = map(_plain, line.split(" "))
        inside = resolved == point or resolved.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= longest:
            found, longest = Mount(source, kind, options), len(point)
    return found


def queue_dir(device: str) -> Path:
    """Where the kernel tells of a device's queue; of a partition it is that of its disk."""
    block = BLOCK / device
    own = block / "queue"
    return own if own.is_dir() else block.resolve().parent / "queue"


def _named(source: str) -> list[str]:
    """The block device that a mount names as its source, with all that btrfs joined to it."""
    if not source.startswith("/"):
        return []
    name = Path(source).resolve().name
    for among in BTRFS.glob(f"*/devices/{name}"):
        return sorted(each.name for each in among.parent.iterdir())
    return [name] if (BLOCK / name).exists() else []


def _plain(escaped: str) -> str:
    """Blanks and backslashes stand there as octal numbers."""
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), escaped)
