"""What a reduction did."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from tonnage.base.records.base import Record
from tonnage.base.records.environment import Environment
from tonnage.base.records.phase import Phase
from tonnage.base.records.run_comparison import RunComparison


@dataclass(frozen=True, kw_only=True)
class WorkerRun:
    """What a worker did in all rounds: MATE-EC2's three bars are its seconds.

    ``retrieval_seconds`` it waited for chunks, ``processing_seconds`` it reduced them, and
    ``synchronisation_seconds`` it waited for the others at the ends of rounds.
    """

    node: str
    chunks: int
    bytes: int
    retrieval_seconds: float
    processing_seconds: float
    synchronisation_seconds: float


@dataclass(frozen=True, kw_only=True)
class Tuning:
    """How chunks were retrieved: ranges of chunks, by so many requests at once; and why so."""

    chunk_bytes: int
    range_bytes: int
    threads: int
    why: str


@dataclass(frozen=True, kw_only=True)
class ReductionRecord(Record):
    """What a reduction did, and its ``result``.

    ``rows`` are those of a round, ``None`` where files do not say how many there are; ``bytes`` are
    of the input, ``object_bytes`` of them in object storage and the others in files (``None``: that
    was not recorded). ``seconds`` are of the rounds that this command did (``rounds_here``),
    without what took place before the first. ``lost`` are nodes that did not come back, and why.
    ``labels`` are each machine's of a fleet in its cluster. ``compared`` has its rounds beside what
    was planned of them.
    """

    SCHEMA: ClassVar[str] = "tonnage.reduction/1"

    job: str
    began_at: str
    command: list[str]
    environment: Environment
    settings: dict[str, Any]
    rows: int | None
    bytes: int
    chunks: int
    rounds: int
    rounds_here: int
    seconds: float
    cpu_seconds: float
    peak_memory_bytes: int
    result: Any
    workers: list[WorkerRun]
    tuning: Tuning
    requests: dict[str, Any] = field(default_factory=dict)
    phases: list[Phase] = field(default_factory=list)
    object_bytes: int | None = None
    lost: dict[str, str] = field(default_factory=dict)
    labels: dict[str, dict[str, str]] = field(default_factory=dict)
    compared: RunComparison | None = None
