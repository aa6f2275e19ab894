"""Capacities of offers: a distribution for each resource, with its source.

It says how nodes' rates vary: log-normal modes, and a factor that all nodes of a cluster share.
Where only one number was published, the spread is another offer's, and the record says whose.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from msgspec import Meta, field

from tonnage.base.records.base import Amount, Count, PositiveAmount, PositiveCount, Record, Struct
from tonnage.base.records.calibration import Calibration

CapacityName = Annotated[
    str,
    Meta(
        pattern="^((local|volume) (read|write|both)|object (get|put)|network|cpu( .+)?)$",
    ),
]
Spread = Annotated[float, Meta(ge=0, lt=10)]
"""A standard deviation of a logarithm."""

Evidence = Literal["measured", "published", "derived", "advertised"]
"""Measured by us; published by a study as measured; what follows from its tables; on offer."""


class Mode(Struct, frozen=True, kw_only=True):
    """A kind of node: ``log rate ~ N(log(median), spread^2)``."""

    median: PositiveAmount
    """Bytes a second; in a law of shares, of what is advertised."""
    spread: Spread
    """Standard deviation of the logarithm, between instances."""
    instances: PositiveCount
    """How many were seen."""


class CapacityDistribution(Struct, frozen=True, kw_only=True):
    """What one resource of a node carries."""

    resource: CapacityName
    """As a job's demands name it; ``local both``: each way, while both are used.

    ``cpu STAGE`` is what a core does of a stage's work, in bytes a second: what tells machines'
    cores apart.
    """
    modes: Annotated[list[Mode], Meta(min_length=1)]
    of_fleet: bool = False
    """Rates are those of a fleet's slowest node already, or of its mean: one draw for all nodes."""
    at_scale: bool = False
    """Of the network: as it was in a large fleet, so that it falls no further."""
    fleet_spread: Amount = 0.0
    """Standard deviation of the logarithm of what all nodes of a fleet have in common.

    The zone and the day are common to all that its nodes carry: a fleet that is slow is so in all.
    """
    fleets: Count = 0
    """How many fleets that was seen in."""
    evidence: Evidence
    source: str
    """The measurements' names, or the document and how the figure follows from it."""
    spread_source: str


class NetworkScaling(Struct, frozen=True, kw_only=True):
    """The network's bandwidth in fleets of several sizes, as a share of that of two nodes."""

    points: list[tuple[Count, Amount]]
    """Nodes, share."""
    source: str


class OfferProfile(Struct, frozen=True, kw_only=True):
    """What an offer carries."""

    provider: str
    type: str
    placement: bool = False
    """Whether its nodes are placed close together."""
    laws: list[CapacityDistribution]
    scaling: NetworkScaling | None = None
    calibrations: list[Calibration] = field(default_factory=list)
    """What finished runs showed of jobs on it."""


class UnusedMeasurements(Struct, frozen=True, kw_only=True):
    """Measurements or runs, or parts of them, that nothing was taken from."""

    measurements: list[str]
    why: str


class Profile(Record, frozen=True, kw_only=True):
    """What is known of offers.

    One that was made from measurements and runs names all of them, and those that were left out.
    """

    SCHEMA: ClassVar[str] = "tonnage.profile/1"

    name: str
    made_at: str
    offers: list[OfferProfile]
    shares: list[CapacityDistribution] = field(default_factory=list)
    """What share of an advertised figure offers reached that were measured, by resource."""
    measurements: list[str] = field(default_factory=list)
    runs: list[str] = field(default_factory=list)
    commands: dict[str, list[str]] = field(default_factory=dict)
    """What made each of these measurements and runs, by its name."""
    left_out: list[UnusedMeasurements] = field(default_factory=list)
