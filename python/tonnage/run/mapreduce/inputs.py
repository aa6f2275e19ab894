"""The input: its files, and the splits in which threads read them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from tonnage.base import core
from tonnage.run.formats.format import with_values
from tonnage.run.formats.registry import AUTO, split_format
from tonnage.run.formats.splittable import SplitFormat
from tonnage.run.storage.hive import hive_columns
from tonnage.run.storage.sources import InputFile, Sources, containing_input, refuse_twice

Map = Callable[[pa.RecordBatch], pa.RecordBatch]


@dataclass(frozen=True)
class Input:
    """A file, object, directory or folder, with settings of its own.

    Args:
        path: A path, or a url ``s3://BUCKET/KEY`` of an object or a folder. Names that begin with
            ``.`` or ``_`` are not read from directories.
        map: Called with its batches instead of the job's own ``map``.
        format: ``lines`` (a column ``line``), ``csv``, ``json`` (an object a line), ``parquet``,
            ``arrow`` (files, not streams), ``records:N`` (a column ``record`` of N bytes each), or
            ``auto``: as the name ends.
        schema: Types of columns of ``csv`` and ``json``; by default the beginning of each file
            tells them.
        encoding: Of text, like ``latin-1``; by default UTF-8.
    """

    path: Path | str
    map: Map | None = None
    format: str = AUTO
    schema: pa.Schema | None = None
    encoding: str | None = None

    def format_of(self, file_name: str) -> SplitFormat:
        """Return the format of one of its files."""
        return split_format(self.format, file_name, self.encoding)


@dataclass(frozen=True)
class Split:
    """A part of a file, from ``begin`` to ``end`` in units of its format."""

    input: Input
    file: InputFile
    format: SplitFormat
    begin: int
    end: int

    @property
    def bytes(self) -> int:
        """Its length, if it is counted in bytes."""
        return 0 if self.format.UNIT else self.end - self.begin

    def __str__(self) -> str:
        if self.format.UNIT:
            return f"{self.file.name}, {self.format.UNIT} {self.begin}"
        return f"{self.file.name}, bytes {self.begin} to {self.end}"


@dataclass(frozen=True)
class InputSplits:
    """All splits, their bytes in files, and approximately in memory."""

    splits: list[Split]
    bytes: int
    memory_bytes: int


def find_splits(inputs: Sequence[Input], split_bytes: int, sources: Sources) -> InputSplits:
    """The splits of all files.

    `UsageError` if an input is missing, is there twice, or is of another format.
    """
    found_files = [list(sources.find(str(each.path))) for each in inputs]
    refuse_twice([str(each.path) for each in inputs], found_files)
    files = [(each, file) for each, own in zip(inputs, found_files, strict=True) for file in own]

    def split_file(pair: tuple[Input, InputFile]) -> tuple[list[Split], int]:
        given, file = pair
        memory_bytes = check_file(given, file, sources)
        return splits_in(given, file, (0, file.bytes), split_bytes, sources), memory_bytes

    found = sources.map_parallel(files, split_file)  # Each object takes a request.
    return InputSplits(
        [split for splits, _ in found for split in splits],
        sum(file.bytes for _, file in files),
        sum(memory_bytes for _, memory_bytes in found),
    )


def input_of(inputs: Sequence[Input], name: str) -> Input:
    return inputs[containing_input([str(each.path) for each in inputs], name)]


def check_file(given: Input, file: InputFile, sources: Sources) -> int:
    """Refuse a file of another format; gives its approximate size in memory.

    A file of 0 bytes has any format: stores mark folders with such objects.
    """
    return 0 if not file.bytes else given.format_of(file.name).check(file, sources)


def splits_in(
    given: Input, file: InputFile, span: tuple[int, int], split_bytes: int, sources: Sources
) -> list[Split]:
    if not file.bytes:
        return []
    format = given.format_of(file.name)
    ranges = format.splits(file, span, split_bytes, sources)
    return [Split(given, file, format, begin, end) for begin, end in ranges]


class SplitReader:
    """Reads splits in any thread; remembers the columns of text files."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self._schemas: dict[InputFile, Any] = {}

    def batches(self, split: Split) -> Iterator[pa.RecordBatch]:
        """The non-empty batches of a split; `RunError` names the file and the line of an error."""
        file, format, span = split.file, split.format, (split.begin, split.end)
        columns = hive_columns(str(split.input.path), file.name)
        try:
            for batch in format.batches(file, *span, self._schema(split), self._sources):
                if batch.num_rows:
                    yield with_values(batch, columns)
        except (pa.ArrowException, OSError) as why:
            error = format.locate(str(why), file, *span, self._sources)
            raise core.RunError(
                f"cannot read {split}: {error}", "read", file.name, split.begin
            ) from why

    def _schema(self, split: Split) -> Any:
        if split.file not in self._schemas:
            schema = split.format.schema(split.file, split.input.schema, self._sources)
            self._schemas.setdefault(split.file, schema)  # All threads use the same.
        return self._schemas[split.file]
