"""Parquet: a chunk is a row group."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from io import BufferedIOBase
from typing import IO, Any, cast

import pyarrow as pa
import pyarrow.parquet as pq

from tonnage.base import core
from tonnage.run.formats import row_groups
from tonnage.run.formats.format import Chunk, Format, Rows, describe_columns, to_batch
from tonnage.run.storage.sources import InputFile, Sources

CODECS: dict[str, Any] = {"UNCOMPRESSED": "none"}
"""As a writer names those that a file names otherwise."""


class Parquet(Format):
    """Parquet's files."""

    NAME = "parquet"
    SHORTER = "write files with shorter row groups"

    @classmethod
    def row_of(cls, file: InputFile, sources: Sources) -> str:
        """Its columns."""
        return describe_columns(_footer(file, sources).schema.to_arrow_schema())

    def cut(
        self, place: int, file: InputFile, chunk_bytes: int, sources: Sources
    ) -> Iterator[Chunk]:
        """Cuts where row groups begin."""
        self.refuse_others(file, self.row_of(file, sources))
        about = _footer(file, sources)
        for number in range(about.num_row_groups):
            rows = about.row_group(number).num_rows
            if rows:
                yield Chunk(place, *row_groups.span(about, number), rows, number)

    def rows(self, data: Any, file: InputFile, chunk: Chunk, sources: Sources) -> Rows:
        """Decodes the row group."""
        about = _footer(file, sources)
        with row_groups.opened(about, file.bytes, chunk.offset, data) as opened:
            return to_batch(opened.read_row_group(chunk.part, use_threads=False))

    def extract(
        self,
        chunks: Sequence[Chunk],
        file: InputFile,
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


def _footer(file: InputFile, sources: Sources) -> pq.FileMetaData:
    """What a Parquet file says of itself."""
    try:
        return sources.footer(file)
    except (pa.ArrowException, OSError) as why:
        raise core.UsageError(f"input {file.name} is no whole parquet file: {why}") from why
