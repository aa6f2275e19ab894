"""The record of a finished reduction."""

from typing import Any, ClassVar

from msgspec import field

from tonnage.base.records.base import Count, Record, Seconds, Struct
from tonnage.base.records.environment import Environment
from tonnage.base.records.known_keys import ReductionSettings, RequestCounts, check_known_keys
from tonnage.base.records.phase import Phase
from tonnage.base.records.run_comparison import RunComparison


class WorkerRun(Struct, frozen=True, kw_only=True):
    """A worker in all rounds; the seconds are MATE-EC2's three bars."""

    node: str
    chunks: Count
    bytes: Count
    retrieval_seconds: Seconds
    processing_seconds: Seconds
    synchronisation_seconds: Seconds


class Tuning(Struct, frozen=True, kw_only=True):
    """How chunks are retrieved: in ranges, by this many concurrent requests."""

    chunk_bytes: Count
    range_bytes: Count
    threads: Count
    why: str


class ReductionRecord(Record, frozen=True, kw_only=True):
    """A finished reduction.

    ``rows`` are of a round; ``object_bytes`` is the part of ``bytes`` in object storage; both are
    ``None`` if unknown. ``seconds`` are of the ``rounds_here`` of this command. ``lost`` are nodes
    and why, ``labels`` are of each node.
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
        check_known_keys(self.settings, ReductionSettings, "settings")
        check_known_keys(self.requests, RequestCounts, "requests")
