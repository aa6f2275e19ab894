"""The record of a finished job."""

from typing import Any, ClassVar

from msgspec import field

from tonnage.base.records.base import Count, Record, Seconds, Struct
from tonnage.base.records.environment import Environment
from tonnage.base.records.known_keys import RequestCounts, RunSettings, check_known_keys
from tonnage.base.records.phase import Phase
from tonnage.base.records.run_comparison import RunComparison


class NodeRun(Struct, frozen=True, kw_only=True):
    """A node of a cluster; CPU seconds and memory are of the agent, ``lost`` is the reason."""

    node: str
    phases: list[Phase] = field(default_factory=list)
    read_bytes: Count = 0
    sent_bytes: Count = 0
    received_bytes: Count = 0
    written_bytes: Count = 0
    cpu_seconds: Seconds = 0.0
    peak_memory_bytes: Count = 0
    seconds: Seconds = 0.0
    lost: str | None = None


class RoundRun(Struct, frozen=True, kw_only=True):
    """A round of pass one; ``lost`` are its lost nodes, with the reason."""

    number: Count
    splits: Count
    partitions: Count
    bytes: Count
    seconds: Seconds
    lost: dict[str, str] = field(default_factory=dict)


class RunRecord(Record, frozen=True, kw_only=True):
    """A finished sort or MapReduce; ``durability`` is that of a cluster's output.

    A MapReduce counts the ``records`` that it read, ``shuffled`` and ``written``; its ``checksum``
    covers the shuffled blocks that were used. ``requests`` to object storage include ``retries``
    and ``hedged`` ones (a duplicate of a slow request); ``errors`` are counted by kind.
    """

    SCHEMA: ClassVar[str] = "tonnage.run/1"

    job: str
    began_at: str
    command: list[str]
    environment: Environment
    settings: dict[str, Any]
    records: Count
    bytes: Count
    checksum: str
    seconds: Seconds
    cpu_seconds: Seconds
    peak_memory_bytes: Count
    repartitioned_bytes: Count = 0
    spilled_bytes: Count | None = None  # What went to scratch on this machine
    shuffled_records: Count | None = None
    shuffled_bytes: Count | None = None
    written_records: Count | None = None
    written_bytes: Count | None = None
    requests: dict[str, Any] = field(default_factory=dict)
    phases: list[Phase]
    nodes: list[NodeRun] = field(default_factory=list)
    rounds: list[RoundRun] = field(default_factory=list)
    labels: dict[str, dict[str, str]] = field(default_factory=dict)
    durability: str | None = None
    network_bytes: Count = 0
    commands: Count = 1  # Number of commands on a cluster; ``seconds`` are of the last
    compared: RunComparison | None = None

    def __post_init__(self) -> None:
        check_known_keys(self.settings, RunSettings, "settings")
        check_known_keys(self.requests, RequestCounts, "requests")
