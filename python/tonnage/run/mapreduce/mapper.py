"""Calls the user's functions: checks the rows that they return, and tells where they failed."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa

from tonnage.base import core
from tonnage.run.formats.format import to_batch
from tonnage.run.mapreduce import blocks, keys
from tonnage.run.mapreduce.functions import Function
from tonnage.run.mapreduce.inputs import Split, SplitReader
from tonnage.run.mapreduce.reducer import WrappedFunction, sample_keys
from tonnage.run.mapreduce.shuffle import RowCounts
from tonnage.run.storage.sources import Sources

SAMPLED_BYTES = 256 << 10
SAMPLED_ROWS = 1 << 14


class Mapper:
    """Maps splits, in any thread; ``function`` is for inputs without a map of their own."""

    def __init__(self, function: Function | None, key: tuple[str, ...], sources: Sources) -> None:
        self._function, self._key = function, key
        self._reader, self.schemas = SplitReader(sources), blocks.ObservedSchemas("map")
        self.empty_schema: pa.Schema | None = None
        """The columns of rows of which map left none."""

    def rows_of(self, split: Split, tally: RowCounts) -> Iterator[pa.RecordBatch]:
        """The mapped rows of a split, batch by batch; no empty batches."""
        for batch in self._reader.batches(split):
            tally.add(read=batch.num_rows)
            rows = self._mapped(split, batch)
            if rows.num_rows:
                yield rows

    def sample(self, split: Split) -> pa.RecordBatch | None:
        """Some keys from the beginning of a split."""
        for batch in self._reader.batches(_beginning(split)):
            return sample_keys(self._mapped(split, batch.slice(0, SAMPLED_ROWS)), self._key)
        return None

    def _mapped(self, split: Split, batch: pa.RecordBatch) -> pa.RecordBatch:
        call = wrap_function("map", split.input.map or self._function, self._key)
        if call is None:
            rows = keys.normalize(blocks.decode_dictionaries(batch), self._key)
            _refuse_keyless("the input", rows, self._key)
        else:
            rows = call(batch, str(split))
        if rows.num_rows:
            keys.check_key_types(rows, self._key)
            self.schemas.note(rows.schema, split)
        elif self.empty_schema is None:
            self.empty_schema = rows.schema
        return rows


def _beginning(split: Split) -> Split:
    end = split.format.shortened(split.begin, split.end, SAMPLED_BYTES)
    return replace(split, end=end)


def wrap_function(
    name: str, function: Function | None, key: tuple[str, ...]
) -> WrappedFunction | None:
    """A user's function whose errors name its input, and whose rows are checked for the key."""
    if function is None:
        return None

    def call(rows: pa.RecordBatch, where: str) -> pa.RecordBatch:
        try:
            result: Any = function(rows)
        except Exception as why:
            function_name = getattr(function, "__qualname__", type(function).__name__)
            message = f"{name} ({function_name}) failed for {where}: {type(why).__name__}: {why}"
            raise core.RunError(message, name) from why
        if isinstance(result, pa.Table):
            result = to_batch(result, name)
        if not isinstance(result, pa.RecordBatch):
            message = f"{name} returned {type(result).__name__} for {where}"
            raise core.RunError(f"{message}; return a pyarrow.RecordBatch", name)
        if result.num_rows and key:
            _refuse_keyless(name, result, key)
        return keys.normalize(blocks.decode_dictionaries(result), key)

    return call


def _refuse_keyless(source: str, rows: pa.RecordBatch, key: tuple[str, ...]) -> None:
    names = rows.schema.names
    missing = [name for name in key if name not in names]
    if missing:
        raise core.RunError(
            f"{source} has no column {missing[0]}, which the key needs; it has {', '.join(names)}",
            "map",
        )
    if len(set(names)) < len(names):
        message = f"{source} has two columns of the same name ({', '.join(names)})"
        raise core.RunError(f"{message}; use each name once", "map")
