"""Pass one: what map gave is gathered, combined, divided among partitions and given to the core.

Each thread gathers rows until its share of the memory is full, as Hadoop's map tasks do with their
sort buffer, and then makes of all of them a block for each partition, or a few: so blocks are as
long as the memory allows, whatever batches are, and combine sees as many rows at once as it can.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tonnage.base import core
from tonnage.run.mapreduce import blocks, keys
from tonnage.run.thread_pool import WorkerThreads

MIN_MEMORY_BYTES = 16 << 20
MIN_UPLOAD_BYTES = 10 << 20
"""Two parts of an object, of which stores take no shorter ones."""
MAX_PORTION_BYTES = 1 << 30
"""Beyond this the offsets of Arrow's strings are too small."""

Bounds = list[tuple[Any, ...]]


class BlockStats(NamedTuple):
    """Blocks, their bytes, and the sum of their CRC-32s."""

    records: int = 0
    bytes: int = 0
    checksum: int = 0

    def plus(self, more: BlockStats) -> BlockStats:
        """Both together."""
        return BlockStats(*(one + other for one, other in zip(self, more, strict=True)))


@dataclass(frozen=True)
class MemoryBudget:
    """How the memory is divided: an eighth for blocks on their way, and threads have the rest.

    On a fleet each connection has a block in its hands, in and out: with many they are shorter.

    Of a thread's rows there are up to three copies at once in pass one (gathered, combined, in the
    order of partitions), and four in pass two (read, decoded and joined, in order, reduced), which
    are half of the memory at most; what the core reads for them is the other half at most.
    """

    memory_bytes: int
    workers: int
    devices: int
    """For scratch."""
    links: int = 0

    @property
    def block_bytes(self) -> int:
        """The longest block, and so the longest row."""
        return self.pass_one_bytes // max(16, 2 * self.links + 8)

    @property
    def pass_one_bytes(self) -> int:
        """For the core's buffers in pass one."""
        return self.memory_bytes // 8

    @property
    def gather_bytes(self) -> int:
        """What a thread gathers."""
        return self.memory_bytes // (8 * self.workers)

    @property
    def portion_bytes(self) -> int:
        """The largest partition that a thread takes at once: two blocks at least."""
        half = self.memory_bytes // 2
        of_half = half // max(4 * self.workers, self._portions)
        return min(max(of_half, self.memory_bytes // 64), MAX_PORTION_BYTES)

    @property
    def upload_bytes(self) -> int:
        """What a thread has for a part's upload: the rows that it was written of are gone."""
        return 4 * self.portion_bytes

    @property
    def pass_two_bytes(self) -> int:
        """For the core's buffers in pass two."""
        return min(self._portions * self.portion_bytes, self.memory_bytes // 2)

    @property
    def _portions(self) -> int:
        """How many the core holds: each device reads one, one is copied, and one may wait."""
        return max(self.devices + 1, 3)

    @property
    def split_bytes(self) -> int:
        """What a thread reads at once of a file of text; in memory it may be ten times as much."""
        return min(max(self.memory_bytes // (64 * self.workers), 64 << 10), 8 << 20)

    def partitions(self, shuffled_bytes: int) -> int:
        """How many to aim for, each half as large as it may be."""
        return max(self.workers, min(-(-2 * shuffled_bytes // self.portion_bytes), 4096))


@dataclass(frozen=True)
class Partitioner:
    """How rows are dealt out to partitions: by a hash, or by bounds if they are to be in order."""

    key: tuple[str, ...]
    partitions: int
    depth: int = 0
    bounds: Bounds | None = None

    def partition(self, rows: pa.RecordBatch) -> tuple[pa.RecordBatch, npt.NDArray[Any]]:
        """The rows, those of a partition together, and where each partition begins."""
        if self.bounds is not None:
            rows = keys.sort_by_key(rows, self.key)
            return rows, np.array(keys.partition_starts(rows, self.key, self.bounds))
        numbers = keys.partitions_of(rows, self.key, self.partitions, self.depth)
        order = np.argsort(numbers, kind="stable")  # by radix, since they have 16 bits
        begins = np.searchsorted(numbers[order], np.arange(self.partitions + 1))
        return rows.take(order), begins


@dataclass(frozen=True)
class ShuffleOutput:
    """What pass one has left in scratch."""

    spilled: list[dict[str, Any]]
    """Where it lies, as the core takes it: ``scratch`` and ``index``, once or several times."""
    blocks: list[BlockStats]
    """Of each partition."""
    spans: list[int]
    """Memory that each partition takes whole."""
    phases: list[dict[str, Any]]
    single_key: str | None = None
    """The key, for a message, if all rows have the same."""

    @property
    def bytes(self) -> int:
        """Of all partitions."""
        return sum(each.bytes for each in self.blocks)

    @property
    def checksum(self) -> int:
        """Of all partitions."""
        return sum(each.checksum for each in self.blocks)


class RowCounts:
    """Counts that several threads add to, and whether all keys were the same."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.read = 0
        self.shuffled = 0
        self._first: tuple[Any, ...] | None = None
        self._shown = ""
        self._several = False

    def add(self, read: int = 0, shuffled: int = 0) -> None:
        """Counts rows."""
        with self._lock:
            self.read += read
            self.shuffled += shuffled

    def note_keys(self, rows: pa.RecordBatch, key: Sequence[str]) -> None:
        """Looks whether keys differ."""
        if self._several or not rows.num_rows:
            return
        alike = len(keys.group_starts(rows, key)) == 1
        first = keys.comparable_key(rows, key, 0)
        with self._lock:
            self._several = not alike or self._first not in (None, first)
            self._first, self._shown = first, keys.format_key(rows, key, 0)

    @property
    def single_key(self) -> str | None:
        """The one key that was seen, for a message."""
        return None if self._several or self._first is None else self._shown


class ShuffleBuffer:
    """One thread's rows on their way to the core.

    Args:
        dealing: Which partition rows belong to.
        shares: How much is gathered, and how long blocks are.
        combine: Makes fewer rows of those of a key, if it can.
        owners: Of each partition; of one without nothing is given.
        gate: Where blocks go.
        tally: Counts.
    """

    def __init__(
        self,
        dealing: Partitioner,
        shares: MemoryBudget,
        combine: Callable[[pa.RecordBatch, str], pa.RecordBatch] | None,
        owners: Sequence[int | None],
        gate: core.HostInput,
        tally: RowCounts,
    ) -> None:
        self._owners = owners
        self._dealing, self._shares, self._combine = dealing, shares, combine
        self._gate, self._tally = gate, tally
        self._gathered: list[pa.RecordBatch] = []
        self._bytes = 0

    def add(self, rows: pa.RecordBatch, where: object) -> None:
        """Takes rows; gives blocks of all that was gathered when they are enough."""
        if rows.num_rows:
            self._gathered.append(rows)
            self._bytes += rows.nbytes
        if self._bytes >= self._shares.gather_bytes:
            self.flush(where)

    def flush(self, where: object) -> None:
        """Gives blocks of what was gathered."""
        if not self._gathered:
            return
        rows = blocks.concat(self._gathered)
        self._gathered, self._bytes = [], 0
        if self._combine is not None:
            rows = self._combine(rows, f"what was gathered up to {where}")
        self._tally.note_keys(rows, self._dealing.key)
        rows, begins = self._dealing.partition(rows)
        ends = zip(begins.tolist(), begins[1:].tolist(), strict=False)
        for partition, (begin, end) in enumerate(ends):
            if begin < end and self._owners[partition] is not None:
                part = rows.slice(begin, end - begin)
                self._tally.add(shuffled=part.num_rows)
                for block in blocks.encode(part, self._dealing.key, self._shares.block_bytes):
                    self._gate.put(partition, block)


def send_to_owners(
    crew: WorkerThreads,
    things: Iterator[Any],
    rows_of: Callable[[Any], Iterator[pa.RecordBatch]],
    dealing: Partitioner,
    shares: MemoryBudget,
    combine: Callable[[pa.RecordBatch, str], pa.RecordBatch] | None,
    config: dict[str, Any],
    tally: RowCounts,
    look: Callable[[int], None],
) -> dict[str, Any]:
    """Deals the rows of things out to the owners of partitions: what the core tells of it.

    Args:
        crew: Who does it.
        things: What each thread takes in turn.
        rows_of: The rows of one of them.
        dealing: Which partition rows belong to.
        shares: How the memory is divided.
        combine: Makes fewer rows of those of a key, if it can.
        config: ``owners``, ``scratch``, ``index``, and on a fleet ``mesh``, as the core takes them.
        tally: Counts.
        look: Called now and then with the bytes written.
    """
    gate = core.HostInput(2 * shares.block_bytes)
    config = config | {"block_bytes": shares.block_bytes, "memory_bytes": shares.pass_one_bytes}

    def work() -> None:
        gathering = ShuffleBuffer(dealing, shares, combine, config["owners"], gate, tally)
        last: object = "the end"
        for thing in crew.take_from(things):
            last = thing
            for rows in rows_of(thing):
                crew.check()
                gathering.add(rows, thing)
        gathering.flush(last)

    with core.BackgroundJob("map_reduce_pass_one", config, gate) as job:
        crew.run(work, lambda: look(job.done_bytes()))
        gate.close()
    return job.outcome


def shuffle(
    crew: WorkerThreads,
    things: Iterator[Any],
    rows_of: Callable[[Any], Iterator[pa.RecordBatch]],
    dealing: Partitioner,
    shares: MemoryBudget,
    combine: Callable[[pa.RecordBatch, str], pa.RecordBatch] | None,
    place: Sequence[Path],
    tally: RowCounts,
    look: Callable[[int], None],
) -> ShuffleOutput:
    """Deals the rows of things out to partitions, all of them in scratch here, as `gather` does.

    ``place`` are new files for blocks, one a device; the index lies beside the first.
    """
    left = {
        "scratch": [str(path) for path in place],
        "index": str(place[0].with_suffix(".index")),
    }
    config = left | {"owners": [0] * dealing.partitions}
    outcome = send_to_owners(crew, things, rows_of, dealing, shares, combine, config, tally, look)
    return ShuffleOutput(
        spilled=[left],
        blocks=[BlockStats(**each) for each in outcome["came"]],
        spans=outcome["spans"],
        phases=outcome["phases"],
        single_key=tally.single_key,
    )
