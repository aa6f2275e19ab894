"""Splits -> record batches, by Arrow's readers. What cannot be read is told with its file and row.

Types of CSV and JSON columns are what the beginning of their file tells, so that all splits of a
file agree; a value further on that is not of them is an error, and ``Input(schema=...)`` mends it.
"""

from __future__ import annotations

import io
import itertools
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pcsv
import pyarrow.json as pjson

from tonnage.base import core
from tonnage.run.formats import row_groups
from tonnage.run.mapreduce.blocks import to_batch
from tonnage.run.mapreduce.inputs import Split, record_bytes
from tonnage.run.storage.sources import InputFile, Sources

BEGINNING_BYTES = 1 << 20
"""So much of a file tells the types of its columns."""
COUNTED_BYTES = 64 << 20
"""Lines are counted up to here; further on it would be too long until an error is told."""
TAIL_BYTES = 16 << 10
"""Read beyond a split of text at once: most lines end by then."""
VALUE = rb'(?:"(?:[^"]|"")*+"[^,]*+|[^",][^,]*+)?'
QUOTED_WHOLE = re.compile(VALUE + rb"(?:," + VALUE + rb")*")
"""A line of CSV of which each value that is in quotes ends in it."""
ROW = re.compile(r"[Rr]ow #?(\d+)")
"""How Arrow tells a row."""
BATCH_ROWS = 1 << 16
"""Rows of a Parquet file in a batch, at most."""


class SplitReader:
    """Reads splits, by any thread; what the beginnings of files told is kept."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self._told: dict[InputFile, pa.Schema] = {}

    def batches(self, split: Split) -> Iterator[pa.RecordBatch]:
        """The batches of a split; no empty ones.

        Raises:
            RunError: It cannot be read; the message names file and row.
        """
        try:
            for batch in self._read(split):
                if batch.num_rows:
                    yield batch
        except (pa.ArrowException, OSError) as why:
            said = f"reading {split}: {self._with_line(split, str(why))}"
            raise core.RunError(said, "read", split.file.name, split.begin) from why

    def _read(self, split: Split) -> Iterator[pa.RecordBatch]:
        if split.format == "parquet":
            about = self._sources.footer(split.file)
            if not about.row_group(split.begin).num_rows:
                return  # It may have no pages.
            begin, length = row_groups.span(about, split.begin)
            with self._sources.open(split.file) as source:
                source.seek(begin)
                data = source.read(length)
            with row_groups.opened(about, split.file.bytes, begin, data) as file:
                yield from file.iter_batches(
                    BATCH_ROWS, row_groups=[split.begin], use_threads=False
                )
        elif split.format == "arrow":
            with self._sources.arrow(split.file) as source:
                yield pa.ipc.open_file(source).get_batch(split.begin)
        elif split.format.startswith("records:"):
            with self._sources.open(split.file) as file:
                file.seek(split.begin)
                yield _records(file.read(split.end - split.begin), record_bytes(split.format))
        else:
            _, text = self._lines_of(split)
            if split.format == "lines":
                yield _as_lines(text)
            elif text:
                read = csv_rows if split.format == "csv" else json_rows
                yield to_batch(read(text, self._schema(split, read)))

    def _schema(self, split: Split, read: Any) -> pa.Schema:
        """The columns of a file of text, as given or as its beginning tells."""
        known = self._told.get(split.file)
        if known is not None:
            return known
        given = split.input.schema
        if split.format == "json" and given is not None:
            return self._told.setdefault(split.file, given)
        # Threads that ask at the same time are told the same.
        _, text = self._lines_of(replace(split, begin=0, end=BEGINNING_BYTES))
        try:
            told = csv_schema(text, given) if split.format == "csv" else read(text, None).schema
        except pa.ArrowInvalid as why:
            # Of the beginning, whichever split it is that asks.
            said = f"reading {split.file.name}: {with_row(str(why), split.format, text, 0)}"
            raise core.RunError(said, "read", split.file.name, 0) from why
        return self._told.setdefault(split.file, told)

    def _lines_of(self, split: Split) -> tuple[int, bytes]:
        """Where the first line that begins in a split begins, and all such lines."""
        # With the byte before: where that ends a line, another one begins with the split.
        before = min(split.begin, 1)
        begin, end = split.begin - before, split.end - split.begin + before
        with self._sources.open(split.file) as file:
            file.seek(begin)
            text = file.read(end + TAIL_BYTES)
            first = text.find(b"\n") + 1 if before else 0
            if first >= end or (before and not first):
                return split.end, b""
            ends = text.find(b"\n", end - 1) + 1
            whole = text[first:ends] if ends else text[first:] + file.readline()
        return begin + first, whole

    def _with_line(self, split: Split, said: str) -> str:
        """What Arrow said, with the number of the line in the file if it told one in the split."""
        if split.begin > COUNTED_BYTES:
            return said
        if split.format == "lines":
            line = self._not_text(split)
            return f"{said} (line {line} of the file)" if line else said
        if split.format not in ("csv", "json"):
            return said
        place, text = self._lines_of(split)
        return with_row(said, split.format, text, self._lines_before(split, place))

    def _not_text(self, split: Split) -> int | None:
        """The first line of a split that is no UTF-8, counted from 1 in its file."""
        first, text = self._lines_of(split)
        for number, line in enumerate(text.split(b"\n")):
            try:
                line.decode()
            except UnicodeDecodeError:
                return self._lines_before(split, first) + number + 1
        return None

    def _lines_before(self, split: Split, place: int) -> int:
        """How many lines of a split's file end before a place."""
        with self._sources.open(split.file) as file:
            parts = range(0, place, BEGINNING_BYTES)
            return sum(file.read(min(BEGINNING_BYTES, place - at)).count(b"\n") for at in parts)


def with_row(said: str, format: str, text: bytes, before: int) -> str:
    """What Arrow said of a text, with the line in the file of the row that it told, if it did.

    Args:
        said: That.
        format: Rows of ``csv`` count from 1, those of ``json`` from 0; lines of nothing are none.
        text: The text.
        before: How many lines come before it.
    """
    found = ROW.search(said)
    if found is None:
        return said
    row = int(found[1]) - (format == "csv")
    lines = (number for number, line in enumerate(text.split(b"\n"), 1) if line.strip())
    line = next(itertools.islice(lines, max(row, 0), None), None)
    return said if line is None else f"{said} (line {before + line} of the file)"


def _records(data: bytes, length: int) -> pa.RecordBatch:
    buffers = [None, pa.py_buffer(data)]
    column = pa.Array.from_buffers(pa.binary(length), len(data) // length, buffers)
    return pa.record_batch({"record": column})


def _as_lines(text: bytes) -> pa.RecordBatch:
    ends = np.flatnonzero(np.frombuffer(text, np.uint8) == ord("\n")) + 1
    if text and not text.endswith(b"\n"):
        ends = np.append(ends, len(text))
    offsets = np.concatenate([[0], ends]).astype(np.int64)
    buffers = [None, pa.py_buffer(offsets.tobytes()), pa.py_buffer(text)]
    with_ends = pa.Array.from_buffers(pa.large_binary(), len(ends), buffers)
    lines = with_ends.cast(pa.large_string()).cast(pa.string())  # which asks whether it is UTF-8
    return pa.record_batch({"line": pc.ascii_rtrim(lines, characters="\r\n")})


def csv_schema(text: bytes, types: pa.Schema | None = None) -> pa.Schema:
    """The columns of a CSV file by its beginning: names by its first line, types as given."""
    options = pcsv.ReadOptions(use_threads=False, block_size=len(text) + 1)
    told = pcsv.read_csv(io.BytesIO(text), options).schema
    if types is None:
        return told
    return pa.schema(
        [field if field.name not in types.names else types.field(field.name) for field in told]
    )


def csv_rows(text: bytes, schema: pa.Schema) -> pa.Table:
    """Lines of CSV, without the one that names columns.

    Raises:
        ArrowInvalid: They are not of the schema, or a value holds a line end: files are cut where
            lines end, and there rows would be others than the file's.
    """
    rows = pcsv.read_csv(
        io.BytesIO(text),
        read_options=pcsv.ReadOptions(
            use_threads=False, block_size=len(text) + 1, column_names=schema.names
        ),
        convert_options=pcsv.ConvertOptions(column_types=schema),
    )
    if b'"' in text:
        last = text.rstrip(b"\r\n").rpartition(b"\n")[2]
        if rows.num_rows < _lines(text, rows.num_rows) or not QUOTED_WHOLE.fullmatch(last):
            raise pa.ArrowInvalid("a value in quotes holds a line end: write such data as Parquet")
    return rows


def _lines(text: bytes, expected: int) -> int:
    """How many lines there are that are not empty."""
    count = text.count(b"\n") + (not text.endswith(b"\n"))
    if count == expected:  # As nearly always: none is empty.
        return count
    return sum(1 for line in text.split(b"\n") if line.rstrip(b"\r"))


def json_rows(text: bytes, schema: pa.Schema | None) -> pa.Table:
    """Lines of JSON, an object each; without a schema with the columns that they have."""
    if not text.strip():
        return pa.table({})
    return pjson.read_json(
        io.BytesIO(text),
        read_options=pjson.ReadOptions(use_threads=False, block_size=len(text) + 1),
        parse_options=pjson.ParseOptions(explicit_schema=schema),
    )
