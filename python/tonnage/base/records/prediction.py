"""How long a job will take, term by term; and how long it has to take at least."""

from __future__ import annotations

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
    """A phase's time: that of ``limit``, its slowest resource, times ``rehearsal_factor``.

    The disk's time is its term's and ``ramp_seconds``: what filling and draining the pipeline add
    (or, where one way alone is faster, spare). The factor is by how much rehearsals took longer.
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
    """How long a job will take, with an interval, written before the job starts.

    ``seconds`` is the sum of the phases' and of ``other_seconds``, which pass outside of them.
    """

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
    """By these rehearsals; ``None``: by none."""


class Limit(Struct, frozen=True, kw_only=True):
    """What the hardware alone would need, by ``rule``, and how near the job came."""

    seconds: Seconds
    efficiency: Amount
    rule: str
    measurements: list[str]
