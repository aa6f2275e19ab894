"""Parquet: a chunk is a row group."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from io import BufferedIOBase
from typing import IO, Any, cast

import pyarrow as pa
import pyarrow.parquet as pq

from tonnage import engine
from tonnage.run.reduce.formats.format import Format, Rows, columns_text, one_of
from tonnage.run.reduce.pool import Chunk
from tonnage.run.sources import File, Sources

CODECS: dict[str, Any] = {"UNCOMPRESSED": "none"}
"""As a writer names those that a file names otherwise."""


class Parquet(Format):
    """Parquet's files."""

    NAME = "parquet"

    @classmethod
    def row_of(cls, file: File, sources: Sources) -> str:
        """Its columns."""
        return columns_text(_footer(file, sources).schema.to_arrow_schema())

    def cut(self, place: int, file: File, chunk_bytes: int, sources: Sources) -> Iterator[Chunk]:
        """Cuts where row groups begin."""
        self.refuse_others(file, self.row_of(file, sources))
        about = _footer(file, sources)
        for number in range(about.num_row_groups):
            group = about.row_group(number)
            if not group.num_rows:
                continue  # It may have no pages.
            columns = [group.column(each) for each in range(group.num_columns)]
            begin = min(map(_begin, columns))
            end = max(_begin(each) + each.total_compressed_size for each in columns)
            yield Chunk(place, begin, end - begin, group.num_rows, number)

    def rows(self, data: Any, file: File, chunk: Chunk, sources: Sources) -> Rows:
        """Decodes the row group."""
        window = pa.PythonFile(_Window(memoryview(data), chunk.offset, file.bytes), "r")
        with pq.ParquetFile(window, metadata=_footer(file, sources)) as opened:
            return one_of(opened.read_row_group(chunk.part, use_threads=False))

    def extract(
        self,
        chunks: Sequence[Chunk],
        file: File,
        sources: Sources,
        into: BufferedIOBase,
        moved: Callable[[int], None],
    ) -> None:
        """Writes them as row groups, compressed as they were."""
        codec: Any = _footer(file, sources).row_group(chunks[0].part).column(0).compression
        with sources.open(file) as opened, ExitStack() as stack:
            writer = None
            for chunk in chunks:
                opened.seek(chunk.offset)
                rows = self.rows(opened.read(chunk.bytes), file, chunk, sources)
                if writer is None:
                    writer = stack.enter_context(
                        pq.ParquetWriter(
                            cast("IO[bytes]", into),
                            rows.schema,
                            compression=CODECS.get(codec, codec),
                        )
                    )
                writer.write_batch(rows, row_group_size=max(rows.num_rows, 1))
                moved(chunk.bytes)


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
            raise OSError(f"bytes {self._at} to {self._begin + end} are outside of the row group")
        self._at += end - begin
        return bytes(self._data[begin:end])


def _footer(file: File, sources: Sources) -> pq.FileMetaData:
    """What a Parquet file says of itself."""
    try:
        return sources.footer(file)
    except (pa.ArrowException, OSError) as why:
        raise engine.Refused(f"input {file.name} is no whole parquet file: {why}") from why


def _begin(column: Any) -> int:
    """Where a column's part of a row group begins."""
    pages = [column.data_page_offset, column.dictionary_page_offset]
    return min(int(page) for page in pages if page)
