"""A directory on a file system that several machines have mounted and use at once.

There, another machine's process ids and locks mean nothing, and clocks differ. So each user of the
directory holds a lease: a file in it that is touched every few seconds. The last user to release
its lease removes the directory; the next command removes one that nobody has touched for long.
Times are the file system's own timestamps, and a file is opened before its status is read, which
makes a network file system ask its server instead of its cache (close-to-open consistency).
"""

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
EXPIRE_SECONDS = 20.0
"""A lease untouched for this long has expired: several renewals, which a busy server may delay."""
POLL_SECONDS = 0.5
GONE = (errno.ENOENT, errno.ESTALE)
"""NFS reports ESTALE for a file that another machine removed."""


class Lease:
    def __init__(self, room: Path, holder: str) -> None:
        self._room, self._file = room, room / f"{PREFIX}{holder}"
        self.known_holders: set[str] | None = None
        """The other holders that count; ``None`` counts all that have a lease."""
        self._ended = threading.Event()
        self._renewing = threading.Thread(target=self._renew, daemon=True)

    def acquire(self) -> None:
        self._file.touch()
        self._renewing.start()

    def release(self) -> None:
        """Give the lease back; the last holder removes the directory."""
        self._ended.set()
        self._renewing.join()
        with suppress(OSError):  # Already gone with the directory, or it will expire.
            self._file.unlink()
        holders = {path.name.removeprefix(PREFIX) for path in _leases(self._room)}
        if not (holders if self.known_holders is None else holders & self.known_holders):
            shutil.rmtree(self._room, ignore_errors=True)  # Another may do so at the same time.

    def _renew(self) -> None:
        while not self._ended.wait(RENEW_SECONDS):
            with suppress(OSError):
                os.utime(self._file)


def create_leased_dir(setting: str, parent: Path, prefix: str, on_wait: Callable[[], None]) -> Path:
    """Create a directory under ``parent`` that nobody holds yet; remove expired ones.

    ``on_wait`` is called periodically while it is unclear whether another one has expired.
    ``setting`` names ``parent`` in errors: `UsageError` if it is not writable.
    """
    try:
        room = parent / f"{prefix}{secrets.token_hex(8)}"
        room.mkdir()
        for other in parent.glob(f"{prefix}*"):
            if other != room and _has_expired(other, room, on_wait):
                shutil.rmtree(other, ignore_errors=True)
    except OSError as error:
        text = f"{parent}: {error.strerror}; choose a writable directory"
        raise UsageError(text, setting=setting) from error
    return room


@contextmanager
def hold_lease(room: Path, holder: str) -> Iterator[Lease]:
    """Hold a lease on a directory of `create_leased_dir`; ``holder`` is its user's unique name."""
    lease = Lease(room, holder)
    lease.acquire()
    try:
        yield lease
    finally:
        lease.release()


def _has_expired(other: Path, reference: Path, on_wait: Callable[[], None]) -> bool:
    """Whether nobody uses a directory; to be sure may take as long as a lease lasts."""
    first = last = _last_touched(other)
    while last is not None and last == first:
        os.utime(reference)
        now = _timestamp(reference)
        if now is None or now - last > EXPIRE_SECONDS:
            return True
        on_wait()
        time.sleep(POLL_SECONDS)
        last = _last_touched(other)
    return False


def _last_touched(room: Path) -> float | None:
    stamps = [_timestamp(room), *map(_timestamp, _leases(room))]
    return max((stamp for stamp in stamps if stamp is not None), default=None)


def _leases(room: Path) -> list[Path]:
    try:
        return [room / name for name in os.listdir(room) if name.startswith(PREFIX)]
    except OSError as error:
        if error.errno in GONE:
            return []
        raise


def _timestamp(path: Path) -> float | None:
    try:
        handle = os.open(path, os.O_RDONLY)
    except OSError as error:
        if error.errno in GONE:
            return None
        raise
    try:
        return os.fstat(handle).st_mtime
    finally:
        os.close(handle)
