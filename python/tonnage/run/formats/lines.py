"""Text, of which each line is a row."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from tonnage.base import core
from tonnage.run.formats.format import Chunk, Format, Rows, printable, to_batch
from tonnage.run.mapreduce.reader import BEGINNING_BYTES, csv_rows, csv_schema, json_rows, with_row
from tonnage.run.storage.sources import InputFile, Sources


class Lines(Format):
    """Text, cut where lines end."""

    def cut(
        self, place: int, file: InputFile, chunk_bytes: int, sources: Sources
    ) -> Iterator[Chunk]:
        """Cuts where lines end, after what the file begins with."""
        self.refuse_others(file, self.row_of(file, sources))
        begin = self._begin(file, sources)
        with sources.open(file) as opened:
            while begin < file.bytes:
                end = min(begin + chunk_bytes, file.bytes)
                if end < file.bytes:
                    opened.seek(end - 1)
                    end += len(opened.readline()) - 1
                yield Chunk(place, begin, end - begin, None)
                begin = end

    @abstractmethod
    def _begin(self, file: InputFile, sources: Sources) -> int:
        """Where the first row is."""


class Json(Lines):
    """Objects of JSON, one a line; keys may come in another order in another file."""

    NAME = "json"

    @classmethod
    def row_of(cls, file: InputFile, sources: Sources) -> str:
        """The names of columns, in their order."""
        return json.dumps(sources.cached(file, _json_columns).names)

    def refuse_others(self, file: InputFile, row: str | None) -> None:
        """Refuses a file that has other keys."""
        if sorted(json.loads(row or "[]")) != sorted(self._names):
            super().refuse_others(file, row)

    def rows(self, data: Any, file: InputFile, chunk: Chunk, sources: Sources) -> Rows:
        """Parses the lines, with the types that the beginning of the file tells.

        Raises:
            ValueError: There are other keys than in the beginning.
        """
        rows = json_rows(bytes(data), sources.cached(file, _json_columns))
        if other := {*rows.schema.names} ^ {*self._names}:
            raise ValueError(
                f"some objects have {sorted(other)} and some do not: have each begin with one that "
                "has all, null where there is nothing"
            )
        return to_batch(rows.select(self._names))

    def _begin(self, file: InputFile, sources: Sources) -> int:
        return 0

    @property
    def _names(self) -> list[str]:
        found: list[str] = json.loads(self.row or "[]")
        return found


class Csv(Lines):
    """Lines of CSV, of which the first names columns."""

    NAME = "csv"

    @classmethod
    def row_of(cls, file: InputFile, sources: Sources) -> str:
        """The names of columns, as they are written."""
        return sources.cached(file, _header).decode("utf-8-sig", "replace").strip()

    def head(self, chunks: Sequence[Chunk], file: InputFile, sources: Sources) -> bytes:
        """The names of columns."""
        return sources.cached(file, _header)

    def rows(self, data: Any, file: InputFile, chunk: Chunk, sources: Sources) -> Rows:
        """Parses the lines, with the types that the beginning of the file tells.

        Raises:
            ValueError: A value is of another type.
        """
        try:
            return to_batch(csv_rows(bytes(data), sources.cached(file, _csv_columns)))
        except pa.ArrowInvalid as why:
            if "conversion error" not in str(why):
                raise
            raise ValueError(
                f"{printable(str(why))}: types are what the first MiB of a file tells: write data "
                "whose types show later as Parquet"
            ) from why

    def _begin(self, file: InputFile, sources: Sources) -> int:
        return len(sources.cached(file, _header))


def _header(file: InputFile, sources: Sources) -> bytes:
    """The first line.

    Raises:
        UsageError: It is no text.
    """
    with sources.open(file) as opened:
        line = opened.readline()
    if any(each < ord(" ") and each not in b"\t\r\n" for each in line):
        raise core.UsageError(
            f"input {file.name}: its first line is no text, so it is no csv: give --input-format as it is"
        )
    return line


def _csv_columns(file: InputFile, sources: Sources) -> pa.Schema:
    """The columns of a file, as its beginning tells."""
    with _beginning(file, sources, "csv") as text:
        return csv_schema(text)


def _json_columns(file: InputFile, sources: Sources) -> pa.Schema:
    """The columns of a file, as its beginning tells."""
    with _beginning(file, sources, "json") as text:
        return json_rows(text, None).schema


@contextmanager
def _beginning(file: InputFile, sources: Sources, format: str) -> Iterator[bytes]:
    """The lines that a file begins with, to be read meanwhile.

    Raises:
        UsageError: They cannot be.
    """
    with sources.open(file) as opened:
        text = opened.read(min(BEGINNING_BYTES, file.bytes)) + opened.readline()
    try:
        yield text
    except pa.ArrowInvalid as why:
        said = printable(with_row(str(why), format, text, 0))
        raise core.UsageError(
            f"input {file.name} is no whole {format}: {said}: mend it, or give --input-format"
        ) from why
