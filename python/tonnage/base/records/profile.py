"""Capacities of offers: a distribution for each resource, with its source.

It says how nodes' rates vary: log-normal modes, and a factor that all nodes of a cluster share.
Where only one number was published, the spread is another offer's, and the record says whose.
"""

from typing import Annotated, ClassVar, Literal

from msgspec import Meta, field

from tonnage.base.records.base import Rate, Record, Spread, Struct
from tonnage.base.records.calibration import Calibration

CapacityName = Annotated[
    str,
    Meta(pattern="^((local|volume) (read|write|both)|object (get|put)|network|start|cpu( .+)?)$"),
]
Instances = Annotated[int, Meta(ge=1, le=1_000_000)]  # More machines than anybody measured
ClusterCount = Annotated[int, Meta(ge=0, le=1_000_000)]
ClusterSize = Annotated[int, Meta(ge=1, le=1_000_000)]

Evidence = Literal["measured", "published", "derived", "advertised"]
"""Measured by us, published by a study as measured, derived from its tables, or advertised."""


class Mode(Struct, frozen=True, kw_only=True):
    """A kind of node: ``log rate ~ N(log(median), spread^2)``."""

    median: Rate  # Bytes a second; or a share of the advertised figure
    spread: Spread  # Between instances
    instances: Instances


class CapacityDistribution(Struct, frozen=True, kw_only=True):
    resource: CapacityName
    """As jobs name it; ``local both``: each way at once; ``cpu STAGE``: B/s of a core; ``start``:
    clusters a second that get ready."""
    modes: Annotated[list[Mode], Meta(min_length=1)]
    of_fleet: bool = False
    """Already the rate of a cluster's slowest node, or its mean: one draw for all nodes."""
    at_scale: bool = False  # Of the network: measured in a large cluster, so it falls no further
    fleet_spread: Spread = 0.0
    """Of the logarithm of the factor that all nodes of a cluster share: zone, day."""
    fleets: ClusterCount = 0  # Number of clusters in which the rate was measured
    fleet_freedom: ClusterCount = 0
    """Degrees of freedom of ``fleet_spread``, if it is not of those clusters; else 0."""
    evidence: Evidence
    source: str  # The measurements' names, or the document and the derivation
    spread_source: str


class NetworkScaling(Struct, frozen=True, kw_only=True):
    """Bandwidth by number of nodes, as a share of that of two."""

    points: Annotated[
        list[tuple[ClusterSize, Annotated[float, Meta(ge=1e-6, le=1e6)]]], Meta(min_length=1)
    ]
    source: str

    def __post_init__(self) -> None:
        sizes = [nodes for nodes, _ in self.points]
        for at, nodes in enumerate(sizes):
            if nodes in sizes[:at]:
                raise ValueError(f".points[{at}][0]: expected each size once, got {nodes} again")


class OfferProfile(Struct, frozen=True, kw_only=True):
    provider: str
    type: str
    placement: bool = False  # Whether nodes are placed close together
    laws: list[CapacityDistribution]
    scaling: NetworkScaling | None = None
    calibrations: list[Calibration] = field(default_factory=list)


class ProviderStart(Struct, frozen=True, kw_only=True):
    """How long a provider's clusters take from their request until they are ready."""

    provider: str
    law: CapacityDistribution

    def __post_init__(self) -> None:
        if self.law.resource != "start":
            raise ValueError(f".law.resource: expected start, got {self.law.resource}")


class UnusedMeasurements(Struct, frozen=True, kw_only=True):
    """Measurements or runs, or parts of them."""

    measurements: list[str]
    why: str


class Profile(Record, frozen=True, kw_only=True):
    """One built from measurements and runs names all of them, also the unused ones."""

    SCHEMA: ClassVar[str] = "tonnage.profile/1"

    name: str
    made_at: str
    offers: list[OfferProfile]
    shares: list[CapacityDistribution] = field(default_factory=list)
    """Shares of advertised figures that measured offers reached, by resource."""
    share_scaling: NetworkScaling | None = None
    """How networks with such a share scale; ``None``: as that of the largest measured cluster."""
    starts: list[ProviderStart] = field(default_factory=list)
    measurements: list[str] = field(default_factory=list)
    runs: list[str] = field(default_factory=list)
    launches: list[str] = field(default_factory=list)
    commands: dict[str, list[str]] = field(default_factory=dict)
    """Of each of these measurements and runs, by name."""
    left_out: list[UnusedMeasurements] = field(default_factory=list)
