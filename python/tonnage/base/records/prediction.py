"""How long a job will take, term by term; and how long it has to take at least."""

from typing import ClassVar

from tonnage.base.records.base import Amount, Count, Record, Seconds, Share, SignedSeconds, Struct
from tonnage.base.records.calibration import CalibrationSource


class Term(Struct, frozen=True, kw_only=True):
    """What one resource would need for one phase: ``seconds = demand / capacity``."""

    resource: str
    demand: Amount
    capacity: Amount
    low_capacity: Amount
    high_capacity: Amount
    unit: str
    seconds: Seconds
    source: str
    measurements: list[str]


class PredictedPhase(Struct, frozen=True, kw_only=True):
    """The time of ``limit``, its slowest resource, times ``rehearsal_factor``.

    ``ramp_seconds`` are added to the disk's time: filling and draining the pipeline.
    """

    name: str
    seconds: Seconds
    low_seconds: Seconds
    high_seconds: Seconds
    limit: str
    ramp_seconds: SignedSeconds
    rehearsal_factor: Amount = 1.0
    terms: list[Term]


class Prediction(Record, frozen=True, kw_only=True):
    """Made before the job starts; ``other_seconds`` are outside of the phases."""

    SCHEMA: ClassVar[str] = "tonnage.prediction/1"

    job: str
    bytes: Count
    made_at: str
    seconds: Seconds
    low_seconds: Seconds
    high_seconds: Seconds
    confidence: Share
    interval_rule: str
    other_seconds: Seconds = 0.0
    phases: list[PredictedPhase]
    calibrated: CalibrationSource | None = None


class Limit(Struct, frozen=True, kw_only=True):
    """The time that the hardware alone needs, by ``rule``, and the job's efficiency."""

    seconds: Seconds
    efficiency: Amount
    rule: str
    measurements: list[str]
