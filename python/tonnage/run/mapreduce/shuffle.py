"""Pass one: mapped rows are buffered, combined, partitioned and handed to the core.

Each thread fills a buffer, as Hadoop's map tasks do, and then makes a block or a few of it for each
partition. So blocks are as long as the memory allows whatever the size of batches, and combine gets
as many rows at once as possible.
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
"""Two parts of a multipart upload, of the smallest size that stores accept."""
MAX_PORTION_BYTES = 1 << 30
"""Beyond, the offsets of Arrow's strings overflow."""

Bounds = list[tuple[Any, ...]]


class BlockStats(NamedTuple):
    """The rows and bytes of blocks, and the sum of their CRC-32s."""

    records: int = 0
    bytes: int = 0
    checksum: int = 0

    def plus(self, other: BlockStats) -> BlockStats:
        return BlockStats(*(one + two for one, two in zip(self, other, strict=True)))


@dataclass(frozen=True)
class MemoryBudget:
    """How the memory is divided: an eighth for blocks in transit, the rest for threads.

    On a cluster each connection holds a block in each direction, so many connections mean shorter
    blocks.

    In pass one there are up to three copies of a thread's rows (buffered, combined, partitioned).
    In pass two there are four (read, decoded, sorted, reduced), in at most half of the memory; the
    core reads into at most the other half.

    Attributes:
        devices: Of scratch.
        links: Connections and devices that hold a block at the same time.
    """

    memory_bytes: int
    workers: int
    devices: int
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
    def buffer_bytes(self) -> int:
        """A thread's buffer in pass one."""
        return self.memory_bytes // (8 * self.workers)

    @property
    def portion_bytes(self) -> int:
        """The largest partition that a thread reads whole: at least two blocks."""
        half = self.memory_bytes // 2
        of_half = half // max(4 * self.workers, self._portions)
        return min(max(of_half, self.memory_bytes // 64), MAX_PORTION_BYTES)

    @property
    def upload_bytes(self) -> int:
        """For a thread's upload of a part, whose rows are not in memory any more."""
        return 4 * self.portion_bytes

    @property
    def pass_two_bytes(self) -> int:
        """For the core's buffers in pass two."""
        return min(self._portions * self.portion_bytes, self.memory_bytes // 2)

    @property
    def _portions(self) -> int:
        """How many the core holds: one read from each device, one copied, one waiting."""
        return max(self.devices + 1, 3)

    @property
    def split_bytes(self) -> int:
        """Read at once from a text file; in memory this may be ten times as much."""
        return min(max(self.memory_bytes // (64 * self.workers), 64 << 10), 8 << 20)

    def partitions(self, shuffled_bytes: int) -> int:
        """How many to aim for: half as large as they may be."""
        return max(self.workers, min(-(-2 * shuffled_bytes // self.portion_bytes), 4096))


@dataclass(frozen=True)
class Partitioner:
    """Assigns rows to partitions by a hash, or by bounds if the output is ordered."""

    key: tuple[str, ...]
    partitions: int
    depth: int = 0
    bounds: Bounds | None = None

    def partition(self, rows: pa.RecordBatch) -> tuple[pa.RecordBatch, npt.NDArray[Any]]:
        """The rows by partition, and where each partition begins."""
        if self.bounds is not None:
            rows = keys.sort_by_key(rows, self.key)
            return rows, np.array(keys.partition_starts(rows, self.key, self.bounds))
        numbers = keys.partitions_of(rows, self.key, self.partitions, self.depth)
        order = np.argsort(numbers, kind="stable")  # A radix sort, since numbers have 16 bits.
        begins = np.searchsorted(numbers[order], np.arange(self.partitions + 1))
        return rows.take(order), begins


@dataclass(frozen=True)
class ShuffleOutput:
    """The partitions that pass one has spilled to scratch.

    Attributes:
        spilled: Where they are, as the core takes it: ``scratch`` and ``index`` of each pass one.
        blocks: The blocks of each partition.
        spans: The memory that reading each partition whole takes.
        single_key: The key, for messages, if all rows have the same.
    """

    spilled: list[dict[str, Any]]
    blocks: list[BlockStats]
    spans: list[int]
    phases: list[dict[str, Any]]
    single_key: str | None = None

    @property
    def bytes(self) -> int:
        return sum(each.bytes for each in self.blocks)

    @property
    def checksum(self) -> int:
        return sum(each.checksum for each in self.blocks)


class RowCounts:
    """Rows counted by several threads, and whether all keys are the same."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.read = 0
        self.shuffled = 0
        self._first: tuple[Any, ...] | None = None
        self._shown = ""
        self._several = False

    def add(self, read: int = 0, shuffled: int = 0) -> None:
        with self._lock:
            self.read += read
            self.shuffled += shuffled

    def note_keys(self, rows: pa.RecordBatch, key: Sequence[str]) -> None:
        if self._several or not rows.num_rows:
            return
        alike = len(keys.group_starts(rows, key)) == 1
        first = keys.comparable_key(rows, key, 0)
        with self._lock:
            self._several = not alike or self._first not in (None, first)
            self._first, self._shown = first, keys.format_key(rows, key, 0)

    @property
    def single_key(self) -> str | None:
        """The key, for messages, if all rows had the same."""
        return None if self._several or self._first is None else self._shown


@dataclass(frozen=True)
class Shuffle:
    """The way of rows to their partitions: buffered and combined by threads, moved by the core.

    Attributes:
        threads: Take ``items`` in turn: splits, or portions of a partition.
        combine: Makes fewer rows of those with the same key, maybe of wider types.
        schemas: Notes the columns of the rows that it sends.
        on_progress: Called with the bytes written.
    """

    threads: WorkerThreads
    items: Iterator[Any]
    rows_of: Callable[[Any], Iterator[pa.RecordBatch]]
    partitioner: Partitioner
    budget: MemoryBudget
    combine: Callable[[pa.RecordBatch, str], pa.RecordBatch] | None
    counts: RowCounts
    schemas: blocks.ObservedSchemas
    on_progress: Callable[[int], None]

    def send(self, config: dict[str, Any]) -> dict[str, Any]:
        """Send rows to the owners of their partitions; gives the core's outcome.

        ``config`` has ``owners``, ``scratch``, ``index``, and on a cluster ``mesh``, for the core.
        """
        gate = core.HostInput(2 * self.budget.block_bytes)
        config = config | {
            "block_bytes": self.budget.block_bytes,
            "memory_bytes": self.budget.pass_one_bytes,
        }

        def work() -> None:
            buffer = _Buffer(self, config["owners"], gate)
            last: object = "the end"
            for item in self.threads.take_from(self.items):
                last = item
                for rows in self.rows_of(item):
                    self.threads.check()
                    buffer.add(rows, item)
            buffer.flush(last)

        with core.BackgroundJob("map_reduce_pass_one", config, gate) as job:
            self.threads.run(work, lambda: self.on_progress(job.done_bytes()))
            gate.close()
        return job.outcome

    def to_scratch(self, files: Sequence[Path]) -> ShuffleOutput:
        """Spill rows on this machine to new files, one a device; the index is next to the first."""
        spilled = {
            "scratch": [str(path) for path in files],
            "index": str(files[0].with_suffix(".index")),
        }
        outcome = self.send(spilled | {"owners": [0] * self.partitioner.partitions})
        return ShuffleOutput(
            spilled=[spilled],
            blocks=[BlockStats(**each) for each in outcome["came"]],
            spans=outcome["spans"],
            phases=outcome["phases"],
            single_key=self.counts.single_key,
        )


class _Buffer:
    """One thread's rows, until they go to the core through ``gate``.

    ``owners`` has each partition's owner; the rows of a partition without one are dropped.
    """

    def __init__(
        self, shuffle: Shuffle, owners: Sequence[int | None], gate: core.HostInput
    ) -> None:
        self._shuffle, self._owners, self._gate = shuffle, owners, gate
        self._rows: list[pa.RecordBatch] = []
        self._bytes = 0

    def add(self, rows: pa.RecordBatch, where: object) -> None:
        if rows.num_rows:
            self._rows.append(rows)
            self._bytes += rows.nbytes
        if self._bytes >= self._shuffle.budget.buffer_bytes:
            self.flush(where)

    def flush(self, where: object) -> None:
        if not self._rows:
            return
        rows = blocks.concat(self._rows)
        self._rows, self._bytes = [], 0
        shuffle, key = self._shuffle, self._shuffle.partitioner.key
        if shuffle.combine is not None:
            rows = shuffle.combine(rows, f"the rows buffered up to {where}")
        if rows.num_rows:
            shuffle.schemas.note(rows.schema, where)
        shuffle.counts.note_keys(rows, key)
        rows, begins = shuffle.partitioner.partition(rows)
        ends = zip(begins.tolist(), begins[1:].tolist(), strict=False)
        for partition, (begin, end) in enumerate(ends):
            if begin < end and self._owners[partition] is not None:
                part = rows.slice(begin, end - begin)
                shuffle.counts.add(shuffled=part.num_rows)
                for block in blocks.encode(part, key, shuffle.budget.block_bytes):
                    self._gate.put(partition, block)
