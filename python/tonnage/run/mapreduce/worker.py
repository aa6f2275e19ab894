"""A node's part in a MapReduce: the user's functions between the core's passes.

Pass one maps splits and hands blocks of rows to the core, which sends them to the owners of their
partitions. Next to each round's index is a file (``.came``) with the counts and checksums of the
blocks received: pass two compares them with what it reads of a partition before it decodes any. It
lists the parts of a partition when all have their names. A partition that reduce returned nothing
for is listed with an empty file in the directory that marks the output as unfinished. Parts that go
to object storage are written to scratch first, since the end of a file depends on all of it.
"""

from __future__ import annotations

import base64
import errno
import itertools
import pickle
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa

from tonnage.base import core
from tonnage.base.records import fsync_directory, write_atomically
from tonnage.base.records.base import convert, decode
from tonnage.cluster.failure_kinds import DeterministicError, InputUnreadable
from tonnage.run.formats.registry import output_suffix
from tonnage.run.formats.writer import PartWriter
from tonnage.run.mapreduce import blocks, messages
from tonnage.run.mapreduce.inputs import Input, Split, check_file, input_of, splits_in
from tonnage.run.mapreduce.local import Functions, check_memory
from tonnage.run.mapreduce.mapper import Mapper, wrap_function
from tonnage.run.mapreduce.reducer import PassTwo, bounds_of
from tonnage.run.mapreduce.shuffle import (
    BlockStats,
    MemoryBudget,
    Partitioner,
    RowCounts,
    Shuffle,
    ShuffleOutput,
)
from tonnage.run.mapreduce.spilled_blocks import SpilledBlocks
from tonnage.run.storage.object_store import sum_requests
from tonnage.run.storage.sources import InputFile, Sources
from tonnage.run.thread_pool import WorkerThreads
from tonnage.run.two_pass.job_spec import WorkerConfig
from tonnage.run.two_pass.messages import (
    RequestTotals,
    Sample,
    SampleResult,
    SplitToRead,
    Sum,
    WorkReport,
)
from tonnage.run.two_pass.output.names import UNFINISHED_PREFIX
from tonnage.run.two_pass.splits import FileId
from tonnage.run.two_pass.worker import OnProgress, TwoPassWorker, is_system_error

BLOCKS_SUFFIX = ".came"
DIVISION = "again-"
"""Begins the names of scratch files of partitions that are divided."""
USER_STAGES = ("map", "combine", "reduce")
"""Stages whose errors come from the user's functions."""
DATA_ERRORS = (pa.ArrowException, ArithmeticError, LookupError, TypeError, ValueError)
"""What rows of any node raise: no machine causes these, so no node is to be blamed for them."""


@dataclass(frozen=True, kw_only=True)
class MapReduceConfig(WorkerConfig):
    """The configuration of one node; ``packed`` has functions and `Input`s, pickled."""

    packed: bytes
    places: tuple[str, ...]
    format: str
    workers: int | None

    def steps(self) -> MapReduceWorker:
        return MapReduceWorker(self)


class MapReduceWorker(TwoPassWorker):
    PASS_ONE, PASS_TWO = messages.PASS_ONE, messages.PASS_TWO
    READS_BELOW = True
    _config: MapReduceConfig

    def prepare(self, _: None, on_progress: OnProgress) -> None:
        check_memory(self._budget, uploads=self._config.output_url is not None)
        assert self._job
        super().prepare(None, on_progress)

    def sample(self, request: Sample, on_progress: OnProgress) -> SampleResult:
        """Keys of the beginnings of some splits: adjacent Arrow streams."""
        self._refuse_changed(request.files)
        sources = self._sources()
        with self._unchanged(request.splits):
            splits = self._splits(request.splits, sources, on_progress)
        every = max(len(splits) // request.chunks, 1)
        mapper, threads = self._mapper(sources), WorkerThreads(self._budget.workers, sources.stop)
        samples: list[bytes] = []

        def work() -> None:
            for split in threads.take_from(iter(splits[every // 2 :: every])):
                if (sample := mapper.sample(split)) is not None:
                    samples.append(to_ipc(sample))

        with self._unchanged(request.splits), _classified_errors():
            threads.run(work, lambda: on_progress(len(samples)))
        return SampleResult(b"".join(samples), sources.requests)

    def _gather(
        self,
        request: messages.MapReducePassOne,
        devices: Sequence[Path],
        index: Path,
        on_progress: OnProgress,
    ) -> messages.MapReducePassOneResult:
        functions, _ = self._job
        config = self._round_config(request, devices, index)
        del config["splits"]  # Read in this process, not by the core.
        splits, firsts = request.splits, request.first_rows
        shares = replace(self._budget, links=request.links)
        bounds = None if firsts is None else bounds_of(rows_from_base64(firsts), functions.keys)
        counts, sources, done = RowCounts(), self._sources(), 0
        schemas = blocks.ObservedSchemas("combine")
        mapper = self._mapper(sources)
        own = self._splits(splits, sources, on_progress)

        def rows_of(split: Split) -> Iterator[pa.RecordBatch]:
            nonlocal done
            for rows in mapper.rows_of(split, counts):
                done += 1  # Shows progress within a split.
                yield rows
            done += split.bytes

        with _classified_errors():
            shuffle = Shuffle(
                WorkerThreads(self._budget.workers, sources.stop),
                iter(own),
                rows_of,
                Partitioner(functions.keys, request.partitions, 0, bounds),
                shares,
                wrap_function("combine", functions.combine, functions.keys),
                counts,
                schemas,
                lambda _: on_progress(done),
            )
            told = shuffle.send(config)
        left = convert({name: told.pop(name) for name in ("came", "spans")}, SpilledBlocks)
        write_atomically(index.with_suffix(BLOCKS_SUFFIX), msgspec.json.encode(left))
        size = sum(split.bytes for split in splits)
        return messages.MapReducePassOneResult.of(
            told,
            read=Sum(counts.read, size, "0"),
            partitions=told["partitions"],
            input_bytes=size,
            requests=sources.requests,
            rows=counts.shuffled,
            given=[messages.Blocks(**each) for each in told["given"]],
            came=[messages.Blocks(each.records, each.bytes, each.checksum) for each in left.came],
            schemas=[
                (to_base64(schema.serialize().to_pybytes()), where)
                for schema, where in schemas.first_seen
            ],
        )

    def pass_two(self, request: messages.MapReducePassTwo, on_progress: OnProgress) -> WorkReport:
        numbers = [each.number for each in request.partitions]
        self._forget(only={*numbers})
        self._note_listed()
        shuffled = self._spilled(request.rounds, numbers)
        functions, _ = self._job
        again = itertools.count()
        reducer = PassTwo(
            key=functions.keys,
            schema=schema_from_base64(request.schema),
            ordered=functions.ordered,
            budget=self._budget,
            combine=wrap_function("combine", functions.combine, functions.keys),
            reduce=wrap_function("reduce", functions.reduce, ()),
            new_scratch=lambda: self._division_files(next(again)),
            part_path=self._unfinished,
            format=self._config.format,
            on_progress=lambda done: on_progress(done + reducer.steps),
            durable=self._config.output_url is None,
        )
        lock, output_bytes = threading.Lock(), 0
        all_requests: list[dict[str, Any]] = []

        def on_done(number: int, parts: list[PartWriter], check: Callable[[], None]) -> None:
            nonlocal output_bytes

            def on_upload(has_progressed: bool) -> None:
                check()
                if has_progressed:
                    reducer.report_progress()

            if self._config.output_url is None:
                lines = self._publish(number, parts)
            else:
                lines, requests = self._upload(number, parts, on_upload)
                all_requests.extend(requests)
            with lock:
                output_bytes += self._list_partition(lines, shuffled.blocks[number])
                if shuffled.spans[number] > self._budget.portion_bytes:
                    self._remove_scratch(f"{DIVISION}*")

        self._remove_scratch(f"{DIVISION}*")
        try:
            with _classified_errors():
                reducer.write_each(shuffled, numbers, on_done)
        finally:
            self._remove_scratch(f"{DIVISION}*")
            self._remove_scratch("part-*.unfinished")
        return WorkReport.of(
            {"phases": reducer.phases, "sent": [], "received": []},
            repartitioned_bytes=reducer.divided_bytes,
            output_bytes=output_bytes,
            requests=sum_requests(all_requests),
        )

    def _publish(self, number: int, parts: Sequence[PartWriter]) -> list[dict[str, Any]]:
        """Give a partition's parts their names, durably; gives their lines in the list."""
        directory = self._directory(number)
        named = []
        for name, part in self._names(number, parts):
            part.path.rename(directory / name)
            named.append((directory / name, part.rows))
        if not named:
            path = directory / f"{UNFINISHED_PREFIX}{self._config.job}" / f"part-{number:05}"
            path.touch()
            named.append((path, 0))
        fsync_directory(named[0][0].parent)
        return [
            {"path": str(path), "records": rows, "bytes": path.stat().st_size}
            for path, rows in named
        ]

    def _upload(
        self, number: int, parts: Sequence[PartWriter], on_upload: Callable[[bool], None]
    ) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """Upload a partition's parts; gives their lines in the list, and the requests."""
        lines, requests = [], []
        for name, part in self._names(number, parts):
            done = 0

            def on_progress(now: int) -> None:
                nonlocal done
                on_upload(now != done)
                done = now

            requests_each = max(self._config.object_store.concurrency // self._budget.workers, 1)
            put = self._folder.upload(
                part.path, name, self._budget.upload_bytes, requests_each, on_progress
            )
            part.path.unlink()
            requests.append(put["requests"])
            lines.append({"path": self._url(name), "records": part.rows, "bytes": put["bytes"]})
        nothing = {"path": self._url(f"part-{number:05}"), "records": 0, "bytes": 0}
        return lines or [nothing], requests

    def _names(self, number: int, parts: Sequence[PartWriter]) -> Iterator[tuple[str, PartWriter]]:
        for place, part in enumerate(parts):
            more = f"-{place:05}" if len(parts) > 1 else ""
            yield f"part-{number:05}{more}{output_suffix(self._config.format)}", part

    def _list_partition(self, files: Sequence[Mapping[str, Any]], came: BlockStats) -> int:
        """List the files of a partition, all at once; gives their bytes."""
        shares = [came.checksum] + [0] * (len(files) - 1)
        self._add_lines(
            {**file, "checksum": f"{share:x}", "files": len(files), "taken": came.bytes}
            for file, share in zip(files, shares, strict=True)
        )
        written: int = sum(file["bytes"] for file in files)
        return written

    def _spilled(self, numbers: Sequence[int], partitions: Sequence[int]) -> ShuffleOutput:
        left: list[dict[str, Any]] = []
        came: dict[int, BlockStats] = dict.fromkeys(partitions, BlockStats())
        spans = dict.fromkeys(partitions, 0)
        for devices, index in map(self._round, numbers):
            left.append({"scratch": [str(path) for path in devices], "index": str(index)})
            file = index.with_suffix(BLOCKS_SUFFIX)
            held = decode(file.read_bytes(), SpilledBlocks, file)
            for number in partitions:
                here = held.came[number]
                came[number] = came[number].plus(
                    BlockStats(here.records, here.bytes, here.checksum)
                )
                spans[number] += held.spans[number]
        count = max(partitions, default=-1) + 1
        return ShuffleOutput(
            spilled=left,
            blocks=[came.get(number, BlockStats()) for number in range(count)],
            spans=[spans.get(number, 0) for number in range(count)],
            phases=[],
        )

    def _whole_rounds(self) -> Iterator[int]:
        for number in super()._whole_rounds():
            if self._round(number)[1].with_suffix(BLOCKS_SUFFIX).is_file():
                yield number

    def _refuse_input(self, file: FileId) -> None:
        self._refuse_inputs([file], lambda _: None)

    def _refuse_inputs(self, files: Sequence[FileId], on_progress: OnProgress) -> RequestTotals:
        sources = self._sources()

        def refuse(file: FileId) -> None:
            found = InputFile(file.path, file.bytes, file.etag)
            check_file(self._input_of(file.path), found, sources)

        sources.map_parallel(files, refuse, on_progress)
        return sources.requests

    def _splits(
        self, spans: Sequence[SplitToRead], sources: Sources, look: OnProgress
    ) -> list[Split]:
        """The splits for threads that these spans of files contain."""

        def split_span(span: SplitToRead) -> list[Split]:
            file = InputFile(span.path, span.file_bytes, span.etag)
            given = self._input_of(file.name)
            begin, split_bytes = span.offset, self._budget.split_bytes
            try:
                return splits_in(given, file, (begin, begin + span.bytes), split_bytes, sources)
            except OSError as why:
                raise InputUnreadable(f"input {file.name}: {why.strerror or why}") from why

        return [split for found in sources.map_parallel(spans, split_span, look) for split in found]

    def _input_of(self, name: str) -> Input:
        return input_of(self._job[1], name)

    @cached_property
    def _job(self) -> tuple[Functions, list[Input]]:
        try:
            functions, inputs = pickle.loads(self._config.packed)
        except Exception as why:
            raise core.UsageError(
                f"the functions cannot be loaded ({type(why).__name__}: {why}); install what "
                "they import"
            ) from why
        own = zip(inputs, self._config.places, strict=True)
        return functions, [replace(each, path=path) for each, path in own]

    def _mapper(self, sources: Sources) -> Mapper:
        functions, _ = self._job
        return Mapper(functions.map, functions.keys, sources)

    def _sources(self) -> Sources:
        return Sources(self._config.object_store, self._budget.workers, self._budget.buffer_bytes)

    @property
    def _budget(self) -> MemoryBudget:
        place = self._config
        workers = place.workers or core.workers()
        return MemoryBudget(place.memory_bytes, workers, len(place.scratch))

    def _division_files(self, number: int) -> list[Path]:
        return [room / f"{DIVISION}{number}" for room in self._rooms]

    def _remove_scratch(self, pattern: str) -> None:
        for room in self._rooms:
            for path in room.glob(pattern):
                path.unlink()

    def _directory(self, number: int) -> Path:
        """Where a partition's parts are written: to scratch if they are uploaded then."""
        places = [Path(each) for each in self._config.output] or self._rooms
        return places[number % len(places)]

    def _unfinished(self, place: tuple[int, ...]) -> Path:
        more = "".join(f"-{number:05}" for number in place[1:])
        return self._directory(place[0]) / f"part-{place[0]:05}{more}.unfinished"


@contextmanager
def _classified_errors() -> Iterator[None]:
    """Distinguish errors that would occur on any node from those of this node."""
    try:
        yield
    except core.RunError as why:
        stage, cause = why.args[1], why.__cause__
        # The core's reads have no cause; those of input do.
        if stage in USER_STAGES or (
            stage == "read" and cause is not None and not is_system_error(cause)
        ):
            raise DeterministicError(why.args[0]) from why
        if stage == "to_host":  # A disk returned other data than were written.
            raise OSError(errno.EIO, why.args[0]) from why
        raise
    except DATA_ERRORS as why:
        raise DeterministicError(f"{type(why).__name__}: {why}") from why


def to_ipc(rows: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write_batch(rows)
    stream_bytes: bytes = sink.getvalue().to_pybytes()
    return stream_bytes


def rows_from_base64(text: str) -> pa.RecordBatch:
    return next(blocks.batches(base64.b64decode(text)))


def schema_from_base64(text: str) -> pa.Schema:
    return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(text)))


def to_base64(data: bytes) -> str:
    return base64.b64encode(data).decode()
