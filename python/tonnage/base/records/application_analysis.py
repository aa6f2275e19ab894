"""What follows from an application's log: use of cores, limits of phases, what to change."""

from typing import ClassVar, Literal

from tonnage.base.records.application import Application
from tonnage.base.records.base import Count, PositiveCount, Record, Seconds, Struct
from tonnage.base.records.finding import Finding

CoreUseKind = Literal[
    "computing",
    "garbage collection",
    "shuffle fetch",
    "shuffle write",
    "loading of tasks",
    "launch and results",
    "Python or waiting",
    "other waits",
    "lost tasks",
    "no stage",
    "too few tasks",
    "last tasks",
    "between tasks",
]
Limit = Literal[
    "longest task", "too few tasks", "computing", "shuffle waits", "other waits", "fixed"
]


class CoreUse(Struct, frozen=True, kw_only=True):
    """Core seconds that cores spent, or stood idle, for one reason."""

    kind: CoreUseKind
    core_seconds: Seconds
    formula: str
    estimated: bool
    """False where the log's own counters give it without an assumption."""


class AnalysedPhase(Struct, frozen=True, kw_only=True):
    """Stages that ran at once; those of the same names, as iterations have, are one."""

    name: str
    stages: list[Count]
    times: PositiveCount
    seconds: Seconds
    task_seconds: Seconds
    """From the launch of each task to its end, of all together."""
    cpu_seconds: Seconds
    tasks: Count
    """Each time, on average."""
    median_task_seconds: Seconds
    """Of the stage whose tasks took longest together, as the next two."""
    p90_task_seconds: Seconds
    longest_task_seconds: Seconds
    read_bytes: Count
    shuffle_read_bytes: Count
    shuffle_written_bytes: Count
    spilled_bytes: Count
    written_bytes: Count
    limit: Limit
    why: str


class ApplicationAnalysis(Record, frozen=True, kw_only=True):
    SCHEMA: ClassVar[str] = "tonnage.application-analysis/1"

    application: Application
    slots: PositiveCount
    """How many tasks could run at once."""
    slots_reported: bool
    """False if the log does not report the executors' cores."""
    core_seconds: Seconds | None
    """Of all executors; ``None`` if the log does not report their cores."""
    stage_seconds: Seconds
    """During which some stage ran."""
    uses: list[CoreUse]
    phases: list[AnalysedPhase]
    findings: list[Finding]
