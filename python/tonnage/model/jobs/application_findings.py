"""What to change first about an application of Spark, by the core seconds that it could save.

Each finding states the most that its change could save and how that follows from the log. The
settings are Spark's own (its configuration, tuning and SQL performance tuning guides, 3.x and 4.x).
What several findings could save may be the same core seconds, so they do not add up.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tonnage.base import formatting
from tonnage.base.records.application import Application, ApplicationStage
from tonnage.base.records.application_analysis import CoreUse, CoreUseKind
from tonnage.base.records.finding import Finding
from tonnage.model.jobs.application import StagesAtOnce, is_skewed
from tonnage.model.jobs.core_time import PhaseCores, idle_parts, task_time

MOST = 5
LEAST_SHARE = 0.02
"""Of all core seconds; what could save less is not worth a change."""
SHORT_TASK_SECONDS = 0.2
"""Spark's tuning guide: it "can efficiently support tasks as short as 200 ms"."""
MANY_TASKS = 2
"""For each slot. The same guide recommends 2 to 3."""
SLOW = 2.0
"""A task that took so many times the median is worth a look."""


def application_findings(
    application: Application,
    phases: Sequence[PhaseCores],
    slots: int,
    uses: Sequence[CoreUse],
    stage_seconds: float,
) -> list[Finding]:
    """At most five findings, the one that could save most first."""
    run = _Run(
        application,
        phases,
        slots,
        {each.kind: each.core_seconds for each in uses},
        stage_seconds,
    )
    total = application.core_seconds or sum(each.core_seconds for each in uses)
    savings = [saving for find in FINDERS if (saving := find(run)) is not None]
    worth = [each for each in savings if each.core_seconds > LEAST_SHARE * total]
    first = sorted(worth, key=lambda each: -each.core_seconds)[:MOST]
    return [each.to_finding(run) for each in first]


class _IdleTime(NamedTuple):
    """A phase in which slots were idle."""

    phase: StagesAtOnce
    seconds: float
    core_seconds: float


@dataclass(frozen=True)
class _Run:
    """An application with what was computed of it."""

    application: Application
    phases: Sequence[PhaseCores]
    slots: int
    used: dict[str, float]
    stage_seconds: float

    @property
    def cores_of_task(self) -> int:
        return self.application.cores_of_task

    @property
    def task_seconds(self) -> float:
        return sum(each.task_seconds for each in self.application.stages)

    def share_of_tasks(self, core_seconds: float) -> str:
        return formatting.percent(core_seconds / self.cores_of_task / self.task_seconds)

    @property
    def mean_cores(self) -> float:
        """How many cores there were on average while stages ran."""
        capacities = [each.capacity or 0.0 for each in self.phases]
        if sum(capacities) and self.stage_seconds:
            return sum(capacities) / self.stage_seconds
        return self.slots * self.cores_of_task

    def idle_by_phase(
        self, kind: CoreUseKind, of: Callable[[StagesAtOnce], bool]
    ) -> list[_IdleTime]:
        """Phases in which cores were idle for this reason, the most first."""
        found = []
        for each in self.phases:
            core_seconds = idle_parts(each, self.slots, self.cores_of_task).get(kind, 0.0)
            if core_seconds > 0 and of(each.phase):
                share = core_seconds / each.capacity if each.capacity else 0.0
                seconds = share * each.phase.seconds
                if not each.capacity:
                    seconds = core_seconds / self.slots / self.cores_of_task
                found.append(_IdleTime(each.phase, seconds, core_seconds))
        return sorted(found, key=lambda each: -each.core_seconds)


@dataclass(frozen=True, kw_only=True)
class _Saving:
    """A finding before what is the same for all."""

    name: str
    fact: str
    change: str
    settings: list[str]
    formula: str
    core_seconds: float
    seconds: float | None = None
    """Of the run's time; ``None``: all cores share the core seconds."""

    def to_finding(self, run: _Run) -> Finding:
        shared = self.core_seconds / run.mean_cores
        return Finding(
            name=self.name,
            fact=self.fact,
            change=self.change,
            settings=self.settings,
            core_seconds=self.core_seconds,
            seconds=shared if self.seconds is None else self.seconds,
            formula=self.formula,
        )


def _uneven_data(run: _Run) -> _Saving | None:
    found = run.idle_by_phase("last tasks", lambda phase: phase.is_skewed)
    if not found:
        return None
    stage = max(
        filter(is_skewed, found[0].phase.stages), key=lambda each: each.longest_task_seconds
    )
    mean = _task_bytes(stage) / max(stage.tasks, 1)
    return _Saving(
        name="Uneven data",
        fact=f"{_longest_task(stage)} It read {formatting.size(stage.longest_task_bytes)}, the "
        f"mean task {formatting.size(mean)}.",
        change="Let Spark split large partitions of joins, with a threshold below that task's "
        "size; in aggregations, add a random part to frequent keys and aggregate twice.",
        settings=[
            "spark.sql.adaptive.enabled",
            "spark.sql.adaptive.skewJoin.enabled",
            "spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes",
            "spark.sql.adaptive.skewJoin.skewedPartitionFactor",
        ],
        formula="idle slots while these phases' longest tasks ran on",
        core_seconds=sum(each.core_seconds for each in found),
        seconds=sum(each.seconds for each in found),
    )


def _slow_tasks(run: _Run) -> _Saving | None:
    found = run.idle_by_phase(
        "last tasks", lambda phase: not phase.is_skewed and any(map(_has_slow_task, phase.stages))
    )
    if not found:
        return None
    slow = filter(_has_slow_task, found[0].phase.stages)
    stage = max(slow, key=lambda each: each.longest_task_seconds)
    return _Saving(
        name="A task that takes longer than others",
        fact=f"{_longest_task(stage)} It did not read much more than others.",
        change="Find out whether its machine was slow or its executor just began (then let Spark "
        "start a second copy of such tasks), or its rows need more work (then divide them among "
        "more tasks).",
        settings=["spark.speculation", *_partition_settings(stage)],
        formula="idle slots while these phases' longest tasks ran on",
        core_seconds=sum(each.core_seconds for each in found),
        seconds=sum(each.seconds for each in found),
    )


def _few_tasks(run: _Run) -> _Saving | None:
    found = run.idle_by_phase("too few tasks", lambda _: True)
    if not found:
        return None
    phase = found[0].phase
    stage = max(phase.stages, key=lambda each: each.task_seconds)
    return _Saving(
        name="Too few tasks for the slots",
        fact=f"Phase {phase.name} had {formatting.several(phase.tasks, 'task')} for "
        f"{formatting.several(run.slots, 'slot')}; in part of its time, slots had no task.",
        change=f"Make {MANY_TASKS} to 3 times as many tasks as slots, or a multiple of the slots; "
        "or run on fewer cores, which costs less and may take as long.",
        settings=[*_partition_settings(stage), "spark.dynamicAllocation.maxExecutors"],
        formula="idle slots, as the phases' tasks did not fill waves of all slots",
        core_seconds=sum(each.core_seconds for each in found),
        seconds=sum(each.seconds for each in found),
    )


def _short_tasks(run: _Run) -> _Saving | None:
    found = [each for each in run.phases if _has_short_tasks(each.phase, run.slots)]
    if not found:
        return None
    stage = max((one for each in found for one in each.phase.stages), key=lambda one: one.tasks)
    return _Saving(
        name="Many short tasks",
        fact=f"Half of the {formatting.several(stage.tasks, 'task')} of stage {stage.id} took less "
        f"than {formatting.latency(stage.median_task_seconds)}. Starting and scheduling takes part "
        "of each.",
        change="Make fewer and larger tasks.",
        settings=_partition_settings(stage),
        formula="idle slots, launching and loading tasks, and sending results, while they ran",
        core_seconds=sum(
            (each.idle or 0.0) + each.busy["loading of tasks"] + each.busy["launch and results"]
            for each in found
        ),
    )


def _has_short_tasks(phase: StagesAtOnce, slots: int) -> bool:
    are_short = all(each.median_task_seconds < SHORT_TASK_SECONDS for each in phase.stages)
    return are_short and phase.tasks >= MANY_TASKS * slots


def _spill(run: _Run) -> _Saving | None:
    stages = [each for each in run.application.stages if each.spilled_bytes]
    if not stages:
        return None
    waited = ("other waits", "Python or waiting", "shuffle write")
    core_seconds = run.cores_of_task * sum(
        seconds for stage in stages for kind, seconds in task_time(stage).items() if kind in waited
    )
    most = max(stages, key=lambda each: each.spilled_bytes)
    return _Saving(
        name="Spilling to disk",
        fact=f"{formatting.size(sum(each.spilled_bytes for each in stages))} were spilled, most in "
        f"stage {most.id} ({formatting.size(most.spilled_bytes)} by "
        f"{formatting.several(most.tasks, 'task')}).",
        change="Give each task more memory (more for each executor, or fewer cores in it), or make "
        "the tasks' data smaller with more partitions.",
        settings=["spark.executor.memory", "spark.executor.cores", *_partition_settings(most)],
        formula="waits of these stages' tasks without those for shuffled blocks; the CPU time of "
        "writing and reading what was spilled is not known, and comes on top",
        core_seconds=core_seconds,
    )


def _garbage_collection(run: _Run) -> _Saving | None:
    core_seconds = run.used.get("garbage collection", 0.0)
    if not run.task_seconds:
        return None
    return _Saving(
        name="Garbage collection",
        fact=f"Tasks stood still {run.share_of_tasks(core_seconds)} of their time while the JVM "
        "collected garbage.",
        change="Give executors more memory, cache less of it, or keep cached data serialized.",
        settings=["spark.executor.memory", "spark.memory.storageFraction", "spark.executor.cores"],
        formula="pauses while tasks ran, up to the tasks' time without CPU and other waits",
        core_seconds=core_seconds,
    )


def _fetch(run: _Run) -> _Saving | None:
    stages = run.application.stages
    remote = sum(each.shuffle_remote_bytes for each in stages)
    return _Saving(
        name="Waiting for shuffled data",
        fact=f"Tasks waited for blocks of shuffles; {formatting.size(remote)} came from other "
        "executors.",
        change="Shuffle less (filter and aggregate earlier, broadcast small tables), fetch more at "
        "once, or use machines with a faster network and faster disks.",
        settings=["spark.reducer.maxSizeInFlight", "spark.sql.autoBroadcastJoinThreshold"],
        formula="tasks' waits for shuffled blocks",
        core_seconds=run.used.get("shuffle fetch", 0.0),
    )


def _shuffle_write(run: _Run) -> _Saving | None:
    written = sum(each.shuffle_written_bytes for each in run.application.stages)
    return _Saving(
        name="Writing shuffled data",
        fact=f"Tasks spent the time on writing {formatting.size(written)} of shuffles to files.",
        change="Use faster local disks, or several; shuffle less.",
        settings=["spark.local.dir", "spark.io.compression.codec"],
        formula="tasks' time in writing shuffled data to files",
        core_seconds=run.used.get("shuffle write", 0.0),
    )


def _other_waits(run: _Run) -> _Saving | None:
    core_seconds = run.used.get("other waits", 0.0)
    if not run.task_seconds:
        return None
    stage = max(run.application.stages, key=lambda each: task_time(each).get("other waits", 0.0))
    moved = _task_bytes(stage) + stage.shuffle_written_bytes + sum(stage.written_bytes.values())
    return _Saving(
        name="Tasks that waited without the CPU",
        fact=f"{run.share_of_tasks(core_seconds)} of the tasks' time was neither on the CPU nor in "
        f"a wait that Spark counts, most in stage {stage.id}, which moved "
        f"{formatting.size(moved)}.",
        change="Watch an executor's machine (tonnage observe, sar). If its disks or the store were "
        "busy, use faster ones; if its cores were, run fewer tasks on each or more machines.",
        settings=["spark.executor.cores", "spark.task.cpus"],
        formula="tasks' time - CPU, shuffle waits, pauses, loading, launch and results",
        core_seconds=core_seconds,
    )


def _lost_tasks(run: _Run) -> _Saving | None:
    stages = run.application.stages
    failed, killed = (
        sum(each.failed_tasks for each in stages),
        sum(each.killed_tasks for each in stages),
    )
    speculative = sum(each.speculative_tasks for each in stages)
    settings = ["spark.task.maxFailures", "spark.executor.memoryOverhead"]
    if speculative:
        settings.append("spark.speculation")
    return _Saving(
        name="Tasks that failed or were killed",
        fact=f"{formatting.several(failed, 'task')} failed and {formatting.count(killed)} were "
        f"killed; {formatting.count(speculative)} were second copies of slow tasks.",
        change="Read the failures' reasons in Spark's history server. If executors were lost, give "
        "them more memory overhead; on spot machines, losses are part of the price.",
        settings=settings,
        formula="durations of tasks that failed or were killed",
        core_seconds=run.used.get("lost tasks", 0.0),
    )


def _driver_alone(run: _Run) -> _Saving | None:
    stages = run.application.stages
    seconds = max(run.application.seconds - run.stage_seconds, 0.0)
    first = min(each.began_seconds for each in stages)
    return _Saving(
        name="Executors without work",
        fact=f"No stage ran for {_seconds(seconds)} of {_seconds(run.application.seconds)}, of "
        f"which {_seconds(min(first, seconds))} before the first stage. Executors were there for "
        "some of that time.",
        change="Look at what the driver does then: listing files, planning queries, collecting "
        "results, moving output. Let Spark release idle executors in gaps longer than its timeout "
        "(60 s by default), or run independent queries at once.",
        settings=["spark.dynamicAllocation.enabled", "spark.dynamicAllocation.executorIdleTimeout"],
        formula="executors' cores x time in which no stage ran; the driver's own work stays",
        core_seconds=run.used.get("no stage", 0.0),
        seconds=seconds,
    )


FINDERS: Sequence[Callable[[_Run], _Saving | None]] = (
    _uneven_data,
    _slow_tasks,
    _few_tasks,
    _short_tasks,
    _spill,
    _garbage_collection,
    _fetch,
    _shuffle_write,
    _other_waits,
    _lost_tasks,
    _driver_alone,
)


def _partition_settings(stage: ApplicationStage) -> list[str]:
    """What governs the number of a stage's tasks: its input's, or its shuffles' partitions."""
    is_sql = _is_sql(stage.operators)
    shuffled = stage.shuffle_remote_bytes + stage.shuffle_local_bytes
    if sum(stage.read_bytes.values()) > shuffled:
        return ["spark.sql.files.maxPartitionBytes" if is_sql else "spark.default.parallelism"]
    if not is_sql:
        return ["spark.default.parallelism"]
    if any("AQEShuffleRead" in each for each in stage.operators):
        return [
            "spark.sql.adaptive.coalescePartitions.parallelismFirst",
            "spark.sql.adaptive.advisoryPartitionSizeInBytes",
            "spark.sql.shuffle.partitions",
        ]
    return ["spark.sql.shuffle.partitions"]


def _is_sql(operators: Iterable[str]) -> bool:
    marks = ("WholeStageCodegen", "Exchange", "Scan", "AQEShuffleRead", "Aggregate", "Join")
    return any(mark in each for each in operators for mark in marks)


def _task_bytes(stage: ApplicationStage) -> int:
    shuffled = stage.shuffle_remote_bytes + stage.shuffle_local_bytes
    return sum(stage.read_bytes.values()) + shuffled


def _has_slow_task(stage: ApplicationStage) -> bool:
    return stage.longest_task_seconds > SLOW * stage.median_task_seconds


def _longest_task(stage: ApplicationStage) -> str:
    return (
        f"The longest task of stage {stage.id} took {_seconds(stage.longest_task_seconds)}, the "
        f"median {_seconds(stage.median_task_seconds)}. Other slots had nothing left to do."
    )


def _seconds(value: float) -> str:
    return formatting.duration(value)
