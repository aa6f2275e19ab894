"""Pass two: each partition read whole, put in order, reduced group by group, and written as a part.

A partition that memory does not hold is divided first, by another hash or by bounds of its own
keys, through scratch and once more if need be; what combine makes fewer is combined on the way.
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
from tonnage.run.formats.writer import OutputSchema, PartWriter
from tonnage.run.mapreduce import blocks, keys
from tonnage.run.mapreduce.shuffle import (
    BlockStats,
    Bounds,
    MemoryBudget,
    Partitioner,
    RowCounts,
    ShuffleOutput,
    shuffle,
)
from tonnage.run.thread_pool import WorkerThreads

BATCH_ROWS = 1 << 17
"""Rows that reduce gets at once, about: more if a group has more."""
SAMPLED_ROWS = 1000
"""Of a portion, to find bounds."""
MAX_DEPTH = 16
"""How often a partition may be divided again."""

WrappedFunction = Callable[[pa.RecordBatch, str], pa.RecordBatch]


@dataclass(frozen=True)
class Leaf:
    """A partition that needs no dividing any more.

    ``place`` says what it is of: the partition's own number, and where that was divided those
    below; the order of places is the order of parts. ``copied`` is one of a single key that memory
    does not hold: its rows need no order, and no reduce wants them together.
    """

    round: ShuffleOutput
    place: tuple[int, ...]
    unordered: bool = False

    @property
    def partition(self) -> int:
        """Its number in its round."""
        return self.place[-1]


@dataclass
class PassTwo:
    """Pass two, and what it needs.

    Args:
        key: The key's columns.
        schema: All columns that map gave.
        ordered: Whether partitions are ranges of keys.
        shares: How the memory is divided.
        combine: Makes fewer rows of those of a key, if it can.
        reduce: Groups in order -> rows of the output; ``None`` leaves rows as they are.
        place: New files in scratch, one a device.
        path: What a part is called until it has its name, by its leaf's place.
        format: What parts are.
        look: Called now and then with bytes done.
    """

    key: tuple[str, ...]
    schema: pa.Schema
    ordered: bool
    shares: MemoryBudget
    combine: WrappedFunction | None
    reduce: WrappedFunction | None
    new_scratch: Callable[[], list[Path]]
    part_path: Callable[[tuple[int, ...]], Path]
    format: str
    on_progress: Callable[[int], None]
    phases: list[dict[str, Any]] = field(default_factory=list)
    divided_bytes: int = 0
    steps: int = 0
    """Portions and batches so far, also of what is only divided: whoever watches sees it move."""
    rows: int = 0
    _done_bytes: int = 0
    _parts: dict[tuple[int, ...], PartWriter] = field(default_factory=dict)
    _agreed: OutputSchema = field(default_factory=OutputSchema)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def report_progress(self) -> None:
        """Tells whoever watches that it moves."""
        with self._lock:
            self.steps += 1
        self.on_progress(self._done_bytes)

    def write_all(self, round: ShuffleOutput, rows: int) -> list[PartWriter]:
        """Writes all parts, in the order of their partitions.

        Args:
            round: What pass one has left.
            rows: How many it was given.

        Raises:
            RunError: A function or a device failed, or a group is larger than memory.
        """
        leaves, given = self._leaves(round, (), range(len(round.spans)), rows)
        self._reduce_all(leaves)
        if self.rows != given:
            raise core.RunError(
                f"pass two read {self.rows} rows, pass one was given {given}: {blocks.CORRUPT}",
                "taken",
                None,
                None,
            )
        return [part for _, part in sorted(self._parts.items()) if part.rows]

    def write_each(
        self,
        round: ShuffleOutput,
        wanted: Sequence[int],
        on_whole: Callable[[int, list[PartWriter], Callable[[], None]], None],
    ) -> None:
        """Writes the parts of each of these partitions; tells of each as soon as it is whole.

        Args:
            round: What pass one has left.
            wanted: Their numbers.
            on_whole: Called, by any thread, with the number, its parts in order, and what raises
                an exception when the others have ended.

        Raises:
            RunError: A function or a device failed, or a group is larger than memory.
        """
        large = [each for each in wanted if round.spans[each] > self.shares.portion_bytes]

        def whole(leaf: Leaf, check: Callable[[], None]) -> None:
            part = self._parts.pop(leaf.place)
            on_whole(leaf.partition, [part] if part.rows else [], check)

        small = [Leaf(round, (each,)) for each in wanted if each not in {*large}]
        self._reduce_all(small, whole)
        for number in large:
            leaves, _ = self._leaves(round, (), [number], 0)
            self._reduce_all(leaves)
            parts = [self._parts.pop(place) for place in sorted(self._parts)]
            on_whole(number, [part for part in parts if part.rows], lambda: None)

    def _leaves(
        self, round: ShuffleOutput, above: tuple[int, ...], partitions: Iterable[int], rows: int
    ) -> tuple[list[Leaf], int]:
        """Partitions of a round, those that are too large divided again; and the round's rows."""
        leaves: list[Leaf] = []
        depth = len(above)
        for partition in partitions:
            place, size = (*above, partition), round.blocks[partition].bytes
            if round.spans[partition] <= self.shares.portion_bytes:
                leaves += [Leaf(round, place)] if size else []
                continue
            again, read, given = self._divided(round, partition, depth + 1)
            self.divided_bytes += size
            shrunk = again.bytes < size / 2
            if again.single_key is not None and self.reduce is None and not shrunk:
                came = enumerate(again.blocks)
                leaves += [Leaf(again, (*place, number), True) for number, of in came if of.bytes]
                rows += given - read
                continue
            too_large = max(again.spans) > self.shares.portion_bytes
            if too_large and ((again.single_key is not None and not shrunk) or depth > MAX_DEPTH):
                raise core.RunError(
                    f"the rows of key {again.single_key} take {again.bytes} bytes, a thread has "
                    f"memory for {self.shares.portion_bytes}: give combine, which makes fewer of "
                    "them, more --memory or fewer --workers",
                    "reduce",
                    None,
                    None,
                )
            below, given = self._leaves(again, place, range(len(again.spans)), given)
            leaves += below
            rows += given - read
        return leaves, rows

    def _divided(
        self, round: ShuffleOutput, partition: int, depth: int
    ) -> tuple[ShuffleOutput, int, int]:
        """One partition divided again; tells rows before and after combining, too."""
        wanted = min(-(-3 * round.spans[partition] // self.shares.portion_bytes) + 1, 4096)
        bounds = self._bounds(round, partition, wanted) if self.ordered else None
        count = wanted if bounds is None else len(bounds) + 1
        dealing = Partitioner(self.key, count, depth, bounds)
        tally = RowCounts()
        with self._taking(round, [partition]) as (crew, portions):

            def rows_of(portion: tuple[int, bytes]) -> Iterator[pa.RecordBatch]:
                rows = blocks.decode(portion[1], self.schema)
                tally.add(read=rows.num_rows)
                yield rows

            again = shuffle(
                crew,
                portions,
                rows_of,
                dealing,
                self.shares,
                self.combine,
                self.new_scratch(),
                tally,
                lambda _: self.on_progress(self._done_bytes),
            )
        self.phases += [phase | {"name": "pass_one_again"} for phase in again.phases]
        return again, tally.read, tally.shuffled

    def _bounds(self, round: ShuffleOutput, partition: int, wanted: int) -> Bounds:
        """Quantiles of a partition's keys, some of every portion."""
        samples: list[pa.RecordBatch] = []
        with self._taking(round, [partition]) as (crew, portions):

            def work() -> None:
                for _, data in crew.take_from(portions):
                    samples.append(sample_keys(blocks.decode(data, self.schema), self.key))

            crew.run(work, lambda: self.on_progress(self._done_bytes))
        return quantiles(samples, self.key, wanted)

    def _reduce_all(
        self,
        leaves: list[Leaf],
        on_whole: Callable[[Leaf, Callable[[], None]], None] = lambda *_: None,
    ) -> None:
        """Reduces leaves, round by round; tells of each that is whole."""
        rounds = {id(leaf.round): leaf.round for leaf in leaves}
        for round in rounds.values():
            own = [leaf for leaf in leaves if leaf.round is round]
            whole = {leaf.partition: leaf for leaf in own if not leaf.unordered}

            def work(crew: WorkerThreads, portions: Any, whole: dict[int, Leaf] = whole) -> None:
                for partition, data in crew.take_from(portions):
                    self._reduce(crew, whole[partition], data)
                    del data  # Its memory is what is done with the part.
                    on_whole(whole[partition], crew.check)

            if whole:
                with self._taking(round, list(whole)) as (crew, portions):
                    crew.run(
                        lambda crew=crew, portions=portions: work(crew, portions),  # type: ignore[misc]
                        lambda: self.on_progress(self._done_bytes),
                    )
            for leaf in own:
                if leaf.unordered:
                    self._copy(leaf)

    def _reduce(self, crew: WorkerThreads, leaf: Leaf, data: bytes) -> None:
        rows = blocks.decode(data, self.schema)
        count, size = rows.num_rows, len(data)
        del data
        rows = keys.sort_by_key(rows, self.key)
        part = self._part(leaf)
        for batch in self._whole_groups(rows):
            crew.check()
            self.steps += 1
            where = f"partition {leaf.place[0]}, keys from {keys.format_key(batch, self.key, 0)} on"
            reduced = batch if self.reduce is None else self.reduce(batch, where)
            if reduced.num_rows:
                part.write(self._agreed.cast(reduced, where))
        part.end()
        with self._lock:
            self.rows += count
            self._done_bytes += size

    def _whole_groups(self, rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Rows that are in order in batches, none of which ends within a group."""
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
        """Writes rows of one key as they come, by one thread."""
        part = self._part(leaf)
        with self._taking(leaf.round, [leaf.partition], workers=1) as (crew, portions):

            def work() -> None:
                for _, data in crew.take_from(portions):
                    rows = blocks.decode(data, self.schema)
                    part.write(self._agreed.cast(rows, f"partition {leaf.partition}"))
                    self.rows += rows.num_rows

            crew.run(work, lambda: self.on_progress(self._done_bytes))
        part.end()

    def _part(self, leaf: Leaf) -> PartWriter:
        """A part by a name of its own until all are known: those with no rows get none."""
        with self._lock:
            return self._parts.setdefault(
                leaf.place, PartWriter(self.part_path(leaf.place), self.format)
            )

    def _taking(
        self, round: ShuffleOutput, partitions: list[int], workers: int = 0
    ) -> _PartitionReader:
        return _PartitionReader(self, round, partitions, workers or self.shares.workers)


class _PartitionReader:
    """The core reads partitions, and a crew takes them.

    Blocks are what they were when they came, or nothing is made of them: a partition that comes
    whole is looked at before it is decoded, one that comes in portions when it is divided.
    """

    def __init__(
        self, of: PassTwo, round: ShuffleOutput, partitions: list[int], workers: int
    ) -> None:
        config = {
            "rounds": round.spilled,
            "partitions": partitions,
            "portion_bytes": of.shares.portion_bytes,
            "memory_bytes": of.shares.pass_two_bytes,
        }
        self._of, self._round, self._partitions = of, round, partitions
        self._came: dict[int, BlockStats] = {}  # of partitions in portions
        self._crew = WorkerThreads(workers)
        self._gate = core.HostOutput()
        self._job = core.BackgroundJob("map_reduce_pass_two", config, self._gate)

    def __enter__(self) -> tuple[WorkerThreads, Iterator[tuple[int, bytes]]]:
        self._job.__enter__()
        return self._crew, self._portions()

    def _portions(self) -> Iterator[tuple[int, bytes]]:
        while (portion := self._gate.take()) is not None:
            number, data, records, checksum = portion
            self._of.steps += 1
            here = BlockStats(records, len(data), checksum)
            self._came[number] = self._came.get(number, BlockStats()).plus(here)
            if self._round.spans[number] <= self._of.shares.portion_bytes:
                self._compare(number)
            yield number, data

    def _compare(self, number: int) -> None:
        read = self._came.get(number, BlockStats())
        if read != self._round.blocks[number]:
            raise core.RunError(
                f"what pass two read of a partition, {read.bytes} bytes, is not what "
                f"came, {self._round.blocks[number].bytes}, or differs in its checksum: "
                f"{blocks.CORRUPT}",
                "taken",
                None,
                None,
            )

    def __exit__(self, *why: Any) -> None:
        self._job.__exit__(*why)
        if why[0] is None:
            self._of.phases += self._job.outcome["phases"]
            for number in self._partitions:
                self._compare(number)


def sample_keys(rows: pa.RecordBatch, key: tuple[str, ...]) -> pa.RecordBatch:
    """The keys of some rows, evenly spread."""
    every = max(rows.num_rows // SAMPLED_ROWS, 1)
    return rows.select(list(key)).take(np.arange(every // 2, rows.num_rows, every))


def quantiles(samples: list[pa.RecordBatch], key: tuple[str, ...], partitions: int) -> Bounds:
    """The first keys of partitions but the first, which are as even as the samples are."""
    firsts = first_rows(samples, key, partitions)
    return [] if firsts is None else bounds_of(firsts, key)


def first_rows(
    samples: list[pa.RecordBatch], key: tuple[str, ...], partitions: int
) -> pa.RecordBatch | None:
    """The rows with those keys; ``None`` if nothing was sampled."""
    samples = [sample for sample in samples if sample.num_rows]
    if not samples:
        return None
    ordered = keys.sort_by_key(blocks.concat(samples), key)
    places = [place * ordered.num_rows // partitions for place in range(1, partitions)]
    return ordered.take(np.array(places, np.int64))


def bounds_of(firsts: pa.RecordBatch, key: tuple[str, ...]) -> Bounds:
    """The keys of rows that are in order, each once."""
    bounds: Bounds = []
    for place in range(firsts.num_rows):
        bound = keys.comparable_key(firsts, key, place)
        if not bounds or bounds[-1] < bound:
            bounds.append(bound)
    return bounds
