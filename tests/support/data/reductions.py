"""Records of reductions, as if they had been run."""

from __future__ import annotations

from support.data.measurements import ENVIRONMENT
from tonnage.base.records import ReductionRecord, Tuning, WorkerRun


def record(
    inputs: list[str], bytes_: int, seconds: float, chunk_bytes: int | None, threads: int | None
) -> ReductionRecord:
    """Of two workers, who waited half of the time for chunks; with ``None`` it was found."""
    worker = WorkerRun(
        node="a",
        chunks=10,
        bytes=bytes_ // 2,
        retrieval_seconds=seconds / 2,
        processing_seconds=seconds / 4,
        synchronisation_seconds=seconds / 4,
    )
    return ReductionRecord(
        job="kmeans",
        began_at="2026-11-22T03:46:43+00:00",
        command=["tonnage", "run", "reduce"],
        environment=ENVIRONMENT,
        settings={
            "inputs": inputs,
            "memory_bytes": 1 << 30,
            "chunk_bytes": chunk_bytes,
            "threads": threads,
        },
        rows=100,
        bytes=bytes_,
        chunks=20,
        rounds=1,
        rounds_here=1,
        seconds=seconds,
        cpu_seconds=seconds,
        peak_memory_bytes=1 << 28,
        result={},
        workers=[worker, worker],
        tuning=Tuning(
            chunk_bytes=chunk_bytes or 1 << 25, range_bytes=1, threads=threads or 8, why=""
        ),
    )
