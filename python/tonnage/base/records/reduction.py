"""The record of a finished reduction."""

from __future__ import annotations

from typing import Any, ClassVar

from msgspec import field

from tonnage.base.records.base import Count, Record, Seconds, Struct
from tonnage.base.records.environment import Environment
from tonnage.base.records.known_keys import RequestCounts, RunSettings, check_known_keys
from tonnage.base.records.phase import Phase
from tonnage.base.records.run_comparison import RunComparison


class WorkerRun(Struct, frozen=True, kw_only=True):
    """What a worker did in all rounds: MATE-EC2's three bars are its seconds.

    ``retrieval_seconds`` it waited for chunks, ``processing_seconds`` it reduced them, and
    ``synchronisation_seconds`` it waited for the others at the ends of rounds.
    """

    node: str
    chunks: Count
    bytes: Count
    retrieval_seconds: Seconds
    processing_seconds: Seconds
    synchronisation_seconds: Seconds


class Tuning(Struct, frozen=True, kw_only=True):
    """How chunks were retrieved: ranges of chunks, by so many requests at once; and why so."""

    chunk_bytes: Count
    range_bytes: Count
    threads: Count
    why: str


class ReductionRecord(Record, frozen=True, kw_only=True):
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
    rows: Count | None
    bytes: Count
    chunks: Count
    rounds: Count
    rounds_here: Count
    seconds: Seconds
    cpu_seconds: Seconds
    peak_memory_bytes: Count
    result: Any
    workers: list[WorkerRun]
    tuning: Tuning
    requests: dict[str, Any] = field(default_factory=dict)
    phases: list[Phase] = field(default_factory=list)
    object_bytes: Count | None = None
    lost: dict[str, str] = field(default_factory=dict)
    labels: dict[str, dict[str, str]] = field(default_factory=dict)
    compared: RunComparison | None = None

    def __post_init__(self) -> None:
        check_known_keys(self.settings, RunSettings, "settings")
        check_known_keys(self.requests, RequestCounts, "requests")
