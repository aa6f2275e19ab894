"""Helpers for users' functions: groups, vectorised sums and counts, functions of one record.

A function gets a record batch and returns one. These work on whole columns, except `per_record`,
which calls Python for each record: convenient, and far slower.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pyarrow.compute

from tonnage.run.formats.format import to_batch
from tonnage.run.mapreduce import keys

pc: Any = pyarrow.compute  # whose stubs know too few of its types
Function = Callable[[pa.RecordBatch], pa.RecordBatch]


def groups(batch: pa.RecordBatch, key: str | tuple[str, ...] = "key") -> Iterator[pa.RecordBatch]:
    """The groups of a sorted batch, as ``reduce`` gets it: a batch for each key."""
    begins = [*keys.group_starts(batch, _names(key)).tolist(), batch.num_rows]
    for begin, end in pairwise(begins):
        yield batch.slice(begin, end - begin)


def sums(*columns: str, key: str | tuple[str, ...] = "key") -> Function:
    """A function that sums columns by key, for ``combine`` and ``reduce``.

    Nulls are skipped. A sum of integers has 64 bits: one that does not fit is an error.
    """
    add = _aggregated([(column, "sum") for column in columns], list(columns), _names(key))

    def sum_columns(batch: pa.RecordBatch) -> pa.RecordBatch:
        risky = [name for name in columns if _may_overflow(batch.column(name))]
        if not risky:
            return add(batch)
        schema = add(batch.slice(0, 0)).schema
        for name in risky:
            place = batch.schema.get_field_index(name)
            wide = batch.column(place).cast(_wider(batch.column(place).type))
            batch = batch.set_column(place, name, wide)
        try:
            return add(batch).cast(schema)
        except pa.ArrowInvalid as why:
            raise OverflowError(
                f"a sum of {', '.join(risky)} does not fit ({why}); cast the column to float64, "
                "or integers to decimal128(38, 0), in map"
            ) from why

    return sum_columns


def counts(name: str = "n", key: str | tuple[str, ...] = "key") -> Function:
    """A function that counts the rows of each key, as the column ``name``, for ``reduce``.

    Not for ``combine``: counts are to be summed (`sums`), not counted again.
    """
    return _aggregated([([], "count_all")], [name], _names(key))


def per_record(
    *,
    map: Callable[[dict[str, Any]], Iterable[tuple[Any, Any]]],
    reduce: Callable[[Any, list[Any]], Iterable[dict[str, Any]]],
    combine: Callable[[Any, list[Any]], Iterable[Any]] | None = None,
    types: pa.Schema | None = None,
) -> dict[str, Any]:
    """Functions of single records, for `MapReduce`: ``MapReduce(**per_record(map=f, ...))``.

    Args:
        map: A record as a dict -> pairs of key and value.
        reduce: A key and all its values, in any order -> records.
        combine: A key and some of its values -> values that replace them.
        types: The types of ``key`` and ``value``; by default each batch's own, which must agree.
    """

    def map_batch(batch: pa.RecordBatch) -> pa.RecordBatch:
        pairs = [pair for record in batch.to_pylist() for pair in map(record)]
        return _pairs(pairs, types)

    def combine_batch(batch: pa.RecordBatch) -> pa.RecordBatch:
        assert combine is not None
        pairs = [(key, one) for key, values in _grouped(batch) for one in combine(key, values)]
        return _pairs(pairs, batch.schema)

    def reduce_batch(batch: pa.RecordBatch) -> pa.RecordBatch:
        records = [record for key, values in _grouped(batch) for record in reduce(key, values)]
        return pa.RecordBatch.from_pylist(records)

    return {"map": map_batch, "combine": combine_batch if combine else None, "reduce": reduce_batch}


def _grouped(batch: pa.RecordBatch) -> Iterator[tuple[Any, list[Any]]]:
    for group in groups(keys.sort_by_key(batch, ("key",))):
        yield group.column("key")[0].as_py(), group.column("value").to_pylist()


def _pairs(pairs: list[tuple[Any, Any]], types: pa.Schema | None) -> pa.RecordBatch:
    columns = [[pair[0] for pair in pairs], [pair[1] for pair in pairs]]
    if types is None:
        return pa.record_batch(columns, names=["key", "value"])
    kinds = [types.field(name).type for name in ("key", "value")]
    arrays = [pa.array(values, kind) for values, kind in zip(columns, kinds, strict=True)]
    return pa.record_batch(arrays, names=["key", "value"])


def _aggregated(aggregations: list[Any], names: list[str], key: tuple[str, ...]) -> Function:
    def aggregate(batch: pa.RecordBatch) -> pa.RecordBatch:
        table = pa.Table.from_batches([batch])
        found = table.group_by(list(key), use_threads=False).aggregate(aggregations)
        # Versions of Arrow differ in whether keys come first or last: select by name.
        others = [name for name in found.column_names if name not in key]
        found = found.select([*key, *others]).rename_columns([*key, *names])
        return keys.sort_by_key(to_batch(found, "reduce"), key)  # Arrow's groups have no order.

    return aggregate


def _may_overflow(column: Any) -> bool:
    """Whether a sum of the column's values might exceed what Arrow adds, which would wrap."""
    kind = column.type
    if pa.types.is_integer(kind):
        limit = 1 << 63
    elif pa.types.is_decimal128(kind):
        limit = 10**38 // 10**kind.scale
    else:
        return False
    span = pc.min_max(column).as_py()
    return bool(span["max"] is not None and max(span["max"], -span["min"]) * len(column) >= limit)


def _wider(kind: Any) -> pa.DataType:
    """A type that holds exactly any sum of a batch."""
    if pa.types.is_integer(kind):
        return pa.decimal128(38, 0)
    return pa.decimal256(76, kind.scale)


def _names(key: str | tuple[str, ...]) -> tuple[str, ...]:
    return (key,) if isinstance(key, str) else tuple(key)
