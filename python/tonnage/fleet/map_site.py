"""A machine's part in a MapReduce on a fleet: the user's functions between the core's passes.

Pass one maps splits, and gives blocks of the rows to the core, which sends them to the owners of
their partitions. Beside each round's index lies what came, counted block by block (``.came``):
pass two compares it with what it reads of a partition before any of it is decoded. It lists the
parts of a partition when all have their names. One of which reduce made nothing is listed with an
empty file in the directory that says that the output is unfinished.
"""

from __future__ import annotations

import base64
import errno
import itertools
import json
import pickle
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa

from tonnage import engine
from tonnage.artifacts import flush_names, write_atomically
from tonnage.engine.probes import brief
from tonnage.fleet.parts import UNFINISHED_PREFIX
from tonnage.fleet.share import Seen
from tonnage.fleet.site import (
    Deterministic,
    OnProgress,
    Place,
    Site,
    Unread,
)
from tonnage.run.map_reduce import blocks
from tonnage.run.map_reduce.crew import Crew
from tonnage.run.map_reduce.inputs import (
    Input,
    Split,
    format_of,
    input_of,
    refuse_broken,
    splits_of,
)
from tonnage.run.map_reduce.job import Functions, refuse_shares
from tonnage.run.map_reduce.mapping import Mapper, called
from tonnage.run.map_reduce.reducing import Reducing, bounds_of
from tonnage.run.map_reduce.shuffle import Came, Dealing, Round, Shares, Tally, gather
from tonnage.run.map_reduce.writing import SUFFIXES, Part

CAME = ".came"
AGAIN = "again-"
"""What is divided once more, while it is."""
USERS = ("map", "combine", "reduce")
"""Stages that are the user's."""


@dataclass(frozen=True, kw_only=True)
class MapReducePlace(Place):
    """A MapReduce as one of its machines has it."""

    packed: bytes
    """Its `Functions` and `Input`s, whose paths are `inputs` here."""
    format: str
    workers: int | None

    def site(self) -> MapReduceSite:
        """The machine's part."""
        return MapReduceSite(self)


class MapReduceSite(Site):
    """A machine's part in a MapReduce."""

    _place: MapReducePlace

    def prepare(self, _: None, on_progress: OnProgress) -> None:
        """Makes itself at home; see `Site.prepare`."""
        refuse_shares(self._shares)
        assert self._job
        super().prepare(None, on_progress)

    def sample(self, asked: Mapping[str, Any], on_progress: OnProgress) -> bytes:
        """Keys of the beginnings of some splits, as an Arrow stream each, end to end."""
        self._refuse_changed(asked["files"])
        splits = self._splits(asked["splits"])
        every = max(len(splits) // asked["chunks"], 1)
        mapper, crew = self._mapper, Crew(self._shares.workers)
        found: list[bytes] = []

        def work() -> None:
            for split in crew.share(iter(splits[every // 2 :: every])):
                if (sample := mapper.sampled(split)) is not None:
                    found.append(as_stream(sample))

        with _of_user():
            crew.run(work, lambda: on_progress(len(found)))
        return b"".join(found)

    def _gather(self, config: dict[str, Any], on_progress: OnProgress) -> dict[str, Any]:
        functions, _ = self._job
        splits, dealing = config.pop("splits"), config.pop("dealing")
        shares = replace(self._shares, links=config.pop("links"))
        firsts = dealing["firsts"]
        bounds = None if firsts is None else bounds_of(rows_of_text(firsts), functions.keys)
        tally, mapper, done = Tally(), self._mapper, 0

        def rows_of(split: Split) -> Iterator[pa.RecordBatch]:
            nonlocal done
            for rows in mapper.rows_of(split, tally):
                done += 1  # Whoever watches is to see that it moves.
                yield rows
            if split.format not in ("parquet", "arrow"):
                done += split.end - split.begin

        with _of_user():
            told = gather(
                Crew(self._shares.workers),
                iter(self._splits(splits)),
                rows_of,
                Dealing(functions.keys, dealing["partitions"], 0, bounds),
                shares,
                called("combine", functions.combine, functions.keys),
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
            "rows": tally.given,
            "came": left["came"],
            "schemas": [
                (text_of(schema.serialize().to_pybytes()), where)
                for schema, where in mapper.schemas.seen
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
        reducing = Reducing(
            key=functions.keys,
            schema=schema_of_text(asked["schema"]),
            ordered=functions.ordered,
            shares=self._shares,
            combine=called("combine", functions.combine, functions.keys),
            reduce=called("reduce", functions.reduce, ()),
            place=lambda: self._again(next(again)),
            path=self._unfinished,
            format=self._place.format,
            look=lambda done: on_progress(done + reducing.moved),
        )
        lock, output_bytes = threading.Lock(), 0

        def whole(number: int, parts: list[Part]) -> None:
            nonlocal output_bytes
            with lock:
                output_bytes += self._finish(number, parts, round.came[number])
                if round.spans[number] > self._shares.portion_bytes:
                    self._forget_again()

        self._forget_again()
        try:
            with _of_user():
                reducing.each(round, numbers, whole)
        finally:
            self._forget_again()
        return brief(
            {
                "phases": reducing.phases,
                "repartitioned_bytes": reducing.divided_bytes,
                "output_bytes": output_bytes,
                "sent": [],
                "received": [],
            }
        )

    def _finish(self, number: int, parts: Sequence[Part], came: Came) -> int:
        """Gives a partition's parts their names, durably, and lists them; tells their bytes."""
        directory = self._directory(number)
        suffix = SUFFIXES[self._place.format]
        named = []
        for place, part in enumerate(parts):
            more = f"-{place:05}" if len(parts) > 1 else ""
            path = directory / f"part-{number:05}{more}{suffix}"
            part.path.rename(path)
            named.append((path, part.rows))
        if not named:
            path = directory / f"{UNFINISHED_PREFIX}{self._place.job}" / f"part-{number:05}"
            path.touch()
            named.append((path, 0))
        flush_names(named[0][0].parent)
        shares = [came.checksum] + [0] * (len(named) - 1)
        lines: list[dict[str, Any]] = [
            {
                "path": str(path),
                "records": rows,
                "bytes": path.stat().st_size,
                "checksum": f"{share:x}",
                "files": len(named),
                "taken": came.bytes,
            }
            for (path, rows), share in zip(named, shares, strict=True)
        ]
        self._add_lines(lines)
        written: int = sum(line["bytes"] for line in lines)
        return written

    def _left(self, numbers: Sequence[int], partitions: Sequence[int]) -> Round:
        """What rounds have left here of these partitions."""
        left: list[dict[str, Any]] = []
        came: dict[int, Came] = dict.fromkeys(partitions, Came())
        spans = dict.fromkeys(partitions, 0)
        for devices, index in map(self._round, numbers):
            left.append({"scratch": [str(path) for path in devices], "index": str(index)})
            told = json.loads(index.with_suffix(CAME).read_bytes())
            for number in partitions:
                here = Came(**told["came"][number])
                came[number] = came[number].plus(here)
                spans[number] += told["spans"][number]
        count = max(partitions, default=-1) + 1
        return Round(
            left=left,
            came=[came.get(number, Came()) for number in range(count)],
            spans=[spans.get(number, 0) for number in range(count)],
            phases=[],
        )

    def _whole_rounds(self) -> Iterator[int]:
        for number in super()._whole_rounds():
            if self._round(number)[1].with_suffix(CAME).is_file():
                yield number

    def _refuse_input(self, file: Seen) -> None:
        given, path = self._input_of(file.path), Path(file.path)
        refuse_broken(path, format_of(given, path), file.bytes)

    def _splits(self, spans: Sequence[Mapping[str, Any]]) -> list[Split]:
        """What threads read of these spans of files."""
        found = []
        for span in spans:
            path, given = Path(span["path"]), self._input_of(span["path"])
            kind, ends = format_of(given, path), (span["offset"], span["offset"] + span["bytes"])
            try:
                size = path.stat().st_size
                found += splits_of(given, path, kind, ends, size, self._shares.split_bytes)
            except OSError as why:
                raise Unread(f"input {path}: {why.strerror or why}") from why
        return found

    def _input_of(self, path: str) -> Input:
        return input_of(self._job[1], Path(path))

    @cached_property
    def _job(self) -> tuple[Functions, list[Input]]:
        try:
            functions, inputs = pickle.loads(self._place.packed)
        except Exception as why:
            raise engine.Refused(
                f"the job cannot be loaded: {type(why).__name__}: {why}: install there what its "
                "functions import"
            ) from why
        own = zip(inputs, self._place.inputs, strict=True)
        return functions, [Input(path, each.map, each.format, each.schema) for each, path in own]

    @property
    def _mapper(self) -> Mapper:
        functions, _ = self._job
        return Mapper(functions.map, functions.keys)

    @property
    def _shares(self) -> Shares:
        place = self._place
        workers = place.workers or engine.workers()
        return Shares(place.memory_bytes, workers, len(place.scratch))

    def _again(self, number: int) -> list[Path]:
        return [room / f"{AGAIN}{number}" for room in self._rooms]

    def _forget_again(self) -> None:
        for room in self._rooms:
            for path in room.glob(f"{AGAIN}*"):
                path.unlink()

    def _directory(self, number: int) -> Path:
        return Path(self._place.output[number % len(self._place.output)])

    def _unfinished(self, place: tuple[int, ...]) -> Path:
        more = "".join(f"-{number:05}" for number in place[1:])
        return self._directory(place[0]) / f"part-{place[0]:05}{more}.unfinished"


@contextmanager
def _of_user() -> Iterator[None]:
    """What goes on within tells what would fail anywhere from what is this machine's."""
    try:
        yield
    except engine.Failed as why:
        stage, cause = why.args[1], why.__cause__
        # The core reads, too; who reads input here says of what it failed.
        if stage in USERS or (stage == "read" and cause is not None and not _of_disk(cause)):
            raise Deterministic(why.args[0]) from why
        if stage == "taken":  # What came back from a disk is not what was put there.
            raise OSError(errno.EIO, why.args[0]) from why
        raise


def _of_disk(why: BaseException) -> bool:
    """Whether the system says so; who decodes what is broken has no number for it."""
    return isinstance(why, OSError) and why.errno is not None


def as_stream(rows: pa.RecordBatch) -> bytes:
    """Rows as an Arrow stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write_batch(rows)
    found: bytes = sink.getvalue().to_pybytes()
    return found


def rows_of_text(text: str) -> pa.RecordBatch:
    """The rows of a stream that `text_of` made a string."""
    return next(blocks.batches(base64.b64decode(text)))


def schema_of_text(text: str) -> pa.Schema:
    """The schema that `text_of` made a string."""
    return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(text)))


def text_of(data: bytes) -> str:
    """Bytes as a string that JSON takes."""
    return base64.b64encode(data).decode()
