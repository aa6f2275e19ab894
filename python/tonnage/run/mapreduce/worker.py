"""A machine's part in a MapReduce on a fleet: the user's functions between the core's passes.

Pass one maps splits, and gives blocks of the rows to the core, which sends them to the owners of
their partitions. Beside each round's index lies what came, counted block by block (``.came``):
pass two compares it with what it reads of a partition before any of it is decoded. It lists the
parts of a partition when all have their names. One of which reduce made nothing is listed with an
empty file in the directory that says that the output is unfinished. Parts that go to a folder of
object storage are written to scratch first, since formats end with what only who wrote all knows.
"""

from __future__ import annotations

import base64
import errno
import itertools
import json
import pickle
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa

from tonnage.base import core
from tonnage.base.core.stage_stats import without_samples
from tonnage.base.records import fsync_directory, write_atomically
from tonnage.run.formats.registry import output_suffix
from tonnage.run.formats.writer import PartWriter
from tonnage.run.mapreduce import blocks
from tonnage.run.mapreduce.inputs import Input, Split, check_file, input_of, splits_in
from tonnage.run.mapreduce.local import Functions, check_memory
from tonnage.run.mapreduce.mapper import Mapper, wrap_function
from tonnage.run.mapreduce.reducer import PassTwo, bounds_of
from tonnage.run.mapreduce.shuffle import (
    BlockStats,
    MemoryBudget,
    Partitioner,
    RowCounts,
    ShuffleOutput,
    send_to_owners,
)
from tonnage.run.storage.object_store import sum_requests
from tonnage.run.storage.sources import InputFile, Sources
from tonnage.run.thread_pool import WorkerThreads
from tonnage.run.two_pass.output.names import UNFINISHED_PREFIX
from tonnage.run.two_pass.splits import FileId
from tonnage.run.two_pass.worker import (
    DeterministicError,
    InputUnreadable,
    OnProgress,
    TwoPassWorker,
    WorkerConfig,
    is_system_error,
)

CAME = ".came"
AGAIN = "again-"
"""What is divided once more, while it is."""
USERS = ("map", "combine", "reduce")
"""Stages that are the user's."""


@dataclass(frozen=True, kw_only=True)
class MapReduceConfig(WorkerConfig):
    """A MapReduce as one of its machines has it."""

    packed: bytes
    """Its `Functions` and `Input`s, which are at ``places`` here."""
    places: tuple[str, ...]
    format: str
    workers: int | None

    def site(self) -> MapReduceWorker:
        """The machine's part."""
        return MapReduceWorker(self)


class MapReduceWorker(TwoPassWorker):
    """A machine's part in a MapReduce."""

    _place: MapReduceConfig

    def prepare(self, _: None, on_progress: OnProgress) -> None:
        """Makes itself at home; see `Site.prepare`."""
        check_memory(self._shares, uploads=self._place.folder is not None)
        assert self._job
        super().prepare(None, on_progress)

    def sample(self, asked: Mapping[str, Any], on_progress: OnProgress) -> dict[str, Any]:
        """Keys of the beginnings of some splits, as ``rows``: an Arrow stream each, end to end."""
        self._refuse_changed(asked["files"])
        sources = self._opened()
        with self._unchanged(asked["splits"]):
            splits = self._splits(asked["splits"], sources, on_progress)
        every = max(len(splits) // asked["chunks"], 1)
        mapper, crew = self._mapper(sources), WorkerThreads(self._shares.workers, sources.stop)
        found: list[bytes] = []

        def work() -> None:
            for split in crew.take_from(iter(splits[every // 2 :: every])):
                if (sample := mapper.sample(split)) is not None:
                    found.append(to_ipc(sample))

        with self._unchanged(asked["splits"]), _of_user():
            crew.run(work, lambda: on_progress(len(found)))
        return {"rows": b"".join(found), "requests": sources.requests}

    def _gather(self, config: dict[str, Any], on_progress: OnProgress) -> dict[str, Any]:
        functions, _ = self._job
        splits, dealing = config.pop("splits"), config.pop("dealing")
        shares = replace(self._shares, links=config.pop("links"))
        firsts = dealing["firsts"]
        bounds = None if firsts is None else bounds_of(rows_from_base64(firsts), functions.keys)
        tally, sources, done = RowCounts(), self._opened(), 0
        mapper = self._mapper(sources)
        own = self._splits(splits, sources, on_progress)

        def rows_of(split: Split) -> Iterator[pa.RecordBatch]:
            nonlocal done
            for rows in mapper.rows_of(split, tally):
                done += 1  # Whoever watches is to see that it moves.
                yield rows
            done += split.bytes

        with _of_user():
            told = send_to_owners(
                WorkerThreads(self._shares.workers, sources.stop),
                iter(own),
                rows_of,
                Partitioner(functions.keys, dealing["partitions"], 0, bounds),
                shares,
                wrap_function("combine", functions.combine, functions.keys),
                config,
                tally,
                lambda _: on_progress(done),
            )
        left = {"came": told.pop("came"), "spans": told.pop("spans")}
        index = Path(config["index"])
        write_atomically(index.with_suffix(CAME), json.dumps(left).encode())
        size = sum(split["bytes"] for split in splits)
        return told | {
            "read": {"records": tally.read, "bytes": size, "checksum": 0},
            "input_bytes": size,
            "requests": sources.requests,
            "rows": tally.shuffled,
            "came": left["came"],
            "schemas": [
                (to_base64(schema.serialize().to_pybytes()), where)
                for schema, where in mapper.schemas.first_seen
            ],
        }

    def pass_two(self, asked: Mapping[str, Any], on_progress: OnProgress) -> dict[str, Any]:
        """Reduces partitions."""
        numbers = [each["number"] for each in asked["partitions"]]
        self._forget(only={*numbers})
        self._note_listed()
        round = self._left(asked["rounds"], numbers)
        functions, _ = self._job
        again = itertools.count()
        reducing = PassTwo(
            key=functions.keys,
            schema=schema_from_base64(asked["schema"]),
            ordered=functions.ordered,
            budget=self._shares,
            combine=wrap_function("combine", functions.combine, functions.keys),
            reduce=wrap_function("reduce", functions.reduce, ()),
            new_scratch=lambda: self._again(next(again)),
            part_path=self._unfinished,
            format=self._place.format,
            on_progress=lambda done: on_progress(done + reducing.steps),
        )
        lock, output_bytes = threading.Lock(), 0
        asked_for: list[dict[str, Any]] = []

        def whole(number: int, parts: list[PartWriter], check: Callable[[], None]) -> None:
            nonlocal output_bytes

            def look(moved: bool) -> None:
                check()
                if moved:
                    reducing.report_progress()

            if self._place.folder is None:
                lines = self._named(number, parts)
            else:
                lines, requests = self._put(number, parts, look)
                asked_for.extend(requests)
            with lock:
                output_bytes += self._list_whole(lines, round.blocks[number])
                if round.spans[number] > self._shares.portion_bytes:
                    self._forget_again()

        self._forget_again()
        try:
            with _of_user():
                reducing.write_each(round, numbers, whole)
        finally:
            self._forget_again()
            self._forget_unfinished()
        return without_samples(
            {
                "phases": reducing.phases,
                "repartitioned_bytes": reducing.divided_bytes,
                "output_bytes": output_bytes,
                "requests": sum_requests(asked_for),
                "sent": [],
                "received": [],
            }
        )

    def _named(self, number: int, parts: Sequence[PartWriter]) -> list[dict[str, Any]]:
        """Gives a partition's parts their names, durably; what the list says of them."""
        directory = self._directory(number)
        named = []
        for name, part in self._names(number, parts):
            part.path.rename(directory / name)
            named.append((directory / name, part.rows))
        if not named:
            path = directory / f"{UNFINISHED_PREFIX}{self._place.job}" / f"part-{number:05}"
            path.touch()
            named.append((path, 0))
        fsync_directory(named[0][0].parent)
        return [
            {"path": str(path), "records": rows, "bytes": path.stat().st_size}
            for path, rows in named
        ]

    def _put(
        self, number: int, parts: Sequence[PartWriter], look: Callable[[bool], None]
    ) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """Puts a partition's parts where all see them; what the list says, and requests."""
        lines, requests = [], []
        for name, part in self._names(number, parts):
            done = 0

            def on_progress(now: int) -> None:
                nonlocal done
                look(now != done)
                done = now

            requests_each = max(self._place.volumes.concurrency // self._shares.workers, 1)
            put = self._folder.upload(
                part.path, name, self._shares.upload_bytes, requests_each, on_progress
            )
            part.path.unlink()
            requests.append(put["requests"])
            lines.append({"path": self._url(name), "records": part.rows, "bytes": put["bytes"]})
        nothing = {"path": self._url(f"part-{number:05}"), "records": 0, "bytes": 0}
        return lines or [nothing], requests

    def _names(self, number: int, parts: Sequence[PartWriter]) -> Iterator[tuple[str, PartWriter]]:
        """What a partition's parts are called."""
        for place, part in enumerate(parts):
            more = f"-{place:05}" if len(parts) > 1 else ""
            yield f"part-{number:05}{more}{output_suffix(self._place.format)}", part

    def _list_whole(self, files: Sequence[Mapping[str, Any]], came: BlockStats) -> int:
        """Lists the files of a partition, all at once; tells their bytes."""
        shares = [came.checksum] + [0] * (len(files) - 1)
        self._add_lines(
            {**file, "checksum": f"{share:x}", "files": len(files), "taken": came.bytes}
            for file, share in zip(files, shares, strict=True)
        )
        written: int = sum(file["bytes"] for file in files)
        return written

    def _left(self, numbers: Sequence[int], partitions: Sequence[int]) -> ShuffleOutput:
        """What rounds have left here of these partitions."""
        left: list[dict[str, Any]] = []
        came: dict[int, BlockStats] = dict.fromkeys(partitions, BlockStats())
        spans = dict.fromkeys(partitions, 0)
        for devices, index in map(self._round, numbers):
            left.append({"scratch": [str(path) for path in devices], "index": str(index)})
            told = json.loads(index.with_suffix(CAME).read_bytes())
            for number in partitions:
                here = BlockStats(**told["came"][number])
                came[number] = came[number].plus(here)
                spans[number] += told["spans"][number]
        count = max(partitions, default=-1) + 1
        return ShuffleOutput(
            spilled=left,
            blocks=[came.get(number, BlockStats()) for number in range(count)],
            spans=[spans.get(number, 0) for number in range(count)],
            phases=[],
        )

    def _whole_rounds(self) -> Iterator[int]:
        for number in super()._whole_rounds():
            if self._round(number)[1].with_suffix(CAME).is_file():
                yield number

    def _refuse_input(self, file: FileId) -> None:
        self._refuse_inputs([file], lambda _: None)

    def _refuse_inputs(self, files: Sequence[FileId], on_progress: OnProgress) -> dict[str, Any]:
        sources = self._opened()

        def refuse(file: FileId) -> None:
            found = InputFile(file.path, file.bytes, file.etag)
            check_file(self._input_of(file.path), found, sources)

        sources.map_parallel(files, refuse, on_progress)
        return sources.requests

    def _split(self, split: Mapping[str, Any]) -> dict[str, Any]:
        return dict(split)  # What reads it is here.

    def _splits(
        self, spans: Sequence[Mapping[str, Any]], sources: Sources, look: OnProgress
    ) -> list[Split]:
        """What threads read of these spans of files."""

        def cut(span: Mapping[str, Any]) -> list[Split]:
            file = InputFile(span["path"], span["file_bytes"], span["etag"])
            given = self._input_of(file.name)
            begin, split_bytes = span["offset"], self._shares.split_bytes
            try:
                return splits_in(given, file, (begin, begin + span["bytes"]), split_bytes, sources)
            except OSError as why:
                raise InputUnreadable(f"input {file.name}: {why.strerror or why}") from why

        return [split for found in sources.map_parallel(spans, cut, look) for split in found]

    def _input_of(self, name: str) -> Input:
        return input_of(self._job[1], name)

    @cached_property
    def _job(self) -> tuple[Functions, list[Input]]:
        try:
            functions, inputs = pickle.loads(self._place.packed)
        except Exception as why:
            raise core.UsageError(
                f"the job cannot be loaded: {type(why).__name__}: {why}: install there what its "
                "functions import"
            ) from why
        own = zip(inputs, self._place.places, strict=True)
        return functions, [replace(each, path=path) for each, path in own]

    def _mapper(self, sources: Sources) -> Mapper:
        functions, _ = self._job
        return Mapper(functions.map, functions.keys, sources)

    def _opened(self) -> Sources:
        """What opens files and objects for a step."""
        return Sources(self._place.volumes, self._shares.workers)

    @property
    def _shares(self) -> MemoryBudget:
        place = self._place
        workers = place.workers or core.workers()
        return MemoryBudget(place.memory_bytes, workers, len(place.scratch))

    def _again(self, number: int) -> list[Path]:
        return [room / f"{AGAIN}{number}" for room in self._rooms]

    def _forget_again(self) -> None:
        for room in self._rooms:
            for path in room.glob(f"{AGAIN}*"):
                path.unlink()

    def _forget_unfinished(self) -> None:
        """Removes parts that nobody will put."""
        for room in self._rooms:
            for path in room.glob("part-*.unfinished"):
                path.unlink()

    def _directory(self, number: int) -> Path:
        """Where a partition's parts are written: those of a folder first to scratch."""
        places = [Path(each) for each in self._place.output] or self._rooms
        return places[number % len(places)]

    def _unfinished(self, place: tuple[int, ...]) -> Path:
        more = "".join(f"-{number:05}" for number in place[1:])
        return self._directory(place[0]) / f"part-{place[0]:05}{more}.unfinished"


@contextmanager
def _of_user() -> Iterator[None]:
    """What goes on within tells what would fail anywhere from what is this machine's."""
    try:
        yield
    except core.RunError as why:
        stage, cause = why.args[1], why.__cause__
        # The core reads, too; who reads input here says of what it failed.
        if stage in USERS or (stage == "read" and cause is not None and not is_system_error(cause)):
            raise DeterministicError(why.args[0]) from why
        if stage == "taken":  # What came back from a disk is not what was put there.
            raise OSError(errno.EIO, why.args[0]) from why
        raise


def to_ipc(rows: pa.RecordBatch) -> bytes:
    """Rows as an Arrow stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write_batch(rows)
    found: bytes = sink.getvalue().to_pybytes()
    return found


def rows_from_base64(text: str) -> pa.RecordBatch:
    """The rows of a stream that `text_of` made a string."""
    return next(blocks.batches(base64.b64decode(text)))


def schema_from_base64(text: str) -> pa.Schema:
    """The schema that `text_of` made a string."""
    return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(text)))


def to_base64(data: bytes) -> str:
    """Bytes as a string that JSON takes."""
    return base64.b64encode(data).decode()
