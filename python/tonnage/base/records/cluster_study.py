"""A study on a cluster: its steps with their commands, and the accuracy of the plan."""

from typing import Any, ClassVar

from msgspec import field

from tonnage.base.records.base import Amount, Count, Number, PositiveCount, Record, Seconds, Struct
from tonnage.base.records.known_keys import ClusterStudySettings, check_known_keys
from tonnage.base.records.plan import Candidate, Range

STEPS = ("survey", "measure", "model", "plan", "run", "report")


class SurveyedMachine(Struct, frozen=True, kw_only=True):
    node: str
    provider: str
    type: str
    free_bytes: dict[str, Count]


class StudyStep(Struct, frozen=True, kw_only=True):
    name: str
    commands: list[list[str]]
    seconds: Seconds


class PlanAccuracy(Struct, frozen=True, kw_only=True):
    """``error_fraction`` divides by the actual seconds; dollars ignore minimum billed time."""

    planned: Range
    seconds: Seconds
    planned_usd: Amount
    usd: Amount
    error_fraction: Number
    inside: bool
    missed: str | None
    """The phase with the largest deviation, and its bottleneck, if not ``inside``."""


class ClusterStudy(Record, frozen=True, kw_only=True):
    """The whole loop on a cluster; the completed ``steps`` say which fields are filled."""

    SCHEMA: ClassVar[str] = "tonnage.fleet-study/1"

    began_at: str
    command: list[str]
    settings: dict[str, Any]
    place: str  # The name of its data directory, in each of the machines' directories
    steps: list[StudyStep] = field(default_factory=list)
    machines: list[SurveyedMachine] = field(default_factory=list)
    candidate: Candidate | None = None
    number: PositiveCount | None = None  # Of the candidate in the plan, from 1
    came: PlanAccuracy | None = None
    report: str | None = None

    def __post_init__(self) -> None:
        if self.steps:  # The first step, the survey, decides the size.
            check_known_keys(self.settings, ClusterStudySettings, "settings")
