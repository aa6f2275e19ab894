"""A directory for data that several machines use at once, on a file system that all have mounted.

There, another machine's process numbers and locks mean nothing, and clocks differ. So who uses the
directory holds a lease, a file in it that is touched every few seconds; the last one that leaves
removes it all, and what nobody has touched for long the next command removes. Moments are the file
system's own, as it stamps what is touched, and a file is opened before it is looked at: so a
network file system asks its server, instead of what it remembers (close-to-open consistency).
"""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tonnage.base.core.errors import UsageError

PREFIX = "lease-"
RENEW_SECONDS = 3.0
OVER_SECONDS = 20.0
"""So long nobody has touched what was left: several touches that a busy server holds up."""
LOOK_SECONDS = 0.5
GONE = (errno.ENOENT, errno.ESTALE)
"""What there is no more; the second is what NFS says if another machine removed it."""


class Lease:
    """One user's hold of a directory; made by `held`."""

    def __init__(self, room: Path, who: str) -> None:
        self._room, self._file = room, room / f"{PREFIX}{who}"
        self.known_holders: set[str] | None = None
        """Who else is known to use it; ``None`` is whoever has a lease."""
        self._ended = threading.Event()
        self._touching = threading.Thread(target=self._renew, daemon=True)

    def acquire(self) -> None:
        """Begins to touch the lease."""
        self._file.touch()
        self._touching.start()

    def release(self) -> None:
        """Gives it back; if no other has any, the directory goes."""
        self._ended.set()
        self._touching.join()
        with suppress(OSError):  # It is gone with the directory; or it ends by itself.
            self._file.unlink()
        left = {path.name.removeprefix(PREFIX) for path in _leases(self._room)}
        if not (left if self.known_holders is None else left & self.known_holders):
            shutil.rmtree(self._room, ignore_errors=True)  # Another may do so at the same time.

    def _renew(self) -> None:
        while not self._ended.wait(RENEW_SECONDS):
            with suppress(OSError):
                os.utime(self._file)


def create_leased_dir(flag: str, parent: Path, prefix: str, on_wait: Callable[[], None]) -> Path:
    """A new directory under ``parent``, which nobody holds yet; what killed ones left goes.

    Args:
        flag: What ``parent`` was given with, for messages.
        parent: Where; a directory that is there.
        prefix: What names of such directories begin with.
        on_wait: Called now and then while it is not sure yet whether one was left.

    Raises:
        UsageError: ``parent`` cannot be written to.
    """
    try:
        room = parent / f"{prefix}{secrets.token_hex(8)}"
        room.mkdir()
        for other in parent.glob(f"{prefix}*"):
            if other != room and _is_left(other, room, on_wait):
                shutil.rmtree(other, ignore_errors=True)
    except OSError as why:
        text = f"{flag} {parent}: {why.strerror}; give a directory to write to"
        raise UsageError(text) from why
    return room


@contextmanager
def hold_lease(room: Path, who: str) -> Iterator[Lease]:
    """Holds a lease of ``room``; whoever leaves last removes it.

    Args:
        room: As `made` made it, here or on another machine.
        who: A name that no other user of the room has.
    """
    lease = Lease(room, who)
    lease.acquire()
    try:
        yield lease
    finally:
        lease.release()


def _is_left(other: Path, own: Path, on_wait: Callable[[], None]) -> bool:
    """Whether nobody uses a directory; it may take as long as a lease to be sure."""
    first = last = _touched(other)
    while last is not None and last == first:
        os.utime(own)
        now = _stamp(own)
        if now is None or now - last > OVER_SECONDS:
            return True
        on_wait()
        time.sleep(LOOK_SECONDS)
        last = _touched(other)
    return False


def _touched(room: Path) -> float | None:
    """When a directory, or a lease in it, was last touched; ``None`` if it is gone."""
    stamps = [_stamp(room), *map(_stamp, _leases(room))]
    return max((each for each in stamps if each is not None), default=None)


def _leases(room: Path) -> list[Path]:
    """The leases in a directory; none if another one that leaves has just removed it."""
    try:
        return [room / name for name in os.listdir(room) if name.startswith(PREFIX)]
    except OSError as why:
        if why.errno in GONE:
            return []
        raise


def _stamp(path: Path) -> float | None:
    try:
        handle = os.open(path, os.O_RDONLY)
    except OSError as why:
        if why.errno in GONE:
            return None
        raise
    try:
        return os.fstat(handle).st_mtime
    finally:
        os.close(handle)
