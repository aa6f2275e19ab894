"""What to rent for a job: candidates best first, what else is to be known, and the arithmetic."""

from typing import Any, ClassVar, Literal

from msgspec import UNSET, UnsetType, field

from tonnage.base.records.base import (
    Amount,
    Count,
    Number,
    PositiveCount,
    Record,
    Seconds,
    Share,
    Struct,
)
from tonnage.base.records.calibration import CalibrationSource
from tonnage.base.records.job import INTERRUPTIONS, OUTSIDE_PHASES, START_UP, Job
from tonnage.base.records.known_keys import PlanSettings, check_known_keys


class Range(Struct, frozen=True, kw_only=True):
    """With every resource at its median, and the middle 90 % of draws."""

    low: Amount
    median: Amount
    high: Amount


BilledItem = Literal["machines", "public addresses", "volumes", "object storage requests", "egress"]
"""What a provider's bill has a line for; the machines' is with their links to volumes."""


class CostLine(Struct, frozen=True, kw_only=True):
    item: BilledItem
    usd: Amount


NO_CORES = "this job's CPU time is unknown and not included"
"""The note of a plan without a demand on cores."""
WITHOUT_CORES = "without CPU time"
"""What follows a time or cost of such a plan, if it is not printed as a lower bound."""


UNKNOWN = "unknown"
"""The bottleneck of a phase of which only times are known."""


class PlannedPhase(Struct, frozen=True, kw_only=True):
    """As long as its slowest resource on the slowest node takes, by medians."""

    name: str
    seconds: Seconds
    bottleneck: str


class SpaceFit(Struct, frozen=True, kw_only=True):
    """Needed and available, on all nodes together."""

    needed_bytes: Count
    have_bytes: Count

    @property
    def share(self) -> float:
        """Needed, of what is available; 0 where nothing is."""
        return self.needed_bytes / self.have_bytes if self.have_bytes else 0.0


class AttachedVolumes(Struct, frozen=True, kw_only=True):
    kind: str
    count: PositiveCount
    gib_each: PositiveCount


class Candidate(Struct, frozen=True, kw_only=True):
    catalog: str
    provider: str
    offer: str
    layout: str
    placement: bool
    nodes: PositiveCount
    seconds: Range  # From the request of the machines, if their start counts
    cost_usd: Range
    usd_per_hour: Amount  # Of one node with its volumes and its public address
    phases: list[PlannedPhase]
    capacity: SpaceFit  # Of disks and volumes
    evidence: Literal["measured", "advertised", "mixed"]
    deadline_probability: Share | None  # ``None`` without a deadline
    own_disks: bool = False  # Whether the job keeps data on the nodes' own disks
    volumes: AttachedVolumes | None = None
    memory: SpaceFit | None = None  # ``None``: the job keeps no data there
    calibrated: CalibrationSource | None = None  # By runs of this job on this offer
    run_seconds: Range | None = None  # Without the start; ``None``: `seconds` are without it
    costs: list[CostLine] = field(default_factory=list)
    """What `cost_usd`'s median is the sum of; empty in plans of before."""
    notes: list[str] = field(default_factory=list)

    @property
    def job_phases(self) -> list[PlannedPhase]:
        """The phases of the job itself."""
        return [phase for phase in self.phases if phase.name not in (START_UP, INTERRUPTIONS)]


class Tradeoff(Struct, frozen=True, kw_only=True):
    """A point of the Pareto front: no candidate is both faster and cheaper."""

    offer: str
    layout: str
    placement: bool
    nodes: PositiveCount
    seconds: Seconds
    cost_usd: Amount


class ExcludedOffer(Struct, frozen=True, kw_only=True):
    offer: str
    why: str
    catalog: str = ""


class MeasurementProposal(Struct, frozen=True, kw_only=True):
    """An unmeasured offer that could still win, and the rate that it needs."""

    provider: str
    offer: str
    layout: str
    nodes: PositiveCount
    resource: str
    least_bytes_per_second: Amount  # Of each node, to beat the best candidate
    share_of_known: Share | None = None  # That have that rate, see `rule`; ``None``: none known
    rule: str
    usd_to_measure: Amount  # Two nodes for ten minutes
    chance: Share | UnsetType = UNSET  # In plans of earlier versions


class SignedRange(Struct, frozen=True, kw_only=True):
    """As `Range`, of what may be below 0."""

    low: Number
    median: Number
    high: Number


class CurrentCluster(Struct, frozen=True, kw_only=True):
    """The cluster that a job runs on today, planned like the candidates."""

    candidate: Candidate
    seen_seconds: Seconds | None = None  # Of the run that the job is known from
    saves_usd: SignedRange | None = None  # By the first candidate, for each run
    runs_per_month: Amount | None = None


class Plan(Record, frozen=True, kw_only=True):
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
    sure: Candidate | None = None  # The cheapest that meets the deadline with 95 %
    nearest: Candidate | None = None  # Where none meets the constraints
    current: CurrentCluster | None = None  # Where the job runs today, if that is known
    notes: list[str] = field(default_factory=list)

    @property
    def demands_known(self) -> bool:
        """Whether every demand is counted; otherwise no probability or interval is to be shown."""
        return NO_CORES not in self.notes

    @property
    def without_cores_as_asked(self) -> bool:
        """Whether it was asked to leave cores out, so that intervals are of all that was asked."""
        return not self.demands_known and self.settings.get("cores") is False

    def __post_init__(self) -> None:
        check_known_keys(self.settings, PlanSettings, "settings")


class NamedPlan(Struct, frozen=True, kw_only=True):
    name: str
    plan: Plan


class Plans(Record, frozen=True, kw_only=True):
    """Plans of one job in various circumstances."""

    SCHEMA: ClassVar[str] = "tonnage.plans/1"

    plans: list[NamedPlan]


class ExplainedTerm(Struct, frozen=True, kw_only=True):
    """One resource of a phase: ``seconds = demand / (nodes x capacity)``; bytes, core seconds."""

    phase: str
    resource: str
    limit: str = ""
    """What limits the phase, if it is not the resource alone: terms of the same limit add up."""
    demand: Amount
    capacity: Amount  # Of the slowest node, the median
    low_capacity: Amount
    high_capacity: Amount
    seconds: Seconds
    evidence: str
    demand_source: str
    capacity_source: str
    spread_source: str


class Explanation(Record, frozen=True, kw_only=True):
    """The arithmetic of one candidate, with each number's source.

    A resource that moves no data has no term: the network of a single node.
    """

    SCHEMA: ClassVar[str] = "tonnage.explanation/1"

    candidate: Candidate
    bytes: Count
    terms: list[ExplainedTerm]
    prices: list[str]  # A line each: the price of a node, and the cost

    @property
    def demands_known(self) -> bool:
        """Whether every demand is counted; a calibrated candidate has its runs' CPU time."""
        return self.candidate.calibrated is not None or any(
            term.resource.startswith("cpu") and term.phase != OUTSIDE_PHASES for term in self.terms
        )
