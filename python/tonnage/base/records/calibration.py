"""What finished runs of a job showed of an offer: a run is a measurement, too."""

from __future__ import annotations

from msgspec import field

from tonnage.base.records.base import Amount, Count, PositiveCount, Seconds, Struct


class CalibratedPhase(Struct, frozen=True, kw_only=True):
    """A phase of a job as a fleet of one offer did it.

    ``pace`` is bytes of the job's input a second for each node of the fleet, from the phase's
    beginning to the end of its slowest node: the median of the runs, ``spread`` the standard
    deviation of its logarithm between them. ``limits`` is what held it up, as plans call things;
    a name for each place where a plan may have that. ``made`` is how many bytes the phase made of
    each byte that it was given; ``cpu_seconds_per_byte`` are of the job's input.
    """

    name: str
    pace: Amount
    spread: Amount
    limits: list[str]
    made: Amount | None = None
    cpu_seconds_per_byte: Amount | None = None


class Calibration(Struct, frozen=True, kw_only=True):
    """Runs of one kind of job on so many nodes of an offer.

    ``functions`` tells jobs apart whose functions are a user's own, or that are called otherwise;
    ``None`` for a sort. ``other_seconds`` passed outside of the phases. ``runs`` are named as
    `run_name` has it.
    """

    job: str
    durability: str = "none"
    functions: str | None = None
    nodes: PositiveCount
    bytes: Count
    phases: list[CalibratedPhase]
    other_seconds: Seconds = 0.0
    runs: list[str] = field(default_factory=list)
    spread_source: str


class CalibrationSource(Struct, frozen=True, kw_only=True):
    """The runs that a plan or a prediction rests on, beside its measurements."""

    runs: list[str]
    nodes: PositiveCount
    bytes: Count


def run_name(job: str, began_at: str) -> str:
    """What a run is called where it is cited: records have no name of their own."""
    return f"{job} of {began_at}"
