"""Build the record of a reduction from its nodes' reports."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from tonnage.base.records import Phase, ReductionRecord, Tuning, WorkerRun
from tonnage.cluster.protocol import StepResult
from tonnage.measure.trial import environment
from tonnage.run.reduce import tuning
from tonnage.run.reduce.cluster.job_spec import ReduceJob
from tonnage.run.reduce.cluster.messages import ReduceResult
from tonnage.run.reduce.index import Index
from tonnage.run.storage.object_store import sum_requests

SECONDS = ("retrieval_seconds", "processing_seconds", "synchronisation_seconds")


@dataclass
class NodeReports:
    """The nodes' reports of their steps, summed."""

    workers: dict[tuple[str, int], dict[str, float]] = field(default_factory=dict)
    phases: list[Phase] = field(default_factory=list)
    requests: list[Mapping[str, Any]] = field(default_factory=list)
    cpu_seconds: float = 0.0
    peak_memory_bytes: int = 0
    tuned: dict[str, tuple[int, str]] = field(default_factory=dict)
    _waits: dict[str, float] = field(default_factory=dict)

    def note_step(self, node: str, end: StepResult[ReduceResult], ended_at: float | None) -> None:
        """Add a node's report of a step that ended at some time."""
        assert end.value is not None
        for place, thread in enumerate(end.value.workers):
            worker = msgspec.structs.asdict(thread)
            before = self.workers.setdefault((node, place), dict.fromkeys(worker, 0))
            for name, value in worker.items():
                before[name] += value
        self.phases += end.value.phases
        self.requests.append(end.value.requests)
        self.cpu_seconds += end.cpu_seconds
        self.peak_memory_bytes = max(self.peak_memory_bytes, end.peak_memory_bytes)
        self.tuned[node] = end.value.threads, end.value.why
        self._waits[node] = time.monotonic() if ended_at is None else ended_at

    def note_lost(self, node: str) -> None:
        self._waits.pop(node, None)

    def note_waits(self) -> None:
        """Note that nodes have waited until now for others."""
        now = time.monotonic()
        for node, since in self._waits.items():
            for (each, _), worker in self.workers.items():
                if each == node:
                    worker["synchronisation_seconds"] += now - since
        self._waits = dict.fromkeys(self._waits, now)

    @property
    def bytes(self) -> int:
        return sum(int(worker["bytes"]) for worker in self.workers.values())


def make_record(
    job: ReduceJob,
    began_at: str,
    index: Index,
    reports: NodeReports,
    *,
    rounds: int,
    rounds_here: int,
    seconds: float,
    result: Any,
    lost: Mapping[str, str],
    labels: dict[str, dict[str, str]],
) -> ReductionRecord:
    """The record of a finished reduction.

    Args:
        began_at: When its first command began.
        reports: Of this command's steps.
        rounds: All rounds.
        rounds_here: Rounds of this command.
        seconds: The time of these.
    """
    workers = reports.workers
    largest = max((chunk.bytes for chunk in index.chunks), default=1)
    first = max(reports.tuned, key=lambda node: reports.tuned[node][0], default=None)
    threads, why = (0, "") if first is None else reports.tuned[first]
    name, flags = job.named
    return ReductionRecord(
        job=name,
        began_at=began_at,
        command=job.command,
        environment=environment.capture([]),
        settings=job.job_settings
        | {
            "assignment": job.assignment,
            "flags": dict(flags),
            "threads": job.object_store.requests,
            "endpoint": job.object_store.address,
        },
        rows=index.rows,
        bytes=index.bytes,
        object_bytes=index.object_bytes,
        chunks=len(index.chunks),
        rounds=rounds,
        rounds_here=rounds_here,
        seconds=seconds,
        cpu_seconds=reports.cpu_seconds,
        peak_memory_bytes=reports.peak_memory_bytes,
        result=result,
        workers=[
            WorkerRun(
                node=node,
                chunks=int(worker["chunks"]),
                bytes=int(worker["bytes"]),
                **{each: worker[each] for each in SECONDS},
            )
            for (node, _), worker in sorted(workers.items())
        ],
        tuning=Tuning(
            chunk_bytes=largest,
            range_bytes=tuning.range_bytes(largest),
            threads=threads,
            why=f"{tuning.explain_chunk_bytes(largest, job.chunk_bytes)}; {first}: {why}",
        ),
        requests=sum_requests(reports.requests),
        phases=reports.phases,
        lost=dict(lost),
        labels=labels,
    )
