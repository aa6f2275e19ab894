"""One machine's part in a reduction: retrieval, and threads that reduce, round by round.

::

    supply ..> [ retrieve -chunks-> lend ] ..> local, local, ... -> merge

Each worker is a thread. It takes any chunk that has arrived and reduces it into an object of its
own. The supply decides the order of chunks while the round runs: a pool here (`local`), or a
cluster's driver. As many chunks are in flight as keep all requests and workers busy; more would
take memory and leave the processor's cache. At the end of a round all workers wait while their
objects are merged, in the order of workers.
"""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from tonnage.base import core
from tonnage.run.formats.format import Chunk, ChunkFormat, with_values
from tonnage.run.reduce.chunk_pool import SELECTIVE
from tonnage.run.reduce.reduction import Reduction
from tonnage.run.reduce.tuning import MAX_REQUESTS, Tuner
from tonnage.run.storage.hive import columns_by_file
from tonnage.run.storage.object_store import ObjectStoreOptions, is_url, usual_requests
from tonnage.run.storage.sources import InputFile, Sources, is_unchanged
from tonnage.run.thread_pool import WorkerThreads
from tonnage.run.user_errors import CHANGED, call_reduction, describe_chunk, user_code

ALIGNMENT = 4096
"""Of a chunk's memory, which has as much room before it."""
CHUNKS_WAITING = 2
"""Chunks for each worker in addition to those in flight: one that it reduces, and the next."""
PIECES = 8
"""Of each worker, in the memory for chunks: rows that it reduces, and what their decoding takes."""

NumberedChunk = tuple[int, Chunk]


@dataclass(frozen=True, kw_only=True)
class ReduceSettings:
    """The settings of a reduction on one machine.

    Attributes:
        chunk_bytes: The largest chunk.
        memory_bytes: For chunks, and for what the reduction reserves for its objects.
        assignment: ``selective`` or ``sequential``.
        object_store: How to reach object storage. Its number of requests is the number of
            retrieval threads; without one it is tuned while the round runs.
        measured: The number of requests that sufficed when the store was measured.
    """

    chunk_bytes: int
    range_bytes: int
    memory_bytes: int
    workers: int
    assignment: str = SELECTIVE
    object_store: ObjectStoreOptions = field(default_factory=ObjectStoreOptions)
    measured: int | None = None

    @property
    def max_ahead(self) -> int:
        return max(self.memory_bytes // self.buffer_bytes, 2)

    @property
    def buffer_bytes(self) -> int:
        """Memory of the largest chunk, as the core allocates it."""
        return (-(-self.chunk_bytes // ALIGNMENT) + 1) * ALIGNMENT


class ChunkSupply(Protocol):
    """Where a round's chunks come from; used by one thread at a time."""

    def next(self) -> NumberedChunk | None:
        """A chunk with a number; ``None`` if there is none now."""

    def note_retrieved(self, number: int) -> None:
        """Note that a chunk has arrived."""

    @property
    def is_over(self) -> bool:
        """Whether there will be no more."""


class ComputeFlag:
    """Whether any thread computes: a process that does moves no bytes, yet does not hang.

    A user's function, or packing an object, may take any time. What hangs is a process that does
    not answer, or a store that sends nothing while all wait for it.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._lock = clock, threading.Lock()
        self._count, self._last = 0, float("-inf")

    @contextmanager
    def computing(self) -> Iterator[None]:
        with self._lock:
            self._count += 1
        try:
            yield
        finally:
            with self._lock:
                self._count -= 1
                self._last = self._clock()

    @property
    def last_active(self) -> float:
        """When a thread last computed; now, if one does."""
        with self._lock:
            return self._clock() if self._count else self._last


@dataclass
class WorkerStats:
    """What a thread did, and how long it waited for chunks and for the other threads."""

    chunks: int = 0
    bytes: int = 0
    rows: int = 0
    retrieval_seconds: float = 0.0
    processing_seconds: float = 0.0
    synchronisation_seconds: float = 0.0


class LocalReducer:
    """What all rounds of a reduction on this machine share; chunks number the ``files``.

    Folders between the inputs' ``places`` and their files may be columns (`storage.hive`).
    """

    def __init__(
        self,
        reduction: Reduction[Any],
        files: Sequence[InputFile],
        format: ChunkFormat,
        settings: ReduceSettings,
        compute_flag: ComputeFlag | None = None,
        places: Sequence[str] = (),
    ) -> None:
        self.columns = columns_by_file(places, (file.name for file in files))
        self.compute_flag = compute_flag or ComputeFlag()
        self.reduction, self.files, self.format = reduction, files, format
        with user_code("allow", f"{settings.memory_bytes} bytes"):
            allowed = int(reduction.allow(settings.memory_bytes, settings.workers))
        _refuse_large_chunks(settings, allowed, format)
        self.settings = settings = replace(settings, memory_bytes=allowed)
        piece_bytes = allowed // (PIECES * settings.workers)
        self.sources = Sources(settings.object_store, settings.workers, piece_bytes)
        self.workers = [WorkerStats() for _ in range(settings.workers)]
        self.phases: list[dict[str, Any]] = []
        self.requests: list[dict[str, Any]] = []
        self._read: set[InputFile] = set()
        self.connections = core.ConnectionPool()
        self.tuner: Tuner | None = None
        if settings.object_store.requests is None:
            of_stores = any(is_url(file.name) for file in files)
            self.tuner = Tuner(
                settings.workers,
                settings.chunk_bytes,
                measured=settings.measured if of_stores else None,
                noun="requests" if of_stores else "reads",
                max_requests=max(MAX_REQUESTS, usual_requests(settings.workers)),
            )

    @property
    def done_bytes(self) -> int:
        """Bytes reduced so far, in all rounds."""
        return sum(worker.bytes for worker in self.workers)

    def note_read(self, file: InputFile) -> None:
        """Note that a file is read, to check it later; requests for objects check the etag."""
        if not is_url(file.name):
            self._read.add(file)

    def refuse_changed(self) -> None:
        """Check that files on disk are as they were found; `RunError` if one has changed."""
        for file in self._read:
            if not is_unchanged(file):
                raise core.RunError(
                    f"input {file.name} was changed while it was read", CHANGED, file.name
                )

    @property
    def tuned(self) -> tuple[int, str]:
        """The final number of concurrent requests, and why."""
        if self.tuner is None:
            return self.settings.object_store.concurrency, "as given"
        return self.tuner.concurrency, self.tuner.why

    @property
    def wanted_in_flight(self) -> int:
        """Chunks that keep all requests busy."""
        settings = self.settings
        requests = self.tuner.concurrency if self.tuner else settings.object_store.concurrency
        return min(-(-requests * settings.range_bytes // settings.chunk_bytes), settings.max_ahead)

    @property
    def wanted_ahead(self) -> int:
        """Chunks to have requested and not reduced yet."""
        waiting = CHUNKS_WAITING * self.settings.workers
        return min(self.wanted_in_flight + waiting, self.settings.max_ahead)

    @property
    def object_store(self) -> ObjectStoreOptions:
        """How to reach object storage, with as many requests as the tuner may try."""
        options = self.settings.object_store
        return options if self.tuner is None else replace(options, requests=self.tuner.max_requests)


class LocalRound:
    """One round.

    Args:
        on_reduced: Called by a worker's thread with the worker's number, the number of the chunk
            that it has reduced, and its object.
    """

    def __init__(
        self,
        reducer: LocalReducer,
        known: Any,
        supply: ChunkSupply,
        on_reduced: Callable[[int, int, Any], None] = lambda *_: None,
    ) -> None:
        self._reducer, self._known = reducer, known
        self._supply, self._on_reduced = supply, on_reduced
        self._retrieval = core.Retrieval(reducer.connections)
        self._threads = WorkerThreads(reducer.settings.workers, self._stop)
        self._in_flight: dict[int, Chunk] = {}
        self._viewed: list[core.Chunk] = []  # Reduced chunks that still had views.
        self._lock, self._is_closed = threading.Lock(), False
        self._objects: dict[int, tuple[Any, float]] = {}

    @property
    def received_bytes(self) -> int:
        return self._retrieval.received()

    def request_chunks(self) -> None:
        """Request as many chunks as are wanted; called by any thread when there may be more."""
        with self._lock:
            while len(self._in_flight) < self._reducer.wanted_ahead:
                if (numbered := self._supply.next()) is None:
                    break
                number, chunk = numbered
                self._in_flight[number] = chunk
                self._reducer.note_read(self._reducer.files[chunk.file])
                self._retrieval.ask(number, chunk.file, chunk.offset, chunk.bytes)
            if self._supply.is_over and not self._is_closed:
                self._is_closed = True
                self._retrieval.close()
            if self._is_closed and not self._in_flight:
                self._retrieval.leave()  # Returned chunks need not arrive.

    def return_chunks(self, count: int) -> list[int]:
        """Give up to ``count`` chunks back that have not arrived, the last requested first."""
        with self._lock:
            numbers = [*self._in_flight][::-1][:count]
            for number in numbers:
                del self._in_flight[number]
        self.request_chunks()
        return numbers

    def run(self, on_tick: Callable[[], None] = lambda: None) -> Any:
        """Reduce chunks until there are no more; gives the merged object of all workers.

        ``on_tick`` is called twenty times a second; its exceptions end the round. `RunError` if
        input could not be retrieved, or has changed.
        """
        reducer = self._reducer
        config = {
            "sources": [_source(file) for file in reducer.files],
            "chunk_bytes": reducer.settings.chunk_bytes,
            "range_bytes": reducer.settings.range_bytes,
            "memory_bytes": reducer.settings.memory_bytes,
            "volumes": reducer.object_store.to_json(),
        }
        if reducer.tuner is not None:
            reducer.tuner.begin(time.monotonic())
            self._retrieval.set_at_once(reducer.tuner.concurrency)
        places, lock = iter(range(len(reducer.workers))), threading.Lock()

        def work() -> None:
            with lock:
                place = next(places)
            self._objects[place] = self._reduce(place), time.monotonic()

        with core.BackgroundJob("retrieval", config, self._retrieval) as job:
            self.request_chunks()
            self._threads.run(work, lambda: self._on_tick(on_tick))
        if self._in_flight:
            raise core.RunError(
                f"internal error: retrieval ended with {len(self._in_flight)} chunks outstanding; "
                "run the command again, and report this",
                "retrieve",
            )
        reducer.refuse_changed()
        reducer.phases += job.outcome["phases"]
        reducer.requests.append(job.outcome["requests"])
        whole, *others = (self._objects[place][0] for place in sorted(self._objects))
        with (
            reducer.compute_flag.computing(),
            user_code("merge", "the objects of this node's workers"),
        ):
            for other in others:
                whole = call_reduction(reducer.reduction.merge, whole, other)
        now = time.monotonic()
        for place, (_, at) in self._objects.items():
            reducer.workers[place].synchronisation_seconds += now - at
        self._objects = {}  # A round that is still referenced must not keep them.
        return whole

    def _reduce(self, place: int) -> Any:
        reducer, worker = self._reducer, self._reducer.workers[place]
        reduction = reducer.reduction
        with reducer.compute_flag.computing(), user_code("begin", "a worker"):
            whole = reduction.begin(self._known)
        while True:
            began = time.monotonic()
            chunk = self._retrieval.take()
            taken = time.monotonic()
            self._threads.check()
            worker.retrieval_seconds += taken - began
            if chunk is None:
                return whole
            number = chunk.number
            with self._lock:
                of = self._in_flight.pop(number, None)
                if of is not None:
                    self._supply.note_retrieved(number)
            self.request_chunks()
            if of is None:  # It was returned to the supply.
                del chunk
                continue
            file = reducer.files[of.file]
            where = describe_chunk(file, of)
            with reducer.compute_flag.computing():
                pieces = reducer.format.pieces(chunk, file, of, reducer.sources)
                while True:
                    with user_code("rows", where):
                        rows = next(pieces, None)
                    if rows is None:
                        break
                    rows = with_values(rows, reducer.columns[of.file])
                    with user_code("local", where, rows):
                        whole = call_reduction(reduction.local, rows, whole)
                    worker.rows += len(rows)
                    del rows  # Frees its memory.
                del pieces
            worker.chunks += 1
            worker.bytes += len(chunk)
            worker.processing_seconds += time.monotonic() - taken
            if chunk.views:
                with self._lock:
                    self._viewed.append(chunk)
            del chunk
            with reducer.compute_flag.computing():
                self._on_reduced(place, number, whole)

    def _stop(self) -> None:
        self._retrieval.shut()
        self._reducer.sources.stop()

    def _refuse_views(self) -> None:
        """Fail if views hold all memory, since then no chunk would ever arrive again."""
        with self._lock:
            self._viewed = [chunk for chunk in self._viewed if chunk.views]
            if len(self._viewed) < self._reducer.settings.max_ahead:
                return
        raise core.RunError(
            f"local() keeps references to rows of {len(self._viewed)} chunks, which fill the "
            "memory; copy the rows that it needs to keep",
            "local",
        )

    def _on_tick(self, on_tick: Callable[[], None]) -> None:
        on_tick()
        self._refuse_views()
        reducer = self._reducer
        if tuner := reducer.tuner:
            waited = sum(worker.retrieval_seconds for worker in reducer.workers)
            with self._lock:
                in_flight = len(self._in_flight)
            requests = tuner.update(
                time.monotonic(),
                self.received_bytes,
                waited,
                self._retrieval.first_byte_seconds(),
                self._retrieval.throttled(),
                is_full=in_flight >= reducer.wanted_in_flight,
            )
            self._retrieval.set_at_once(requests)
            self.request_chunks()


def _refuse_large_chunks(settings: ReduceSettings, allowed: int, format: ChunkFormat) -> None:
    """Memory has to hold two chunks: one that arrives, and one that is reduced."""
    if allowed < (least := 2 * settings.buffer_bytes):
        most = -(-least * settings.memory_bytes // max(allowed, 1) // (1 << 20))
        raise core.UsageError(
            f"{settings.memory_bytes} bytes are not enough for two chunks of "
            f"{settings.chunk_bytes} bytes; use {most}MiB, or {format.SMALLER_CHUNKS}",
            setting="memory",
        )


def _source(file: InputFile) -> dict[str, Any]:
    """A file as the core takes it; requests for an object demand this etag."""
    return {"path": file.name, "etag": file.version if is_url(file.name) else None}
