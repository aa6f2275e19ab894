"""How long a job will take, term by term; and how long it has to take at least."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tonnage.base.records.base import Record
from tonnage.base.records.calibration import CalibrationSource


@dataclass(frozen=True, kw_only=True)
class Term:
    """What one resource would need for one phase: ``seconds = demand / capacity``."""

    resource: str
    demand: float
    capacity: float
    low_capacity: float
    high_capacity: float
    unit: str
    seconds: float
    source: str
    measurements: list[str]


@dataclass(frozen=True, kw_only=True)
class PredictedPhase:
    """A phase's time: that of ``limit``, its slowest resource, times ``rehearsal_factor``.

    The disk's time is its term's and ``ramp_seconds``: what filling and draining the pipeline add
    (or, where one way alone is faster, spare). The factor is by how much rehearsals took longer.
    """

    name: str
    seconds: float
    low_seconds: float
    high_seconds: float
    limit: str
    ramp_seconds: float
    rehearsal_factor: float = 1.0
    terms: list[Term]


@dataclass(frozen=True, kw_only=True)
class Prediction(Record):
    """How long a job will take, with an interval, written before the job starts.

    ``seconds`` is the sum of the phases' and of ``other_seconds``, which pass outside of them.
    """

    SCHEMA: ClassVar[str] = "tonnage.prediction/1"

    job: str
    bytes: int
    made_at: str
    seconds: float
    low_seconds: float
    high_seconds: float
    confidence: float
    interval_rule: str
    other_seconds: float = 0.0
    phases: list[PredictedPhase]
    calibrated: CalibrationSource | None = None
    """By these rehearsals; ``None``: by none."""


@dataclass(frozen=True, kw_only=True)
class Limit:
    """What the hardware alone would need, by ``rule``, and how near the job came."""

    seconds: float
    efficiency: float
    rule: str
    measurements: list[str]
