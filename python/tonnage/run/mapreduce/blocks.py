"""Rows as blocks: each an Arrow IPC stream of its own, so that a block says what it holds.

Streams one after another are what a partition is read as. Columns that some of them lack are null
there: maps of several inputs need not agree on more than the key.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from tonnage.base import core
from tonnage.run.formats.format import to_batch
from tonnage.run.mapreduce import keys

CORRUPT = "a device or its memory corrupts data, the output was not kept"


class ObservedSchemas:
    """Which columns rows had, and where they were first seen."""

    def __init__(self) -> None:
        self._seen: dict[pa.Schema, str] = {}
        self._lock = threading.Lock()

    def note(self, schema: pa.Schema, where: object) -> None:
        """Keeps the schema of some rows.

        Raises:
            RunError: They do not go together with what was seen before.
        """
        with self._lock:
            if schema not in self._seen:
                self._seen[schema] = str(where)
                if len(self._seen) > 1:
                    self._agreed()

    @property
    def first_seen(self) -> list[tuple[pa.Schema, str]]:
        """Which, and where."""
        with self._lock:
            return list(self._seen.items())

    def unified(self) -> pa.Schema:
        """All columns that were seen; none if there were no rows."""
        with self._lock:
            return self._agreed() if self._seen else pa.schema([])

    def _agreed(self) -> pa.Schema:
        try:
            return pa.unify_schemas(list(self._seen))
        except pa.ArrowException as why:
            places = " and for ".join(list(self._seen.values())[-2:])
            raise core.RunError(
                f"what map gave for {places} does not go together: {why}; cast the columns in map",
                "map",
                None,
                None,
            ) from why


def decode_dictionaries(rows: pa.RecordBatch) -> pa.RecordBatch:
    """The rows without metadata, dictionaries and views, which other rows need not have."""
    names = rows.schema.names
    columns = [_plain(column) for column in rows.columns]
    return pa.RecordBatch.from_arrays(columns, names=names)


def concat(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """Batches as one; columns that some of them lack are null there."""
    if len(batches) == 1:
        return batches[0]
    tables = [pa.Table.from_batches([batch]) for batch in batches]
    return to_batch(pa.concat_tables(tables, promote_options="default"), "map")


def encode(rows: pa.RecordBatch, key: Sequence[str], most_bytes: int) -> Iterator[memoryview]:
    """Rows as blocks, as few as hold them.

    Raises:
        RunError: A single row is longer than a block; the message names its key.
    """
    block = _stream(rows)
    if block.size <= most_bytes:
        yield memoryview(block).cast("B")
        return
    if rows.num_rows == 1:
        raise core.RunError(
            f"the row of key {keys.format_key(rows, key, 0)} takes {block.size} bytes, a block holds "
            f"{most_bytes}: make it shorter in map, or give more --memory",
            "map",
            None,
            None,
        )
    middle = rows.num_rows // 2
    yield from encode(rows.slice(0, middle), key, most_bytes)
    yield from encode(rows.slice(middle), key, most_bytes)


def decode(data: bytes, schema: pa.Schema) -> pa.RecordBatch:
    """The rows of blocks that lie end to end, with all columns of ``schema``."""
    empty = schema.empty_table()
    try:
        tables = [empty, *(pa.Table.from_batches([batch]) for batch in batches(data))]
        table = pa.concat_tables(tables, promote_options="default")
        if table.num_columns > len(schema):
            more = sorted({*table.column_names} - {*schema.names})
            raise core.RunError(
                f"map gave the column {more[0]} once, and not when it was called with the same "
                "again: have it give the same columns for the same input",
                "map",
                None,
                None,
            )
        return to_batch(table.select(schema.names), "map")
    except (pa.ArrowException, OSError) as why:
        said = f"what came back from scratch is not what was put there ({why}): {CORRUPT}"
        raise core.RunError(said, "taken", None, None) from why


def batches(data: bytes) -> Iterator[pa.RecordBatch]:
    """The rows of streams that lie end to end."""
    source = pa.BufferReader(data)
    while source.tell() < len(data):
        with pa.ipc.open_stream(source) as stream:
            yield from stream


def _stream(rows: pa.RecordBatch) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write_batch(rows)
    return sink.getvalue()


def _plain(column: Any) -> Any:
    kind = column.type
    if pa.types.is_dictionary(kind):
        return _plain(column.cast(kind.value_type))
    if pa.types.is_run_end_encoded(kind):
        return _plain(column.cast(kind.value_type))
    if kind == pa.string_view():
        return column.cast(pa.string())
    if kind == pa.binary_view():
        return column.cast(pa.binary())
    return column
