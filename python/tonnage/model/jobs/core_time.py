"""Where the core seconds of an application went: in its tasks, and in slots without one.

A task's time is its counters (blocked time: Ousterhout et al., Making Sense of Performance in Data
Analytics Frameworks, NSDI 2015). Counters overlap: a pause of the garbage collector may fall into a
wait for data. So each is counted up to what the ones before it have left of the stage's time.

Idle slots are split by the same terms as in `model.jobs.application`: what whole waves of a phase's
tasks take beyond an even division is for lack of tasks, what its longest task takes beyond these is
for the last ones, and the rest lies between tasks, in which they start, end and are scheduled.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tonnage.base.records.application import Application, ApplicationStage
from tonnage.base.records.application_analysis import CoreUse, CoreUseKind
from tonnage.model.jobs.application import PhaseSeconds, StagesAtOnce

FORMULAS: dict[CoreUseKind, str] = {
    "computing": "CPU time of the tasks' threads",
    "garbage collection": "JVM pauses while tasks ran, once for each task that stood still",
    "shuffle fetch": "tasks' waits for shuffled blocks",
    "shuffle write": "tasks' time in writing shuffled data to files",
    "loading of tasks": "deserialization of tasks and their code, of what remains of their time",
    "launch and results": "tasks' time before and after their work: scheduling, sending results",
    "Python or waiting": "rest of the time of tasks with Python workers, whose CPU time no log has",
    "other waits": "rest of the tasks' time: input, output, locks, cores that others used",
    "lost tasks": "durations of tasks that failed or were killed",
    "no stage": "executors' cores x time in which no stage ran",
    "too few tasks": "slots without a task, as a phase's tasks did not fill waves of all slots",
    "last tasks": "slots that were done while a phase's longest task ran on",
    "between tasks": "rest of the slots' time: starting, scheduling and ending tasks and stages",
}
COUNTED = ("computing", "shuffle fetch", "no stage")
"""What the log's counters give as it is; all others are estimates or bounds."""


@dataclass(frozen=True)
class PhaseCores:
    """What the cores of executors did while a phase ran."""

    phase: StagesAtOnce
    busy: dict[CoreUseKind, float]
    """Core seconds that tasks held."""
    capacity: float | None
    """Core seconds that there were; ``None`` if the log does not report the executors' cores."""

    @property
    def idle(self) -> float | None:
        if self.capacity is None:
            return None
        return max(self.capacity - sum(self.busy.values()), 0.0)


def phase_cores(application: Application, phases: Sequence[StagesAtOnce]) -> list[PhaseCores]:
    """For each phase, in order of time; the time of two that overlap a little is the first's."""
    cores = CoresOverTime(application) if application.core_seconds else None
    held = application.cores_of_task
    found, until = [], 0.0
    for phase in phases:
        busy: dict[CoreUseKind, float] = dict.fromkeys(FORMULAS, 0.0)
        for stage in phase.stages:
            for kind, seconds in task_time(stage).items():
                busy[kind] += held * seconds
        begin = max(min(each.began_seconds for each in phase.stages), until)
        until = max(max(each.began_seconds + each.seconds for each in phase.stages), until)
        capacity = None if cores is None else cores.core_seconds(begin, until)
        found.append(PhaseCores(phase, busy, capacity))
    return found


def core_uses(application: Application, phases: Sequence[PhaseCores], slots: int) -> list[CoreUse]:
    """Split the core seconds of an application.

    Args:
        application: The run.
        phases: Its phases with their cores, in order of time, each once.
        slots: How many tasks could run at once.

    Without the executors' cores, only the time of tasks is known.
    """
    spent: dict[CoreUseKind, float] = dict.fromkeys(FORMULAS, 0.0)
    for each in phases:
        _add(spent, each.busy)
        if each.idle is not None:
            _add(spent, idle_parts(each, slots, application.cores_of_task))
    if application.core_seconds:
        in_phases = sum(each.capacity or 0.0 for each in phases)
        spent["no stage"] = max(application.core_seconds - in_phases, 0.0)
    return [
        CoreUse(
            kind=kind,
            core_seconds=spent[kind],
            formula=formula,
            estimated=kind not in COUNTED,
        )
        for kind, formula in FORMULAS.items()
        if spent[kind] > 0
    ]


def _add(sums: dict[CoreUseKind, float], more: dict[CoreUseKind, float]) -> None:
    for kind, seconds in more.items():
        sums[kind] += seconds


def task_time(stage: ApplicationStage) -> dict[CoreUseKind, float]:
    """Split the time of a stage's tasks, in seconds of a slot."""
    left = stage.task_seconds
    # As the counters of lost tasks hold their time, unless an executor was lost with its tasks.
    in_executors = stage.run_seconds + stage.deserialize_seconds
    counted: list[tuple[CoreUseKind, float]] = [
        ("lost tasks", stage.lost_seconds),
        ("computing", stage.cpu_seconds),
        ("launch and results", max(left - in_executors, 0.0)),
        ("shuffle fetch", stage.fetch_wait_seconds),
        ("shuffle write", stage.shuffle_write_seconds),
        ("garbage collection", stage.gc_seconds),
        ("loading of tasks", stage.deserialize_seconds),
    ]
    found: dict[CoreUseKind, float] = {}
    for kind, seconds in counted:
        found[kind] = min(seconds, left)
        left -= found[kind]
    found["Python or waiting" if stage.python else "other waits"] = left
    return found


def idle_parts(cores: PhaseCores, slots: int, cores_of_task: int) -> dict[CoreUseKind, float]:
    """Split a phase's idle core seconds by the terms that make up its time.

    Without the executors' cores, they are those that the terms leave of the slots' time.
    """
    terms = cores.phase.split_seconds(slots)
    tail = tail_seconds(cores.phase, terms)
    seconds: dict[CoreUseKind, float] = {
        "too few tasks": max(terms.waves - terms.evenly, 0.0),
        "last tasks": max(terms.longest_task - terms.waves, 0.0) + tail,
        "between tasks": terms.fixed - tail,
    }
    weights = {kind: each * slots * cores_of_task for kind, each in seconds.items()}
    total = sum(weights.values())
    if cores.idle is None:
        return weights
    if not total:
        return {"between tasks": cores.idle}
    return {kind: cores.idle * weight / total for kind, weight in weights.items()}


def tail_seconds(phase: StagesAtOnce, terms: PhaseSeconds) -> float:
    """Of the fixed seconds, how long its longest task may have run on, though not for its data."""
    longest = max(terms.waves, terms.longest_task)
    return min(max(phase.longest_task_seconds - longest, 0.0), terms.fixed)


class CoresOverTime:
    """The cores of the executors that ran at each time."""

    def __init__(self, application: Application) -> None:
        steps = Counter[float]()
        for each in application.executors:
            steps[each.began_seconds] += each.cores or 0
            steps[each.ended_seconds] -= each.cores or 0
        self._times: NDArray[np.float64] = np.array(sorted(steps), dtype=float)
        cores = np.cumsum([steps[time] for time in self._times])
        self._total = np.concatenate([[0.0], np.cumsum(cores[:-1] * np.diff(self._times))])

    def core_seconds(self, begin: float, end: float) -> float:
        """Between two times."""
        first, last = np.interp([begin, end], self._times, self._total)
        return float(last - first)
