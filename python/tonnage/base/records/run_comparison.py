"""A cluster's run, compared with its plan and with what measured capacities allow.

``share = demand / capacity`` of a node's resource is what it needs of a phase at least; the most of
all nodes and resources is the phase's limit.
"""

from msgspec import field

from tonnage.base.records.base import Amount, Count, Seconds, Struct
from tonnage.base.records.plan import Candidate, Range
from tonnage.base.records.prediction import Limit


class ResourceUse(Struct, frozen=True, kw_only=True):
    """``seconds = amount / capacity``, the least that a node's resource needs in a phase."""

    resource: str
    amount: Amount
    unit: str
    capacity: Amount | None = None
    seconds: Seconds | None = None


class NodePhase(Struct, frozen=True, kw_only=True):
    """A phase on one node, all its repetitions."""

    node: str
    seconds: Seconds
    uses: list[ResourceUse]


class PhaseComparison(Struct, frozen=True, kw_only=True):
    """A phase on all nodes: as long as on the slowest; ``None``: nothing to compare with.

    The ``bottleneck`` is by probes. ``limit_seconds`` is what measured capacities allow, by
    ``limit`` of ``limit_node``. ``as_limited``: the bottleneck is that limit, or within 5 % of it;
    ``as_planned``: it is the planned one. ``came_seconds`` is compared with the planned seconds:
    pass two with its replication, as they are planned as one.
    """

    name: str
    seconds: Seconds
    median_seconds: Seconds
    slowest_node: str
    bottleneck: str
    bottleneck_node: str
    limit_seconds: Seconds | None = None
    limit: str | None = None
    limit_node: str | None = None
    efficiency: Amount | None = None
    as_limited: bool | None = None
    planned_seconds: Seconds | None = None
    planned_bottleneck: str | None = None
    as_planned: bool | None = None
    came_seconds: Seconds | None = None
    nodes: list[NodePhase] = field(default_factory=list)


class FollowedPlan(Struct, frozen=True, kw_only=True):
    """The candidate that a run followed; ``seconds`` are scaled to the run's bytes."""

    candidate: Candidate
    made_at: str
    bytes: Count
    seconds: Range
    inside: bool  # Whether the run's seconds are within the interval


class RunComparison(Struct, frozen=True, kw_only=True):
    """``other_seconds`` are outside of phases; ``None`` if several commands make them unknown.

    ``limit`` has the efficiency of the whole run, ``phase_efficiency`` is of the phases alone.
    """

    phases: list[PhaseComparison]
    phase_seconds: Seconds
    other_seconds: Seconds | None = None
    limit: Limit | None = None
    phase_efficiency: Amount | None = None
    planned: FollowedPlan | None = None
    notes: list[str] = field(default_factory=list)
