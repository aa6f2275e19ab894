"""A MapReduce on this machine: input, pass one, pass two, publishing the output.

The passes are the sort's, in the core; between them, functions over Arrow record batches run in
threads. The output is complete or absent, and scratch is removed however the job ends.
"""

import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from tonnage.base import core, formatting
from tonnage.base.clock import utc_now
from tonnage.base.core import stage_stats
from tonnage.base.core.process_usage import cpu_seconds, peak_memory_bytes
from tonnage.base.records import RunRecord
from tonnage.measure.trial import environment
from tonnage.run.formats.registry import output_suffix
from tonnage.run.formats.writer import PartWriter
from tonnage.run.mapreduce import blocks
from tonnage.run.mapreduce.functions import Function
from tonnage.run.mapreduce.inputs import Input, InputSplits, Split, find_splits
from tonnage.run.mapreduce.mapper import Mapper, wrap_function
from tonnage.run.mapreduce.reducer import PassTwo, quantiles
from tonnage.run.mapreduce.shuffle import (
    MIN_MEMORY_BYTES,
    MIN_UPLOAD_BYTES,
    MemoryBudget,
    Partitioner,
    RowCounts,
    Shuffle,
    ShuffleOutput,
)
from tonnage.run.storage.object_store import ObjectStoreOptions, sum_requests
from tonnage.run.storage.sources import Sources
from tonnage.run.thread_pool import WorkerThreads

UNFINISHED = ".tonnage-unfinished-scratch-"
SAMPLED_SPLITS = 64
MAX_PARTITIONS = 4096


@dataclass(frozen=True)
class Functions:
    """The functions of a MapReduce; each gets a batch of rows and returns one.

    Args:
        map: Rows of the input -> rows with a key; ``None`` leaves them as they are.
        reduce: Whole groups, sorted by key -> rows of the output; sorted, if the output is to be.
            ``None`` leaves them as they are, for a sort.
        combine: Rows of any keys, in any order -> fewer rows of which reduce makes the same. Called
            any number of times, also on its own results.
        key: The key's column, or columns.
        partitions: How many to begin with; by default by the memory.
        ordered: Whether the parts together, in the order of their names, are sorted by key, instead
            of each part by itself.
    """

    map: Function | None = None
    reduce: Function | None = None
    combine: Function | None = None
    key: str | tuple[str, ...] | list[str] = "key"
    partitions: int | None = None
    ordered: bool = False

    @property
    def keys(self) -> tuple[str, ...]:
        return (self.key,) if isinstance(self.key, str) else tuple(self.key)


def run_map_reduce(
    functions: Functions,
    inputs: Sequence[Input],
    output: Path,
    scratch: Sequence[Path],
    memory_bytes: int,
    *,
    workers: int | None = None,
    format: str = "parquet",
    object_store: ObjectStoreOptions | None = None,
    on_progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> RunRecord:
    """Run a MapReduce: write ``part-00000`` and so on, and a manifest, to ``output``.

    Args:
        output: A new or empty directory.
        scratch: Directories, one on each device.
        memory_bytes: For all buffers and gathered rows, not for what functions use themselves.
        workers: Threads; by default one for each core.
        on_progress: Called with the bytes done and the total, as far as it is known.

    Raises:
        UsageError: Arguments or input cannot be used.
        RunError: A function failed (its exception is the cause), or a device.
        KeyboardInterrupt: Ctrl-C; everything is cleaned up by then.
    """
    began_at, began, cpu_before = utc_now(), time.monotonic(), cpu_seconds()
    threads = core.workers() if workers is None else workers
    budget = MemoryBudget(memory_bytes, threads, len(scratch))
    check_settings(functions, scratch, budget, format)
    suffix = output_suffix(format)
    existing = [path if path.exists() else path.parent for path in (output, *scratch)]
    machine = environment.capture([path for path in existing if path.exists()])
    sources = Sources(object_store or ObjectStoreOptions(), threads, budget.buffer_bytes)
    splits = find_splits(inputs, budget.split_bytes, sources)
    with ExitStack() as stack:
        output_files = core.OutputFiles([str(output)], suffix)
        stack.callback(output_files.abandon)
        rooms = [stack.enter_context(_scratch_room(directory)) for directory in scratch]
        job = _LocalJob(functions, splits, sources, budget, rooms, on_progress)
        shuffled, counts = job.pass_one()
        pass_two = job.pass_two(shuffled, output_files, format)
        parts = pass_two.write_all(shuffled, counts.shuffled)
        rows_out = sum(part.rows for part in parts)
        written = _publish(output_files, parts, rows_out, suffix)
    return RunRecord(
        job="mapreduce",
        began_at=began_at,
        command=list(sys.argv),
        environment=machine,
        settings={
            "inputs": [str(each.path) for each in inputs],
            "output": [str(output)],
            "scratch": [str(path) for path in scratch],
            "memory_bytes": memory_bytes,
            "workers": budget.workers,
            "format": format,
            "key": list(functions.keys),
            "ordered": functions.ordered,
            "partitions": len(shuffled.blocks),
        },
        records=counts.read,
        bytes=splits.bytes,
        checksum=f"{shuffled.checksum:x}",
        seconds=time.monotonic() - began,
        cpu_seconds=cpu_seconds() - cpu_before,
        peak_memory_bytes=peak_memory_bytes(),
        repartitioned_bytes=pass_two.divided_bytes,
        requests=sum_requests([sources.requests]),
        shuffled_records=counts.shuffled,
        shuffled_bytes=shuffled.bytes,
        written_records=rows_out,
        written_bytes=written,
        phases=[stage_stats.phase_record(phase) for phase in shuffled.phases + pass_two.phases],
    )


class _LocalJob:
    def __init__(
        self,
        functions: Functions,
        splits: InputSplits,
        sources: Sources,
        budget: MemoryBudget,
        rooms: list[Path],
        on_progress: Callable[[int, int], None],
    ) -> None:
        self._functions, self._splits, self._budget = functions, splits, budget
        self._rooms, self._on_progress, self._sources = rooms, on_progress, sources
        self._mapper = Mapper(functions.map, functions.keys, sources)
        self._combine = wrap_function("combine", functions.combine, functions.keys)
        self._shuffled = blocks.ObservedSchemas("combine")
        self._rounds = 0

    def pass_one(self) -> tuple[ShuffleOutput, RowCounts]:
        counts = RowCounts()
        done = 0

        def rows_of(split: Split) -> Iterator[pa.RecordBatch]:
            nonlocal done
            yield from self._mapper.rows_of(split, counts)
            done += split.bytes

        shuffle = Shuffle(
            self._threads,
            iter(self._splits.splits),
            rows_of,
            self._partitioner(),
            self._budget,
            self._combine,
            counts,
            self._shuffled,
            lambda _: self._on_progress(done, 2 * self._splits.bytes),
        )
        return shuffle.to_scratch(self._new_scratch()), counts

    def pass_two(self, shuffled: ShuffleOutput, output: core.OutputFiles, format: str) -> PassTwo:
        shuffled_bytes, total = shuffled.bytes, self._splits.bytes

        def on_progress(done: int) -> None:
            share = done / shuffled_bytes if shuffled_bytes else 1.0
            self._on_progress(total + int(share * total), 2 * total)

        hidden = Path(output.part(0)).parent
        return PassTwo(
            key=self._functions.keys,
            schema=self._shuffled.unified() or self._mapper.empty_schema or pa.schema([]),
            ordered=self._functions.ordered,
            budget=self._budget,
            combine=self._combine,
            reduce=wrap_function("reduce", self._functions.reduce, ()),
            new_scratch=self._new_scratch,
            part_path=lambda place: hidden / ("of-" + "-".join(map(str, place))),
            format=format,
            on_progress=on_progress,
        )

    def _partitioner(self) -> Partitioner:
        partitions = self._functions.partitions or self._budget.partitions(
            self._splits.memory_bytes
        )
        if not self._functions.ordered:
            return Partitioner(self._functions.keys, partitions)
        samples: list[pa.RecordBatch] = []
        threads = self._threads

        def work() -> None:
            for split in threads.take_from(iter(self._sampled_splits())):
                sample = self._mapper.sample(split)
                samples.extend([] if sample is None else [sample])

        threads.run(work, lambda: self._on_progress(0, 2 * self._splits.bytes))
        bounds = quantiles(samples, self._functions.keys, partitions)
        return Partitioner(self._functions.keys, len(bounds) + 1, 0, bounds)

    @property
    def _threads(self) -> WorkerThreads:
        return WorkerThreads(self._budget.workers, self._sources.stop)

    def _sampled_splits(self) -> list[Split]:
        splits = self._splits.splits
        every = max(len(splits) // SAMPLED_SPLITS, 1)
        return splits[every // 2 :: every]

    def _new_scratch(self) -> list[Path]:
        self._rounds += 1
        return [room / f"round-{self._rounds}" for room in self._rooms]


def check_settings(
    functions: Functions, scratch: Sequence[Any], budget: MemoryBudget, format: str
) -> None:
    """Refuse settings that no input could be used with."""
    output_suffix(format)
    if not scratch:
        raise core.UsageError("specify at least one directory", setting="scratch")
    check_memory(budget)
    if not functions.keys:
        raise core.UsageError("specify at least one column", setting="key")
    if functions.partitions is not None and not 0 < functions.partitions <= MAX_PARTITIONS:
        raise core.UsageError(f"must be from 1 to {MAX_PARTITIONS}", setting="partitions")


def check_memory(budget: MemoryBudget, uploads: bool = False) -> None:
    """Refuse memory that is too small for the threads, each of which may upload a part."""
    if budget.workers < 1:
        raise core.UsageError(f"must be at least 1, not {budget.workers}", setting="workers")
    least, why = MIN_MEMORY_BYTES * max(budget.workers // 2, 1), ""
    if uploads and budget.upload_bytes < MIN_UPLOAD_BYTES:
        for_uploads = -(-budget.memory_bytes * MIN_UPLOAD_BYTES // budget.upload_bytes)
        least, why = max(least, for_uploads), ", each of which uploads parts to object storage"
    if budget.memory_bytes < least:
        workers = formatting.several(budget.workers, "worker")
        raise core.UsageError(
            f"{budget.memory_bytes} bytes are not enough for {workers}{why}; use at least "
            f"{least >> 20}MiB, or fewer workers",
            setting="memory",
        )


def _scratch_room(directory: Path) -> Any:
    directory.mkdir(exist_ok=True)
    return core.workspace("scratch", directory, UNFINISHED)


def _publish(output: core.OutputFiles, parts: list[PartWriter], rows: int, suffix: str) -> int:
    """Name the parts in their order, then write the manifest; gives their bytes."""
    size = 0
    for number, part in enumerate(parts):
        size += part.path.stat().st_size
        part.path.rename(output.part(number))
    names = [f"part-{number:05}{suffix}" for number in range(len(parts))]
    manifest = {"format": "tonnage.output/1", "records": rows, "bytes": size, "parts": names}
    output.publish(len(parts), json.dumps(manifest))
    return size
