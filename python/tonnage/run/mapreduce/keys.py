"""Keys of rows: their partition, their order, and where groups begin.

Rows are in one group if their keys are equal in every column. Null is a value and comes last, NaN
comes before it, and -0.0 is 0.0. Hashes are of values, not of layouts: columns of 32 and of 64 bits
agree.
"""

import bisect
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute

from tonnage.base import core
from tonnage.run.formats.plain_values import plain_values

pc: Any = pyarrow.compute  # whose stubs know too few of its types
Hashes = npt.NDArray[np.uint64]

NULL = np.uint64(0x6E756C6C)
"""Mixed into the hash of a row for a null."""


def normalize(rows: pa.RecordBatch, key: Sequence[str]) -> pa.RecordBatch:
    """Rows whose equal keys have equal bytes: with one zero and one NaN."""
    for place, name in enumerate(rows.schema.names):
        column = rows.column(place)
        # Of 16 bits they are refused (`check_key_types`), since Arrow cannot compare them.
        if name in key and column.type in (pa.float32(), pa.float64()):
            zero, nan = pa.scalar(0, column.type), pa.scalar(np.nan, column.type)
            column = pc.if_else(pc.is_nan(column), nan, pc.add(column, zero))
            rows = rows.set_column(place, name, column)
    return rows


def check_key_types(rows: pa.RecordBatch, key: Sequence[str]) -> None:
    """Refuse keys without an order; `RunError` if columns of a key's type cannot be sorted."""
    types = pa.types
    for name in key:
        kind = rows.schema.field(name).type
        nested = types.is_nested(kind) or types.is_interval(kind) or types.is_float16(kind)
        if nested or not (types.is_primitive(kind) or _is_bytes(kind) or types.is_null(kind)):
            raise core.RunError(
                f"the key's column {name} has type {kind}, which cannot be sorted; convert it "
                "to numbers, strings, bytes or timestamps in map",
                "map",
            )


def partitions_of(
    batch: pa.RecordBatch, key: Sequence[str], partitions: int, depth: int
) -> npt.NDArray[Any]:
    """Each row's partition, by a hash of its key; another ``depth`` gives another hash."""
    hashes: Hashes = np.full(batch.num_rows, depth, np.uint64)
    for name in key:
        hashes = _mixed(hashes, batch.column(name))
    return (hashes % np.uint64(partitions)).astype(np.uint16)


def sort_by_key(batch: pa.RecordBatch, key: Sequence[str]) -> pa.RecordBatch:
    """The rows by key; those of equal keys in any order."""
    order = [(name, "ascending") for name in key]
    return batch.take(pc.sort_indices(batch, sort_keys=order))


def group_starts(batch: pa.RecordBatch, key: Sequence[str]) -> npt.NDArray[Any]:
    if not batch.num_rows:
        return np.empty(0, np.int64)
    changes = np.zeros(batch.num_rows - 1, bool)
    for name in key:
        column = batch.column(name)
        changes |= _differ(column.slice(1), column.slice(0, len(column) - 1))
    return np.concatenate([[0], np.flatnonzero(changes) + 1])


def comparable_key(batch: pa.RecordBatch, key: Sequence[str], row: int) -> tuple[Any, ...]:
    """A row's key, to be compared in the order of `sort_by_key`."""
    return tuple(_comparable(batch.column(name)[row]) for name in key)


def format_key(batch: pa.RecordBatch, key: Sequence[str], row: int) -> str:
    values = [_value_text(batch.column(name).slice(row, 1)) for name in key]
    text = values[0] if len(values) == 1 else f"({', '.join(values)})"
    return text if len(text) <= 80 else f"{text[:80]}..."


def partition_starts(
    batch: pa.RecordBatch, key: Sequence[str], bounds: Sequence[tuple[Any, ...]]
) -> list[int]:
    """Where each partition begins in sorted rows, and the number of rows.

    ``bounds`` are the first keys of all partitions but the first (`comparable_key`).
    """
    begins = [0]
    rows = range(batch.num_rows)
    for bound in bounds:
        begins.append(
            bisect.bisect_left(
                rows, bound, lo=begins[-1], key=lambda row: comparable_key(batch, key, row)
            )
        )
    return [*begins, batch.num_rows]


def _is_bytes(kind: pa.DataType) -> bool:
    types = pa.types
    return any(
        is_one(kind)
        for is_one in (
            types.is_string,
            types.is_binary,
            types.is_large_string,
            types.is_large_binary,
            types.is_fixed_size_binary,
            types.is_decimal,
        )
    )


def _mixed(hashes: Hashes, column: Any) -> Hashes:
    offsets, data = _laid_out(column)
    mixed = np.frombuffer(core.mix_rows(hashes, offsets, data), np.uint64)
    if column.null_count:
        nulls = column.is_null().to_numpy(zero_copy_only=False)
        mixed = np.where(nulls, hashes * np.uint64(31) + NULL, mixed)
    return mixed


def _laid_out(column: Any) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint8]]:
    """The offsets of a column's values, and the values as bytes; nulls have arbitrary ones."""
    kind, count = column.type, len(column)
    types = pa.types
    if types.is_null(kind):
        return np.zeros(count + 1, np.uint64), np.empty(0, np.uint8)
    if types.is_string(kind) or types.is_binary(kind):
        return _offsets(column, np.int32), _bytes(column.buffers()[2])
    if types.is_large_string(kind) or types.is_large_binary(kind):
        return _offsets(column, np.int64), _bytes(column.buffers()[2])
    if types.is_fixed_size_binary(kind) or types.is_decimal(kind):
        width = kind.byte_width
        begin = np.uint64(column.offset * width)
        places: npt.NDArray[np.uint64] = _every(count, width) + begin
        return places, _bytes(column.buffers()[1])
    return _every(count, 8), _as_words(column)


def _bytes(buffer: pa.Buffer | None) -> npt.NDArray[np.uint8]:
    return np.frombuffer(b"" if buffer is None else memoryview(buffer), np.uint8)


def _as_words(column: Any) -> npt.NDArray[np.uint8]:
    """Values that are stored as numbers, as eight bytes each."""
    kind, types = column.type, pa.types
    if types.is_boolean(kind):
        column = column.cast(pa.uint8())
    elif types.is_date32(kind) or types.is_time32(kind):
        column = column.view(pa.int32())
    elif types.is_temporal(kind) and not types.is_interval(kind):
        column = column.view(pa.int64())
    if column.null_count:
        column = column.fill_null(0)
    values = column.to_numpy(zero_copy_only=False)
    if types.is_floating(kind):
        values = values.astype(np.float64)
    else:
        values = values.astype(np.uint64 if values.dtype == np.uint64 else np.int64)
    return np.ascontiguousarray(values).view(np.uint8)


def _offsets(column: Any, width: Any) -> npt.NDArray[np.uint64]:
    buffer = column.buffers()[1]
    if buffer is None:
        return np.zeros(len(column) + 1, np.uint64)
    offsets = np.frombuffer(buffer, width)[column.offset : column.offset + len(column) + 1]
    return offsets.astype(np.uint64)


def _every(count: int, width: int) -> npt.NDArray[np.uint64]:
    return np.arange(0, (count + 1) * width, width, dtype=np.uint64)[: count + 1]


def _differ(one: Any, two: Any) -> npt.NDArray[np.bool_]:
    if pa.types.is_null(one.type):
        return np.zeros(len(one), bool)
    differ = pc.fill_null(pc.not_equal(one, two), False)
    if one.null_count or two.null_count:
        differ = pc.or_(differ, pc.xor(one.is_null(), two.is_null()))
    if pa.types.is_floating(one.type):
        both = pc.fill_null(pc.and_(pc.is_nan(one), pc.is_nan(two)), False)
        differ = pc.and_not(differ, both)
    found: npt.NDArray[np.bool_] = differ.to_numpy(zero_copy_only=False)
    return found


def _value_text(column: Any) -> str:
    # Python's own moments have no nanoseconds, and end in the year 9999.
    is_moment = pa.types.is_temporal(column.type)
    return repr((plain_values(column) if is_moment else column.to_pylist())[0])


def _comparable(scalar: Any) -> tuple[Any, ...]:
    if not scalar.is_valid:
        return (2,)
    if pa.types.is_temporal(scalar.type):
        scalar = scalar.cast(pa.int64() if scalar.type.bit_width == 64 else pa.int32())
    plain = scalar.as_py()
    return (1,) if plain != plain else (0, plain)
