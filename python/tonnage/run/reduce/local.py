"""A reduction on this machine: rounds over all chunks until the reduction says it is done."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tonnage.base import core
from tonnage.base.clock import utc_now
from tonnage.base.core import stage_stats
from tonnage.base.core.process_usage import cpu_seconds, peak_memory_bytes
from tonnage.base.records import ReductionRecord, Tuning, WorkerRun
from tonnage.measure.trial import environment
from tonnage.run.reduce import index_store, tuning
from tonnage.run.reduce.chunk_pool import ChunkPool
from tonnage.run.reduce.index import Index
from tonnage.run.reduce.local_round import LocalReducer, LocalRound, NumberedChunk, ReduceSettings
from tonnage.run.reduce.reduction import Reduction
from tonnage.run.reduce.result_json import summary
from tonnage.run.reduce.sampling import FromSample, sample_rows
from tonnage.run.reduce.spec import ReduceSpec
from tonnage.run.storage.object_store import sum_requests
from tonnage.run.user_errors import user_code

OnRound = Callable[[int, int, int], None]
"""Called with the number of a round, from 1 on, its bytes reduced so far, and its total."""


@dataclass(frozen=True)
class LocalResult:
    result: Any
    rounds: int
    seconds: float


class LocalReduction:
    def __init__(
        self,
        reduction: Reduction[Any],
        index: Index,
        settings: ReduceSettings,
        on_round: OnRound = lambda *_: None,
        places: Sequence[str] = (),
    ) -> None:
        self.index = index
        self.reducer = LocalReducer(reduction, index.files, index.format, settings, places=places)
        self._on_round = on_round

    def run(self) -> LocalResult:
        """Run rounds until the reduction is done; `RunError` if its input is lost or changes."""
        reduction, known, rounds = self.reducer.reduction, None, 0
        began = time.monotonic()
        while True:
            merged = self._round(rounds + 1, known)
            with user_code("finish", f"round {rounds + 1}"):
                result = reduction.finish(merged, known)
            rounds += 1
            with user_code("until", f"round {rounds}"):
                is_done = reduction.until(result, known, rounds)
            if is_done:
                return LocalResult(result, rounds, time.monotonic() - began)
            known = result

    def _round(self, number: int, known: Any) -> Any:
        reducer, total = self.reducer, self.index.bytes
        before = reducer.done_bytes
        pool = ChunkPool(
            self.index.chunks,
            reducer.settings.assignment,
            len(reducer.workers),
            self.index.format.first_rows,
        )
        one = LocalRound(reducer, known, _PoolSupply(pool))
        return one.run(lambda: self._on_round(number, reducer.done_bytes - before, total))


class _PoolSupply:
    def __init__(self, pool: ChunkPool) -> None:
        self._pool = pool

    def next(self) -> NumberedChunk | None:
        number = self._pool.next()
        return None if number is None else (number, self._pool.chunks[number])

    def note_retrieved(self, number: int) -> None:
        self._pool.note_done(number)

    @property
    def is_over(self) -> bool:
        return not self._pool.has_more


def reduce_locally(spec: ReduceSpec, on_round: OnRound) -> tuple[Any, ReductionRecord]:
    """Find the chunks, reduce them, and record the run; gives the result and the record.

    `UsageError` if arguments or inputs cannot be used; `RunError` if input could not be retrieved,
    or changed while it was read.
    """
    began_at = utc_now()
    workers = spec.workers or core.workers()
    index = index_store.find_chunks(
        spec.inputs,
        spec.object_store,
        spec.chunk_bytes,
        spec.format,
        spec.dtype,
        lambda total: tuning.chunk_bytes(total, spec.memory_bytes, workers),
    )
    reduction = spec.reduction
    if isinstance(reduction, FromSample):
        rows = sample_rows(index, spec.object_store, reduction.rows, spec.inputs)
        with user_code("sample", "the sampled rows", rows):
            reduction = reduction.make(rows)
    largest = max((chunk.bytes for chunk in index.chunks), default=1)
    settings = ReduceSettings(
        chunk_bytes=largest,
        range_bytes=tuning.range_bytes(largest),
        memory_bytes=spec.memory_bytes,
        workers=workers,
        assignment=spec.assignment,
        object_store=spec.object_store,
        measured=spec.measured,
    )
    job = LocalReduction(reduction, index, settings, on_round, spec.inputs)
    cpu_before = cpu_seconds()
    done = job.run()
    return done.result, _record(spec, job, done, began_at, cpu_seconds() - cpu_before)


def _record(
    spec: ReduceSpec, job: LocalReduction, done: LocalResult, began_at: str, cpu_used: float
) -> ReductionRecord:
    reducer, index, settings = job.reducer, job.index, job.reducer.settings
    name, flags = spec.named
    here = environment.capture([])
    threads, why = reducer.tuned
    return ReductionRecord(
        job=name,
        began_at=began_at,
        command=spec.command,
        environment=here,
        settings={
            "inputs": list(spec.inputs),
            "format": index.format.to_json(),
            "workers": settings.workers,
            "assignment": settings.assignment,
            "flags": dict(flags),
            "endpoint": settings.object_store.address,
            "chunk_bytes": spec.chunk_bytes,
            "threads": spec.object_store.requests,
            "memory_bytes": spec.memory_bytes,
        },
        rows=sum(worker.rows for worker in reducer.workers) // done.rounds,
        bytes=index.bytes,
        object_bytes=index.object_bytes,
        chunks=len(index.chunks),
        rounds=done.rounds,
        rounds_here=done.rounds,
        seconds=done.seconds,
        cpu_seconds=cpu_used,
        peak_memory_bytes=peak_memory_bytes(),
        result=summary(reducer.reduction, done.result),
        workers=[
            WorkerRun(
                node=here.host,
                chunks=worker.chunks,
                bytes=worker.bytes,
                retrieval_seconds=worker.retrieval_seconds,
                processing_seconds=worker.processing_seconds,
                synchronisation_seconds=worker.synchronisation_seconds,
            )
            for worker in reducer.workers
        ],
        tuning=Tuning(
            chunk_bytes=settings.chunk_bytes,
            range_bytes=settings.range_bytes,
            threads=threads,
            why=f"{tuning.explain_chunk_bytes(settings.chunk_bytes, spec.chunk_bytes)}; {why}",
        ),
        requests=sum_requests(reducer.requests),
        phases=[stage_stats.phase_record(phase) for phase in reducer.phases],
    )
