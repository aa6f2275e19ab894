"""The steps of a MapReduce: inputs, pass one, pass two, the output's name.

The passes are the sort's, in the core; between them stand functions over Arrow record batches, in
threads. An output is whole or not there, and scratch is gone with the job, however it ends.
"""

from __future__ import annotations

import json
import resource
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from tonnage.base import core
from tonnage.base.core import stage_stats
from tonnage.base.records import Environment, RunRecord
from tonnage.run.formats.registry import output_suffix
from tonnage.run.formats.writer import PartWriter
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
    ShuffleOutput,
    shuffle,
)
from tonnage.run.sort.local import peak_memory_bytes
from tonnage.run.storage.object_store import ObjectStoreOptions, sum_requests
from tonnage.run.storage.sources import Sources
from tonnage.run.thread_pool import WorkerThreads

UNFINISHED = ".tonnage-unfinished-scratch-"
SAMPLED_SPLITS = 64
MAX_PARTITIONS = 4096


@dataclass(frozen=True)
class Functions:
    """What a MapReduce does; each function gets a batch of rows and gives one.

    Args:
        map: Rows of the input -> rows with a key; ``None`` leaves them as they are.
        reduce: Whole groups, in the order of their keys -> rows of the output, in that order if the
            output is to be in order. ``None`` leaves them as they are, for a sort.
        combine: Rows of any keys, in no order -> fewer rows that reduce makes the same of; called
            as often as it seems good, on what it gave, too.
        key: The key's column, or columns.
        partitions: How many there are at first; by default as many as memory asks for.
        ordered: Whether the parts of the output, in the order of their names, are in the order of
            keys, instead of each part by itself.
    """

    map: Function | None = None
    reduce: Function | None = None
    combine: Function | None = None
    key: str | tuple[str, ...] | list[str] = "key"
    partitions: int | None = None
    ordered: bool = False

    @property
    def keys(self) -> tuple[str, ...]:
        """The key's columns."""
        return (self.key,) if isinstance(self.key, str) else tuple(self.key)


def run_map_reduce(
    functions: Functions,
    inputs: Sequence[Input],
    output: Path,
    scratch: Sequence[Path],
    *,
    memory_bytes: int,
    environment: Environment,
    began_at: str,
    command: list[str],
    workers: int | None = None,
    format: str = "parquet",
    object_store: ObjectStoreOptions | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> RunRecord:
    """Does a MapReduce: parts in ``output``, named ``part-00000`` and so on, and a list of them.

    Args:
        functions: What to do.
        inputs: What to read; not changed.
        output: A new or empty directory.
        scratch: Directories, one for each device.
        memory_bytes: For all buffers and gathered rows, not for what functions use themselves.
        environment: Where it is done.
        began_at: When it was asked for, ISO 8601.
        command: How it can be repeated.
        workers: Threads; by default as many as there are cores.
        format: ``parquet``, ``arrow``, ``csv`` or ``json`` (an object a line).
        volumes: How object storage is reached, if inputs are there.
        on_progress: Called with bytes done of how many, as far as that is known.

    Raises:
        UsageError: Arguments or input cannot be used.
        RunError: A function failed (its exception is the cause), or a device.
        KeyboardInterrupt: Ctrl-C; everything is cleaned up by then.
    """
    began, cpu_before = time.monotonic(), _cpu_seconds()
    threads = core.workers() if workers is None else workers
    shares = MemoryBudget(memory_bytes, threads, len(scratch))
    check_settings(functions, scratch, shares, format)
    sources = Sources(object_store or ObjectStoreOptions(), threads)
    found = find_splits(inputs, shares.split_bytes, sources)
    progress = on_progress or (lambda _done, _of: None)
    with ExitStack() as stack:
        sealing = core.OutputFiles([str(output)], output_suffix(format))
        stack.callback(sealing.abandon)
        rooms = [stack.enter_context(_room(directory)) for directory in scratch]
        job = _LocalJob(functions, found, sources, shares, rooms, progress)
        round, tally = job.pass_one()
        reducing = job.reducing(round, sealing, format)
        parts = reducing.write_all(round, tally.shuffled)
        rows_out = sum(part.rows for part in parts)
        written = _publish(sealing, parts, rows_out, output_suffix(format))
    phases = [*round.phases, *reducing.phases]
    return RunRecord(
        job="mapreduce",
        began_at=began_at,
        command=command,
        environment=environment,
        settings={
            "inputs": [str(each.path) for each in inputs],
            "output": [str(output)],
            "scratch": [str(path) for path in scratch],
            "memory_bytes": memory_bytes,
            "workers": shares.workers,
            "format": format,
            "key": list(functions.keys),
            "ordered": functions.ordered,
            "partitions": len(round.blocks),
        },
        records=tally.read,
        bytes=found.bytes,
        checksum=f"{round.checksum:x}",
        seconds=time.monotonic() - began,
        cpu_seconds=_cpu_seconds() - cpu_before,
        peak_memory_bytes=peak_memory_bytes(),
        repartitioned_bytes=reducing.divided_bytes,
        requests=sum_requests([sources.requests]),
        shuffled_records=tally.shuffled,
        shuffled_bytes=round.bytes,
        written_records=rows_out,
        written_bytes=written,
        phases=[stage_stats.phase_record(phase) for phase in phases],
    )


class _LocalJob:
    """The steps up to pass two."""

    def __init__(
        self,
        functions: Functions,
        found: InputSplits,
        sources: Sources,
        shares: MemoryBudget,
        rooms: list[Path],
        progress: Callable[[int, int], None],
    ) -> None:
        self._functions, self._found, self._shares = functions, found, shares
        self._rooms, self._progress = rooms, progress
        self._sources = sources
        self._mapper = Mapper(functions.map, functions.keys, sources)
        self._rounds = 0

    def pass_one(self) -> tuple[ShuffleOutput, RowCounts]:
        """Reads, maps, combines, divides; gives what is in scratch, and counts."""
        tally = RowCounts()
        done = 0

        def rows_of(split: Split) -> Iterator[pa.RecordBatch]:
            nonlocal done
            yield from self._mapper.rows_of(split, tally)
            done += split.bytes

        round = shuffle(
            self._crew,
            iter(self._found.splits),
            rows_of,
            self._dealing(),
            self._shares,
            wrap_function("combine", self._functions.combine, self._functions.keys),
            self._place(),
            tally,
            lambda _: self._progress(done, 2 * self._found.bytes),
        )
        return round, tally

    def reducing(self, round: ShuffleOutput, output: core.OutputFiles, format: str) -> PassTwo:
        """Pass two, to be done."""
        shuffled = round.bytes

        def look(done: int) -> None:
            share = done / shuffled if shuffled else 1.0
            whole = self._found.bytes
            self._progress(whole + int(share * whole), 2 * whole)

        hidden = Path(output.part(0)).parent

        return PassTwo(
            key=self._functions.keys,
            schema=self._mapper.schemas.unified(),
            ordered=self._functions.ordered,
            shares=self._shares,
            combine=wrap_function("combine", self._functions.combine, self._functions.keys),
            reduce=wrap_function("reduce", self._functions.reduce, ()),
            new_scratch=self._place,
            part_path=lambda place: hidden / ("of-" + "-".join(map(str, place))),
            format=format,
            on_progress=look,
        )

    def _dealing(self) -> Partitioner:
        wanted = self._functions.partitions or self._shares.partitions(self._found.memory_bytes)
        if not self._functions.ordered:
            return Partitioner(self._functions.keys, wanted)
        samples: list[pa.RecordBatch] = []
        crew = self._crew

        def work() -> None:
            for split in crew.take_from(iter(self._sampled())):
                sample = self._mapper.sample(split)
                samples.extend([] if sample is None else [sample])

        crew.run(work, lambda: self._progress(0, 2 * self._found.bytes))
        bounds = quantiles(samples, self._functions.keys, wanted)
        return Partitioner(self._functions.keys, len(bounds) + 1, 0, bounds)

    @property
    def _crew(self) -> WorkerThreads:
        return WorkerThreads(self._shares.workers, self._sources.stop)

    def _sampled(self) -> list[Split]:
        """Splits, evenly spread."""
        splits = self._found.splits
        every = max(len(splits) // SAMPLED_SPLITS, 1)
        return splits[every // 2 :: every]

    def _place(self) -> list[Path]:
        self._rounds += 1
        return [room / f"round-{self._rounds}" for room in self._rooms]


def check_settings(
    functions: Functions, scratch: Sequence[Any], shares: MemoryBudget, format: str
) -> None:
    """Refuses what no input can be used with."""
    output_suffix(format)
    check_memory(shares)
    if not functions.keys:
        raise core.UsageError("key: give at least one column")
    if functions.partitions is not None and not 0 < functions.partitions <= MAX_PARTITIONS:
        raise core.UsageError(f"partitions: give 1 to {MAX_PARTITIONS}")
    if not scratch:
        raise core.UsageError("--scratch: give at least one directory")


def check_memory(shares: MemoryBudget, uploads: bool = False) -> None:
    """Refuses memory that is too small for so many threads, each of which may upload a part."""
    least, why = MIN_MEMORY_BYTES * max(shares.workers // 2, 1), ""
    if uploads and shares.upload_bytes < MIN_UPLOAD_BYTES:
        for_uploads = -(-shares.memory_bytes * MIN_UPLOAD_BYTES // shares.upload_bytes)
        least, why = max(least, for_uploads), ", each of which puts parts to object storage"
    if shares.memory_bytes < least:
        raise core.UsageError(
            f"--memory of {shares.memory_bytes} bytes is too small for "
            f"{shares.workers} worker{'s' * (shares.workers > 1)}{why}: give at least "
            f"{least >> 20}MiB, or fewer --workers"
        )
    if shares.workers < 1:
        raise core.UsageError(f"--workers {shares.workers}: give at least 1")


def _room(directory: Path) -> Any:
    directory.mkdir(exist_ok=True)
    return core.workspace("scratch", directory, UNFINISHED)


def _publish(output: core.OutputFiles, parts: list[PartWriter], rows: int, suffix: str) -> int:
    """Names the parts in their order, then lists them; tells their bytes."""
    size = 0
    for number, part in enumerate(parts):
        size += part.path.stat().st_size
        part.path.rename(output.part(number))
    names = [f"part-{number:05}{suffix}" for number in range(len(parts))]
    manifest = {"format": "tonnage.output/1", "records": rows, "bytes": size, "parts": names}
    output.publish(len(parts), json.dumps(manifest))
    return size


def _cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime
