"""What to rent for a job: candidates best first, what else is to be known, and the arithmetic."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from msgspec import field

from tonnage.base.records.base import Amount, Count, PositiveCount, Record, Seconds, Share, Struct
from tonnage.base.records.calibration import CalibrationSource
from tonnage.base.records.job import Job
from tonnage.base.records.known_keys import PlanSettings, check_known_keys


class Range(Struct, frozen=True, kw_only=True):
    """With every resource at its middle, and the middle 90 % of what may come."""

    low: Amount
    median: Amount
    high: Amount


class PlannedPhase(Struct, frozen=True, kw_only=True):
    """A phase: as long as its slowest resource on the slowest node, in the middle."""

    name: str
    seconds: Seconds
    bottleneck: str


class SpaceFit(Struct, frozen=True, kw_only=True):
    """What must be held at once, and what there is, on all nodes together."""

    needed_bytes: Count
    have_bytes: Count


class AttachedVolumes(Struct, frozen=True, kw_only=True):
    """Network-attached volumes of each node."""

    kind: str
    count: PositiveCount
    gib_each: PositiveCount


class Candidate(Struct, frozen=True, kw_only=True):
    """So many nodes of an offer, laid out so."""

    catalog: str
    provider: str
    offer: str
    layout: str
    placement: bool
    nodes: PositiveCount
    seconds: Range
    cost_usd: Range
    usd_per_hour: Amount
    """Of one node with its volumes."""
    phases: list[PlannedPhase]
    capacity: SpaceFit
    evidence: Literal["measured", "advertised", "mixed"]
    deadline_probability: Share | None
    """``None`` without a deadline."""
    own_disks: bool = False
    """Whether the job keeps anything on the nodes' own disks."""
    volumes: AttachedVolumes | None = None
    calibrated: CalibrationSource | None = None
    """By runs of this job on this offer; ``None``: by none."""
    notes: list[str] = field(default_factory=list)


class Tradeoff(Struct, frozen=True, kw_only=True):
    """A point of the front: nothing is both faster and cheaper in the middle."""

    offer: str
    layout: str
    placement: bool
    nodes: PositiveCount
    seconds: Seconds
    cost_usd: Amount


class ExcludedOffer(Struct, frozen=True, kw_only=True):
    """What is no candidate, and why."""

    offer: str
    why: str
    catalog: str = ""


class MeasurementProposal(Struct, frozen=True, kw_only=True):
    """An offer that nobody measured and that could still win: what it would have to carry."""

    provider: str
    offer: str
    layout: str
    nodes: PositiveCount
    resource: str
    least_bytes_per_second: Amount
    """Of each node, to be cheaper (or faster) than the best candidate."""
    chance: Share
    """That it does, as offers that were measured did; see `rule`."""
    rule: str
    usd_to_measure: Amount
    """Of two nodes for ten minutes."""


class Plan(Record, frozen=True, kw_only=True):
    """Candidates, best first, and what else is to be known."""

    SCHEMA: ClassVar[str] = "tonnage.plan/1"

    job: Job
    bytes: Count
    settings: dict[str, Any]
    made_at: str
    catalogs: list[str]
    profiles: list[str]
    confidence: Share
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

    def __post_init__(self) -> None:
        check_known_keys(self.settings, PlanSettings, "settings")


class NamedPlan(Struct, frozen=True, kw_only=True):
    """A plan, and what it is called beside others."""

    name: str
    plan: Plan


class Plans(Record, frozen=True, kw_only=True):
    """Plans of the same job in various circumstances, side by side."""

    SCHEMA: ClassVar[str] = "tonnage.plans/1"

    plans: list[NamedPlan]


class ExplainedTerm(Struct, frozen=True, kw_only=True):
    """What one resource takes of a phase: ``seconds = demand / (nodes x capacity)``.

    Bytes and bytes a second; of CPU, core seconds and cores.
    """

    phase: str
    resource: str
    demand: Amount
    capacity: Amount
    """Of the slowest node, in the middle."""
    low_capacity: Amount
    high_capacity: Amount
    seconds: Seconds
    evidence: str
    demand_source: str
    capacity_source: str
    spread_source: str


class Explanation(Record, frozen=True, kw_only=True):
    """The arithmetic of one candidate, with each number's source."""

    SCHEMA: ClassVar[str] = "tonnage.explanation/1"

    candidate: Candidate
    bytes: Count
    terms: list[ExplainedTerm]
    prices: list[str]
    """How the price of a node and the cost come about, a line each."""
