"""An application of another engine, as its own log reports it: what each stage did.

Times are seconds since the application's start. Bytes and core seconds of a stage are those of all
its tasks together, also of tasks that failed or ran twice: they occupied machines, too. What
follows from these facts, such as demands or the shape of the cluster, is computed when it is asked.
"""

import re
from collections import Counter
from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal, NamedTuple

from msgspec import Meta

from tonnage.base.records.base import Count, PositiveCount, Record, Seconds, Struct

Source = Literal["objects", "files", "cache", "unknown"]
"""Where data is: an object store; a file system; data sets that the application has cached."""


class Executor(Struct, frozen=True, kw_only=True):
    """A process that runs tasks, from its start to its end or the application's."""

    host: Count
    """The number of its machine, in the order of their first executors."""
    cores: Count | None
    memory_bytes: Count | None
    """For data: what execution and cached data sets may use together."""
    began_seconds: Seconds
    ended_seconds: Seconds


def cores_of_task(settings: Mapping[str, str]) -> int:
    """How many cores a task holds (``spark.task.cpus``)."""
    value = settings.get("spark.task.cpus", "")
    return int(value) if re.fullmatch("[1-9][0-9]{0,3}", value) else 1


class ExecutorShape(NamedTuple):
    """Executors of the same size that ran at the same time."""

    executors: int
    hosts: int
    cores: int | None
    memory_bytes: int | None


class CachedDataSet(Struct, frozen=True, kw_only=True):
    """The most that a cached data set occupied; only some logs report it."""

    name: str
    memory_bytes: Count
    disk_bytes: Count


class TasksInTurn(Struct, frozen=True, kw_only=True):
    tasks: PositiveCount
    seconds: Seconds
    """As ``task_seconds``, of all together."""
    read_bytes: Count
    """Of input and shuffles, of all together."""


class ApplicationStage(Struct, frozen=True, kw_only=True):
    """One attempt of a stage. Times of tasks are seconds of a core."""

    id: Count
    attempt: Count
    name: str
    operators: list[str]
    """The engine's names of what it does, such as a scan, a join or an exchange."""
    parents: list[Count]
    """The stages that ran before it because it reads their output."""
    began_seconds: Seconds
    seconds: Seconds
    finished: bool
    tasks: Count
    finished_tasks: Count
    failed_tasks: Count
    killed_tasks: Count
    """For example because another copy was faster."""
    speculative_tasks: Count
    read_bytes: dict[Source, Count]
    shuffle_remote_bytes: Count
    """Read from other executors."""
    shuffle_local_bytes: Count
    shuffle_written_bytes: Count
    spilled_bytes: Count
    """Written to disk, as they are stored there."""
    written_bytes: dict[Source, Count]
    task_seconds: Seconds
    """From the launch of each task to its end, of all together."""
    early_tasks: list[TasksInTurn]
    """Finished tasks with which executors began the stage: they also load and compile what the
    others then run. First those that each slot did first, then those that it did second, ..."""
    run_seconds: Seconds
    cpu_seconds: Seconds
    """Of the threads of tasks, with deserialization: not of garbage collection, of the compiler, of
    network threads, nor of Python workers."""
    python: bool
    """Whether its tasks have Python workers, whose CPU time no log reports."""
    gc_seconds: Seconds
    """How long tasks stood still: a pause counts once for each task that ran at that time."""
    deserialize_seconds: Seconds
    fetch_wait_seconds: Seconds
    shuffle_write_seconds: Seconds
    lost_seconds: Seconds
    """Of tasks that failed or were killed."""
    median_task_seconds: Seconds
    """Of finished tasks, as the next two; 0 if there are none."""
    p90_task_seconds: Seconds
    longest_task_seconds: Seconds
    longest_task_bytes: Count
    """What the longest task read, of input and shuffles."""
    largest_task_bytes: Count
    """What the task read that read most."""
    peak_memory_bytes: Count
    """Of execution, of the task that had most."""


class Application(Record, frozen=True, kw_only=True):
    SCHEMA: ClassVar[str] = "tonnage.application/1"

    id: str
    attempt: str
    name: str
    engine: Literal["spark"]
    version: str
    began_at: str
    seconds: Seconds
    ended: bool
    """False if its log has no end: it was still running, or was killed."""
    failed_jobs: Count
    executors: list[Executor]
    stages: Annotated[list[ApplicationStage], Meta(min_length=1)]
    cached: list[CachedDataSet]
    settings: dict[str, str]
    """The engine's own settings that state its size: executors, cores, memory, partitions."""
    notes: list[str]

    @property
    def cores_of_task(self) -> int:
        return cores_of_task(self.settings)

    @property
    def core_seconds(self) -> float | None:
        """Of the executors' cores, busy or not; None if an executor's cores are unknown."""
        total = 0.0
        for each in self.executors:
            if each.cores is None:
                return None
            total += each.cores * (each.ended_seconds - each.began_seconds)
        return total

    def largest_cluster(self) -> list[ExecutorShape]:
        """The shapes of the executors at the first moment at which most of them ran."""
        changes = sorted(
            [(each.began_seconds, 1, number) for number, each in enumerate(self.executors)]
            + [(each.ended_seconds, 0, number) for number, each in enumerate(self.executors)]
        )
        running: set[int] = set()
        largest: set[int] = set()
        for _, starts, number in changes:
            if starts:
                running.add(number)
                if len(running) > len(largest):
                    largest = set(running)
            else:
                running.discard(number)
        shapes = Counter(
            (self.executors[number].cores, self.executors[number].memory_bytes)
            for number in largest
        )
        return [
            ExecutorShape(
                count,
                len(
                    {
                        self.executors[number].host
                        for number in largest
                        if (self.executors[number].cores, self.executors[number].memory_bytes)
                        == shape
                    }
                ),
                *shape,
            )
            for shape, count in shapes.most_common()
        ]
