"""A locked directory for data that a command needs only while it runs, and space for it."""

import fcntl
import glob
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tonnage.base.core.errors import UsageError


def require_free_space(needs: Iterable[tuple[Path, int]], purpose: str) -> None:
    """Raise `UsageError` if a device has less free space than its directories need together.

    ``needs`` pairs directories with bytes; directories that do not exist are skipped.
    """
    devices: dict[int, tuple[Path, int]] = {}
    for directory, size in needs:
        if directory.is_dir():
            first, sum_of_sizes = devices.get(directory.stat().st_dev, (directory, 0))
            devices[directory.stat().st_dev] = (first, sum_of_sizes + size)
    for directory, size in devices.values():
        status = os.statvfs(directory)
        free = status.f_bavail * status.f_frsize
        if status.f_blocks and free < size:
            raise UsageError(
                f"{directory} has only {free} bytes free, but {purpose} needs {size}; free some "
                "space or choose another directory"
            )


@contextmanager
def workspace(setting: str | None, parent: Path, prefix: str) -> Iterator[Path]:
    """Create a locked directory under ``parent``; remove it afterwards, unless it was renamed.

    Directories that killed commands left behind are removed first. ``setting`` names ``parent`` in
    errors: `UsageError` if it is not writable.
    """
    room = parent / f"{prefix}{os.getpid()}"
    try:
        for leftover in parent.glob(f"{glob.escape(prefix)}*"):
            with _locked(leftover) as is_locked:
                if is_locked:
                    shutil.rmtree(leftover)
        room.mkdir()
    except OSError as error:
        text = f"{parent}: {error.strerror}; choose a writable directory"
        raise UsageError(text, setting=setting) from error
    with ExitStack() as stack:
        # Until it is locked, another command may take it for one that a killed command left.
        while not stack.enter_context(_locked(room, wait=True)):
            room.mkdir()
        try:
            yield room.resolve()
        finally:
            if room.exists():
                shutil.rmtree(room)


@contextmanager
def _locked(directory: Path, *, wait: bool = False) -> Iterator[bool]:
    """Lock ``directory`` if it exists and no other process holds it; yields whether it did."""
    try:
        handle = os.open(directory, os.O_RDONLY)
    except FileNotFoundError:
        yield False
        return
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            is_locked = directory.is_dir()  # The previous holder may have removed it.
        except BlockingIOError:
            is_locked = False
        yield is_locked
    finally:
        os.close(handle)
