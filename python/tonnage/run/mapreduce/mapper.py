"""The user's functions, called: rows that they give are looked at, errors say what they were given.

A function gets a batch of a split, and gives rows with a key (`Mapper`); what `combine` and
`reduce` get, who calls them knows (`called`).
"""

from __future__ import annotations

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
    """Splits of the input -> rows that are mapped, by any thread.

    Args:
        function: What is called for inputs that have no map of their own.
        key: The key's columns.
        sources: What opens files.
    """

    def __init__(self, function: Function | None, key: tuple[str, ...], sources: Sources) -> None:
        self._function, self._key = function, key
        self._reader, self.schemas = SplitReader(sources), blocks.ObservedSchemas()

    def rows_of(self, split: Split, tally: RowCounts) -> Iterator[pa.RecordBatch]:
        """The rows of a split, what is read and mapped one batch at a time; no empty batches."""
        for batch in self._reader.batches(split):
            tally.add(read=batch.num_rows)
            rows = self._mapped(split, batch)
            if rows.num_rows:
                yield rows

    def sample(self, split: Split) -> pa.RecordBatch | None:
        """Some keys of what a split begins with."""
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
        return rows


def _beginning(split: Split) -> Split:
    end = split.format.shortened(split.begin, split.end, SAMPLED_BYTES)
    return replace(split, end=end)


def wrap_function(
    name: str, function: Function | None, key: tuple[str, ...]
) -> WrappedFunction | None:
    """A user's function, whose errors say what it was called with, and whose rows are looked at."""
    if function is None:
        return None

    def call(rows: pa.RecordBatch, where: str) -> pa.RecordBatch:
        try:
            given: Any = function(rows)
        except Exception as why:
            own = getattr(function, "__qualname__", type(function).__name__)
            said = f"{name} ({own}) failed for {where}: {type(why).__name__}: {why}"
            raise core.RunError(said, name, None, None) from why
        if isinstance(given, pa.Table):
            given = to_batch(given, name)
        if not isinstance(given, pa.RecordBatch):
            said = f"{name} gave {type(given).__name__} for {where}: give a pyarrow.RecordBatch"
            raise core.RunError(said, name, None, None)
        if given.num_rows and key:
            _refuse_keyless(name, given, key)
        return keys.normalize(blocks.decode_dictionaries(given), key)

    return call


def _refuse_keyless(who: str, rows: pa.RecordBatch, key: tuple[str, ...]) -> None:
    names = rows.schema.names
    missing = [name for name in key if name not in names]
    if missing:
        raise core.RunError(
            f"{who} has no column {missing[0]}, which is of the key; it has {', '.join(names)}",
            "map",
            None,
            None,
        )
    if len(set(names)) < len(names):
        said = f"{who} has columns of the same name ({', '.join(names)}): name each once"
        raise core.RunError(said, "map", None, None)
