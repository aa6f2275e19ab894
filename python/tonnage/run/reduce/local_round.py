"""A machine's part in a reduction: retrieval beside threads that reduce, round by round.

::

    given ..> [ retrieve -chunks-> hand ] ..> local, local, ... -> merge

Each worker, a thread, takes the next chunk that has come, whichever it is, and reduces it into an
object of its own. Which chunk is next others say, while it runs: a pool here (`job`), or the driver
of a fleet. So many are under way as keep all requests busy, and each worker: what waits longer
takes memory, and is gone from the processor's cache when it is reduced. At the end of a round
objects are merged in the order of workers, and all wait for that.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from tonnage.base import core
from tonnage.run.formats import ChunkFormat
from tonnage.run.formats.format import Chunk
from tonnage.run.reduce.chunk_pool import SELECTIVE
from tonnage.run.reduce.compute_flag import ComputeFlag
from tonnage.run.reduce.reduction import Reduction
from tonnage.run.reduce.tuning import Tuner
from tonnage.run.storage.object_store import ObjectStoreOptions, is_url
from tonnage.run.storage.sources import InputFile, Sources, is_unchanged
from tonnage.run.thread_pool import WorkerThreads
from tonnage.run.user_errors import CHANGED, call_reduction, describe_chunk, user_code

ALIGNMENT = 4096
"""Of a chunk's memory; it has so much room before it, too."""


@dataclass(frozen=True, kw_only=True)
class ReduceSettings:
    """How a reduction is done on a machine.

    Attributes:
        chunk_bytes: The largest chunk.
        range_bytes: What one request asks for.
        memory_bytes: For chunks, and for what the reduction says that its objects take of it.
        workers: Threads that reduce.
        assignment: ``selective`` or ``sequential``.
        volumes: How stores are reached; its requests at once are the threads of retrieval, and
            are found while it runs if it does not say.
        measured: Requests at once that were enough when the store was measured.
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
        """Chunks that memory holds."""
        return max(self.memory_bytes // self.buffer_bytes, 2)

    @property
    def buffer_bytes(self) -> int:
        """What the largest chunk takes, as the core has it."""
        return (-(-self.chunk_bytes // ALIGNMENT) + 1) * ALIGNMENT


NumberedChunk = tuple[int, Chunk]


class ChunkSupply(Protocol):
    """Where a round's chunks come from; one thread at a time uses it."""

    def next(self) -> NumberedChunk | None:
        """A chunk, with a number of its own; ``None`` if there is none now."""

    def came(self, number: int) -> None:
        """A chunk was retrieved."""

    @property
    def is_over(self) -> bool:
        """Whether there will be no more."""


WAITING = 2
"""Chunks for each worker, beside those that are fetched: one that it reduces, and the next."""


@dataclass
class WorkerStats:
    """What a thread did."""

    chunks: int = 0
    bytes: int = 0
    rows: int = 0
    retrieval_seconds: float = 0.0
    """It waited for a chunk."""
    processing_seconds: float = 0.0
    synchronisation_seconds: float = 0.0
    """It waited for the others, and objects were merged."""


class LocalReducer:
    """What this machine does in all rounds.

    Args:
        reduction: What to do.
        files: What chunks are of, by their places.
        format: What files are.
        settings: How.
        working: Who computes.
    """

    def __init__(
        self,
        reduction: Reduction[Any],
        files: Sequence[InputFile],
        format: ChunkFormat,
        settings: ReduceSettings,
        working: ComputeFlag | None = None,
    ) -> None:
        self.working = working or ComputeFlag()
        self.reduction, self.files, self.format = reduction, files, format
        with user_code("allow", f"{settings.memory_bytes} bytes"):
            allowed = int(reduction.allow(settings.memory_bytes, settings.workers))
        _refuse_long(settings, allowed, format)
        self.settings = settings = replace(settings, memory_bytes=allowed)
        self.sources = Sources(settings.object_store, settings.workers)
        self.workers = [WorkerStats() for _ in range(settings.workers)]
        self.phases: list[dict[str, Any]] = []
        self.requests: list[dict[str, Any]] = []
        self._read: set[InputFile] = set()
        self.clients = core.ConnectionPool()
        self.tuner: Tuner | None = None
        if settings.object_store.requests is None:
            of_stores = any(is_url(file.name) for file in files)
            self.tuner = Tuner(
                settings.workers,
                settings.chunk_bytes,
                measured=settings.measured if of_stores else None,
                noun="requests" if of_stores else "reads",
            )

    @property
    def done_bytes(self) -> int:
        """Bytes reduced so far, of all rounds."""
        return sum(worker.bytes for worker in self.workers)

    def reads(self, file: InputFile) -> None:
        """Notes that a file is read; of an object each request looks whether it was changed."""
        if not is_url(file.name):
            self._read.add(file)

    def refuse_changed(self) -> None:
        """Whether files are what they were when they were found.

        Raises:
            RunError: One is not.
        """
        for file in self._read:
            if not is_unchanged(file):
                said = f"input {file.name} was changed while it was read"
                raise core.RunError(said, CHANGED, file.name, None)

    @property
    def tuned(self) -> tuple[int, str]:
        """How many requests at once there were in the end, and why."""
        if self.tuner is None:
            return self.settings.object_store.concurrency, "as given"
        return self.tuner.concurrency, self.tuner.why

    @property
    def fetched(self) -> int:
        """Chunks that keep all requests busy."""
        settings = self.settings
        at_once = settings.object_store.concurrency if self.tuner is None else self.tuner.concurrency
        return min(-(-at_once * settings.range_bytes // settings.chunk_bytes), settings.max_ahead)

    @property
    def ahead(self) -> int:
        """Chunks that are asked for and not reduced yet."""
        waiting = WAITING * self.settings.workers
        return min(self.fetched + waiting, self.settings.max_ahead)

    @property
    def object_store(self) -> ObjectStoreOptions:
        """With as many requests at once as there may come to be."""
        volumes = self.settings.object_store
        return volumes if self.tuner is None else replace(volumes, requests=self.tuner.max_requests)


class LocalRound:
    """A round.

    Args:
        machine: Whose.
        known: What the round before has finished with.
        supply: The chunks.
        reduced: Called with a worker's place, the number of the chunk that it has reduced, and its
            object, by its thread.
    """

    def __init__(
        self,
        machine: LocalReducer,
        known: Any,
        supply: ChunkSupply,
        reduced: Callable[[int, int, Any], None] = lambda *_: None,
    ) -> None:
        self._machine, self._known = machine, known
        self._supply, self._reduced = supply, reduced
        self._retrieval = core.Retrieval(machine.clients)
        self._crew = WorkerThreads(machine.settings.workers, self._stop)
        self._under_way: dict[int, Chunk] = {}
        self._seen: list[core.Chunk] = []  # Reduced chunks, of which there still were views.
        self._lock, self._is_closed = threading.Lock(), False
        self._wholes: dict[int, tuple[Any, float]] = {}

    @property
    def received_bytes(self) -> int:
        """Bytes that have come, of chunks that are not whole yet as well."""
        return self._retrieval.received()

    def ask(self) -> None:
        """Asks for as many chunks as are to be under way; in any thread, when there may be more."""
        with self._lock:
            while len(self._under_way) < self._machine.ahead:
                if (found := self._supply.next()) is None:
                    break
                number, chunk = found
                self._under_way[number] = chunk
                self._machine.reads(self._machine.files[chunk.file])
                self._retrieval.ask(number, chunk.file, chunk.offset, chunk.bytes)
            if self._supply.is_over and not self._is_closed:
                self._is_closed = True
                self._retrieval.close()
            if self._is_closed and not self._under_way:
                self._retrieval.leave()  # What was given back need not come.

    def give_back(self, count: int) -> list[int]:
        """Leaves so many chunks, at most, that have not come to others: those asked for last."""
        with self._lock:
            numbers = [*self._under_way][::-1][:count]
            for number in numbers:
                del self._under_way[number]
        self.ask()
        return numbers

    def run(self, look: Callable[[], None] = lambda: None) -> Any:
        """Reduces chunks until there are no more; gives the objects of all workers, merged.

        Args:
            look: Called twenty times a second; what it raises ends the round.

        Raises:
            RunError: What cannot be retrieved, or an object that was changed.
        """
        machine = self._machine
        config = {
            "sources": [_source(file) for file in machine.files],
            "chunk_bytes": machine.settings.chunk_bytes,
            "range_bytes": machine.settings.range_bytes,
            "memory_bytes": machine.settings.memory_bytes,
            "volumes": machine.object_store.to_json(),
        }
        if machine.tuner is not None:
            machine.tuner.begin(time.monotonic())
            self._retrieval.set_at_once(machine.tuner.concurrency)
        places, lock = iter(range(len(machine.workers))), threading.Lock()

        def work() -> None:
            with lock:
                place = next(places)
            self._wholes[place] = self._reduce(place), time.monotonic()

        with core.BackgroundJob("retrieval", config, self._retrieval) as job:
            self.ask()
            self._crew.run(work, lambda: self._look(look))
        if self._under_way:
            raise core.RunError(
                "retrieval ended before all chunks had come", "retrieve", None, None
            )
        machine.refuse_changed()
        machine.phases += job.outcome["phases"]
        machine.requests.append(job.outcome["requests"])
        whole, *others = (self._wholes[place][0] for place in sorted(self._wholes))
        with machine.working.computing(), user_code("merge", "the objects of this machine's workers"):
            for other in others:
                whole = call_reduction(machine.reduction.merge, whole, other)
        now = time.monotonic()
        for place, (_, at) in self._wholes.items():
            machine.workers[place].synchronisation_seconds += now - at
        self._wholes = {}  # Whoever still has the round does not keep them.
        return whole

    def _reduce(self, place: int) -> Any:
        """What one thread makes of the chunks that it gets."""
        machine, worker = self._machine, self._machine.workers[place]
        reduction = machine.reduction
        with machine.working.computing(), user_code("begin", "a worker"):
            whole = reduction.begin(self._known)
        while True:
            began = time.monotonic()
            chunk = self._retrieval.take()
            taken = time.monotonic()
            self._crew.check()
            worker.retrieval_seconds += taken - began
            if chunk is None:
                return whole
            number = chunk.number
            with self._lock:
                of = self._under_way.pop(number, None)
                if of is not None:
                    self._supply.came(number)
            self.ask()
            if of is None:  # It was given back.
                del chunk
                continue
            file = machine.files[of.file]
            where = describe_chunk(file, of)
            with machine.working.computing():
                with user_code("rows", where):
                    rows = machine.format.decode(chunk, file, of, machine.sources)
                with user_code("local", where, rows):
                    whole = call_reduction(reduction.local, rows, whole)
            worker.chunks += 1
            worker.bytes += len(chunk)
            worker.rows += len(rows)
            worker.processing_seconds += time.monotonic() - taken
            del rows  # Its memory is wanted.
            if chunk.views:
                with self._lock:
                    self._seen.append(chunk)
            del chunk
            with machine.working.computing():
                self._reduced(place, number, whole)

    def _stop(self) -> None:
        """Has all come to an end who wait for a chunk, or for an object."""
        self._retrieval.shut()
        self._machine.sources.stop()

    def _refuse_kept(self) -> None:
        """With views of as many chunks as there is memory for nothing would ever come any more."""
        with self._lock:
            self._seen = [chunk for chunk in self._seen if chunk.views]
            if len(self._seen) < self._machine.settings.max_ahead:
                return
        raise core.RunError(
            f"local has kept rows of {len(self._seen)} chunks, which is all that memory holds: "
            "have it copy what it keeps of rows",
            "local",
            None,
            None,
        )

    def _look(self, look: Callable[[], None]) -> None:
        look()
        self._refuse_kept()
        machine = self._machine
        if tuner := machine.tuner:
            waited = sum(worker.retrieval_seconds for worker in machine.workers)
            with self._lock:
                under_way = len(self._under_way)
            at_once = tuner.update(
                time.monotonic(),
                self.received_bytes,
                waited,
                self._retrieval.first_byte_seconds(),
                self._retrieval.throttled(),
                is_full=under_way >= machine.fetched,
            )
            self._retrieval.set_at_once(at_once)
            self.ask()


def _refuse_long(settings: ReduceSettings, allowed: int, format: ChunkFormat) -> None:
    """Two chunks have to be there at once: one that comes, and one that is reduced.

    Raises:
        UsageError: Memory holds one at most.
    """
    if allowed < (least := 2 * settings.buffer_bytes):
        most = -(-least * settings.memory_bytes // max(allowed, 1) // (1 << 20))
        raise core.UsageError(
            f"--memory of {settings.memory_bytes} bytes holds no two chunks of "
            f"{settings.chunk_bytes} bytes: give --memory {most}MiB, or {format.SMALLER_CHUNKS}"
        )


def _source(file: InputFile) -> dict[str, Any]:
    """A file as the core takes it, which looks whether an object is what was found."""
    return {"path": file.name, "etag": file.version if is_url(file.name) else None}
