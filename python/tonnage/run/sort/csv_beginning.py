"""The beginning of a CSV file: the names of its columns, and the types that their values have."""

from __future__ import annotations

import codecs
import csv
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tonnage.base import core
from tonnage.run.formats import compression
from tonnage.run.formats.csv import infer_columns
from tonnage.run.sort.dialect import Dialect

if TYPE_CHECKING:
    import pyarrow as pa

    from tonnage.run.sort.table_input import TableInput

BEGINNING_BYTES = 1 << 20
CR, LF = b"\r", b"\n"


@dataclass(frozen=True, kw_only=True)
class CsvBeginning:
    """What a file begins with."""

    file: str
    delimiter: str
    header: bytes
    """The record that names the columns, as it is in the file; empty if there is none."""
    names: list[str]
    text: bytes
    """Whole records without the header, in UTF-8."""

    @classmethod
    def read(cls, inputs: TableInput, name: str, dialect: Dialect) -> CsvBeginning:
        """Reads the beginning of the first file, of the format ``name``, ``csv`` or ``tsv``.

        Raises:
            UsageError: Its first record names no columns, or one name twice.
        """
        delimiter = dialect.delimiter_of(name)
        raw = compression.beginning(inputs.first, inputs.sources, BEGINNING_BYTES)
        raw = raw.removeprefix(codecs.BOM_UTF8)
        records = raw if len(raw) < BEGINNING_BYTES else _whole_records(raw)
        first = records[: len(records) - len(_behind_first(records))]
        _refuse_other_text(inputs.first.name, first)
        fields = next(
            csv.reader([dialect.to_utf8(first).decode("utf-8", "replace")], delimiter=delimiter), []
        )
        header = first if dialect.has_header else b""
        return cls(
            file=inputs.first.name,
            delimiter=delimiter,
            header=header,
            names=fields if header else [f"f{place}" for place in range(len(fields))],
            text=dialect.to_utf8(records[len(header) :]),
        )

    def place(self, column: str, setting: str = "by") -> int:
        """Where the fields of a column are.

        Raises:
            UsageError: There is no such column, or there are several.
        """
        if self.names.count(column) == 1:
            return self.names.index(column)
        raise core.UsageError(
            f"several columns are named {column!r}"
            if column in self.names
            else f"there is no column {column!r}; the columns are {', '.join(self.names)}",
            setting=setting,
        )

    def schema(self) -> pa.Schema:
        """The columns, with the types that PyArrow infers: text where nothing is known.

        Raises:
            UsageError: The text is not CSV.
        """
        import pyarrow as pa

        try:
            inferred = infer_columns(self.text, delimiter=self.delimiter, names=self.names)
        except pa.ArrowInvalid as why:
            if self.text.strip():
                raise core.UsageError(f"input {self.file}: {why}") from why
            inferred = pa.schema([pa.field(name, pa.null()) for name in self.names])
        for place, field in enumerate(inferred):
            if pa.types.is_binary(field.type):  # Which Arrow infers of what is no UTF-8.
                raise core.UsageError(
                    f"input {self.file}: column {field.name!r} is not UTF-8; specify its encoding, "
                    "such as latin-1"
                )
            if pa.types.is_null(field.type):
                inferred = inferred.set(place, pa.field(field.name, pa.string()))
        return inferred


def _whole_records(text: bytes) -> bytes:
    """The text up to the last newline that is not within quotes."""
    parts = text.split(b'"')
    outside = range((len(parts) - 1) // 2 * 2, -1, -2)
    for place in outside:
        if (at := parts[place].rfind(LF)) >= 0:
            return text[: sum(len(part) + 1 for part in parts[:place]) + at + 1]
    return b""


def _behind_first(records: bytes) -> bytes:
    """What is behind the first record."""
    at, is_quoted = 0, False
    for part in records.split(b'"'):
        if not is_quoted and (end := part.find(LF)) >= 0:
            return records[at + end + 1 :]
        at, is_quoted = at + len(part) + 1, not is_quoted
    return b""


def _refuse_other_text(file: str, first: bytes) -> None:
    if not first.strip() or b"\0" in first:
        raise core.UsageError(f"input {file}: its first line names no columns")
    if CR in first.rstrip(CR + LF):
        raise core.UsageError(
            f"input {file}: its lines end with a carriage return alone; convert these to newlines"
        )
