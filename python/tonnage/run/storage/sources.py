"""Where the bytes of the input are: in files, or in objects, read from anywhere.

What is asked of an object is fetched by several requests at once (``crates/io/object/src/ranges``),
of the object that was found: one that was changed since is an error.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, TypeVar, cast

import pyarrow as pa
import pyarrow.parquet as pq

from tonnage.base import core
from tonnage.run.storage import object_store
from tonnage.run.storage.object_store import HIDDEN, ObjectStoreOptions, is_url, split_url
from tonnage.run.thread_pool import WorkerThreads

CACHED_FILES = 4096
"""Files of which it is remembered what they say of themselves."""
LINE_BYTES = 256 << 10
"""Read of an object at once where a line is to be found."""

Thing = TypeVar("Thing")
Made = TypeVar("Made")


@dataclass(frozen=True)
class InputFile:
    """A file or an object, as it was found.

    Attributes:
        name: Its path or url.
        bytes: Its length.
        version: What tells it from any other of its name: of an object its ETag, if the store says,
            of a file the time of its last change.
    """

    name: str
    bytes: int
    version: str | None = None


class Sources:
    """Opens files and objects, in any thread.

    Args:
        reached: How stores are reached.
        readers: Threads that read at the same time: each has its share of the requests at once.
    """

    def __init__(self, options: ObjectStoreOptions, readers: int) -> None:
        self._volumes, self.concurrency = options, options.concurrency
        each = max(self.concurrency // readers, 1)
        self._ranges = core.RangeReader(json.dumps(options.store("")), each)
        self._told: dict[tuple[Any, InputFile], Any] = {}

    def find(self, place: str) -> Iterator[InputFile]:
        """The file or object of this name, or those in the directory or folder.

        Raises:
            UsageError: There is none.
        """
        if is_url(place):
            for each in object_store.find_objects([place], self._volumes):
                yield InputFile(f"s3://{each.bucket}/{each.key}", each.bytes, each.etag)
            return
        for path in _files(Path(place)):
            if not path.is_file():
                raise core.UsageError(
                    f"input {path} is no regular file: give files, or directories of them"
                )
            about = path.stat()
            yield InputFile(str(path), about.st_size, str(about.st_mtime_ns))

    def open(self, file: InputFile) -> BinaryIO:
        """The file, to read and seek in."""
        if not is_url(file.name):
            return Path(file.name).open("rb")
        return cast("BinaryIO", self._object(file))

    def arrow(self, file: InputFile) -> pa.NativeFile:
        """The file as Arrow's readers take it."""
        if not is_url(file.name):
            return pa.OSFile(file.name, "rb")
        return pa.PythonFile(self._object(file), "r")

    def footer(self, file: InputFile) -> pq.FileMetaData:
        """What a Parquet file says of itself."""
        return self.cached(file, _footer)

    def cached(self, file: InputFile, read: Callable[[InputFile, Sources], Made]) -> Made:
        """What a file says of itself, which is remembered.

        Args:
            file: Which.
            read: A function of a module, that reads it; by threads that ask at the same time twice.
        """
        found = self._told.get((read, file))
        if found is None:
            found = read(file, self)
            if len(self._told) >= CACHED_FILES:
                self._told.clear()
            self._told[read, file] = found
        return cast("Made", found)

    def map_parallel(
        self,
        things: Sequence[Thing],
        work: Callable[[Thing], Made],
        look: Callable[[int], None] = lambda _: None,
    ) -> list[Made]:
        """What ``work`` makes of each, several at once: so much of that is waiting for a store.

        Args:
            things: What there is.
            work: What is done with one; the first failure ends it.
            look: Called now and then with how many are done; what it raises ends it.
        """
        made: dict[int, Made] = {}
        crew = WorkerThreads(min(self.concurrency, len(things)), self.stop)

        def some() -> None:
            for place, thing in crew.take_from(iter(enumerate(things))):
                made[place] = work(thing)

        crew.run(some, lambda: look(len(made)))
        return [made[place] for place in range(len(things))]

    def stop(self) -> None:
        """Has whoever waits for objects fail."""
        self._ranges.stop()

    @property
    def requests(self) -> dict[str, Any]:
        """What was asked of stores."""
        told: dict[str, Any] = json.loads(self._ranges.requests())
        return told

    def _object(self, file: InputFile) -> _Object:
        return _Object(self._ranges, file)


class _Object(io.RawIOBase):
    """An object as a file."""

    def __init__(self, ranges: core.RangeReader, file: InputFile) -> None:
        self._ranges, self._file, self._at = ranges, file, 0
        self._bucket, self._key = split_url(file.name)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        begins = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._file.bytes}
        self._at = begins[whence] + offset
        return self._at

    def read(self, size: int | None = -1) -> bytes:
        left = max(self._file.bytes - self._at, 0)
        length = left if size is None or size < 0 else min(size, left)
        if not length:
            return b""
        found = self._ranges.read(self._bucket, self._key, self._file.version, self._at, length)
        self._at += length
        return found

    def readline(self, size: int | None = -1) -> bytes:
        assert size == -1
        found = begins = b""
        at = self._at
        while not begins.endswith(b"\n") and (begins := self.read(LINE_BYTES)):
            begins = begins[: begins.find(b"\n") + 1] or begins
            found += begins
        self._at = at + len(found)
        return found

    def readinto(self, memory: Any) -> int:
        found = self.read(len(memory))
        memory[: len(found)] = found
        return len(found)


def is_unchanged(file: InputFile) -> bool:
    """Whether a file on disk is what it was when it was found."""
    try:
        about = os.stat(file.name)
    except OSError:
        return False
    # On a fleet the version says more, of which that machine knows.
    return (str(about.st_mtime_ns), about.st_size) == (
        (file.version or "").partition(" ")[0],
        file.bytes,
    )


def containing_input(places: Sequence[str], name: str) -> int:
    """Which of these places is this file or object, or the directory or folder that it is in.

    Of folders of which one is in the other it is the inner one.
    """
    inside = [number for number, place in enumerate(places) if _holds(place, name)]
    return max(inside, key=lambda number: len(places[number]))


def _holds(place: str, name: str) -> bool:
    if is_url(place):
        above = place.rstrip("/")
        return name == above or name.startswith(f"{above}/")
    return os.path.normpath(place) in (
        os.path.normpath(name),
        os.path.dirname(os.path.normpath(name)),
    )


def _files(path: Path) -> Iterator[Path]:
    if not path.exists():
        raise core.UsageError(f"input {path}: it is not there; name a file or a directory")
    if path.is_dir():
        files = sorted(each for each in path.iterdir() if not each.name.startswith(HIDDEN))
        if not files and not (path / "_tonnage.json").is_file():
            raise core.UsageError(f"input {path}: the directory holds no files to read")
        yield from files
    else:
        yield path


def _footer(file: InputFile, sources: Sources) -> pq.FileMetaData:
    with sources.arrow(file) as opened:
        return pq.read_metadata(opened)
