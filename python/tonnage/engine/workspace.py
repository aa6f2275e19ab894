"""A locked directory for data that a command needs only while it runs."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tonnage.engine.job import Refused


@contextmanager
def workspace(flag: str, parent: Path, prefix: str) -> Iterator[Path]:
    """A locked directory under ``parent``, gone afterwards; what killed ones left goes too.

    Args:
        flag: What ``parent`` was given with, for messages.
        parent: Where; made if it is not there.
        prefix: What names of such directories begin with; the rest is the process's number.

    Raises:
        Refused: ``parent`` cannot be written to.
    """
    try:
        parent.mkdir(parents=True, exist_ok=True)
        for left in parent.glob(f"{prefix}*"):
            with _lock(left) as locked:
                if locked:
                    shutil.rmtree(left)
        room = parent / f"{prefix}{os.getpid()}"
        room.mkdir()
    except OSError as why:
        text = f"{flag} {parent}: {why.strerror}; give a directory to write to"
        raise Refused(text) from why
    with _lock(room):
        try:
            yield room.resolve()
        finally:
            shutil.rmtree(room)


@contextmanager
def _lock(directory: Path) -> Iterator[bool]:
    """Holds the lock of ``directory`` if nobody else does; gives whether it is held."""
    handle = os.open(directory, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            held = True
        except BlockingIOError:
            held = False
        yield held
    finally:
        os.close(handle)
