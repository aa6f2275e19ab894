"""Directories on a real disk for tests, and a btrfs over several devices."""

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]

IMAGE_BYTES = 256 << 20
needs_btrfs = pytest.mark.skipif(bool(os.geteuid()), reason="only root can mount a btrfs")


@contextmanager
def disk_dir(prefix: str = "test-") -> Iterator[Path]:
    """An empty temporary directory on a disk, under TONNAGE_TEST_DIR or target."""
    base = Path(os.environ.get("TONNAGE_TEST_DIR") or ROOT / "target" / "tmp")
    base.mkdir(parents=True, exist_ok=True)
    kind = subprocess.run(
        ["stat", "--file-system", "--format=%T", base], check=True, capture_output=True, text=True
    ).stdout.strip()
    if kind in {"tmpfs", "ramfs"}:
        # Memory would look like a disk of absurd speed.
        raise RuntimeError(
            f"{base} is memory ({kind}): set TONNAGE_TEST_DIR to a directory on a disk"
        )
    with tempfile.TemporaryDirectory(prefix=prefix, dir=base) as directory:
        yield Path(directory)


@contextmanager
def btrfs(directory: Path, count: int) -> Iterator[tuple[Path, list[str]]]:
    """A temporary btrfs over loop devices on files in ``directory``; gives the mount and names."""
    with ExitStack() as stack:
        loops = []
        for number in range(count):
            image = directory / f"image-{number}"
            image.touch()
            os.truncate(image, IMAGE_BYTES)
            loops.append(_run("losetup", "--find", "--show", image))
            stack.callback(_run, "losetup", "--detach", loops[-1])
        mount = directory / "btrfs"
        mount.mkdir()
        _run("mkfs.btrfs", "-q", *loops)
        _run(
            "mount", "-t", "btrfs", *(f"--options=device={loop}" for loop in loops), loops[0], mount
        )
        stack.callback(_run, "umount", mount)
        yield mount, [Path(loop).name for loop in loops]


def _run(*command: str | Path) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
