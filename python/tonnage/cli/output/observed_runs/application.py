"""An application of another engine on the terminal: what it was, and its longest stages."""

from collections.abc import Iterator

from tonnage.base import formatting
from tonnage.base.records.application import Application, ApplicationStage, ExecutorShape

MOST_STAGES = 10
PLACES = {
    "objects": "object storage",
    "files": "files",
    "cache": "cached data",
    "unknown": "an unknown place",
}
CODE = "WholeStageCodegen"
"""Spark's name of compiled operators; it does not state which."""
LONGEST_NAME = 60
LONG_WAIT = 0.1
"""Share of the time of tasks from which a wait is mentioned."""


def application_lines(application: Application) -> list[str]:
    stages = application.stages
    name = application.name or application.id or "an application"
    cpu = sum(stage.cpu_seconds for stage in stages)
    longest = sorted(stages, key=lambda stage: -stage.seconds)[:MOST_STAGES]
    shown = [stage for stage in stages if stage in longest]
    return [
        f"{name} ({application.engine.title()} {application.version or 'of an unknown version'}): "
        f"{formatting.duration(application.seconds)}"
        f"{'' if application.ended else ' so far'}, "
        f"{formatting.several(len(stages), 'stage')}, "
        f"{formatting.count(sum(stage.tasks for stage in stages))} tasks, "
        f"{formatting.significant(cpu)} core seconds",
        *_executors(application),
        *(_stage(stage) for stage in shown),
        *_rest(application, shown),
        *_failures(application),
        *application.notes,
    ]


def _executors(application: Application) -> Iterator[str]:
    shapes = application.largest_cluster()
    if not shapes:
        return
    line = f"executors: {formatting.listing(_shape(each) for each in shapes)}"
    if (available := application.core_seconds) is not None:
        busy = sum(stage.run_seconds for stage in application.stages)
        line += f"; {formatting.significant(available)} core seconds rented" + (
            f", {formatting.percent(busy / available)} of them in tasks" if available else ""
        )
    yield line


def _shape(shape: ExecutorShape) -> str:
    size = [] if shape.cores is None else [formatting.several(shape.cores, "core")]
    if shape.memory_bytes is not None:
        size.append(f"{formatting.memory(shape.memory_bytes)} for data")
    machines = formatting.several(shape.hosts, "machine")
    return (
        f"{shape.executors} with {' and '.join(size)} on {machines}"
        if size
        else (f"{shape.executors} on {machines}")
    )


def _stage(stage: ApplicationStage) -> str:
    """Its time first, then what it moved, then how its tasks differ."""
    number = f"{stage.id}" + (f", attempt {stage.attempt + 1}" if stage.attempt else "")
    moved = [
        *(
            f"{formatting.size(amount)} read from {PLACES[source]}"
            for source, amount in stage.read_bytes.items()
        ),
        *(
            f"{formatting.size(amount)} {verb}"
            for amount, verb in (
                (stage.shuffle_remote_bytes + stage.shuffle_local_bytes, "read of shuffles"),
                (stage.shuffle_written_bytes, "written to a shuffle"),
                (stage.spilled_bytes, "spilled"),
                (sum(stage.written_bytes.values()), "written"),
            )
            if amount
        ),
    ]
    operators = [each for each in stage.operators if not each.startswith(CODE)]
    name = _shortened(" > ".join(operators) or stage.name)
    longest = f"{formatting.seconds(stage.longest_task_seconds)} longest"
    return (
        f"stage {number} ({name}): {formatting.duration(stage.seconds)}, "
        f"{formatting.several(stage.tasks, 'task')} "
        f"({formatting.seconds(stage.median_task_seconds)} median, {longest}), "
        + ", ".join([*moved, f"{formatting.significant(stage.cpu_seconds)} core seconds"])
        + "".join(f", {each}" for each in _waits(stage))
        + ("" if stage.finished else "; not finished")
    )


def _waits(stage: ApplicationStage) -> Iterator[str]:
    """Where much of its tasks' time was spent without work."""
    for seconds, what in (
        (stage.gc_seconds, "garbage collection"),
        (stage.fetch_wait_seconds, "waiting for shuffles"),
    ):
        if seconds >= LONG_WAIT * stage.run_seconds > 0:
            yield f"{formatting.percent(seconds / stage.run_seconds)} {what}"


def _rest(application: Application, shown: list[ApplicationStage]) -> Iterator[str]:
    rest = [stage for stage in application.stages if stage not in shown]
    if rest:
        seconds = sum(stage.seconds for stage in rest)
        stages = formatting.several(len(rest), "shorter stage")
        yield f"{stages}: {formatting.duration(seconds)} together"


def _failures(application: Application) -> Iterator[str]:
    stages = application.stages
    failed = sum(stage.failed_tasks for stage in stages)
    killed = sum(stage.killed_tasks for stage in stages)
    lost = sum(stage.lost_seconds for stage in stages)
    parts = [
        formatting.several(number, noun)
        for number, noun in (
            (application.failed_jobs, "failed job"),
            (failed, "failed task"),
            (killed, "killed task"),
        )
        if number
    ]
    if parts:
        yield f"{formatting.listing(parts)}: tasks ran {formatting.duration(lost)} for nothing"
    if any(stage.python for stage in stages):
        yield (
            "Some stages have Python workers, whose CPU time is not in the log: core seconds are "
            "those of Spark itself."
        )


def _shortened(name: str) -> str:
    return name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 3]}..."
