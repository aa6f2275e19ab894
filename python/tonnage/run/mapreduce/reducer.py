"""Pass two: each partition is read whole, sorted, reduced group by group, and written as a part.

A partition that does not fit into memory is divided first, by another hash or by bounds of its own
keys: through scratch, and repeatedly if need be. Its rows are combined on the way.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from tonnage.base import core
from tonnage.run.formats.format import cast_rows
from tonnage.run.formats.writer import OutputSchema, PartWriter
from tonnage.run.mapreduce import blocks, keys
from tonnage.run.mapreduce.shuffle import (
    BlockStats,
    Bounds,
    MemoryBudget,
    Partitioner,
    RowCounts,
    Shuffle,
    ShuffleOutput,
)
from tonnage.run.thread_pool import WorkerThreads

BATCH_ROWS = 1 << 17
"""The approximate number of rows that reduce gets at once: more if a group has more."""
SAMPLED_ROWS = 1000
"""Of a portion, to compute bounds."""
MAX_DEPTH = 16
"""How often a partition may be divided divided."""

WrappedFunction = Callable[[pa.RecordBatch, str], pa.RecordBatch]


@dataclass(frozen=True)
class Leaf:
    """A partition that needs no further division.

    ``place`` is the path to it: the number of the partition, and those of its divisions below. The
    output's parts are in this order. An ``unordered`` leaf has a single key and does not fit into
    memory, but its rows need no order, and there is no reduce that needs them together.
    """

    shuffled: ShuffleOutput
    place: tuple[int, ...]
    unordered: bool = False

    @property
    def partition(self) -> int:
        return self.place[-1]


@dataclass
class PassTwo:
    """Pass two of a job.

    Args:
        ordered: Whether partitions are ranges of keys.
        combine: Makes fewer rows of those with the same key.
        reduce: Sorted groups -> rows of the output; ``None`` leaves rows as they are.
        new_scratch: Names new files in scratch, one on each device.
        part_path: The path of an unfinished part, by its leaf's place.
    """

    key: tuple[str, ...]
    schema: pa.Schema
    ordered: bool
    budget: MemoryBudget
    combine: WrappedFunction | None
    reduce: WrappedFunction | None
    new_scratch: Callable[[], list[Path]]
    part_path: Callable[[tuple[int, ...]], Path]
    format: str
    on_progress: Callable[[int], None]
    durable: bool = True
    """Whether parts must not be lost; those that are uploaded at once are made again instead."""
    phases: list[dict[str, Any]] = field(default_factory=list)
    divided_bytes: int = 0
    steps: int = 0
    """Portions and batches so far, including those of divisions: shows that the pass progresses."""
    rows: int = 0
    _done_bytes: int = 0
    _parts: dict[tuple[int, ...], PartWriter] = field(default_factory=dict)
    _empty_schema: pa.Schema | None = None
    """The columns of a result without rows."""
    _agreed: OutputSchema = field(default_factory=OutputSchema)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def report_progress(self) -> None:
        with self._lock:
            self.steps += 1
        self.on_progress(self._done_bytes)

    def write_all(self, shuffled: ShuffleOutput, rows: int) -> list[PartWriter]:
        """Write all parts, in the order of their partitions.

        `RunError` if a function or a device failed, ``rows`` are not those that pass one wrote, or
        a group does not fit into memory.
        """
        leaves, written = self._leaves(shuffled, (), range(len(shuffled.spans)), rows)
        self._reduce_all(leaves)
        if self.rows != written:
            raise core.RunError(
                f"pass two read {self.rows} rows, but pass one wrote {written}: {blocks.CORRUPT}",
                "to_host",
            )
        parts = [part for _, part in sorted(self._parts.items()) if part.rows]
        return parts or self._empty_part()

    def _empty_part(self) -> list[PartWriter]:
        """A part without rows, which has the columns; none if these are not known."""
        schema = self._empty_schema or self.schema
        if self._empty_schema is None and self.reduce is not None:
            try:
                none = pa.RecordBatch.from_pylist([], self.schema)
                schema = self.reduce(none, "no rows").schema
            except core.RunError:  # It need not take a batch without rows.
                return []
        if not schema.names:
            return []
        part = PartWriter(self.part_path((0,)), self.format, durable=self.durable)
        part.write_empty(schema)
        part.end()
        return [part]

    def write_each(
        self,
        shuffled: ShuffleOutput,
        wanted: Sequence[int],
        on_done: Callable[[int, list[PartWriter], Callable[[], None]], None],
    ) -> None:
        """Write the parts of each of these partitions.

        Args:
            on_done: Called by any thread when a partition is done, with its number, its parts in
                order, and a function that raises an exception if another thread has failed.

        Raises:
            RunError: A function or a device failed, or a group does not fit into memory.
        """
        large = [each for each in wanted if shuffled.spans[each] > self.budget.portion_bytes]

        def leaf_done(leaf: Leaf, check: Callable[[], None]) -> None:
            part = self._parts.pop(leaf.place)
            on_done(leaf.partition, [part] if part.rows else [], check)

        small = [Leaf(shuffled, (each,)) for each in wanted if each not in {*large}]
        self._reduce_all(small, leaf_done)
        for number in large:
            leaves, _ = self._leaves(shuffled, (), [number], 0)
            self._reduce_all(leaves)
            parts = [self._parts.pop(place) for place in sorted(self._parts)]
            on_done(number, [part for part in parts if part.rows], lambda: None)

    def _leaves(
        self, shuffled: ShuffleOutput, above: tuple[int, ...], partitions: Iterable[int], rows: int
    ) -> tuple[list[Leaf], int]:
        """The leaves of partitions, those that are too large divided, and their number of rows."""
        leaves: list[Leaf] = []
        depth = len(above)
        for partition in partitions:
            place, size = (*above, partition), shuffled.blocks[partition].bytes
            if shuffled.spans[partition] <= self.budget.portion_bytes:
                leaves += [Leaf(shuffled, place)] if size else []
                continue
            divided, read, given = self._divided(shuffled, partition, depth + 1)
            self.divided_bytes += size
            shrunk = divided.bytes < size / 2
            if divided.single_key is not None and self.reduce is None and not shrunk:
                came = enumerate(divided.blocks)
                leaves += [Leaf(divided, (*place, number), True) for number, of in came if of.bytes]
                rows += given - read
                continue
            too_large = max(divided.spans) > self.budget.portion_bytes
            if too_large and ((divided.single_key is not None and not shrunk) or depth > MAX_DEPTH):
                raise core.RunError(
                    f"the rows of key {divided.single_key} take {divided.bytes} bytes, but a "
                    f"thread has memory for only {self.budget.portion_bytes}; add a combine "
                    "function that reduces them, or use more memory or fewer workers",
                    "reduce",
                )
            below, given = self._leaves(divided, place, range(len(divided.spans)), given)
            leaves += below
            rows += given - read
        return leaves, rows

    def _divided(
        self, shuffled: ShuffleOutput, partition: int, depth: int
    ) -> tuple[ShuffleOutput, int, int]:
        wanted = min(-(-3 * shuffled.spans[partition] // self.budget.portion_bytes) + 1, 4096)
        bounds = self._bounds(shuffled, partition, wanted) if self.ordered else None
        count = wanted if bounds is None else len(bounds) + 1
        partitioner = Partitioner(self.key, count, depth, bounds)
        counts = RowCounts()

        def combine(rows: pa.RecordBatch, where: str) -> pa.RecordBatch:
            assert self.combine is not None
            return cast_rows(self.combine(rows, where), self.schema, "combine", where)

        with self._read_partitions(shuffled, [partition]) as (threads, portions):

            def rows_of(portion: tuple[int, bytes]) -> Iterator[pa.RecordBatch]:
                rows = blocks.decode(portion[1], self.schema)
                counts.add(read=rows.num_rows)
                yield rows

            shuffle = Shuffle(
                threads,
                portions,
                rows_of,
                partitioner,
                self.budget,
                self.combine and combine,
                counts,
                blocks.ObservedSchemas("combine"),
                lambda _: self.on_progress(self._done_bytes),
            )
            divided = shuffle.to_scratch(self.new_scratch())
        self.phases += [phase | {"name": "pass_one_again"} for phase in divided.phases]
        return divided, counts.read, counts.shuffled

    def _bounds(self, shuffled: ShuffleOutput, partition: int, wanted: int) -> Bounds:
        samples: list[pa.RecordBatch] = []
        with self._read_partitions(shuffled, [partition]) as (threads, portions):

            def work() -> None:
                for _, data in threads.take_from(portions):
                    samples.append(sample_keys(blocks.decode(data, self.schema), self.key))

            threads.run(work, lambda: self.on_progress(self._done_bytes))
        return quantiles(samples, self.key, wanted)

    def _reduce_all(
        self,
        leaves: list[Leaf],
        on_done: Callable[[Leaf, Callable[[], None]], None] = lambda *_: None,
    ) -> None:
        rounds = {id(leaf.shuffled): leaf.shuffled for leaf in leaves}
        for shuffled in rounds.values():
            own = [leaf for leaf in leaves if leaf.shuffled is shuffled]
            whole = {leaf.partition: leaf for leaf in own if not leaf.unordered}

            def work(threads: WorkerThreads, portions: Any, whole: dict[int, Leaf] = whole) -> None:
                for partition, data in threads.take_from(portions):
                    self._reduce(threads, whole[partition], data)
                    del data  # Frees memory for the part's upload.
                    on_done(whole[partition], threads.check)

            if whole:
                with self._read_partitions(shuffled, list(whole)) as (threads, portions):
                    threads.run(
                        lambda threads=threads, portions=portions: work(threads, portions),  # type: ignore[misc]
                        lambda: self.on_progress(self._done_bytes),
                    )
            for leaf in own:
                if leaf.unordered:
                    self._copy(leaf)

    def _reduce(self, threads: WorkerThreads, leaf: Leaf, data: bytes) -> None:
        rows = blocks.decode(data, self.schema)
        count, size = rows.num_rows, len(data)
        del data
        rows = keys.sort_by_key(rows, self.key)
        part = self._part(leaf)
        for batch in self._whole_groups(rows):
            threads.check()
            self.steps += 1
            where = f"partition {leaf.place[0]}, keys from {keys.format_key(batch, self.key, 0)} on"
            reduced = batch if self.reduce is None else self.reduce(batch, where)
            if reduced.num_rows:
                part.write(self._agreed.cast(reduced, where))
            else:
                self._empty_schema = reduced.schema
        part.end()
        with self._lock:
            self.rows += count
            self._done_bytes += size

    def _whole_groups(self, rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        if self.reduce is None:
            yield rows
            return
        begins = np.append(keys.group_starts(rows, self.key), rows.num_rows)
        at = 0
        while at < rows.num_rows:
            wanted = np.searchsorted(begins, min(at + BATCH_ROWS, rows.num_rows))
            end = int(begins[wanted])
            yield rows.slice(at, end - at)
            at = end

    def _copy(self, leaf: Leaf) -> None:
        part = self._part(leaf)
        with self._read_partitions(leaf.shuffled, [leaf.partition], workers=1) as (
            threads,
            portions,
        ):

            def work() -> None:
                for _, data in threads.take_from(portions):
                    rows = blocks.decode(data, self.schema)
                    part.write(self._agreed.cast(rows, f"partition {leaf.partition}"))
                    self.rows += rows.num_rows

            threads.run(work, lambda: self.on_progress(self._done_bytes))
        part.end()

    def _part(self, leaf: Leaf) -> PartWriter:
        """The unfinished part of a leaf; parts get names when all are done, without empty ones."""
        with self._lock:
            return self._parts.setdefault(
                leaf.place,
                PartWriter(self.part_path(leaf.place), self.format, durable=self.durable),
            )

    def _read_partitions(
        self, shuffled: ShuffleOutput, partitions: list[int], workers: int = 0
    ) -> _PartitionReader:
        return _PartitionReader(self, shuffled, partitions, workers or self.budget.workers)


class _PartitionReader:
    """The core reads partitions, and threads take them.

    Blocks are compared with what pass one wrote before they are used: those of a partition that is
    read whole before it is decoded, those of one in portions when it has been divided.
    """

    def __init__(
        self, of: PassTwo, shuffled: ShuffleOutput, partitions: list[int], workers: int
    ) -> None:
        config = {
            "rounds": shuffled.spilled,
            "partitions": partitions,
            "portion_bytes": of.budget.portion_bytes,
            "memory_bytes": of.budget.pass_two_bytes,
        }
        self._of, self._shuffled, self._partitions = of, shuffled, partitions
        self._read: dict[int, BlockStats] = {}  # Of partitions in portions.
        self._threads = WorkerThreads(workers)
        self._host_output = core.HostOutput()
        self._job = core.BackgroundJob("map_reduce_pass_two", config, self._host_output)

    def __enter__(self) -> tuple[WorkerThreads, Iterator[tuple[int, bytes]]]:
        self._job.__enter__()
        return self._threads, self._portions()

    def _portions(self) -> Iterator[tuple[int, bytes]]:
        while (portion := self._host_output.take()) is not None:
            number, data, records, checksum = portion
            self._of.steps += 1
            here = BlockStats(records, len(data), checksum)
            self._read[number] = self._read.get(number, BlockStats()).plus(here)
            if self._shuffled.spans[number] <= self._of.budget.portion_bytes:
                self._compare(number)
            yield number, data

    def _compare(self, number: int) -> None:
        read = self._read.get(number, BlockStats())
        if read != self._shuffled.blocks[number]:
            raise core.RunError(
                f"pass two read {read.bytes} bytes of a partition, but pass one wrote "
                f"{self._shuffled.blocks[number].bytes}, or the checksums differ: {blocks.CORRUPT}",
                "to_host",
            )

    def __exit__(self, *why: Any) -> None:
        self._job.__exit__(*why)
        if why[0] is None:
            self._of.phases += self._job.outcome["phases"]
            for number in self._partitions:
                self._compare(number)


def sample_keys(rows: pa.RecordBatch, key: tuple[str, ...]) -> pa.RecordBatch:
    every = max(rows.num_rows // SAMPLED_ROWS, 1)
    return rows.select(list(key)).take(np.arange(every // 2, rows.num_rows, every))


def quantiles(samples: list[pa.RecordBatch], key: tuple[str, ...], partitions: int) -> Bounds:
    """The first keys of all partitions but the first, by quantiles of the samples."""
    firsts = first_rows(samples, key, partitions)
    return [] if firsts is None else bounds_of(firsts, key)


def first_rows(
    samples: list[pa.RecordBatch], key: tuple[str, ...], partitions: int
) -> pa.RecordBatch | None:
    samples = [sample for sample in samples if sample.num_rows]
    if not samples:
        return None
    ordered = keys.sort_by_key(blocks.concat(samples), key)
    places = [place * ordered.num_rows // partitions for place in range(1, partitions)]
    return ordered.take(np.array(places, np.int64))


def bounds_of(firsts: pa.RecordBatch, key: tuple[str, ...]) -> Bounds:
    bounds: Bounds = []
    for place in range(firsts.num_rows):
        bound = keys.comparable_key(firsts, key, place)
        if not bounds or bounds[-1] < bound:
            bounds.append(bound)
    return bounds
