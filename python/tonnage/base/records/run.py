"""The record of a finished job."""

from __future__ import annotations

from typing import Any, ClassVar

from msgspec import field

from tonnage.base.records.base import Count, Record, Seconds, Struct
from tonnage.base.records.environment import Environment
from tonnage.base.records.known_keys import RequestCounts, RunSettings, check_known_keys
from tonnage.base.records.phase import Phase
from tonnage.base.records.run_comparison import RunComparison


class NodeRun(Struct, frozen=True, kw_only=True):
    """What a node of a fleet did.

    Bytes are those that its disks read and wrote in both passes, and that went over its network;
    CPU seconds and memory are of the agent's process, seconds those at work. ``lost`` is why it was
    lost, if it was.
    """

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
    """A round of pass one on a fleet: so many splits were read for so many partitions.

    ``lost`` are the nodes that were lost in it, and why.
    """

    number: Count
    splits: Count
    partitions: Count
    bytes: Count
    seconds: Seconds
    lost: dict[str, str] = field(default_factory=dict)


class RunRecord(Record, frozen=True, kw_only=True):
    """What a job did.

    On a fleet ``nodes`` and ``rounds`` say how it went there, ``network_bytes`` is what nodes sent
    each other, ``durability`` is what is promised of the output when nodes are lost.
    ``labels`` are each machine's in its cluster. ``compared`` has each phase beside its plan and
    its limit.
    Of a MapReduce ``records`` are those that were read, and ``checksum`` is that of the shuffled
    blocks, on a fleet of those that something was made of; what was ``shuffled`` and ``written`` is
    told for it alone. Of object storage: how many ``requests``, of them ``retries`` and ``hedged``
    (beside one that was slow), and ``errors`` by kind.
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
    commands: Count = 1
    """How many commands it took on a fleet; ``seconds`` are those of the last."""
    compared: RunComparison | None = None

    def __post_init__(self) -> None:
        check_known_keys(self.settings, RunSettings, "settings")
        check_known_keys(self.requests, RequestCounts, "requests")
