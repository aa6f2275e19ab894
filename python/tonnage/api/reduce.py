"""Generalized reduction as a user has it: `tonnage.reduce`, which knows its machine."""

from __future__ import annotations

import resource
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tonnage.base import core
from tonnage.base.core import stage_stats
from tonnage.base.formatting import bytes_of
from tonnage.base.records import ReductionRecord, Tuning, WorkerRun
from tonnage.measure.trial import environment
from tonnage.measure.trial.trial import utc_now
from tonnage.run.reduce import index_store, tuning
from tonnage.run.reduce.chunk_pool import SELECTIVE
from tonnage.run.reduce.index import Index
from tonnage.run.reduce.local import LocalResult, LocalReduction, OnRound
from tonnage.run.reduce.local_round import LocalReducer, ReduceSettings
from tonnage.run.reduce.reduction import Reduction
from tonnage.run.reduce.result_json import summary
from tonnage.run.reduce.sampling import FromSample, sample_rows
from tonnage.run.sort.local import peak_memory_bytes
from tonnage.run.storage.object_store import ObjectStoreOptions, sum_requests
from tonnage.run.user_errors import user_code


@dataclass(frozen=True)
class ReduceResult:
    """What came of a reduction.

    Attributes:
        result: What the last round finished with.
        record: How it went.
    """

    result: Any
    record: ReductionRecord


@dataclass(frozen=True)
class OnFleet:
    """Where a reduction is done that is not done here.

    Attributes:
        address: Of the Ray cluster, HOST:PORT, or ``auto`` for the one that this machine is in.
        out: The directory in which is kept what rounds came to; what was begun there goes on.
        patience_seconds: A machine that says nothing for so long is lost.
        instances: On so many machines; by default on all.
        on_machines: Called with names and labels of its machines before anything is done.
    """

    address: str
    out: Path
    patience_seconds: float = 60.0
    nodes: int | None = None
    on_machines: Callable[[Sequence[tuple[str, Mapping[str, str]]]], None] = lambda _: None


def reduce(
    reduction: Reduction[Any] | FromSample,
    inputs: str | Path | Sequence[str | Path],
    *,
    memory: str | int = "256MiB",
    workers: int | None = None,
    chunk_bytes: int | None = None,
    threads: int | None = None,
    measured: int | None = None,
    format: str | None = None,
    dtype: str | None = None,
    assignment: str = SELECTIVE,
    endpoint: str | None = None,
    cluster: OnFleet | None = None,
    named: tuple[str, Mapping[str, Any]] | None = None,
    on_progress: OnRound = lambda *_: None,
) -> ReduceResult:
    """Reduces all rows of files and objects.

    Args:
        reduction: What is done with them; or what makes it of some of them.
        inputs: Files, directories, objects or folders of them (``s3://BUCKET/KEY``).
        memory: For chunks, and objects as far as their reduction counts them (`Reduction.allow`),
            like ``256MiB``, or a number of bytes.
        workers: Threads that reduce; by default as many as there are cores.
        chunk_bytes: About how large chunks are; by default as the index has them, or else as many
            as workers have use for.
        threads: Requests at once; by default it is found while it runs.
        measured: Where it is found: what was enough when the store was measured, to begin with.
        format: ``rows``, ``npy``, ``parquet``, ``arrow``, ``csv`` or ``json``; by default by the
            names of files.
        dtype: What a row is, of ``rows``, like ``8f8``.
        assignment: ``selective`` or ``sequential``.
        endpoint: The store's address; by default as the environment says.
        fleet: The machines that do it; by default this one. Paths are theirs then, ``{node}`` in
            them is a machine's name, and ``memory`` and ``workers`` are of each.
        named: What a record calls it, and what it was told; by default its class.
        on_progress: Called now and then with the number of a round, from 1 on, bytes reduced in it,
            and those there are.

    Raises:
        UsageError: Arguments or inputs cannot be used.
        RunError: Something cannot be retrieved, or was changed meanwhile.
        KeyboardInterrupt: Ctrl-C.
    """
    places = [str(each) for each in ([inputs] if isinstance(inputs, (str, Path)) else inputs)]
    memory_bytes = bytes_of(memory) if isinstance(memory, str) else memory
    if memory_bytes is None:
        raise core.UsageError(f"memory {memory!r} is no size: write it like 256MiB")
    volumes = ObjectStoreOptions(endpoint=endpoint, requests=threads)
    named = named or (type(reduction).__name__, {})
    if cluster is not None:
        return _on_fleet(
            cluster,
            on_progress,
            reduction=reduction,
            named=named,
            inputs=places,
            memory_bytes=memory_bytes,
            workers=workers,
            chunk_bytes=chunk_bytes,
            format=format,
            dtype=dtype,
            assignment=assignment,
            volumes=volumes,
            measured=measured,
        )
    began_at = utc_now()
    crew = workers or core.workers()
    index = index_store.find_chunks(
        places,
        volumes,
        chunk_bytes,
        format,
        dtype,
        lambda total: tuning.chunk_bytes(total, memory_bytes, crew),
    )
    if isinstance(reduction, FromSample):
        rows = sample_rows(index, volumes, reduction.rows)
        with user_code("sample", "the rows that are looked at first", rows):
            reduction = reduction.make(rows)
    largest = max((chunk.bytes for chunk in index.chunks), default=1)
    settings = ReduceSettings(
        chunk_bytes=largest,
        range_bytes=tuning.range_bytes(largest),
        memory_bytes=memory_bytes,
        workers=crew,
        assignment=assignment,
        volumes=volumes,
        measured=measured,
    )
    job = LocalReduction(reduction, index, settings, on_progress)
    cpu = _cpu_seconds()
    done = job.run()
    at_once, why = job.machine.tuned
    why = f"{tuning.explain_chunk_bytes(largest, chunk_bytes)}; {why}"
    tuned = Tuning(chunk_bytes=largest, range_bytes=settings.range_bytes, threads=at_once, why=why)
    given = {"chunk_bytes": chunk_bytes, "threads": threads, "memory_bytes": memory_bytes}
    record = _record(named, job.machine, index, places, done, tuned, given, began_at, cpu)
    return ReduceResult(done.result, record)


def _on_fleet(fleet: OnFleet, on_progress: OnRound, **asked: Any) -> ReduceResult:
    from tonnage.cluster.ray_adapter import connect
    from tonnage.run.reduce.cluster.driver import reduce_on_cluster
    from tonnage.run.reduce.cluster.job_spec import ReduceJob

    job = ReduceJob(
        patience_seconds=fleet.patience_seconds,
        instances=fleet.nodes,
        command=list(sys.argv),
        **asked,
    )
    with connect(fleet.address) as cluster:
        fleet.on_machines([(each.name, each.labels) for each in cluster.machines])
        return ReduceResult(*reduce_on_cluster(cluster, fleet.out, job, on_progress))


def _record(
    named: tuple[str, Mapping[str, Any]],
    machine: LocalReducer,
    index: Index,
    places: Sequence[str],
    done: LocalResult,
    tuned: Tuning,
    given: Mapping[str, int | None],
    began_at: str,
    cpu_before: float,
) -> ReductionRecord:
    reduction, settings = machine.reduction, machine.settings
    here = environment.capture([])
    return ReductionRecord(
        job=named[0],
        began_at=began_at,
        command=list(sys.argv),
        environment=here,
        settings={
            "inputs": list(places),
            "format": index.format.to_json(),
            "workers": settings.workers,
            "assignment": settings.assignment,
            "flags": dict(named[1]),
            "endpoint": settings.volumes.address,
            **given,
        },
        rows=sum(worker.rows for worker in machine.workers) // done.rounds,
        bytes=index.bytes,
        object_bytes=index.object_bytes,
        chunks=len(index.chunks),
        rounds=done.rounds,
        rounds_here=done.rounds,
        seconds=done.seconds,
        cpu_seconds=_cpu_seconds() - cpu_before,
        peak_memory_bytes=peak_memory_bytes(),
        result=summary(reduction, done.result),
        workers=[
            WorkerRun(
                node=here.host,
                chunks=worker.chunks,
                bytes=worker.bytes,
                retrieval_seconds=worker.retrieval_seconds,
                processing_seconds=worker.processing_seconds,
                synchronisation_seconds=worker.synchronisation_seconds,
            )
            for worker in machine.workers
        ],
        tuning=tuned,
        requests=sum_requests(machine.requests),
        phases=[stage_stats.phase_record(phase) for phase in machine.phases],
    )


def _cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime
