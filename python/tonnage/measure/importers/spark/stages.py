"""The sums of a stage's tasks. Of a task itself only its duration is kept, as four bytes."""

import heapq
import json
import re
from array import array
from collections import Counter
from typing import NamedTuple

import numpy as np

from tonnage.base.records.application import ApplicationStage, Source, TasksInTurn
from tonnage.measure.importers.metric import one_line
from tonnage.measure.importers.spark import events

MS, NS = 1e3, 1e9
"""In a second."""
LONGEST_TASK_MS = 2**32 - 1
EARLY_TURNS = 4
"""So many tasks of each slot are kept apart; compilers are done with what they run by then."""
PYTHON = ("Python", "Pandas", "Arrow")
"""In the names of operators and data sets that Python workers compute."""
NO_INPUT = ("ParallelCollectionRDD", "EmptyRDD")
"""Data sets without parents that read nothing."""


class EarlyTasks:
    """The tasks with which each executor began a stage, by the order of their launch: they end in
    another order. Only those that may be among the first are kept, until the stage ends."""

    def __init__(self) -> None:
        self._of_executor: dict[str, tuple[int, list[tuple[int, int, int]]]] = {}
        """How many run at once, and a heap of the launch, negated, the duration and the bytes read
        of each."""
        self._sums = [(0, 0, 0)] * EARLY_TURNS
        """Of each turn, how many tasks, milliseconds and bytes."""

    def add(self, executor: str, slots: int, began: int, duration: int, read: int) -> None:
        _, kept = self._of_executor.setdefault(executor, (slots, []))
        if len(kept) < slots * EARLY_TURNS:
            heapq.heappush(kept, (-began, duration, read))
        elif -began > kept[0][0]:
            heapq.heapreplace(kept, (-began, duration, read))

    def add_up(self) -> None:
        for slots, kept in self._of_executor.values():
            for place, (_, duration, read) in enumerate(sorted(kept, reverse=True)):
                tasks, spent, before = self._sums[place // slots]
                self._sums[place // slots] = tasks + 1, spent + duration, before + read
        self._of_executor.clear()

    def turns(self) -> list[TasksInTurn]:
        self.add_up()
        return [
            TasksInTurn(tasks=tasks, seconds=spent / MS, read_bytes=read)
            for tasks, spent, read in self._sums
            if tasks
        ]


class StageSums:
    """An attempt of a stage, of which some events have come."""

    def __init__(self, id: int, attempt: int) -> None:
        self.id, self.attempt = id, attempt
        self.name = f"stage {id}"
        self.operators: list[str] = []
        self.parents: list[int] = []
        self.rdd: int | None = None
        """The data set that it makes."""
        self.reads_from: Source = "unknown"
        self.writes_to: Source = "unknown"
        self.python = False
        self.began = self.last_task = 0
        self.ended: int | None = None
        self.finished = False
        self._tasks = 0
        self._finished_tasks = self._failed_tasks = self._killed_tasks = 0
        self._speculative_tasks = 0
        self._sums = Counter[str]()
        self._peak_memory = 0
        self._durations = array("I")
        self._early = EarlyTasks()
        self._longest, self._longest_bytes, self._largest_bytes = -1, 0, 0

    def describe(self, info: events.StageInfo) -> None:
        """Take what is known when the stage begins, and again when it ends."""
        self.name = one_line(info.name) or self.name
        self._tasks = info.tasks or self._tasks
        self.began = info.began or self.began
        self.parents = info.parents
        if info.ended is not None:
            self.ended, self.finished = info.ended, info.failure is None
            self._early.add_up()

    def describe_data(self, computed: list[events.RddInfo]) -> None:
        self.operators = _operators(computed)
        names = [*self.operators, *(each.name for each in computed)]
        self.python = any(word in name for name in names for word in PYTHON)

    def add_task(self, event: events.TaskEnd, slots: int) -> None:
        """Take a task that has ended on an executor that runs so many at once."""
        task, metrics, sums = event.task, event.metrics, self._sums
        duration = min(max(task.ended - task.began, 0), LONGEST_TASK_MS)
        self.began = min(self.began or task.began, task.began)
        self.last_task = max(self.last_task, task.ended)
        self._speculative_tasks += task.speculative
        sums["task_ms"] += duration
        if task.failed or task.killed:
            self._failed_tasks += task.failed and not task.killed
            self._killed_tasks += task.killed
            sums["lost_ms"] += duration
        else:
            self._finished_tasks += 1
            self._durations.append(duration)
            self._early.add(task.executor, slots, task.began, duration, _read(metrics))
        if metrics is None:
            return
        shuffle_read, shuffle_write = metrics.shuffle_read, metrics.shuffle_write
        if not (task.failed or task.killed):
            task_bytes = _read(metrics)
            self._largest_bytes = max(self._largest_bytes, task_bytes)
            if duration > self._longest:
                self._longest, self._longest_bytes = duration, task_bytes
        self._peak_memory = max(self._peak_memory, metrics.peak_memory)
        sums["read"] += metrics.input.read
        sums["remote"] += shuffle_read.remote
        sums["local"] += shuffle_read.local
        sums["shuffled"] += shuffle_write.written
        sums["spilled"] += metrics.spilled
        sums["written"] += metrics.output.written
        sums["run_ms"] += metrics.run_ms
        sums["cpu_ns"] += metrics.cpu_ns + metrics.deserialize_cpu_ns
        sums["gc_ms"] += metrics.gc_ms
        sums["deserialize_ms"] += metrics.deserialize_ms
        sums["wait_ms"] += shuffle_read.wait_ms
        sums["write_ns"] += shuffle_write.time_ns

    @property
    def task_ends(self) -> int:
        """The number of its tasks that have ended, in whatever way."""
        return self._finished_tasks + self._failed_tasks + self._killed_tasks

    def to_record(self, began: int, ended: int, parents: list[int]) -> ApplicationStage:
        """The stage of an application that ran between these times."""
        sums = self._sums
        durations = np.frombuffer(self._durations or array("I", [0]), dtype=np.uint32)
        median, p90, longest = (float(each) for each in np.quantile(durations, (0.5, 0.9, 1.0)))
        until = self.ended if self.ended is not None else max(self.last_task, ended)
        return ApplicationStage(
            id=self.id,
            attempt=self.attempt,
            name=self.name,
            operators=self.operators,
            parents=parents,
            began_seconds=max(self.began - began, 0) / MS,
            seconds=max(until - self.began, 0) / MS,
            finished=self.finished,
            tasks=max(self._tasks, self._finished_tasks),
            finished_tasks=self._finished_tasks,
            failed_tasks=self._failed_tasks,
            killed_tasks=self._killed_tasks,
            speculative_tasks=self._speculative_tasks,
            read_bytes={self.reads_from: sums["read"]} if sums["read"] else {},
            shuffle_remote_bytes=sums["remote"],
            shuffle_local_bytes=sums["local"],
            shuffle_written_bytes=sums["shuffled"],
            spilled_bytes=sums["spilled"],
            written_bytes={self.writes_to: sums["written"]} if sums["written"] else {},
            task_seconds=sums["task_ms"] / MS,
            early_tasks=self._early.turns(),
            run_seconds=sums["run_ms"] / MS,
            cpu_seconds=sums["cpu_ns"] / NS,
            python=self.python,
            gc_seconds=sums["gc_ms"] / MS,
            deserialize_seconds=sums["deserialize_ms"] / MS,
            fetch_wait_seconds=sums["wait_ms"] / MS,
            shuffle_write_seconds=sums["write_ns"] / NS,
            lost_seconds=sums["lost_ms"] / MS,
            median_task_seconds=median / MS,
            p90_task_seconds=p90 / MS,
            longest_task_seconds=longest / MS,
            longest_task_bytes=self._longest_bytes,
            largest_task_bytes=self._largest_bytes,
            peak_memory_bytes=self._peak_memory,
        )


def _read(metrics: events.TaskMetrics | None) -> int:
    """Bytes of input and shuffles."""
    if metrics is None:
        return 0
    shuffled = metrics.shuffle_read
    return metrics.input.read + shuffled.remote + shuffled.local


class Lineage(NamedTuple):
    """The data sets that a stage computes, and where it begins with them."""

    computed: list[events.RddInfo]
    from_cache: bool
    from_input: bool


def lineage(rdds: list[events.RddInfo], stored: set[int]) -> Lineage:
    """What a stage of these data sets computes, of which the first is its result.

    A data set that an earlier stage has stored ends the search: what it was made of is not read
    again, unless it was evicted, which no event reports.
    """
    by_id = {each.id: each for each in rdds}
    waiting = [rdds[0].id] if rdds else []
    computed: dict[int, events.RddInfo] = {}
    from_cache = from_input = False
    while waiting:
        rdd = by_id.get(waiting.pop())
        if rdd is None or rdd.id in computed:
            continue
        if rdd.is_cached and rdd.id in stored:
            from_cache = True
            continue
        computed[rdd.id] = rdd
        from_input |= not rdd.parents and not rdd.name.startswith(NO_INPUT)
        waiting += rdd.parents
    return Lineage([*computed.values()], from_cache, from_input)


def _operators(rdds: list[events.RddInfo]) -> list[str]:
    """Names of scopes, or of data sets without one, in the order of the data, each once."""
    names = [_scope(each) or _kind(each) for each in sorted(rdds, key=lambda rdd: rdd.id)]
    return [*dict.fromkeys(name for name in names if name)]


def _kind(rdd: events.RddInfo) -> str:
    """The kind of a data set, which is its name unless it has another."""
    return rdd.name if re.fullmatch(r"\w*RDD\w*", rdd.name) else ""


def _scope(rdd: events.RddInfo) -> str:
    try:
        scope = json.loads(rdd.scope)
    except (ValueError, RecursionError):
        scope = None
    name = scope.get("name") if isinstance(scope, dict) else None
    return one_line(name).strip() if isinstance(name, str) else ""
