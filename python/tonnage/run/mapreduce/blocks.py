"""Blocks of rows, as they are shuffled: each is an Arrow IPC stream with its own schema.

A partition is read as adjacent streams. A column that some of them lack is null there, since the
maps of several inputs need not agree on more than the key.
"""

import threading
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from tonnage.base import core
from tonnage.run.formats.format import to_batch
from tonnage.run.mapreduce import keys

CORRUPT = "a device or memory is corrupting data; the output was discarded"


class ObservedSchemas:
    """The schemas of a function's rows so far, each with where it was first seen."""

    def __init__(self, function: str) -> None:
        self._function = function
        self._seen: dict[pa.Schema, str] = {}
        self._lock = threading.Lock()

    def note(self, schema: pa.Schema, where: object) -> None:
        """Add the schema of some rows; `RunError` if it contradicts an earlier one."""
        with self._lock:
            if schema not in self._seen:
                self._seen[schema] = str(where)
                if len(self._seen) > 1:
                    self._unify()

    @property
    def first_seen(self) -> list[tuple[pa.Schema, str]]:
        with self._lock:
            return list(self._seen.items())

    def unified(self) -> pa.Schema:
        with self._lock:
            return self._unify() if self._seen else pa.schema([])

    def _unify(self) -> pa.Schema:
        try:
            return pa.unify_schemas(list(self._seen))
        except pa.ArrowException as why:
            places = " and for ".join(list(self._seen.values())[-2:])
            raise core.RunError(
                f"{self._function} returned columns of different types for {places}: {why}; cast "
                f"them in {self._function}",
                self._function,
            ) from why


def decode_dictionaries(rows: pa.RecordBatch) -> pa.RecordBatch:
    """The rows without metadata, dictionaries and views, so that schemas can be compared."""
    names = rows.schema.names
    columns = [_decode(column) for column in rows.columns]
    return pa.RecordBatch.from_arrays(columns, names=names)


def concat(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """All rows in one batch; a column that a batch lacks is null there."""
    if len(batches) == 1:
        return batches[0]
    tables = [pa.Table.from_batches([batch]) for batch in batches]
    return to_batch(pa.concat_tables(tables, promote_options="default"), "map")


def encode(rows: pa.RecordBatch, key: Sequence[str], max_bytes: int) -> Iterator[memoryview]:
    """The rows as few blocks; `RunError` names the key of a row longer than ``max_bytes``."""
    block = _stream(rows)
    if block.size <= max_bytes:
        yield memoryview(block).cast("B")
        return
    if rows.num_rows == 1:
        raise core.RunError(
            f"the row with key {keys.format_key(rows, key, 0)} has {block.size} bytes, but a "
            f"block has room for {max_bytes}; shorten the row in map, or use more memory",
            "map",
        )
    middle = rows.num_rows // 2
    yield from encode(rows.slice(0, middle), key, max_bytes)
    yield from encode(rows.slice(middle), key, max_bytes)


def decode(data: bytes, schema: pa.Schema) -> pa.RecordBatch:
    """The rows of adjacent blocks, with all columns of ``schema``."""
    try:
        tables = [pa.Table.from_batches([batch]) for batch in batches(data)]
    except (pa.ArrowException, OSError) as why:
        raise core.RunError(
            f"data read from scratch differ from what was written ({why}): {CORRUPT}", "to_host"
        ) from why
    try:
        table = pa.concat_tables([schema.empty_table(), *tables], promote_options="default")
    except pa.ArrowException as why:
        # Not the device's fault: all nodes would read these types.
        raise core.RunError(
            f"map was called twice with the same rows and returned other types ({why}); make it "
            "deterministic",
            "map",
        ) from why
    if table.num_columns > len(schema):
        extra = sorted({*table.column_names} - {*schema.names})
        raise core.RunError(
            f"map was called twice with the same rows and returned column {extra[0]} only "
            "once; make it deterministic",
            "map",
        )
    return to_batch(table.select(schema.names), "map")


def batches(data: bytes) -> Iterator[pa.RecordBatch]:
    source = pa.BufferReader(data)
    while source.tell() < len(data):
        with pa.ipc.open_stream(source) as stream:
            yield from stream


def _stream(rows: pa.RecordBatch) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write_batch(rows)
    return sink.getvalue()


def _decode(column: Any) -> Any:
    kind = column.type
    if pa.types.is_dictionary(kind):
        return _decode(column.cast(kind.value_type))
    if pa.types.is_run_end_encoded(kind):
        return _decode(column.cast(kind.value_type))
    if kind == pa.string_view():
        return column.cast(pa.string())
    if kind == pa.binary_view():
        return column.cast(pa.binary())
    return column
