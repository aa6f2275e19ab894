"""What a file format can do: be cut into chunks, be read in splits, be written.

A chunk is a span of bytes with whole rows that its user fetches; reductions ask formats to
decode chunks (`ChunkFormat`). A split is a part of a file that its reader opens itself; MapReduce
reads splits as record batches (`splittable`) and writes parts (`OutputFormat`).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from io import BufferedIOBase
from typing import Any, ClassVar, NamedTuple

import pyarrow as pa

from tonnage.base import core
from tonnage.run.storage.sources import InputFile, Sources

Rows = Any
"""A NumPy array of rows of a fixed width, or a `pyarrow.RecordBatch` of rows with named columns."""
COPY_BYTES = 16 << 20
MESSAGE_CHARACTERS = 300
"""Longer errors of libraries are cut: some hold the data."""


class Chunk(NamedTuple):
    """A span of bytes of a file that holds whole rows."""

    file: int
    """The file's place in the index."""
    offset: int
    bytes: int
    rows: int | None
    """``None`` if counting them takes reading them."""
    part: int = 0
    """The number of a Parquet row group."""


class Format(ABC):
    NAME: ClassVar[str]
    SUFFIXES: ClassVar[tuple[str, ...]] = ()
    """Ends of file names, in lower case, that mean this format."""


class ChunkFormat(Format):
    """A format of files cut into chunks; ``row`` is the rows' type, ``None`` if files may vary."""

    READS_TO_CUT: ClassVar[bool] = True
    """Whether cutting a file takes reading some of it."""
    SMALLER_CHUNKS: ClassVar[str] = "use smaller chunks"
    """How a user gets smaller chunks, for messages."""

    def __init__(self, row: str | None = None) -> None:
        self.row = row

    @classmethod
    def row_type(cls, file: InputFile, sources: Sources) -> str | None:
        """The type of a file's rows if it states one; `UsageError` if it has another format."""
        return None

    def to_json(self) -> dict[str, Any]:
        """The arguments of `registry.chunk_format`."""
        return {"name": self.NAME, "dtype": self.row}

    @abstractmethod
    def chunks(
        self, number: int, file: InputFile, chunk_bytes: int, sources: Sources
    ) -> Iterator[Chunk]:
        """Cut a file into chunks of about this size; refuse another format or type of rows."""

    @abstractmethod
    def decode(self, data: Any, file: InputFile, chunk: Chunk, sources: Sources) -> Rows:
        """The rows of a chunk; they may be views of ``data``, which has the buffer protocol."""

    def pieces(self, data: Any, file: InputFile, chunk: Chunk, sources: Sources) -> Iterator[Rows]:
        """The rows of a chunk, in pieces that fit a reader's memory if the format can do that."""
        yield self.decode(data, file, chunk, sources)

    def first_rows(self, chunk: Chunk, rows: int) -> Chunk:
        """The chunk up to this many rows, or all of it if it cannot be cut there."""
        return chunk

    def write_chunks(
        self,
        chunks: Sequence[Chunk],
        file: InputFile,
        sources: Sources,
        output: BufferedIOBase,
        on_progress: Callable[[int], None],
    ) -> None:
        """Write adjacent chunks as a file; ``on_progress`` gets the input bytes of each piece."""
        output.write(self.header(chunks, file, sources))
        at, end = chunks[0].offset, chunks[-1].offset + chunks[-1].bytes
        with sources.open(file) as opened:
            opened.seek(at)
            while at < end:
                piece = opened.read(min(COPY_BYTES, end - at))
                if not piece:
                    raise core.RunError("the file is truncated", "read", file.name, at)
                output.write(piece)
                at += len(piece)
                on_progress(len(piece))

    def header(self, chunks: Sequence[Chunk], file: InputFile, sources: Sources) -> bytes:
        """What comes before the rows in a file of these chunks."""
        return b""

    def check_row_type(self, file: InputFile, row: str | None) -> None:
        if row != self.row:
            raise core.UsageError(
                f"input {file.name}: its rows are {row}, but those of other files are "
                f"{self.row}; use files of one type"
            )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ChunkFormat) and self.to_json() == other.to_json()

    def __hash__(self) -> int:
        return hash(repr(self.to_json()))


class OutputFormat(Format):
    OUTPUT_SUFFIX: ClassVar[str]

    @staticmethod
    @abstractmethod
    def writer(file: Any, schema: pa.Schema) -> Any:
        """A context manager with the method ``write_batch``."""


def invalid_file(file: InputFile, name: str, why: object) -> core.UsageError:
    return core.UsageError(f"input {file.name} is not a valid {name} file: {why}")


def describe_columns(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name}: {field.type}" for field in schema)


def to_batch(table: pa.Table, stage: str = "rows") -> pa.RecordBatch:
    """A table as one record batch; `RunError` if a column of strings is too long for that."""
    columns = [column.combine_chunks() for column in table.columns]
    if any(isinstance(column, pa.ChunkedArray) for column in columns):
        raise core.RunError(
            "a column of strings has more than 2 GiB in one batch; convert it to large_string",
            stage,
        )
    return pa.RecordBatch.from_arrays(columns, schema=table.schema)


def with_values(rows: Rows, columns: Mapping[str, int | str | None]) -> Rows:
    """The rows with columns of one value each; those that the rows have stay as they are.

    Rows of a fixed width are an array, which has no room for more.
    """
    if not isinstance(rows, pa.RecordBatch):
        return rows
    for name, value in columns.items():
        if name not in rows.schema.names:
            one: Any = pa.scalar(value, pa.int64() if isinstance(value, int) else pa.string())
            rows = rows.append_column(name, pa.repeat(one, rows.num_rows))
    return rows


def cast_rows(rows: pa.RecordBatch, schema: pa.Schema, stage: str, where: str) -> pa.RecordBatch:
    """The rows in these columns; `RunError` names the function and ``where`` it cannot be."""
    if rows.schema.equals(schema):
        return rows
    try:
        return rows.select(schema.names).cast(schema)
    except (pa.ArrowException, KeyError) as why:
        raise core.RunError(
            f"what {stage} returned for {where} has different columns from earlier results "
            f"({why}); cast the columns in {stage}",
            stage,
        ) from why


def printable(text: str) -> str:
    """Text that a terminal can show, cut if it is long."""
    shown = "".join(each if each.isprintable() else " " for each in text.replace("\ufffd", "?"))
    return shown if len(shown) <= MESSAGE_CHARACTERS else f"{shown[:MESSAGE_CHARACTERS]}..."
