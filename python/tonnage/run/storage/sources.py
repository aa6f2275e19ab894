"""Files and objects as a job's input: found, opened and read from any thread.

A read of an object is several concurrent range requests for the version that was found
(``crates/io/object/src/parallel_read.rs``): if the object has changed since, the read fails.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar, cast

from tonnage.base import core
from tonnage.run.storage.hive import input_paths
from tonnage.run.storage.object_store import (
    ObjectStoreOptions,
    find_and_count,
    is_url,
    split_url,
)
from tonnage.run.thread_pool import WorkerThreads

if TYPE_CHECKING:
    import pyarrow as pa

CACHED_FILES = 4096
LINE_BYTES = 256 << 10
"""Requested at once to find the end of a line in an object."""
READER_BYTES = 64 << 20
"""What a reader may hold of a file at once, unless the job says."""

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True)
class InputFile:
    """A file or object as found; ``version`` is its ETag, or a file's time of last change."""

    name: str
    bytes: int
    version: str | None = None


class Sources:
    """Opens files and objects in any thread; ``readers`` threads share the concurrent requests.

    Each of them may hold ``reader_bytes`` of what cannot be divided, such as a line.
    """

    def __init__(
        self, options: ObjectStoreOptions, readers: int, reader_bytes: int = READER_BYTES
    ) -> None:
        self.reader_bytes = reader_bytes
        self._options, self.concurrency = options, options.concurrency
        requests_each = max(self.concurrency // readers, 1)
        self._ranges = core.RangeReader(json.dumps(options.store("")), requests_each)
        self._cache: dict[tuple[Any, InputFile], Any] = {}
        self.list_requests: list[dict[str, Any]] = []
        """What was requested to find objects, which `requests` leaves out."""

    def find(self, place: str) -> Iterator[InputFile]:
        """The files or objects at a place, or below it; `UsageError` if there is none."""
        if is_url(place):
            objects, requests = find_and_count([place], self._options)
            self.list_requests.append(requests)
            for each in objects:
                yield InputFile(each.url, each.bytes, each.etag)
            return
        for path in _files(Path(place)):
            if not path.is_file():
                raise core.UsageError(
                    f"input {path} is not a regular file; use regular files, or directories of "
                    "regular files"
                )
            status = path.stat()
            yield InputFile(str(path), status.st_size, str(status.st_mtime_ns))

    def open(self, file: InputFile) -> BinaryIO:
        if not is_url(file.name):
            return Path(file.name).open("rb")
        return cast("BinaryIO", _Object(self._ranges, file))

    def arrow(self, file: InputFile) -> pa.NativeFile:
        import pyarrow as pa

        if not is_url(file.name):
            return pa.OSFile(file.name, "rb")
        return pa.PythonFile(_Object(self._ranges, file), "r")

    def cached(self, file: InputFile, read: Callable[[InputFile, Sources], Result]) -> Result:
        """What a module's function reads from a file; concurrent calls may read it twice."""
        value = self._cache.get((read, file))
        if value is None:
            value = read(file, self)
            if len(self._cache) >= CACHED_FILES:
                self._cache.clear()
            self._cache[read, file] = value
        return cast("Result", value)

    def map_parallel(
        self,
        items: Sequence[Item],
        function: Callable[[Item], Result],
        on_progress: Callable[[int], None] = lambda _: None,
    ) -> list[Result]:
        """Map items in threads, since most of the time is waiting for a store.

        The first failure ends it, as does an exception of ``on_progress``, which is called with the
        number of items done.
        """
        results: dict[int, Result] = {}
        threads = WorkerThreads(min(self.concurrency, len(items)), self.stop)

        def work() -> None:
            for place, item in threads.take_from(iter(enumerate(items))):
                results[place] = function(item)

        threads.run(work, lambda: on_progress(len(results)))
        return [results[place] for place in range(len(items))]

    def stop(self) -> None:
        self._ranges.stop()

    @property
    def requests(self) -> dict[str, Any]:
        counted: dict[str, Any] = json.loads(self._ranges.requests())
        return counted


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
        data = self._ranges.read(self._bucket, self._key, self._file.version, self._at, length)
        self._at += length
        return data

    def readline(self, size: int | None = -1) -> bytes:
        assert size == -1
        line = piece = b""
        at = self._at
        while not piece.endswith(b"\n") and (piece := self.read(LINE_BYTES)):
            piece = piece[: piece.find(b"\n") + 1] or piece
            line += piece
        self._at = at + len(line)
        return line

    def readinto(self, memory: Any) -> int:
        data = self.read(len(memory))
        memory[: len(data)] = data
        return len(data)


def with_content(files: Iterable[InputFile]) -> list[InputFile]:
    """The files that are not empty, as objects are that mark folders; all if none is."""
    found = list(files)
    return [file for file in found if file.bytes] or found


def refuse_twice(places: Sequence[str], found: Sequence[Sequence[InputFile]]) -> None:
    """Refuse files that the places have twice, under any names: they would count twice."""
    of: dict[str, tuple[int, str]] = {}
    for number, files in enumerate(found):
        for file in files:
            name = file.name if is_url(file.name) else os.path.realpath(file.name)
            here = number, file.name
            if (other := of.setdefault(name, here)) is here:
                continue
            where = (
                f"is in both {places[other[0]]} and {places[number]}"
                if other[0] != number
                else f"is in {places[number]} twice, also as {other[1]}"
            )
            raise core.UsageError(f"{file.name} {where}; pass it only once")


def is_unchanged(file: InputFile) -> bool:
    """Whether a file on disk has the size and time of change that were found."""
    try:
        status = os.stat(file.name)
    except OSError:
        return False
    # On a cluster the version continues with the inode and node, which only that node knows.
    found = (file.version or "").partition(" ")[0], file.bytes
    return (str(status.st_mtime_ns), status.st_size) == found


def containing_input(places: Sequence[str], name: str) -> int:
    """The number of the place that is this file or object, or contains it; the innermost one."""
    inside = [number for number, place in enumerate(places) if _contains(place, name)]
    return max(inside, key=lambda number: len(places[number]))


def _contains(place: str, name: str) -> bool:
    if is_url(place):
        place = place.rstrip("/")
    else:
        place, name = os.path.normpath(place), os.path.normpath(name)
    return name == place or name.startswith(f"{place}/")


def _files(path: Path) -> Iterator[Path]:
    if not path.exists():
        raise core.UsageError(f"input {path} does not exist; use the path of a file or a directory")
    if path.is_dir():
        files = list(input_paths(path))
        if not files and not (path / "_tonnage.json").is_file():
            raise core.UsageError(f"input {path}: the directory contains no input files")
        yield from files
    else:
        yield path
