"""Text, of which each line is a row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

import pyarrow as pa

from tonnage.run.map_reduce.reading import BEGINNING_BYTES, csv_rows, csv_schema, json_rows
from tonnage.run.reduce.formats.format import Format, Rows, one_of
from tonnage.run.reduce.pool import Chunk
from tonnage.run.sources import File, Sources


class Json(Format):
    """Objects of JSON, one a line."""

    NAME = "json"

    def cut(self, place: int, file: File, chunk_bytes: int, sources: Sources) -> Iterator[Chunk]:
        """Cuts where lines end."""
        return self._from(place, file, 0, chunk_bytes, sources)

    def rows(self, data: Any, file: File, chunk: Chunk, sources: Sources) -> Rows:
        """Parses the lines, with the types that the beginning of the file tells."""
        return one_of(json_rows(bytes(data), _columns(self.NAME, file, sources)))

    def _from(
        self, place: int, file: File, begin: int, chunk_bytes: int, sources: Sources
    ) -> Iterator[Chunk]:
        with sources.open(file) as opened:
            while begin < file.bytes:
                end = min(begin + chunk_bytes, file.bytes)
                if end < file.bytes:
                    opened.seek(end - 1)
                    end += len(opened.readline()) - 1
                yield Chunk(place, begin, end - begin, None)
                begin = end


class Csv(Json):
    """Lines of CSV, of which the first names columns."""

    NAME = "csv"

    @classmethod
    def row_of(cls, file: File, sources: Sources) -> str:
        """The names of columns, as they are written."""
        return _names(_header(file, sources))

    def cut(self, place: int, file: File, chunk_bytes: int, sources: Sources) -> Iterator[Chunk]:
        """Cuts where lines end, after the first."""
        header = _header(file, sources)
        self.refuse_others(file, _names(header))
        return self._from(place, file, len(header), chunk_bytes, sources)

    def head(self, chunks: Sequence[Chunk], file: File, sources: Sources) -> bytes:
        """The names of columns."""
        return _header(file, sources)

    def rows(self, data: Any, file: File, chunk: Chunk, sources: Sources) -> Rows:
        """Parses the lines, with the types that the beginning of the file tells."""
        return one_of(csv_rows(bytes(data), _columns(self.NAME, file, sources)))


def _header(file: File, sources: Sources) -> bytes:
    """The first line."""
    with sources.open(file) as opened:
        return opened.readline()


def _names(header: bytes) -> str:
    return header.decode("utf-8-sig", "replace").strip()


@lru_cache(maxsize=4096)
def _columns(name: str, file: File, sources: Sources) -> pa.Schema:
    """The columns of a file of text, as its beginning tells."""
    with sources.open(file) as opened:
        text = opened.read(min(BEGINNING_BYTES, file.bytes)) + opened.readline()
    return csv_schema(text) if name == "csv" else json_rows(text, None).schema
