"""Parquet: chunks and splits are row groups, each decoded from its own bytes.

A few bytes may decode to many rows, so rows are decoded piece by piece. A row group that a thread
has no memory for is not read whole either, but page by page.

Arrow must not read ahead (``pre_buffer``): its threads would only copy memory, and they may release
it while the interpreter exits, which aborts the process.
"""

import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from io import BufferedIOBase
from typing import IO, Any, cast

import pyarrow as pa
import pyarrow.parquet as pq

from tonnage.run.formats.format import (
    Chunk,
    ChunkFormat,
    OutputFormat,
    Rows,
    describe_columns,
    invalid_file,
    to_batch,
)
from tonnage.run.formats.splittable import UnitFormat
from tonnage.run.storage.sources import InputFile, Sources

WRITER_CODECS: dict[str, Any] = {"UNCOMPRESSED": "none"}
"""Codecs that a writer names otherwise than a file."""
BATCH_ROWS = 1 << 16
"""Rows in a batch of a split, at most."""
DICTIONARY_BYTES = 256 << 10
"""Of a column that is written: the writer's own table takes thirty times as much memory."""
SAMPLED_ROWS = 256
"""Rows that tell the size of all."""
MIN_READ_BYTES, MAX_READ_BYTES = 64 << 10, 8 << 20
"""Of a column at once, if a row group is not read whole."""


class Parquet(ChunkFormat, UnitFormat, OutputFormat):
    NAME = "parquet"
    SUFFIXES = (".parquet",)
    OUTPUT_SUFFIX = ".parquet"
    SMALLER_CHUNKS = "write files with smaller row groups"
    UNIT = "row group"

    @classmethod
    def row_type(cls, file: InputFile, sources: Sources) -> str:
        return describe_columns(_checked_footer(file, sources).schema.to_arrow_schema())

    def chunks(
        self, number: int, file: InputFile, chunk_bytes: int, sources: Sources
    ) -> Iterator[Chunk]:
        self.check_row_type(file, self.row_type(file, sources))
        metadata = _checked_footer(file, sources)
        for group in range(metadata.num_row_groups):
            if rows := metadata.row_group(group).num_rows:
                yield Chunk(number, *row_group_span(metadata, group), rows, group)

    def decode(self, data: Any, file: InputFile, chunk: Chunk, sources: Sources) -> Rows:
        metadata = _checked_footer(file, sources)
        with open_row_group(metadata, file.bytes, chunk.offset, data) as opened:
            return to_batch(opened.read_row_group(chunk.part, use_threads=False))

    def pieces(self, data: Any, file: InputFile, chunk: Chunk, sources: Sources) -> Iterator[Rows]:
        metadata = _checked_footer(file, sources)
        with open_row_group(metadata, file.bytes, chunk.offset, data) as opened:
            yield from _batches(opened, chunk.part, sources.reader_bytes, None)

    def write_chunks(
        self,
        chunks: Sequence[Chunk],
        file: InputFile,
        sources: Sources,
        output: BufferedIOBase,
        on_progress: Callable[[int], None],
    ) -> None:
        """Write them as row groups, with the codec that they had."""
        codec: Any = footer(file, sources).row_group(chunks[0].part).column(0).compression
        with sources.open(file) as opened, ExitStack() as stack:
            writer = None
            for chunk in chunks:
                opened.seek(chunk.offset)
                rows = self.decode(opened.read(chunk.bytes), file, chunk, sources)
                if writer is None:
                    writer = stack.enter_context(
                        pq.ParquetWriter(
                            cast("IO[bytes]", output),
                            rows.schema,
                            compression=WRITER_CODECS.get(codec, codec),
                        )
                    )
                writer.write_batch(rows, row_group_size=max(rows.num_rows, 1))
                on_progress(chunk.bytes)

    def check(self, file: InputFile, sources: Sources) -> int:
        metadata: Any = _checked_footer(file, sources)
        groups = map(metadata.row_group, range(metadata.num_row_groups))
        return sum(group.total_byte_size for group in groups)

    def units(self, file: InputFile, sources: Sources) -> int:
        return int(footer(file, sources).num_row_groups)

    def batches(
        self, file: InputFile, begin: int, end: int, schema: Any, sources: Sources
    ) -> Iterator[pa.RecordBatch]:
        metadata = footer(file, sources)
        if not metadata.row_group(begin).num_rows:
            return  # It may have no pages.
        offset, length = row_group_span(metadata, begin)
        if length > 2 * sources.reader_bytes:  # A reader of mapped rows has as much again.
            ahead = sources.reader_bytes // metadata.num_columns
            with (
                sources.arrow(file) as pages,
                pq.ParquetFile(
                    pages,
                    metadata=metadata,
                    pre_buffer=False,
                    buffer_size=min(max(ahead, MIN_READ_BYTES), MAX_READ_BYTES),
                ) as parquet,
            ):
                yield from _batches(parquet, begin, sources.reader_bytes, BATCH_ROWS)
            return
        with sources.open(file) as opened:
            opened.seek(offset)
            data = opened.read(length)
        with open_row_group(metadata, file.bytes, offset, data) as parquet:
            yield from _batches(parquet, begin, sources.reader_bytes, BATCH_ROWS)

    @staticmethod
    def writer(file: Any, schema: pa.Schema) -> Any:
        return pq.ParquetWriter(file, schema, dictionary_pagesize_limit=DICTIONARY_BYTES)


def _batches(
    parquet: pq.ParquetFile, group: int, max_bytes: int, max_rows: int | None
) -> Iterator[pa.RecordBatch]:
    """The rows of a row group, in batches of about ``max_bytes`` by the size of its first rows."""
    rows, row_bytes = parquet.metadata.row_group(group).num_rows, _row_bytes(parquet, group)
    count = max(min(int(max_bytes / row_bytes), max_rows or rows), 1)
    yield from parquet.iter_batches(count, row_groups=[group], use_threads=False)


def _row_bytes(parquet: pq.ParquetFile, group: int) -> float:
    """The decoded size of a row: by the types, or by the first rows if these do not tell."""
    try:
        return max(sum(kind.bit_width for kind in parquet.schema_arrow.types) / 8, 1 / 8)
    except ValueError:  # A type has no fixed width.
        first = next(parquet.iter_batches(SAMPLED_ROWS, row_groups=[group], use_threads=False))
        return max(first.nbytes / first.num_rows, 1 / 8)


def footer(file: InputFile, sources: Sources) -> pq.FileMetaData:
    return sources.cached(file, _read_footer)


def _checked_footer(file: InputFile, sources: Sources) -> pq.FileMetaData:
    try:
        return footer(file, sources)
    except (pa.ArrowException, OSError) as why:
        raise invalid_file(file, Parquet.NAME, why) from why


def _read_footer(file: InputFile, sources: Sources) -> pq.FileMetaData:
    with sources.arrow(file) as opened:
        return pq.read_metadata(opened)


def row_group_span(metadata: pq.FileMetaData, number: int) -> tuple[int, int]:
    """The offset and length of a row group that has rows: one without may have no pages."""
    group = metadata.row_group(number)
    columns = [group.column(each) for each in range(group.num_columns)]
    begin = min(map(_column_offset, columns))
    end = max(_column_offset(each) + each.total_compressed_size for each in columns)
    return begin, end - begin


def open_row_group(
    metadata: pq.FileMetaData, file_bytes: int, offset: int, data: Any
) -> pq.ParquetFile:
    """A file of which only the bytes of a row group are there; the caller closes it."""
    window = pa.PythonFile(_Window(memoryview(data), offset, file_bytes), "r")
    return pq.ParquetFile(window, metadata=metadata, pre_buffer=False)


class _Window(io.RawIOBase):
    """A file of which only a span is there."""

    def __init__(self, data: memoryview, begin: int, length: int) -> None:
        self._data, self._begin, self._length, self._at = data, begin, length, begin

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = 0) -> int:
        self._at = (0, self._at, self._length)[whence] + offset
        return self._at

    def read(self, size: int | None = -1) -> bytes:
        begin = self._at - self._begin
        end = len(self._data) if size is None or size < 0 else begin + size
        if begin < 0 or end > len(self._data):
            raise OSError(f"bytes {self._at} to {self._begin + end} are outside the row group")
        self._at += end - begin
        return bytes(self._data[begin:end])


def _column_offset(column: Any) -> int:
    pages = [column.data_page_offset, column.dictionary_page_offset]
    return min(int(page) for page in pages if page)
