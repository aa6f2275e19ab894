"""A node's part in a reduction.

In a round a node has an object of each step: the merged one of its worker threads. During a step
threads send checkpoints of their objects to the driver: if the node is lost, only the chunks since
the last checkpoints are reduced again elsewhere.
"""

from __future__ import annotations

import os
import pickle
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass
from typing import Any

from tonnage.base import core
from tonnage.base.core.stage_stats import phase_record
from tonnage.cluster.failure_kinds import DeterministicError, InputChanged
from tonnage.cluster.ray_adapter import pickle_with_modules
from tonnage.cluster.step_worker import Handler, WorkerSteps
from tonnage.run.reduce import index_store, tuning
from tonnage.run.reduce.cluster import messages
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
from tonnage.run.two_pass.splits import FileId, file_id, object_id
from tonnage.run.two_pass.worker import is_system_error
from tonnage.run.user_errors import CHANGED, USER_STAGES, call_reduction, user_code

CHECKPOINT_SHARE = 0.05
"""The maximal share of their time that threads spend on checkpoints."""

OnProgress = core.OnProgress


@dataclass(frozen=True, kw_only=True)
class ReduceConfig:
    """The configuration of one node.

    Attributes:
        inputs: The node's own; the driver decides which node looks at object storage.
        checkpoint_seconds: The minimal time between checkpoints of a thread.
        measured: The number of requests that sufficed when the store was measured.
    """

    node: str
    inputs: tuple[str, ...]
    urls: tuple[str, ...] = ()
    format: str | None
    dtype: str | None
    chunk_bytes: int | None
    memory_bytes: int
    workers: int | None
    checkpoint_seconds: float
    object_store: ObjectStoreOptions
    measured: int | None = None

    @property
    def places(self) -> tuple[str, ...]:
        return (*self.inputs, *self.urls)

    def steps(self) -> ReduceWorker:
        return ReduceWorker(self)


class ReduceWorker(WorkerSteps):
    def __init__(self, place: ReduceConfig) -> None:
        self._place = place
        self._workers = place.workers or core.workers()
        self._reducer: LocalReducer | None = None
        self._round = -1
        self._objects: list[bytes] = []
        self._checkpoint_bytes = 0
        self._attempt, self._joined = -1, list[bytes]()
        self._merged: bytes | None = None
        self.compute_flag = ComputeFlag()
        self._lock = threading.Lock()
        self.begin_step()

    def handlers(self) -> Sequence[Handler[Any, Any]]:
        return (
            Handler(messages.INDEX, self.index),
            Handler(messages.SAMPLE, self.sample),
            Handler(messages.LEARN, self.learn),
            Handler(messages.REDUCE, self.reduce),
            Handler(messages.MERGE, self.merge),
        )

    @property
    def last_progress(self) -> float:
        """When a thread last computed, which progress in bytes does not show."""
        return self.compute_flag.last_active

    def begin_step(self) -> None:
        self._queue = _ChunkQueue(
            self._note, lambda: self._reducer.wanted_ahead if self._reducer else 0
        )
        self._running: LocalRound | None = None
        self._news: list[messages.News] = []
        self._known = 0

    def news(self, known: int) -> list[messages.News]:
        with self._lock:
            # The driver has them, and checkpoints take memory.
            del self._news[: known - self._known]
            self._known = known
            return list(self._news)

    def notify(self, notice: messages.Notice) -> None:
        if isinstance(notice, messages.MoreChunks):
            start, chunks, last = notice.start, notice.chunks, notice.last
            if self._running is not None and self._queue.add(start, chunks, last):
                self._running.request_chunks()
            return
        numbers = self._queue.give_back(notice.count)
        if self._running is not None:
            numbers += self._running.return_chunks(notice.count - len(numbers))
        self._note(messages.ChunksReturned(numbers))

    def index(self, request: messages.FindChunks, on_progress: OnProgress) -> messages.ChunksFound:
        """Find the chunks of the node's files, and of the urls in the request.

        Progress is the number of files and chunks, since a long text is one file.
        """
        place, nodes = self._place, request.nodes
        here = [each for each in place.inputs if os.path.exists(each)]
        memory, workers = place.memory_bytes * nodes, self._workers * nodes
        index = None
        if inputs := [*here, *request.urls]:
            # Requests to a store end by themselves, and listing a large folder shows no progress.
            with self.compute_flag.computing() if request.urls else nullcontext():
                index = index_store.find_chunks(
                    inputs,
                    place.object_store,
                    place.chunk_bytes,
                    place.format,
                    place.dtype,
                    lambda total: tuning.chunk_bytes(total, memory, workers),
                    lambda files, chunks: on_progress(files + chunks),
                )
        return messages.ChunksFound(
            index=None if index is None else to_bytes(index),
            files=[] if index is None else [_identify(file) for file in index.files],
            absent=[each for each in place.inputs if each not in here],
            workers=self._workers,
        )

    def sample(self, request: messages.SampleRows, on_progress: OnProgress) -> messages.RowsSampled:
        """Sample rows; progress is the number of sampled chunks."""
        index = from_bytes(request.index, "the index")
        with _classified_errors():
            rows = sample_rows(
                index, self._place.object_store, request.rows, self._place.places, on_progress
            )
        return messages.RowsSampled(pickle.dumps(rows))

    def learn(self, request: messages.Learn, on_progress: OnProgress) -> None:
        place = self._place
        with self.compute_flag.computing():
            reduction: Reduction[Any] = pickle.loads(request.reduction)
        index = from_bytes(request.index, "the index")
        settings = ReduceSettings(
            chunk_bytes=request.chunk_bytes,
            range_bytes=tuning.range_bytes(request.chunk_bytes),
            memory_bytes=place.memory_bytes,
            workers=self._workers,
            object_store=place.object_store,
            measured=place.measured,
        )
        with _classified_errors():
            self._reducer = LocalReducer(
                reduction, index.files, index.format, settings, self.compute_flag, place.places
            )
        self._round, self._objects = -1, []
        self._checkpoint_bytes = request.checkpoint_bytes

    def reduce(self, request: messages.Reduce, on_progress: OnProgress) -> messages.ReduceResult:
        assert self._reducer is not None
        machine = self._reducer
        if request.round != self._round:
            self._round, self._objects = request.round, []
        self._begin_attempt(-1)
        machine.workers[:] = [WorkerStats() for _ in machine.workers]
        machine.phases, machine.requests = [], []
        done: list[int] = []
        checkpoints = _Checkpoints(
            self, self._place.checkpoint_seconds, self._checkpoint_bytes, done, self._lock
        )
        with _classified_errors():
            queue = self._queue
            queue.add(0, request.chunks, request.last)
            self._running = one = LocalRound(
                machine, pickle.loads(request.known), queue, checkpoints.note_reduced
            )
            whole = one.run(lambda: on_progress(one.received_bytes))
        with (
            self.compute_flag.computing(),
            _classified_errors(),
            user_code("local", "the object, to be sent"),
        ):
            self._objects.append(pickle_with_modules(whole, ()))
        at_once, why = machine.tuned
        return messages.ReduceResult(
            chunks=done,
            workers=[messages.ThreadReport(**asdict(worker)) for worker in machine.workers],
            requests=sum_requests(machine.requests),
            phases=[phase_record(phase) for phase in machine.phases],
            threads=at_once,
            why=why,
        )

    def store_object(self, attempt: int, content: bytes) -> None:
        self._begin_attempt(attempt)
        self._joined.append(content)

    def merge(self, request: messages.Merge, on_progress: OnProgress) -> messages.Merged:
        """Merge the node's objects, or their merged object, with those received since.

        The first step of an attempt merges the node's own.
        """
        assert self._reducer is not None
        self._begin_attempt(request.attempt)
        own = self._objects if self._merged is None else [self._merged]
        packs, self._joined = [*own, *self._joined], []
        with self.compute_flag.computing():
            if len(packs) > 1:
                with _classified_errors(), user_code("merge", "the objects of several nodes"):
                    whole, merge = pickle.loads(packs[0]), self._reducer.reduction.merge
                    for other in packs[1:]:
                        whole = call_reduction(merge, whole, pickle.loads(other))
                    packs = [pickle_with_modules(whole, ())]
        (self._merged,) = packs
        return messages.Merged(len(self._merged))

    def fetch_object(self, attempt: int) -> bytes:
        assert attempt == self._attempt and self._merged is not None
        return self._merged

    def _begin_attempt(self, attempt: int) -> None:
        if attempt != self._attempt:
            self._attempt, self._joined, self._merged = attempt, [], None

    def _note(self, news: messages.News) -> None:
        with self._lock:
            self._news.append(news)
        self.context.note_news()


class _ChunkQueue:
    """The chunks that the driver has assigned; it repeats messages that were lost."""

    def __init__(self, note: Callable[[messages.News], None], ahead: Callable[[], int]) -> None:
        self._note, self._ahead, self._lock = note, ahead, threading.Lock()
        self._chunks: deque[NumberedChunk] = deque()
        self._count, self._is_last = 0, False

    def add(self, start: int, chunks: Sequence[NumberedChunk], last: bool) -> bool:
        with self._lock:
            if start > self._count or self._is_last:
                return False  # Earlier chunks have not arrived yet.
            new = chunks[self._count - start :]
            self._chunks += new
            self._count += len(new)
            self._is_last = last
            self._note(messages.ChunksArrived(self._count, last))
            return True

    def next(self) -> NumberedChunk | None:
        with self._lock:
            return self._chunks.popleft() if self._chunks else None

    def give_back(self, chunks: int) -> list[int]:
        with self._lock:
            count = min(chunks, len(self._chunks))
            return [self._chunks.pop()[0] for _ in range(count)]

    def note_retrieved(self, number: int) -> None:
        self._note(messages.ChunkRetrieved(number, self._ahead()))

    @property
    def is_over(self) -> bool:
        with self._lock:
            return self._is_last and not self._chunks


class _Checkpoints:
    """Sends threads' objects to the driver, each at times of its own, so that no thread waits."""

    def __init__(
        self,
        site: ReduceWorker,
        seconds: float,
        max_bytes: int,
        done: list[int],
        lock: threading.Lock,
    ) -> None:
        self._site, self._seconds, self._max_bytes = site, seconds, max_bytes
        self._done, self._lock = done, lock
        self._since: dict[int, list[int]] = {}
        self._due: dict[int, float] = {}

    def note_reduced(self, place: int, number: int, whole: Any) -> None:
        """Note that a thread has reduced a chunk, and send its object if it is due."""
        began = time.monotonic()
        with self._lock:
            self._done.append(number)
        since = self._since.setdefault(place, [])
        since.append(number)
        if began < self._due.setdefault(place, began + self._seconds):
            return
        with user_code("local", "the object, to be sent"):
            content = pickle_with_modules(whole, ())
        if len(content) <= self._max_bytes:
            self._site._note(messages.Checkpoint(place, content, list(since)))
            since.clear()
        now = time.monotonic()
        self._due[place] = now + max(self._seconds, (now - began) / CHECKPOINT_SHARE)


@contextmanager
def _classified_errors() -> Iterator[None]:
    """Distinguish errors that any node would have, and changed input, from those of the node."""
    try:
        yield
    except core.RunError as why:
        if why.args[1] == "rows" and is_system_error(why.__cause__):
            raise
        if why.args[1] in USER_STAGES:
            raise DeterministicError(why.args[0]) from why
        # The core names objects by paths made of urls, and only those that have changed.
        if why.args[1] == CHANGED or is_url_as_path(why.args[2]):
            raise InputChanged(why.args[0]) from why
        raise


def _identify(file: InputFile) -> FileId:
    """The identity of a file that was found; `UsageError` if it has changed since."""
    if is_url(file.name):
        return object_id(file.name, file.bytes, file.version)
    found = file_id(file.name)
    if (str(found.mtime_ns), found.bytes) != (file.version, file.bytes):
        raise core.UsageError(f"input {file.name} was changed while it was indexed; try again")
    return found
