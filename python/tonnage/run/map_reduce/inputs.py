"""What there is to read: files, their formats, and the splits that threads take in turn.

A split is what one batch or a few are made of: a range of bytes in which lines or records begin, a
row group, a batch. A line belongs to the split that it begins in, however long it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tonnage import engine

FORMATS = {
    ".arrow": "arrow",
    ".csv": "csv",
    ".ipc": "arrow",
    ".json": "json",
    ".jsonl": "json",
    ".log": "lines",
    ".ndjson": "json",
    ".parquet": "parquet",
    ".text": "lines",
    ".txt": "lines",
}
"""What a file is by the end of its name."""
KNOWN = ("auto", "lines", "csv", "json", "parquet", "arrow", "records:N")
HIDDEN = (".", "_")

Map = Callable[[pa.RecordBatch], pa.RecordBatch]


@dataclass(frozen=True)
class Input:
    """A file, or a directory of files, with what is particular to it.

    Args:
        path: Where it is. Names that begin with ``.`` or ``_`` are left out of a directory.
        map: What is called with its batches, instead of the job's own ``map``.
        format: ``lines`` (a column ``line``), ``csv``, ``json`` (an object a line), ``parquet``,
            ``arrow`` (files, not streams), ``records:N`` (a column ``record`` of N bytes each);
            ``auto`` goes by the end of the name.
        schema: The columns' types, for ``csv`` and ``json``; else the beginning of each file tells.
    """

    path: Path | str
    map: Map | None = None
    format: str = "auto"
    schema: pa.Schema | None = None


@dataclass(frozen=True)
class Split:
    """A part of a file: bytes from ``begin`` to ``end``, or the row group or batch ``begin``."""

    input: Input
    path: Path
    format: str
    begin: int
    end: int

    def __str__(self) -> str:
        if self.format in ("parquet", "arrow"):
            what = "row group" if self.format == "parquet" else "batch"
            return f"{self.path}, {what} {self.begin}"
        return f"{self.path}, bytes {self.begin} to {self.end}"


@dataclass(frozen=True)
class Found:
    """All splits, with the bytes on file, and about as many as they are in memory."""

    splits: list[Split]
    bytes: int
    memory_bytes: int


def find(inputs: Sequence[Input], split_bytes: int) -> Found:
    """The splits of all files.

    Raises:
        Refused: One is not there, is empty of files, or is of no format that is known.
    """
    splits: list[Split] = []
    on_file = in_memory = 0
    for given in inputs:
        for path in _files(Path(given.path)):
            size = path.stat().st_size
            found, decoded = _cut(given, path, size, split_bytes)
            splits += found
            on_file += size
            in_memory += decoded
    return Found(splits, on_file, in_memory)


def input_of(inputs: Sequence[Input], path: Path) -> Input:
    """The input that a file is of, or is."""
    return next(each for each in inputs if Path(each.path) in (path, path.parent))


def record_bytes(name: str) -> int:
    """The size of a record in the format ``records:N``."""
    return int(name.partition(":")[2])


def _files(path: Path) -> Iterator[Path]:
    if not path.exists():
        raise engine.Refused(f"input {path}: it is not there; name a file or a directory")
    if path.is_dir():
        files = sorted(each for each in path.iterdir() if not each.name.startswith(HIDDEN))
        if not files and not (path / "_tonnage.json").is_file():
            raise engine.Refused(f"input {path}: the directory holds no files to read")
        yield from files
    else:
        yield path


def format_of(given: Input, path: Path) -> str:
    """What a file is: as it is given, or as its name ends."""
    if re.fullmatch(r"lines|csv|json|parquet|arrow|records:[1-9]\d{0,8}", given.format):
        return given.format
    if given.format != "auto":
        raise engine.Refused(
            f"--input-format {given.format}: there are {', '.join(KNOWN)} (N bytes a record)"
        )
    found = FORMATS.get(path.suffix.lower())
    if found is None:
        raise engine.Refused(
            f"input {path}: its name does not say what it is; give --input-format, one of "
            f"{', '.join(KNOWN[1:])}"
        )
    return found


def _cut(given: Input, path: Path, size: int, split_bytes: int) -> tuple[list[Split], int]:
    """A file's splits, and about how many bytes they are in memory."""
    if not path.is_file():
        raise engine.Refused(f"input {path} is no regular file: give files, or directories of them")
    kind = format_of(given, path)
    decoded = refuse_broken(path, kind, size)
    return splits_of(given, path, kind, (0, size), size, split_bytes), decoded


def refuse_broken(path: Path, kind: str, size: int) -> int:
    """Refuses a file that is none of its format; tells about how many bytes it is in memory."""
    if kind in ("parquet", "arrow"):
        try:
            return _parts(path, kind)[1]
        except (pa.ArrowException, OSError) as why:
            raise engine.Refused(f"input {path} is no whole {kind} file: {why}") from why
    if kind.startswith("records:") and (rest := size % record_bytes(kind)):
        raise engine.Refused(
            f"input {path}: its {size} bytes are no multiple of the record's "
            f"{record_bytes(kind)}; after the last whole record, at offset {size - rest}, some "
            "are left"
        )
    return size


def splits_of(
    given: Input, path: Path, kind: str, span: tuple[int, int], size: int, split_bytes: int
) -> list[Split]:
    """The splits of what begins in a span of a file's bytes: spans that cover it give all once.

    The span of ``records:N`` is one of whole records. Of ``n`` row groups, or batches, of a file
    one begins at each ``n``-th of its bytes: as good a place as any.
    """
    begin, end = span

    def split(begin: int, end: int) -> Split:
        return Split(given, path, kind, begin, end)

    if kind in ("parquet", "arrow"):
        count, _ = _parts(path, kind)
        own = [number for number in range(count) if begin <= number * size // count < end]
        return [split(number, number + 1) for number in own]
    step = split_bytes
    if kind.startswith("records:"):
        step = max(split_bytes // record_bytes(kind), 1) * record_bytes(kind)
    if kind == "csv":
        with path.open("rb") as file:
            begin = max(begin, len(file.readline()))  # the names of columns
    return [split(at, min(at + step, end)) for at in range(begin, end, step)]


def _parts(path: Path, kind: str) -> tuple[int, int]:
    if kind == "arrow":
        with pa.OSFile(str(path), "rb") as source:
            return pa.ipc.open_file(source).num_record_batches, path.stat().st_size
    about: Any = pq.read_metadata(path)
    sizes = [about.row_group(number).total_byte_size for number in range(about.num_row_groups)]
    return len(sizes), sum(sizes)
