"""A locked directory for data that a command needs only while it runs."""

from __future__ import annotations

import fcntl
import glob
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tonnage.base.core.errors import UsageError


@contextmanager
def workspace(flag: str, parent: Path, prefix: str) -> Iterator[Path]:
    """A locked directory under ``parent``, gone afterwards; what killed ones left goes too.

    What is to stay is renamed by whoever made it.

    Args:
        flag: What ``parent`` was given with, for messages.
        parent: Where; a directory that is there.
        prefix: What names of such directories begin with; the rest is the process's number.

    Raises:
        UsageError: ``parent`` cannot be written to, or another command took the new directory for one
            that was left.
    """
    try:
        for left in parent.glob(f"{glob.escape(prefix)}*"):
            with _lock(left) as locked:
                if locked:
                    shutil.rmtree(left)
        room = parent / f"{prefix}{os.getpid()}"
        room.mkdir()
    except OSError as why:
        text = f"{flag} {parent}: {why.strerror}; give a directory to write to"
        raise UsageError(text) from why
    with _lock(room) as locked:
        if not locked:
            raise UsageError(f"{flag} {parent}: another command is cleaning up there; try again")
        try:
            yield room.resolve()
        finally:
            if room.exists():
                shutil.rmtree(room)


@contextmanager
def _lock(directory: Path) -> Iterator[bool]:
    """Holds the lock of ``directory`` if it is there and nobody else does; gives whether it is."""
    try:
        handle = os.open(directory, os.O_RDONLY)
    except FileNotFoundError:
        yield False
        return
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            held = directory.is_dir()  # Who held the lock before may have removed it.
        except BlockingIOError:
            held = False
        yield held
    finally:
        os.close(handle)
