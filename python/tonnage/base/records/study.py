"""A study on one machine: the prediction and the run."""

from typing import Any, ClassVar

from msgspec import field

from tonnage.base.records.base import Count, Number, Record, Seconds, Struct
from tonnage.base.records.environment import Environment
from tonnage.base.records.measurement import Measurement
from tonnage.base.records.prediction import Limit, Prediction
from tonnage.base.records.run import RunRecord


class Validation(Struct, frozen=True, kw_only=True):
    records: Count
    checksum: str
    unordered: Count
    duplicate_keys: Count
    seconds: Seconds
    matches_input: bool


class ActualPhase(Struct, frozen=True, kw_only=True):
    name: str
    seconds: Seconds
    predicted_seconds: Seconds | None
    bottleneck: str
    why: str


class ActualTimes(Struct, frozen=True, kw_only=True):
    seconds: Seconds
    phases: list[ActualPhase]


class Study(Record, frozen=True, kw_only=True):
    """The whole loop on one machine; the completed ``steps`` say which fields are filled."""

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
    error_fraction: Number | None = None
    findings: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)
    report: str | None = None
