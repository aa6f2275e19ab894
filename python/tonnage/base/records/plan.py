"""What to rent for a job: candidates best first, what else is to be known, and the arithmetic."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from tonnage.base.records.base import Record
from tonnage.base.records.calibration import CalibrationSource
from tonnage.base.records.job import Job


@dataclass(frozen=True, kw_only=True)
class Range:
    """With every resource at its middle, and the middle 90 % of what may come."""

    low: float
    median: float
    high: float


@dataclass(frozen=True, kw_only=True)
class PlannedPhase:
    """A phase: as long as its slowest resource on the slowest node, in the middle."""

    name: str
    seconds: float
    bottleneck: str


@dataclass(frozen=True, kw_only=True)
class SpaceFit:
    """What must be held at once, and what there is, on all nodes together."""

    needed_bytes: int
    have_bytes: int


@dataclass(frozen=True, kw_only=True)
class AttachedVolumes:
    """Network-attached volumes of each node."""

    kind: str
    count: int
    gib_each: int


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """So many nodes of an offer, laid out so."""

    catalog: str
    provider: str
    offer: str
    layout: str
    placement: bool
    nodes: int
    seconds: Range
    cost_usd: Range
    usd_per_hour: float
    """Of one node with its volumes."""
    phases: list[PlannedPhase]
    capacity: SpaceFit
    evidence: Literal["measured", "advertised", "mixed"]
    deadline_probability: float | None
    """``None`` without a deadline."""
    own_disks: bool = False
    """Whether the job keeps anything on the nodes' own disks."""
    volumes: AttachedVolumes | None = None
    calibrated: CalibrationSource | None = None
    """By runs of this job on this offer; ``None``: by none."""
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class Tradeoff:
    """A point of the front: nothing is both faster and cheaper in the middle."""

    offer: str
    layout: str
    placement: bool
    nodes: int
    seconds: float
    cost_usd: float


@dataclass(frozen=True, kw_only=True)
class ExcludedOffer:
    """What is no candidate, and why."""

    offer: str
    why: str
    catalog: str = ""


@dataclass(frozen=True, kw_only=True)
class MeasurementProposal:
    """An offer that nobody measured and that could still win: what it would have to carry."""

    provider: str
    offer: str
    layout: str
    nodes: int
    resource: str
    least_bytes_per_second: float
    """Of each node, to be cheaper (or faster) than the best candidate."""
    chance: float
    """That it does, as offers that were measured did; see `rule`."""
    rule: str
    usd_to_measure: float
    """Of two nodes for ten minutes."""


@dataclass(frozen=True, kw_only=True)
class Plan(Record):
    """Candidates, best first, and what else is to be known."""

    SCHEMA: ClassVar[str] = "tonnage.plan/1"

    job: Job
    bytes: int
    settings: dict[str, Any]
    made_at: str
    catalogs: list[str]
    profiles: list[str]
    confidence: float
    interval_rule: str
    candidates: list[Candidate]
    pareto: list[Tradeoff]
    excluded: list[ExcludedOffer]
    survey: list[MeasurementProposal]
    sure: Candidate | None = None
    """The cheapest that meets the deadline with 95 %."""
    nearest: Candidate | None = None
    """Where nothing keeps the constraints: what comes nearest."""
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class NamedPlan:
    """A plan, and what it is called beside others."""

    name: str
    plan: Plan


@dataclass(frozen=True, kw_only=True)
class Plans(Record):
    """Plans of the same job in various circumstances, side by side."""

    SCHEMA: ClassVar[str] = "tonnage.plans/1"

    plans: list[NamedPlan]


@dataclass(frozen=True, kw_only=True)
class ExplainedTerm:
    """What one resource takes of a phase: ``seconds = demand / (nodes x capacity)``.

    Bytes and bytes a second; of CPU, core seconds and cores.
    """

    phase: str
    resource: str
    demand: float
    capacity: float
    """Of the slowest node, in the middle."""
    low_capacity: float
    high_capacity: float
    seconds: float
    evidence: str
    demand_source: str
    capacity_source: str
    spread_source: str


@dataclass(frozen=True, kw_only=True)
class Explanation(Record):
    """The arithmetic of one candidate, with each number's source."""

    SCHEMA: ClassVar[str] = "tonnage.explanation/1"

    candidate: Candidate
    bytes: int
    terms: list[ExplainedTerm]
    prices: list[str]
    """How the price of a node and the cost come about, a line each."""
