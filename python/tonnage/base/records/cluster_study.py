"""A study on a cluster: its steps with their commands, and the accuracy of the plan."""

from __future__ import annotations

from typing import Any, ClassVar

from msgspec import field

from tonnage.base.records.base import Amount, Count, Number, PositiveCount, Record, Seconds, Struct
from tonnage.base.records.plan import Candidate, Range

STEPS = ("survey", "measure", "model", "plan", "run", "report")
"""In this order."""


class SurveyedMachine(Struct, frozen=True, kw_only=True):
    """A machine that takes part: as what it was rented, and what is free in its directories."""

    node: str
    provider: str
    type: str
    free_bytes: dict[str, Count]


class StudyStep(Struct, frozen=True, kw_only=True):
    """A step that is done, with each command that it was done by."""

    name: str
    commands: list[list[str]]
    seconds: Seconds


class PlanAccuracy(Struct, frozen=True, kw_only=True):
    """What was planned of the job, and what it took.

    ``error_fraction`` is of the seconds that it took. Dollars are the machines' for so long,
    without a provider's least time.
    """

    planned: Range
    seconds: Seconds
    planned_usd: Amount
    usd: Amount
    error_fraction: Number
    inside: bool
    """Whether it lies in the planned range."""
    missed: str | None
    """What missed most, if all together did by more than the range: a phase, with what held it up,
    or what passed outside of phases."""


class ClusterStudy(Record, frozen=True, kw_only=True):
    """The whole loop on a fleet. Fields are filled as it goes on; ``steps`` says how far."""

    SCHEMA: ClassVar[str] = "tonnage.fleet-study/1"

    began_at: str
    command: list[str]
    settings: dict[str, Any]
    place: str
    """What the directory of its data is called, in each of the machines' directories."""
    steps: list[StudyStep] = field(default_factory=list)
    machines: list[SurveyedMachine] = field(default_factory=list)
    candidate: Candidate | None = None
    number: PositiveCount | None = None
    """Which of the plan's candidates that is, from 1."""
    came: PlanAccuracy | None = None
    report: str | None = None
