"""JSON lines: an object in each line; the beginning of a file tells its columns."""

from __future__ import annotations

import io
import json
from typing import Any

import pyarrow as pa
import pyarrow.json as pjson

from tonnage.run.formats.format import Chunk, OutputFormat, Rows, invalid_file, printable, to_batch
from tonnage.run.formats.integers import LONG_INTEGER, integer_type
from tonnage.run.formats.lines import (
    UTF_8,
    LineChunks,
    LineSplits,
    beginning_error,
    beginning_schema,
    with_lf,
)
from tonnage.run.formats.plain_values import plain_values
from tonnage.run.storage.sources import InputFile, Sources

ROWS_AT_ONCE = 1024


class Json(LineChunks, LineSplits, OutputFormat):
    """JSON lines; the order of keys may differ between files."""

    NAME = "json"
    SUFFIXES = (".json", ".jsonl", ".ndjson")
    OUTPUT_SUFFIX = ".jsonl"

    @classmethod
    def row_type(cls, file: InputFile, sources: Sources) -> str:
        return json.dumps(_told_schema(file, sources).names)

    def check_row_type(self, file: InputFile, row: str | None) -> None:
        if sorted(json.loads(row or "[]")) != sorted(self._names):
            super().check_row_type(file, row)

    def decode(self, data: Any, file: InputFile, chunk: Chunk, sources: Sources) -> Rows:
        """Parse the lines; `ValueError` if an object has not the keys that the file begins with."""
        rows = _parse(with_lf(bytes(data), file, sources), _told_schema(file, sources))
        if other := {*rows.schema.names} ^ {*self._names}:
            raise ValueError(
                f"only some objects have {sorted(other)}; begin each file with an object that "
                "has all keys, with null for missing values"
            )
        return to_batch(rows.select(self._names))

    def schema(self, file: InputFile, given: pa.Schema | None, sources: Sources) -> pa.Schema:
        if given is not None:
            return given
        try:
            if self.encoding == UTF_8:
                return sources.cached(file, _schema)
            return beginning_schema(
                file, sources, lambda text: infer_fields(self.to_utf8(text)), self.FIRST_ROW
            )
        except pa.ArrowInvalid as why:
            raise beginning_error(file, why) from why

    def parse(self, text: bytes, schema: pa.Schema) -> pa.RecordBatch:
        return to_batch(_parse(text, schema))

    @staticmethod
    def writer(file: Any, schema: pa.Schema) -> Any:
        return _Writer(file)

    @property
    def _names(self) -> list[str]:
        names: list[str] = json.loads(self.row or "[]")
        return names


class _Writer:
    def __init__(self, file: Any) -> None:
        self._file = file

    def __enter__(self) -> _Writer:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def write_batch(self, rows: pa.RecordBatch) -> None:
        for at in range(0, rows.num_rows, ROWS_AT_ONCE):
            columns = [plain_values(each) for each in rows.slice(at, ROWS_AT_ONCE).columns]
            lines = [
                json.dumps(dict(zip(rows.schema.names, row, strict=True)), ensure_ascii=False)
                + "\n"
                for row in zip(*columns, strict=True)
            ]
            self._file.write("".join(lines).encode())


def _told_schema(file: InputFile, sources: Sources) -> pa.Schema:
    try:
        return sources.cached(file, _schema)
    except pa.ArrowInvalid as why:
        raise invalid_file(file, Json.NAME, printable(str(why))) from why


def _schema(file: InputFile, sources: Sources) -> pa.Schema:
    return beginning_schema(file, sources, infer_fields, Json.FIRST_ROW)


def infer_fields(text: bytes) -> pa.Schema:
    """The fields of JSON lines, with types that hold the values of ``text`` exactly.

    Raises:
        ArrowInvalid: The text is no JSON, or a field has values of several types.
    """
    inferred = _parse(text, None).schema
    floats = [each.name for each in inferred if each.type == pa.float64()]
    if floats and LONG_INTEGER.search(text):
        rows = [
            json.loads(line, parse_int=str, parse_float=str)
            for line in text.split(b"\n")
            if line.strip()
        ]
        for name in floats:
            values = (str(row[name]) for row in rows if row.get(name) is not None)
            if kind := integer_type(values, pa.decimal256(76, 0)):
                inferred = inferred.set(inferred.get_field_index(name), pa.field(name, kind))
    return inferred


def _parse(text: bytes, schema: pa.Schema | None) -> pa.Table:
    """Lines as a table; without a schema, with the columns that they have."""
    if not text.strip():
        return pa.table({})
    if not text.isascii():
        try:
            text.decode()  # Arrow does not look.
        except UnicodeDecodeError as why:
            raise pa.ArrowInvalid(
                "text is not UTF-8; convert it, or specify the encoding, as latin-1"
            ) from why
    return pjson.read_json(
        io.BytesIO(text),
        read_options=pjson.ReadOptions(use_threads=False, block_size=len(text) + 1),
        parse_options=pjson.ParseOptions(explicit_schema=schema),
    )
