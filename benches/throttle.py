"""A device of known speed: a loop device that the kernel throttles.

Needs root, cgroup v1 with blkio, losetup and mkfs.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

BLKIO = Path("/sys/fs/cgroup/blkio")
MEMBERSHIP = Path("/proc/self/cgroup")


@contextmanager
def loop_device(where: Path, size_bytes: int, file_system: str) -> Iterator[tuple[str, Path]]:
    """Mount a loop device over a sparse file; yields its name and its mount point."""
    image, mount = where / "image", where / "mount"
    mount.mkdir(parents=True)
    image.touch()
    os.truncate(image, size_bytes)
    device = _out("losetup", "--find", "--show", "--direct-io=on", str(image))
    try:
        _out(f"mkfs.{file_system}", "-q", device)
        _out("mount", device, str(mount))
        try:
            yield device, mount
        finally:
            _out("umount", str(mount))
    finally:
        _out("losetup", "--detach", device)
        shutil.rmtree(where)


@contextmanager
def throttled(device: str, limits: Mapping[str, int]) -> Iterator[Path]:
    """Create a control group that limits how fast its members use ``device``.

    Args:
        device: Its name.
        limits: For each direction: ``bps`` bytes a second, ``iops`` operations a second.
    """
    group = BLKIO / f"tonnage-bench-{os.getpid()}"
    group.mkdir()
    number = os.stat(device).st_rdev
    for unit, limit in limits.items():
        for direction in ("read", "write"):
            rule = f"{os.major(number)}:{os.minor(number)} {limit}"
            (group / f"blkio.throttle.{direction}_{unit}_device").write_text(rule)
    try:
        yield group
    finally:
        group.rmdir()


@contextmanager
def member(group: Path) -> Iterator[None]:
    """Move this process into a control group, and back afterwards."""
    lines = [line.split(":", 2) for line in MEMBERSHIP.read_text().splitlines()]
    [before] = [name for _, kinds, name in lines if "blkio" in kinds.split(",")]
    join(group)
    try:
        yield
    finally:
        join(BLKIO / before.lstrip("/"))


def join(group: Path) -> None:
    """Move this process into a control group."""
    (group / "cgroup.procs").write_text(str(os.getpid()))


def _out(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
