"""What finished runs of a job showed of an offer: a run is a measurement, too."""

from msgspec import field

from tonnage.base.records.base import Amount, Count, PositiveCount, Rate, Seconds, Spread, Struct
from tonnage.base.records.durability import EARLIER_VOLUMES
from tonnage.base.records.location import Location


class CalibratedPhase(Struct, frozen=True, kw_only=True):
    """A phase of a job on a cluster of one offer.

    ``pace`` is bytes of the job's input a second for each node, to the end of the slowest: the
    median of the runs, ``spread`` the standard deviation of its logarithm. ``limits`` are the
    bottleneck's names in plans, ``made`` is bytes of output for each byte of the phase's input.
    """

    name: str
    pace: Rate
    spread: Spread
    limits: list[str]
    made: Amount | None = None
    cpu_seconds_per_byte: Amount | None = None


class Calibration(Struct, frozen=True, kw_only=True):
    """Runs of one kind of job on one number of nodes of an offer.

    ``input_location`` and ``output_location`` are unknown in earlier records; ``functions``
    distinguishes jobs with a user's functions; ``other_seconds`` are outside phases.
    """

    job: str
    durability: str = "none"
    input_location: Location | None = None
    output_location: Location | None = None
    functions: str | None = None
    nodes: PositiveCount
    bytes: Count
    phases: list[CalibratedPhase]
    other_seconds: Seconds = 0.0
    runs: list[str] = field(default_factory=list)
    spread_source: str

    @property
    def is_replicated(self) -> bool:
        return self.durability == "replicated"

    @property
    def locations(self) -> tuple[Location, Location]:
        earlier: Location = "objects" if self.durability == EARLIER_VOLUMES else "local"
        return self.input_location or earlier, self.output_location or earlier


class CalibrationSource(Struct, frozen=True, kw_only=True):
    """The runs behind a plan or a prediction, besides measurements."""

    runs: list[str]
    nodes: PositiveCount
    bytes: Count


def run_name(job: str, began_at: str) -> str:
    """The name by which runs are cited."""
    return f"{job} of {began_at}"
