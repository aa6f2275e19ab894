"""What a format of files can do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from io import BufferedIOBase
from typing import Any, ClassVar, NamedTuple

import pyarrow as pa

from tonnage.base import core
from tonnage.run.storage.sources import InputFile, Sources

Rows = Any
"""A NumPy array of rows of a size, or a `pyarrow.RecordBatch` of rows with named columns."""


class Chunk(NamedTuple):
    """Whole rows of a file."""

    file: int
    """The file's place in the index."""
    offset: int
    bytes: int
    rows: int | None
    """``None`` where that takes reading them."""
    part: int = 0
    """Which row group of Parquet."""


MESSAGE_CHARACTERS = 300
"""Characters of what was raised that are told: some errors hold the data."""
PIECE_BYTES = 16 << 20
"""Copied at once."""


class Format(ABC):
    """What all files of a reduction are.

    Args:
        row: What a row is, in words of the format; ``None`` where files need not agree.
    """

    NAME: ClassVar[str]
    """As ``--input-format`` has it."""
    LOOKS: ClassVar[bool] = True
    """Whether a file has to be looked at where it is cut."""
    SHORTER: ClassVar[str] = "give less --chunk-size"
    """What makes chunks shorter, for messages."""

    def __init__(self, row: str | None) -> None:
        self.row = row

    @classmethod
    def row_of(cls, file: InputFile, sources: Sources) -> str | None:
        """What a row of a file is, if the file says it.

        Raises:
            UsageError: The file is none of the format.
        """
        return None

    def to_json(self) -> dict[str, Any]:
        """What `format_named` takes."""
        return {"name": self.NAME, "dtype": self.row}

    @abstractmethod
    def cut(
        self, place: int, file: InputFile, chunk_bytes: int, sources: Sources
    ) -> Iterator[Chunk]:
        """A file's chunks, of about ``chunk_bytes`` each.

        Raises:
            UsageError: The file is none of the format, or its rows are others.
        """

    @abstractmethod
    def rows(self, data: Any, file: InputFile, chunk: Chunk, sources: Sources) -> Rows:
        """The rows of a chunk.

        Args:
            data: Its bytes, by the buffer protocol; rows may be a view of them.
            file: What it is of.
            chunk: Which.
            sources: What opens the file, for what is said of all of it.
        """

    def beginning(self, chunk: Chunk, rows: int) -> Chunk:
        """The beginning of a chunk, of so many rows if it can be cut there, else all of it."""
        return chunk

    def extract(
        self,
        chunks: Sequence[Chunk],
        file: InputFile,
        sources: Sources,
        into: BufferedIOBase,
        moved: Callable[[int], None],
    ) -> None:
        """Writes the rows of chunks that follow one another as a file of its own.

        Args:
            chunks: In order; none is between them.
            file: What they are of.
            sources: What opens it.
            into: Where to.
            moved: Called with bytes of the file that are written, again and again.

        Raises:
            RunError: The file is shorter than it was.
        """
        into.write(self.head(chunks, file, sources))
        at, end = chunks[0].offset, chunks[-1].offset + chunks[-1].bytes
        with sources.open(file) as opened:
            opened.seek(at)
            while at < end:
                piece = opened.read(min(PIECE_BYTES, end - at))
                if not piece:
                    raise core.RunError("it ended early", "read", file.name, at)
                into.write(piece)
                at += len(piece)
                moved(len(piece))

    def head(self, chunks: Sequence[Chunk], file: InputFile, sources: Sources) -> bytes:
        """What a file begins with before rows of these chunks."""
        return b""

    def refuse_others(self, file: InputFile, row: str | None) -> None:
        """Refuses a file whose rows are not those of the others."""
        if row != self.row:
            raise core.UsageError(
                f"input {file.name}: its rows are {row}, and others are {self.row}: give files of "
                "one kind"
            )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Format) and self.to_json() == other.to_json()

    def __hash__(self) -> int:
        return hash(repr(self.to_json()))


def describe_columns(schema: pa.Schema) -> str:
    """What a row is that has named columns."""
    return ", ".join(f"{field.name}: {field.type}" for field in schema)


def to_batch(table: pa.Table) -> pa.RecordBatch:
    """A table as a batch."""
    batches = table.combine_chunks().to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=table.schema)


def printable(said: str) -> str:
    """Text that a terminal can show, if need be the beginning of it only."""
    shown = "".join(each if each.isprintable() else " " for each in said.replace("\ufffd", "?"))
    return shown if len(shown) <= MESSAGE_CHARACTERS else f"{shown[:MESSAGE_CHARACTERS]}..."
