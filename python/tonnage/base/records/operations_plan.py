"""What to rent for so many operations a second on so much data: candidates, cheapest first."""

from typing import Any, ClassVar, Literal

from msgspec import field

from tonnage.base.records.base import Amount, Count, PositiveCount, Record, Struct
from tonnage.base.records.plan import ExcludedOffer

NodesLimit = Literal["operations", "data", "link", "price", "request"]
"""Why no fewer nodes: the storage's operations, the data, the link to volumes; more nodes are not
more expensive; or their number was requested."""


class ProvisionedVolumes(Struct, frozen=True, kw_only=True):
    """Identical volumes of each node, with what each of them is provisioned to give."""

    kind: str
    count: PositiveCount
    gib_each: PositiveCount
    operations_each: Amount | None  # Per second; ``None``: only their bytes are limited
    bytes_per_second_each: Amount | None
    usd_per_month: Amount  # Of all nodes
    source: str


class OperationsCandidate(Struct, frozen=True, kw_only=True):
    catalog: str
    provider: str
    offer: str
    storage: str
    nodes: PositiveCount
    nodes_limit: NodesLimit
    nodes_for_operations: PositiveCount
    nodes_for_data: PositiveCount
    operations_per_second: Amount  # Of all nodes together
    low_operations_per_second: Amount | None = None
    """What families of machine types, of which only 5 % reached less, would give."""
    room_bytes: Count  # For data, on all nodes together
    usd_per_hour: Amount  # Of all nodes with their volumes
    usd_per_month: Amount
    evidence: Literal["measured", "documented"]
    loses_data: bool  # When a machine stops or fails
    volumes: ProvisionedVolumes | None = None
    sources: list[str]
    notes: list[str] = field(default_factory=list)

    @property
    def operations_per_usd(self) -> float:
        return self.operations_per_second * 3600 / self.usd_per_hour


class OperationsPlan(Record, frozen=True, kw_only=True):
    SCHEMA: ClassVar[str] = "tonnage.operations-plan/1"

    operation: str
    operations_per_second: Amount
    bytes: Count
    settings: dict[str, Any]
    made_at: str
    catalogs: list[str]
    candidates: list[OperationsCandidate]
    excluded: list[ExcludedOffer]
    notes: list[str]
