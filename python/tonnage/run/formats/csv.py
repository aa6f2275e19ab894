"""CSV: the first line names the columns.

The beginning of a file tells the types of its columns, so that all its splits agree. A value of
another type further on is an error, which a schema or another format avoids.
"""

import io
import re
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.csv as pcsv

from tonnage.base import core
from tonnage.run.formats.format import Chunk, OutputFormat, Rows, invalid_file, printable, to_batch
from tonnage.run.formats.integers import LONG_INTEGER, integer_type
from tonnage.run.formats.lines import (
    BEGINNING_BYTES,
    CR,
    LF,
    UTF_8,
    LineChunks,
    LineSplits,
    beginning_error,
    beginning_schema,
    compression,
    line_end,
    line_pieces,
    with_lf,
)
from tonnage.run.storage.sources import InputFile, Sources

LONGEST_INTEGER = pa.decimal256(76, 0)
VALUE = rb'(?:"(?:[^"]|"")*+"[^,]*+|[^",][^,]*+)?'
LINE_OF_WHOLE_VALUES = re.compile(VALUE + rb"(?:," + VALUE + rb")*")
"""A line in which each quoted value ends."""


class Csv(LineChunks, LineSplits, OutputFormat):
    NAME = "csv"
    SUFFIXES = (".csv",)
    OUTPUT_SUFFIX = ".csv"
    FIRST_ROW = 1

    @classmethod
    def row_type(cls, file: InputFile, sources: Sources) -> str:
        return sources.cached(file, _header).decode("utf-8-sig", "replace").strip()

    def header(self, chunks: Sequence[Chunk], file: InputFile, sources: Sources) -> bytes:
        return sources.cached(file, _header)

    def first_row_offset(self, file: InputFile, sources: Sources) -> int:
        return len(sources.cached(file, _header))

    def decode(self, data: Any, file: InputFile, chunk: Chunk, sources: Sources) -> Rows:
        """Parse the lines; `ValueError` if a value is not of the type that the file begins with."""
        try:
            schema = sources.cached(file, _schema)
        except pa.ArrowInvalid as why:
            raise invalid_file(file, self.NAME, printable(str(why))) from why
        try:
            return to_batch(_parse(with_lf(bytes(data), file, sources), schema))
        except pa.ArrowInvalid as why:
            if "conversion error" not in str(why):
                raise
            raise ValueError(
                f"{printable(str(why))}; column types are inferred from the first MiB of each "
                "file; if later rows differ, use Parquet"
            ) from why

    def splits(
        self, file: InputFile, span: tuple[int, int], split_bytes: int, sources: Sources
    ) -> list[tuple[int, int]]:
        begin = max(span[0], self.first_row_offset(file, sources))
        return super().splits(file, (begin, span[1]), split_bytes, sources)

    def schema(self, file: InputFile, given: pa.Schema | None, sources: Sources) -> pa.Schema:
        """Names by the header, types as given or as the beginning tells."""
        try:
            if given is None and self.encoding == UTF_8:
                return _refuse_bytes(sources.cached(file, _schema))
            return beginning_schema(
                file, sources, lambda text: infer_columns(self.to_utf8(text), given), self.FIRST_ROW
            )
        except pa.ArrowInvalid as why:
            raise beginning_error(file, why) from why

    def parse(self, text: bytes, schema: pa.Schema) -> pa.RecordBatch:
        return to_batch(_parse(text, schema))

    @staticmethod
    def writer(file: Any, schema: pa.Schema) -> Any:
        return pcsv.CSVWriter(file, schema)


def _header(file: InputFile, sources: Sources) -> bytes:
    with sources.open(file) as opened:
        line = b""
        for piece in line_pieces(opened, LF):
            line += piece
            if len(line) > BEGINNING_BYTES:
                break
    if CR in line.rstrip(CR + LF) and line_end(file, sources) == CR:
        line = line[: line.find(CR) + 1]
    if why := compression(line):
        raise core.UsageError(f"input {file.name} {why}", setting="input_format")
    text = line.rstrip(CR + LF)
    if len(line) > BEGINNING_BYTES or any(each < ord(" ") and each not in b"\t" for each in text):
        raise core.UsageError(
            f"input {file.name}: its first line is not text, so it is not CSV; specify its format",
            setting="input_format",
        )
    return line


def _schema(file: InputFile, sources: Sources) -> pa.Schema:
    return beginning_schema(file, sources, infer_columns, Csv.FIRST_ROW)


def _refuse_bytes(schema: pa.Schema) -> pa.Schema:
    for field in schema:
        if pa.types.is_binary(field.type):  # Which Arrow infers of what is no UTF-8.
            raise pa.ArrowInvalid(
                f"column {field.name} is not UTF-8; specify the encoding, as latin-1"
            )
    return schema


def infer_columns(
    text: bytes,
    given: pa.Schema | None = None,
    *,
    delimiter: str = ",",
    names: list[str] | None = None,
) -> pa.Schema:
    """The columns of CSV, with types that hold the values of ``text`` exactly, or as given.

    With ``names``, the text has no header, its values may have newlines, and only an empty field
    without quotes is null; without, Arrow's words for null are null, too.

    Raises:
        ArrowInvalid: The text is not CSV.
    """
    options = pcsv.ReadOptions(use_threads=False, block_size=len(text) + 1, column_names=names)
    parsing = pcsv.ParseOptions(delimiter=delimiter, newlines_in_values=names is not None)
    nulls = None if names is None else [""]

    def read(**types: Any) -> pa.Table:
        convert = pcsv.ConvertOptions(
            null_values=nulls, quoted_strings_can_be_null=names is None, **types
        )
        return pcsv.read_csv(io.BytesIO(text), options, parsing, convert)

    inferred = read().schema
    floats = [each.name for each in inferred if each.type == pa.float64()]
    if floats and LONG_INTEGER.search(text):
        texts = read(
            column_types=dict.fromkeys(floats, pa.string()),
            include_columns=floats,
            strings_can_be_null=True,
        )
        for name in floats:
            values: list[Any] = texts[name].drop_null().to_pylist()
            if kind := integer_type(values, pa.string() if names is None else LONGEST_INTEGER):
                place = inferred.get_field_index(name)
                inferred = inferred.set(place, pa.field(name, kind))
    if given is None:
        return inferred
    return pa.schema(
        [given.field(each.name) if each.name in given.names else each for each in inferred]
    )


def _parse(text: bytes, schema: pa.Schema) -> pa.Table:
    """Lines without the header; no value may contain a line end, since files are cut there."""
    rows = pcsv.read_csv(
        io.BytesIO(text),
        read_options=pcsv.ReadOptions(
            use_threads=False, block_size=len(text) + 1, column_names=schema.names
        ),
        convert_options=pcsv.ConvertOptions(column_types=schema),
    )
    if b'"' in text:
        last = text.rstrip(b"\r\n").rpartition(b"\n")[2]
        if rows.num_rows < _lines(text, rows.num_rows) or not LINE_OF_WHOLE_VALUES.fullmatch(last):
            raise pa.ArrowInvalid("a quoted value contains a line break; use Parquet for such data")
    return rows


def _lines(text: bytes, expected: int) -> int:
    count = text.count(b"\n") + (not text.endswith(b"\n"))
    if count == expected:  # The usual case: no line is empty.
        return count
    return sum(1 for line in text.split(b"\n") if line.rstrip(b"\r"))
