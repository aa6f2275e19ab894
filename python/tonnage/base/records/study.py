"""The whole loop on one machine: what was predicted beside what was seen."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from tonnage.base.records.base import Record
from tonnage.base.records.environment import Environment
from tonnage.base.records.measurement import Measurement
from tonnage.base.records.prediction import Limit, Prediction
from tonnage.base.records.run import RunRecord


@dataclass(frozen=True, kw_only=True)
class Validation:
    """What the validator found in the output."""

    records: int
    checksum: str
    unordered: int
    duplicate_keys: int
    seconds: float
    matches_input: bool


@dataclass(frozen=True, kw_only=True)
class ActualPhase:
    """A phase beside its prediction."""

    name: str
    seconds: float
    predicted_seconds: float | None
    bottleneck: str
    why: str


@dataclass(frozen=True, kw_only=True)
class ActualTimes:
    """The job's times."""

    seconds: float
    phases: list[ActualPhase]


@dataclass(frozen=True, kw_only=True)
class Study(Record):
    """The whole loop on one machine. Fields are filled as the loop goes on; ``steps`` says how far.

    A study that was cut short is readable: it has what was done by then.
    """

    SCHEMA: ClassVar[str] = "tonnage.study/1"

    began_at: str
    command: list[str]
    environment: Environment
    settings: dict[str, Any]
    steps: list[str] = field(default_factory=list)
    measurements: list[Measurement] = field(default_factory=list)
    rehearsals: list[RunRecord] = field(default_factory=list)
    predicted: Prediction | None = None
    run: RunRecord | None = None
    actual: ActualTimes | None = None
    validation: Validation | None = None
    limit: Limit | None = None
    error_fraction: float | None = None
    findings: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)
    report: str | None = None
