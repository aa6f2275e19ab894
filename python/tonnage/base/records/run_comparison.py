"""A cluster's run beside its plan, and beside what measured capacities allow.

``share = demand / capacity`` of a node's resource is what it needs of a phase at least; the most of
all nodes and resources is the phase's limit.
"""

from __future__ import annotations

from msgspec import field

from tonnage.base.records.base import Amount, Count, Seconds, Struct
from tonnage.base.records.plan import Candidate, Range
from tonnage.base.records.prediction import Limit


class ResourceUse(Struct, frozen=True, kw_only=True):
    """What a node's resource carried in a phase.

    ``amount`` is in ``unit``, and ``capacity`` so much a second, ``None`` if it was not measured;
    ``seconds``, their ratio, is what it needs at least.
    """

    resource: str
    amount: Amount
    unit: str
    capacity: Amount | None = None
    seconds: Seconds | None = None


class NodePhase(Struct, frozen=True, kw_only=True):
    """A phase on one node, all the times that it did it."""

    node: str
    seconds: Seconds
    uses: list[ResourceUse]


class PhaseComparison(Struct, frozen=True, kw_only=True):
    """A phase on all nodes together: as long as on the node that took longest, ``slowest_node``.

    ``bottleneck`` is the resource that probes found at work all the time, ``bottleneck_node`` whose
    it was. ``limit_seconds`` is what measured capacities allow at least, by ``limit`` of
    ``limit_node``, and ``efficiency`` that over ``seconds``. ``as_limited`` is whether the
    bottleneck is the limit, or within 5 % of it; ``as_planned`` whether it is what was planned.
    ``came_seconds`` is what the planned ones stand beside: of pass two with the copies that were
    made after it, as they are planned as one; then the bottleneck of the longer of both counts.
    Each is ``None`` without what it is compared with.
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
    """The candidate of a plan that a run followed.

    ``seconds`` are its own, in proportion to the bytes that the run had; ``bytes`` is what was
    planned for.
    """

    candidate: Candidate
    made_at: str
    bytes: Count
    seconds: Range
    inside: bool
    """Whether the run's seconds, all of them, are within the interval."""


class RunComparison(Struct, frozen=True, kw_only=True):
    """A run on a fleet, phase by phase.

    ``phase_seconds`` is the sum of all phases, ``other_seconds`` what passed outside of them,
    ``None`` if the run was taken up by another command and nobody knows. ``limit`` is the sum of
    the phases' limits; its efficiency is of the whole run, ``phase_efficiency`` of the phases.
    """

    phases: list[PhaseComparison]
    phase_seconds: Seconds
    other_seconds: Seconds | None = None
    limit: Limit | None = None
    phase_efficiency: Amount | None = None
    planned: FollowedPlan | None = None
    notes: list[str] = field(default_factory=list)
