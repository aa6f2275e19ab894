"""What one machine of a fleet has of a reduction, and what it does with it.

Of a round it has objects: of each step that it did in it the merged one of its workers. Until a
step has ended the driver gets, now and then, what each worker has so far: if the machine is lost,
only chunks that came later are reduced again elsewhere.
"""

from __future__ import annotations

import os
import pickle
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass
from typing import Any

from tonnage.base import core
from tonnage.cluster.ray_adapter import pickle_with_modules
from tonnage.run.reduce import index_store, tuning
from tonnage.run.reduce.index import from_bytes, to_bytes
from tonnage.run.reduce.local_round import (
    ComputeFlag,
    LocalReducer,
    LocalRound,
    NumberedChunk,
    ReduceSettings,
    WorkerStats,
)
from tonnage.run.reduce.reduction import Reduction
from tonnage.run.reduce.sampling import sample_rows
from tonnage.run.storage.object_store import (
    ObjectStoreOptions,
    is_url,
    is_url_as_path,
    sum_requests,
)
from tonnage.run.storage.sources import InputFile
from tonnage.run.two_pass.output.object_store import InputChanged
from tonnage.run.two_pass.splits import FileId, file_id, object_id
from tonnage.run.two_pass.worker import DeterministicError, is_system_error
from tonnage.run.user_errors import CHANGED, USER_STAGES, call_reduction, user_code

STEPS = ("index", "sample", "learn", "reduce", "merge")
CHECKPOINT_SHARE = 0.05
"""Of their time workers spend no more than this on sending what they have so far."""

OnProgress = core.OnProgress


@dataclass(frozen=True, kw_only=True)
class ReduceConfig:
    """A reduction as one of its machines has it."""

    node: str
    inputs: tuple[str, ...]
    """Its own; of object storage the driver says who looks."""
    format: str | None
    dtype: str | None
    chunk_bytes: int | None
    memory_bytes: int
    workers: int | None
    checkpoint_seconds: float
    """How often at most the driver gets what a worker has so far."""
    object_store: ObjectStoreOptions
    measured: int | None = None
    """Requests at once that were enough when the store was measured."""

    def site(self) -> ReduceWorker:
        """The machine's part."""
        return ReduceWorker(self)


class ReduceWorker:
    """A machine's part in a reduction."""

    STEPS = STEPS

    def __init__(self, place: ReduceConfig) -> None:
        self._place = place
        self.on_news: Callable[[], None] = lambda: None
        self._workers = place.workers or core.workers()
        self._reducer: LocalReducer | None = None
        self._round = -1
        self._objects: list[bytes] = []
        self._checkpoint_bytes = 0
        self._attempt, self._joined = -1, list[bytes]()
        self._merged: bytes | None = None
        """What it came to have in this attempt."""
        self.compute_flag = ComputeFlag()
        self._lock = threading.Lock()
        self.begin()

    def begin(self) -> None:
        """A step begins: nothing is given yet."""
        self._queue = _ChunkQueue(
            self._note, lambda: self._reducer.wanted_ahead if self._reducer else 0
        )
        self._running: LocalRound | None = None
        self._lines: list[Mapping[str, Any]] = []
        self._told = 0

    def finished(self, known: int) -> list[Mapping[str, Any]]:
        """What befell in the step, after so many lines: ``given``, ``came``, ``kept``."""
        with self._lock:
            del self._lines[: known - self._told]  # They are known: objects take memory.
            self._told = known
            return list(self._lines)

    def index(self, asked: Mapping[str, Any], on_progress: OnProgress) -> dict[str, Any]:
        """The chunks of what is here, and of object storage if it is asked for that.

        Args:
            asked: ``urls``, and how many ``nodes`` there are.
            on_progress: Called with how many files were looked at, and chunks found: a long text is
                one file.
        """
        place, nodes = self._place, asked["nodes"]
        here = [each for each in place.inputs if os.path.exists(each)]
        memory, workers = place.memory_bytes * nodes, self._workers * nodes
        index = None
        if inputs := [*here, *asked["urls"]]:
            # What is asked of a store comes to its end by itself, as the list of a large folder.
            with self.compute_flag.computing() if asked["urls"] else nullcontext():
                index = index_store.find_chunks(
                    inputs,
                    place.object_store,
                    place.chunk_bytes,
                    place.format,
                    place.dtype,
                    lambda total: tuning.chunk_bytes(total, memory, workers),
                    lambda files, chunks: on_progress(files + chunks),
                )
        return {
            "index": None if index is None else to_bytes(index),
            "files": [] if index is None else [_seen(file) for file in index.files],
            "absent": [each for each in place.inputs if each not in here],
            "workers": self._workers,
        }

    def sample(self, asked: Mapping[str, Any], on_progress: OnProgress) -> Any:
        """Some rows.

        Args:
            asked: The ``index``, and how many ``rows``.
            on_progress: Called with how many chunks gave some.
        """
        index = from_bytes(asked["index"], "the index")
        with _of_user():
            return sample_rows(index, self._place.object_store, asked["rows"], on_progress)

    def learn(self, asked: Mapping[str, Any], on_progress: OnProgress) -> None:
        """Takes what stays the same in all rounds.

        Args:
            asked: The ``reduction``, packed; the ``index``; ``chunk_bytes``, of the largest chunk;
                ``keep_bytes``, of an object that is sent before the end, at most.
            on_progress: Not called.
        """
        place = self._place
        with self.compute_flag.computing():
            reduction: Reduction[Any] = pickle.loads(asked["reduction"])
        index = from_bytes(asked["index"], "the index")
        settings = ReduceSettings(
            chunk_bytes=asked["chunk_bytes"],
            range_bytes=tuning.range_bytes(asked["chunk_bytes"]),
            memory_bytes=place.memory_bytes,
            workers=self._workers,
            object_store=place.object_store,
            measured=place.measured,
        )
        with _of_user():
            self._reducer = LocalReducer(
                reduction, index.files, index.format, settings, self.compute_flag
            )
        self._round, self._objects = -1, []
        self._checkpoint_bytes = asked["keep_bytes"]

    def reduce(self, asked: Mapping[str, Any], on_progress: OnProgress) -> dict[str, Any]:
        """Reduces the chunks that it is given while it does so (`more`).

        Args:
            asked: The number of the ``round``, what is ``known``, packed, the first ``chunks``, and
                whether they are the ``last``.
            on_progress: Called with bytes received.
        """
        assert self._reducer is not None
        machine = self._reducer
        if asked["round"] != self._round:
            self._round, self._objects = asked["round"], []
        self._begin_attempt(-1)
        machine.workers[:] = [WorkerStats() for _ in machine.workers]
        machine.phases, machine.requests = [], []
        done: list[int] = []
        keeping = _Checkpoints(
            self, self._place.checkpoint_seconds, self._checkpoint_bytes, done, self._lock
        )
        with _of_user():
            dealt = self._queue
            dealt.more(0, asked["chunks"], asked["last"])
            self._running = one = LocalRound(
                machine, pickle.loads(asked["known"]), dealt, keeping.reduced
            )
            whole = one.run(lambda: on_progress(one.received_bytes))
        with (
            self.compute_flag.computing(),
            _of_user(),
            user_code("local", "the object, to be sent"),
        ):
            self._objects.append(pickle_with_modules(whole, ()))
        at_once, why = machine.tuned
        return {
            "chunks": done,
            "workers": [asdict(worker) for worker in machine.workers],
            "requests": sum_requests(machine.requests),
            "phases": machine.phases,
            "threads": at_once,
            "why": why,
        }

    def more(self, start: int, chunks: Sequence[NumberedChunk], last: bool) -> None:
        """Takes chunks for the step that is under way; twice is as good as once.

        Args:
            start: How many were given before these.
            chunks: With their numbers.
            last: Whether no more are given.
        """
        if self._running is not None and self._queue.more(start, chunks, last):
            self._running.request_chunks()

    def give_back(self, chunks: int) -> None:
        """Gives back so many chunks, at most, that have not come to be reduced, the last first."""
        numbers = self._queue.give_back(chunks)
        if self._running is not None:
            numbers += self._running.return_chunks(chunks - len(numbers))
        self._note({"back": numbers})

    def join(self, attempt: int, other: bytes) -> None:
        """Takes another's object, to be merged in this attempt."""
        self._begin_attempt(attempt)
        self._joined.append(other)

    def merge(self, asked: Mapping[str, Any], on_progress: OnProgress) -> dict[str, Any]:
        """Merges its own objects, or what these came to, and those that it was given since.

        Args:
            asked: Which ``attempt`` it is; its first step is of its own objects.
            on_progress: Not called.
        """
        assert self._reducer is not None
        self._begin_attempt(asked["attempt"])
        own = self._objects if self._merged is None else [self._merged]
        packs, self._joined = [*own, *self._joined], []
        with self.compute_flag.computing():
            if len(packs) > 1:
                with _of_user(), user_code("merge", "the objects of several machines"):
                    whole, merge = pickle.loads(packs[0]), self._reducer.reduction.merge
                    for other in packs[1:]:
                        whole = call_reduction(merge, whole, pickle.loads(other))
                    packs = [pickle_with_modules(whole, ())]
        (self._merged,) = packs
        return {"bytes": len(self._merged)}

    def held(self, attempt: int) -> bytes:
        """What `merge` came to in this attempt."""
        assert attempt == self._attempt and self._merged is not None
        return self._merged

    def _begin_attempt(self, attempt: int) -> None:
        if attempt != self._attempt:
            self._attempt, self._joined, self._merged = attempt, [], None

    def _note(self, line: Mapping[str, Any]) -> None:
        with self._lock:
            self._lines.append(line)
        self.on_news()


class _ChunkQueue:
    """The chunks that the driver deals; those that got lost on the way are sent again."""

    def __init__(self, note: Callable[[Mapping[str, Any]], None], ahead: Callable[[], int]) -> None:
        self._note, self._ahead, self._lock = note, ahead, threading.Lock()
        self._chunks: deque[NumberedChunk] = deque()
        self._count, self._is_last = 0, False

    def more(self, start: int, chunks: Sequence[NumberedChunk], last: bool) -> bool:
        """Takes those that are new; tells whether something is."""
        with self._lock:
            if start > self._count or self._is_last:
                return False  # What came before is not there yet.
            new = chunks[self._count - start :]
            self._chunks += new
            self._count += len(new)
            self._is_last = last
            self._note({"given": self._count, "last": last})
            return True

    def next(self) -> NumberedChunk | None:
        with self._lock:
            return self._chunks.popleft() if self._chunks else None

    def give_back(self, chunks: int) -> list[int]:
        """Forgets so many that are there, at most; gives their numbers."""
        with self._lock:
            count = min(chunks, len(self._chunks))
            return [self._chunks.pop()[0] for _ in range(count)]

    def retrieved(self, number: int) -> None:
        self._note({"came": number, "ahead": self._ahead()})

    @property
    def is_over(self) -> bool:
        with self._lock:
            return self._is_last and not self._chunks


class _Checkpoints:
    """Sends what workers have so far, each at a time of its own: nobody waits for another."""

    def __init__(
        self,
        site: ReduceWorker,
        seconds: float,
        most_bytes: int,
        done: list[int],
        lock: threading.Lock,
    ) -> None:
        self._site, self._seconds, self._most_bytes = site, seconds, most_bytes
        self._done, self._lock = done, lock
        self._since: dict[int, list[int]] = {}
        self._due: dict[int, float] = {}

    def reduced(self, place: int, number: int, whole: Any) -> None:
        """A worker has reduced a chunk."""
        began = time.monotonic()
        with self._lock:
            self._done.append(number)
        since = self._since.setdefault(place, [])
        since.append(number)
        if began < self._due.setdefault(place, began + self._seconds):
            return
        with user_code("local", "the object, to be sent"):
            content = pickle_with_modules(whole, ())
        if len(content) <= self._most_bytes:
            self._site._note({"worker": place, "kept": content, "chunks": tuple(since)})
            since.clear()
        now = time.monotonic()
        self._due[place] = now + max(self._seconds, (now - began) / CHECKPOINT_SHARE)


@contextmanager
def _of_user() -> Iterator[None]:
    """Tells what would fail anywhere, and a changed object, from what is this machine's."""
    try:
        yield
    except core.RunError as why:
        if why.args[1] == "rows" and is_system_error(why.__cause__):
            raise
        if why.args[1] in USER_STAGES:
            raise DeterministicError(why.args[0]) from why
        # The core names files by paths, a url as if it were one, and of objects only those.
        if why.args[1] == CHANGED or is_url_as_path(why.args[2]):
            raise InputChanged(why.args[0]) from why
        raise


def _seen(file: InputFile) -> FileId:
    """A file as it was found.

    Raises:
        UsageError: It is another by now.
    """
    if is_url(file.name):
        return object_id(file.name, file.bytes, file.version)
    found = file_id(file.name)
    if (str(found.mtime_ns), found.bytes) != (file.version, file.bytes):
        raise core.UsageError(f"input {file.name} was changed while it was looked at: run it again")
    return found
