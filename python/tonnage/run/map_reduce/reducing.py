"""Pass two: each partition read whole, put in order, reduced group by group, and written as a part.

A partition that memory does not hold is divided first, by another hash or by bounds of its own
keys, through scratch and once more if need be; what combine makes fewer is combined on the way.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from tonnage import engine
from tonnage.run.map_reduce import blocks, keys
from tonnage.run.map_reduce.crew import Crew
from tonnage.run.map_reduce.shuffle import Bounds, Dealing, Round, Shares, Tally, shuffle
from tonnage.run.map_reduce.writing import Agreed, Part

BATCH_ROWS = 1 << 17
"""Rows that reduce gets at once, about: more if a group has more."""
SAMPLED_ROWS = 1000
"""Of a portion, to find bounds."""
DEPTH = 16
"""How often a partition may be divided again."""

Call = Callable[[pa.RecordBatch, str], pa.RecordBatch]


@dataclass(frozen=True)
class Leaf:
    """A partition that needs no dividing any more.

    ``copied`` is one of a single key that memory does not hold: its rows need no order, and no
    reduce wants them together.
    """

    round: Round
    partition: int
    copied: bool = False


@dataclass
class Reducing:
    """Pass two, and what it needs.

    Args:
        key: The key's columns.
        schema: All columns that map gave.
        ordered: Whether partitions are ranges of keys.
        shares: How the memory is divided.
        combine: Makes fewer rows of those of a key, if it can.
        reduce: Groups in order -> rows of the output; ``None`` leaves rows as they are.
        place: New files in scratch, one a device.
        output: Where parts go.
        format: What they are.
        look: Called now and then with bytes done.
    """

    key: tuple[str, ...]
    schema: pa.Schema
    ordered: bool
    shares: Shares
    combine: Call | None
    reduce: Call | None
    place: Callable[[], list[Path]]
    output: engine.Output
    format: str
    look: Callable[[int], None]
    phases: list[dict[str, Any]] = field(default_factory=list)
    divided_bytes: int = 0
    rows: int = 0
    _done_bytes: int = 0
    _taken: dict[Path, tuple[Round, int]] = field(default_factory=dict)  # with checksums
    _parts: dict[int, Part] = field(default_factory=dict)
    _agreed: Agreed = field(default_factory=Agreed)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def parts(self, round: Round, rows: int) -> list[Part]:
        """Writes all parts, in the order of their partitions.

        Args:
            round: What pass one has left.
            rows: How many it was given.

        Raises:
            Failed: A function or a device failed, or a group is larger than memory.
        """
        leaves, given = self._leaves(round, rows, 0)
        read = self._reduce_all(leaves)
        different = [each for each, checksum in self._taken.values() if checksum != each.checksum]
        if read != given or different:
            raise engine.Failed(
                f"what pass two read, {read} rows, is not what pass one was given, {given}, or "
                f"differs in its checksum: {blocks.CORRUPT}",
                "taken",
                None,
                None,
            )
        return [part for _, part in sorted(self._parts.items()) if part.rows]

    def _leaves(self, round: Round, rows: int, depth: int) -> tuple[list[Leaf], int]:
        """The partitions of a round, those that are too large divided again; and their rows."""
        leaves: list[Leaf] = []
        for partition, span in enumerate(round.spans):
            size = round.bytes[partition]
            if span <= self.shares.portion_bytes:
                leaves += [Leaf(round, partition)] if size else []
                continue
            again, read, given = self._divided(round, partition, depth + 1)
            self.divided_bytes += size
            shrunk = sum(again.bytes) < size / 2
            if again.single is not None and self.reduce is None and not shrunk:
                alone = [Leaf(again, number, True) for number, of in enumerate(again.bytes) if of]
                leaves += alone
                rows += given - read
                continue
            too_large = max(again.spans) > self.shares.portion_bytes
            if too_large and ((again.single is not None and not shrunk) or depth > DEPTH):
                raise engine.Failed(
                    f"the rows of key {again.single} take {sum(again.bytes)} bytes, a thread has "
                    f"memory for {self.shares.portion_bytes}: give combine, which makes fewer of "
                    "them, more --memory or fewer --workers",
                    "reduce",
                    None,
                    None,
                )
            below, given = self._leaves(again, given, depth + 1)
            leaves += below
            rows += given - read
        return leaves, rows

    def _divided(self, round: Round, partition: int, depth: int) -> tuple[Round, int, int]:
        """One partition divided again; tells rows before and after combining, too."""
        wanted = min(-(-3 * round.spans[partition] // self.shares.portion_bytes) + 1, 4096)
        bounds = self._bounds(round, partition, wanted) if self.ordered else None
        count = wanted if bounds is None else len(bounds) + 1
        dealing = Dealing(self.key, count, depth, bounds)
        tally = Tally()
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
                self.place(),
                tally,
                lambda _: self.look(self._done_bytes),
            )
        self.phases += [phase | {"name": "pass_one_again"} for phase in again.phases]
        return again, tally.read, tally.given

    def _bounds(self, round: Round, partition: int, wanted: int) -> Bounds:
        """Quantiles of a partition's keys, some of every portion."""
        samples: list[pa.RecordBatch] = []
        with self._taking(round, [partition], sampled=True) as (crew, portions):

            def work() -> None:
                for _, data in crew.share(portions):
                    samples.append(sampled(blocks.decode(data, self.schema), self.key))

            crew.run(work, lambda: self.look(self._done_bytes))
        return quantiles(samples, self.key, wanted)

    def _reduce_all(self, leaves: list[Leaf]) -> int:
        """Reduces leaves, round by round; tells their rows."""
        numbers = {(id(leaf.round), leaf.partition): place for place, leaf in enumerate(leaves)}
        rounds = {id(leaf.round): leaf.round for leaf in leaves}
        for identity, round in rounds.items():
            own = [leaf for leaf in leaves if leaf.round is round]
            whole = [leaf.partition for leaf in own if not leaf.copied]

            def work(crew: Crew, portions: Any, identity: int = identity) -> None:
                for partition, data in crew.share(portions):
                    self._reduce(crew, numbers[identity, partition], partition, data)

            if whole:
                with self._taking(round, whole) as (crew, portions):
                    crew.run(
                        lambda crew=crew, portions=portions: work(crew, portions),  # type: ignore[misc]
                        lambda: self.look(self._done_bytes),
                    )
            for leaf in own:
                if leaf.copied:
                    self._copy(numbers[identity, leaf.partition], leaf)
        return self.rows

    def _reduce(self, crew: Crew, number: int, partition: int, data: bytes) -> None:
        rows = blocks.decode(data, self.schema)
        count, size = rows.num_rows, len(data)
        del data
        rows = keys.in_order(rows, self.key)
        part = self._part(number)
        for batch in self._whole_groups(rows):
            crew.check()
            where = f"partition {partition}, keys from {keys.show(batch, self.key, 0)} on"
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
        begins = np.append(keys.starts(rows, self.key), rows.num_rows)
        at = 0
        while at < rows.num_rows:
            wanted = np.searchsorted(begins, min(at + BATCH_ROWS, rows.num_rows))
            end = int(begins[wanted])
            yield rows.slice(at, end - at)
            at = end

    def _copy(self, number: int, leaf: Leaf) -> None:
        """Writes rows of one key as they come, by one thread."""
        part = self._part(number)
        with self._taking(leaf.round, [leaf.partition], workers=1) as (crew, portions):

            def work() -> None:
                for _, data in crew.share(portions):
                    rows = blocks.decode(data, self.schema)
                    part.write(self._agreed.cast(rows, f"partition {leaf.partition}"))
                    self.rows += rows.num_rows

            crew.run(work, lambda: self.look(self._done_bytes))
        part.end()

    def _part(self, number: int) -> Part:
        """A part by a name of its own until all are known: those with no rows get none."""
        hidden = Path(self.output.part(0)).parent / f"of-{number:06}"
        with self._lock:
            return self._parts.setdefault(number, Part(hidden, self.format))

    def _taking(
        self, round: Round, partitions: list[int], workers: int = 0, sampled: bool = False
    ) -> _Taking:
        return _Taking(self, round, partitions, workers or self.shares.workers, sampled)

    def count(self, round: Round, checksum: int) -> None:
        """Notes what was taken of a round; all of it is, once, by the end."""
        _, before = self._taken.get(round.index, (round, 0))
        self._taken[round.index] = (round, before + checksum)


class _Taking:
    """The core reads partitions; a crew takes them, or only looks at them if they are sampled."""

    def __init__(
        self, of: Reducing, round: Round, partitions: list[int], workers: int, sampled: bool
    ) -> None:
        config = {
            "rounds": [round.to_json()],
            "partitions": partitions,
            "portion_bytes": of.shares.portion_bytes,
            "memory_bytes": of.shares.taking_bytes,
        }
        self._of, self._round, self._sampled = of, round, sampled
        self._crew = Crew(workers)
        self._gate = engine.Taken()
        self._job = engine.Beside("map_reduce_pass_two", config, self._gate)

    def __enter__(self) -> tuple[Crew, Iterator[tuple[int, bytes]]]:
        self._job.__enter__()
        portions: Iterator[Any] = iter(self._gate.take, None)
        return self._crew, portions

    def __exit__(self, *why: Any) -> None:
        self._job.__exit__(*why)
        outcome = self._job.outcome
        if why[0] is None:
            self._of.phases += outcome["phases"]
            if not self._sampled:
                self._of.count(self._round, outcome["taken"]["checksum"])


def sampled(rows: pa.RecordBatch, key: tuple[str, ...]) -> pa.RecordBatch:
    """The keys of some rows, evenly spread."""
    every = max(rows.num_rows // SAMPLED_ROWS, 1)
    return rows.select(list(key)).take(np.arange(every // 2, rows.num_rows, every))


def quantiles(samples: list[pa.RecordBatch], key: tuple[str, ...], partitions: int) -> Bounds:
    """The first keys of partitions but the first, which are as even as the samples are."""
    samples = [sample for sample in samples if sample.num_rows]
    if not samples:
        return []
    ordered = keys.in_order(blocks.joined(samples), key)
    places = [place * ordered.num_rows // partitions for place in range(1, partitions)]
    bounds: Bounds = []
    for place in places:
        bound = keys.value(ordered, key, place)
        if not bounds or bounds[-1] < bound:
            bounds.append(bound)
    return bounds
