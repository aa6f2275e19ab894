"""What there is to read: files, their formats, and the splits that threads take in turn.

A split is what one batch or a few are made of: a range of bytes in which lines or records begin, a
row group, a batch. A line belongs to the split that it begins in, however long it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import pyarrow as pa

from tonnage.base import core
from tonnage.run.storage.sources import InputFile, Sources, containing_input

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
PARTED = {"parquet": "row group", "arrow": "batch"}
"""What files are made of that say where their parts are."""

Map = Callable[[pa.RecordBatch], pa.RecordBatch]


@dataclass(frozen=True)
class Input:
    """A file, or a directory of files, with what is particular to it.

    Args:
        path: Where it is: a path, or a url, ``s3://BUCKET/KEY``, of an object or a folder of them.
            Names that begin with ``.`` or ``_`` are left out of a directory.
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
    file: InputFile
    format: str
    begin: int
    end: int

    def __str__(self) -> str:
        if self.format in PARTED:
            return f"{self.file.name}, {PARTED[self.format]} {self.begin}"
        return f"{self.file.name}, bytes {self.begin} to {self.end}"


@dataclass(frozen=True)
class InputSplits:
    """All splits, with the bytes on file, and about as many as they are in memory."""

    splits: list[Split]
    bytes: int
    memory_bytes: int


def find_splits(inputs: Sequence[Input], split_bytes: int, sources: Sources) -> InputSplits:
    """The splits of all files.

    Raises:
        UsageError: One is not there, is empty of files, or is of no format that is known.
    """
    given = [(each, file) for each in inputs for file in sources.find(str(each.path))]
    # Of each object something is asked.
    cut = sources.map_parallel(given, lambda each: _cut(each[0], each[1], split_bytes, sources))
    return InputSplits(
        [split for splits, _ in cut for split in splits],
        sum(file.bytes for _, file in given),
        sum(decoded for _, decoded in cut),
    )


def input_of(inputs: Sequence[Input], name: str) -> Input:
    """The input that a file is of, or is."""
    return inputs[containing_input([str(each.path) for each in inputs], name)]


def record_bytes(name: str) -> int:
    """The size of a record in the format ``records:N``."""
    return int(name.partition(":")[2])


def format_of(given: Input, name: str) -> str:
    """What a file is: as it is given, or as its name ends."""
    if re.fullmatch(r"lines|csv|json|parquet|arrow|records:[1-9]\d{0,8}", given.format):
        return given.format
    if given.format != "auto":
        raise core.UsageError(
            f"--input-format {given.format}: there are {', '.join(KNOWN)} (N bytes a record)"
        )
    found = FORMATS.get(PurePosixPath(name).suffix.lower())
    if found is None:
        raise core.UsageError(
            f"input {name}: its name does not say what it is; give --input-format, one of "
            f"{', '.join(KNOWN[1:])}"
        )
    return found


def _cut(
    given: Input, file: InputFile, split_bytes: int, sources: Sources
) -> tuple[list[Split], int]:
    """A file's splits, and about how many bytes they are in memory."""
    kind = format_of(given, file.name)
    decoded = refuse_broken(file, kind, sources)
    return splits_of(given, file, kind, (0, file.bytes), split_bytes, sources), decoded


def refuse_broken(file: InputFile, kind: str, sources: Sources) -> int:
    """Refuses a file that is none of its format; tells about how many bytes it is in memory."""
    if kind in PARTED:
        try:
            return _parts(file, kind, sources)[1]
        except (pa.ArrowException, OSError) as why:
            raise core.UsageError(f"input {file.name} is no whole {kind} file: {why}") from why
    if kind.startswith("records:") and (rest := file.bytes % record_bytes(kind)):
        raise core.UsageError(
            f"input {file.name}: its {file.bytes} bytes are no multiple of the record's "
            f"{record_bytes(kind)}; after the last whole record, at offset {file.bytes - rest}, "
            "some are left"
        )
    return file.bytes


def splits_of(
    given: Input,
    file: InputFile,
    kind: str,
    span: tuple[int, int],
    split_bytes: int,
    sources: Sources,
) -> list[Split]:
    """The splits of what begins in a span of a file's bytes: spans that cover it give all once.

    The span of ``records:N`` is one of whole records. Of ``n`` row groups, or batches, of a file
    one begins at each ``n``-th of its bytes: as good a place as any.
    """
    begin, end = span

    def split(begin: int, end: int) -> Split:
        return Split(given, file, kind, begin, end)

    if kind in PARTED:
        count, _ = _parts(file, kind, sources)
        own = [number for number in range(count) if begin <= number * file.bytes // count < end]
        return [split(number, number + 1) for number in own]
    step = split_bytes
    if kind.startswith("records:"):
        step = max(split_bytes // record_bytes(kind), 1) * record_bytes(kind)
    if kind == "csv":
        with sources.open(file) as opened:
            begin = max(begin, len(opened.readline()))  # the names of columns
    return [split(at, min(at + step, end)) for at in range(begin, end, step)]


def _parts(file: InputFile, kind: str, sources: Sources) -> tuple[int, int]:
    """How many parts there are, and about how many bytes they are in memory."""
    if kind == "arrow":
        with sources.arrow(file) as source:
            return pa.ipc.open_file(source).num_record_batches, file.bytes
    about: Any = sources.footer(file)
    sizes = [about.row_group(number).total_byte_size for number in range(about.num_row_groups)]
    return len(sizes), sum(sizes)
