"""A job from the run of another engine, stage by stage: its demands, and what does not shrink.

Stages that ran at once are a phase. Phases of stages with the same names, as iterations have, are
one phase: their demands are in proportion. Tasks hold slots while they compute and while they wait
for shuffled data (blocked time: Ousterhout et al., Making Sense of Performance in Data Analytics
Frameworks, NSDI 2015). Whatever is not such a wait counts as computing: what no log reports is
mostly the work of compilers, garbage collectors and Python. Where there were more slots than cores,
a slot had a part of a core. What a phase took beyond its slots' time and its longest task is fixed,
as are the times without any stage, in which the driver works.

The first tasks of each slot load and compile code, which later ones then run. By how much they take
longer for as many bytes, each slot takes longer, however many there are: that is the phase
``warm-up``. Where a task reads far more than the others do, it is not told apart.

    core seconds = (slot seconds - waits - warm-up of all slots together) x cores / slots
    fixed seconds = seconds - max(slot seconds / slots in whole waves, longest task) - warm-up
"""

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

from tonnage.base.executor_memory import MEMORY_FOR_DATA
from tonnage.base.records.application import Application, ApplicationStage, TasksInTurn
from tonnage.base.records.job import (
    LEAST_PER_BYTE,
    Demand,
    Job,
    JobPhase,
    RequestDemand,
    Resource,
    SpaceDemand,
)
from tonnage.base.records.location import Location
from tonnage.model.jobs.locations import READS, SPACES, WRITES
from tonnage.model.past_runs.misfit import MISFIT

DRIVER = "driver"
WARM_UP = "warm-up"
OTHER_STAGES = "other stages"
MOST_PHASES = 12
"""So many are kept apart; the shortest are planned as one."""
AT_ONCE = 0.1
"""Stages of which this share of the shorter overlaps ran at once."""
SKEWED = 2.0
"""A task stays as long as it was, however many others there are, if it took so many times the
median and read so many times the mean. One that read no more was slow for another reason: its
executor began, or its machine was disturbed."""
SLOWER = 1.2
"""Tasks that take so many times what later ones take still warm up."""
TASKS_BY_SLOTS = (1, 2, 3, 4)
"""A stage with so many tasks a slot was divided by the number of slots, as engines do unless they
are given a number: it will be on other clusters, too."""
MEMORY_SOURCE = "Apache Spark's documented defaults: memory overhead 0.1, memory fraction 0.6"
REQUEST_BYTES = 8 << 20
"""Of the requests of engines to object storage; logs do not have them. They cost little."""
NAME_LENGTH = 40
MIN_BYTES = 1_000


def application_job(
    application: Application,
    *,
    core_speed: float | None = None,
    vcpus: float | None = None,
    read_from: Location | None = None,
    written_to: Location | None = None,
) -> Job:
    """The job of a run.

    Args:
        application: The run.
        core_speed: How much a vCPU does of the machines that it ran on, in cores of the reference.
        vcpus: How many they had together; by default, as many as slots.
        read_from: Where its input is; by default, where the run read most of it.
        written_to: Where its output goes; by default, where the input is.
    """
    size = input_bytes(application)
    source = f"the log of {application.id or application.name}"
    phases = join_alike(phases_of(application))
    read = read_from or _usual_location(application)
    written = written_to or read
    shuffled = sum(each.shuffle_written_bytes for each in application.stages)
    spilled = max((each.spilled_bytes for each in phases), default=0)
    output = sum(map(_written, application.stages))
    slots, cores = slots_of(application), application.cores_of_task
    seen = SeenCluster(slots, cores, min(vcpus / slots, cores) if vcpus else cores)
    busy = sum(each.seconds for each in phases)
    return Job(
        name=f"{application.engine}: {application.name or application.id}",
        phases=[
            JobPhase(name=DRIVER, demands=[], fixed_seconds=max(application.seconds - busy, 0.0)),
            *_warm_up(sum(each.warm_up_seconds for each in phases) * seen.vcpus_of_core),
            *(each.to_phase(size, seen, read, written, source) for each in phases),
        ],
        room=_room(
            *(size, read, written, _read(application.stages), shuffled + spilled, output),
            cached_bytes(application),
        ),
        requests=_requests(size, read, written, _read(application.stages), output),
        least_memory_per_vcpu=_memory_per_vcpu(application),
        seen_bytes=size,
        core_speed=core_speed,
        spread=math.hypot(MISFIT.spread, MISFIT.noise),
        settings={
            "from": read,
            "to": written,
            "engine": application.engine,
            "ended": application.ended,
            "failed_jobs": application.failed_jobs,
            "application": application.id,
            "seconds": application.seconds,
            "busy_vcpus": slots * cores,
            "hosts": sum(each.hosts for each in application.largest_cluster()),
            "reads_input": _read(application.stages) >= MIN_BYTES,
            "unnamed_share": _unnamed_share(application.stages),
        },
    )


def is_of_spark(job: Job) -> bool:
    return job.settings.get("engine") == "spark"


def input_bytes(application: Application) -> int:
    """What it read from outside; of one that reads nothing, what it made."""
    stages = application.stages
    made = max(sum(each.shuffle_written_bytes for each in stages), MIN_BYTES)
    read = _read(stages)
    return read if read >= MIN_BYTES else made


def busy_vcpus(application: Application) -> int:
    """How many vCPUs its tasks could keep busy at once."""
    return slots_of(application) * application.cores_of_task


def slots_of(application: Application) -> int:
    """How many tasks could run at once; where the log does not tell, as many as did on average."""
    told = sum(each.executors * (each.cores or 0) for each in application.largest_cluster())
    if told:
        return max(told // application.cores_of_task, 1)
    return math.ceil(
        max(
            (each.run_seconds / each.seconds for each in application.stages if each.seconds),
            default=1,
        )
    )


@dataclass(frozen=True)
class SeenCluster:
    """How many tasks ran at once, how many cores each held, and how much of a vCPU it had."""

    slots: int
    cores_of_task: int
    vcpus_of_slot: float

    @property
    def vcpus_of_core(self) -> float:
        return self.vcpus_of_slot / self.cores_of_task


class PhaseSeconds(NamedTuple):
    """The terms of a phase's time, in seconds and without its warm-up."""

    evenly: float
    """Of its tasks, if they kept all slots busy to the end."""
    waves: float
    """Of its tasks in whole waves, if they were divided so; otherwise as ``evenly``."""
    longest_task: float
    """If it is long because of its data; otherwise 0."""
    fixed: float
    """Beyond the waves and the longest task."""
    in_waves: bool


@dataclass(frozen=True)
class StagesAtOnce:
    """Stages that ran at the same time, once or several times."""

    stages: Sequence[ApplicationStage]
    seconds: float
    longest_task_seconds: float
    """Of several times, the sum of each one's longest."""
    times: int = 1
    are_others: bool = False
    """Whether they have no more in common than that each is short."""

    @cached_property
    def names(self) -> tuple[str, ...]:
        """What they do, in order; equal for the stages of iterations."""
        return tuple(sorted({stage_name(each) for each in self.stages}))

    @property
    def name(self) -> str:
        if self.are_others:
            return OTHER_STAGES
        first = self.stages[0]
        others = len(self.names) - 1
        more = f" and {others} more" if others else ""
        times = f", {self.times} times" if self.times > 1 else ""
        return f"{first.id}: {stage_name(first)[:NAME_LENGTH].strip()}{more}{times}"

    @property
    def tasks(self) -> int:
        return max(round(sum(each.tasks for each in self.stages) / self.times), 1)

    @property
    def slot_seconds(self) -> float:
        return sum(each.task_seconds for each in self.stages)

    @property
    def wait_seconds(self) -> float:
        """Of slots, for shuffled data."""
        waited = sum(each.fetch_wait_seconds + each.shuffle_write_seconds for each in self.stages)
        return min(waited, self.slot_seconds)

    @property
    def is_skewed(self) -> bool:
        return any(map(is_skewed, self.stages))

    @cached_property
    def warm_up_seconds(self) -> float:
        """Of each slot."""
        return min(sum(map(warm_up_seconds, self.stages)), self.seconds)

    @property
    def spilled_bytes(self) -> int:
        return sum(each.spilled_bytes for each in self.stages)

    @cached_property
    def warm_seconds(self) -> float:
        """Of all slots, without the warm-up of those that had any."""
        warming = sum(map(all_warm_up_seconds, self.stages))
        return max(self.slot_seconds - warming, 0.0)

    def to_phase(
        self, size: int, seen: SeenCluster, read: Location, written: Location, source: str
    ) -> JobPhase:
        terms = self.split_seconds(seen.slots)
        return JobPhase(
            name=self.name,
            demands=self._demands(size, seen, read, written, source),
            fixed_seconds=terms.fixed,
            tasks=self.tasks * seen.cores_of_task if terms.in_waves else None,
            longest_task_per_byte=terms.longest_task * seen.vcpus_of_core / size,
        )

    def split_seconds(self, slots: int) -> PhaseSeconds:
        """The terms of its time, if so many tasks could run at once."""
        follows_slots = self.tasks in [slots * each for each in TASKS_BY_SLOTS]
        seconds = self.seconds - self.warm_up_seconds
        rounded = evenly = self.warm_seconds / slots
        if not follows_slots:
            rounded *= math.ceil(self.tasks / slots) * slots / self.tasks
        in_waves = not follows_slots and rounded <= seconds
        waves = rounded if in_waves else evenly
        longest = min(self.longest_task_seconds, seconds) if self.is_skewed else 0.0
        return PhaseSeconds(
            evenly=evenly,
            waves=waves,
            longest_task=longest,
            fixed=max(seconds - max(waves, longest), 0.0),
            in_waves=in_waves,
        )

    def _demands(
        self, size: int, seen: SeenCluster, read: Location, written: Location, source: str
    ) -> list[Demand]:
        local = sum(each.shuffle_written_bytes for each in self.stages) + self.spilled_bytes
        sent = sum(each.shuffle_remote_bytes + each.shuffle_local_bytes for each in self.stages)
        output = sum(map(_written, self.stages))
        computed = max(self.warm_seconds - self.wait_seconds, 0.0)
        amounts: list[tuple[Resource, float, bool]] = [
            ("cpu", computed * seen.vcpus_of_slot, False),
            ("task wait", self.wait_seconds * seen.cores_of_task, False),
            (READS[read], _read(self.stages), False),
            ("local write", local, False),
            ("network", sent, True),
            (WRITES[written], output, False),
        ]
        return [
            Demand(resource=resource, per_byte=amount / size, source=source, shuffled=shuffled)
            for resource, amount, shuffled in amounts
            if amount / size >= LEAST_PER_BYTE
        ]


def _warm_up(seconds: float) -> list[JobPhase]:
    return [JobPhase(name=WARM_UP, demands=[], warm_up_seconds=seconds)] if seconds else []


def is_skewed(stage: ApplicationStage) -> bool:
    """Whether its longest task is long because of its data."""
    read = _read_by_tasks(stage)
    return (
        stage.longest_task_seconds > SKEWED * stage.median_task_seconds
        and stage.longest_task_bytes * stage.tasks > SKEWED * read
    )


def warm_up_seconds(stage: ApplicationStage) -> float:
    """How much longer the first tasks of a slot together took than as many later ones."""
    return sum(longer for _, longer in _slower_turns(stage))


def all_warm_up_seconds(stage: ApplicationStage) -> float:
    """As `warm_up_seconds`, of all slots that ran any of the stage's tasks together."""
    return sum(tasks * longer for tasks, longer in _slower_turns(stage))


def _slower_turns(stage: ApplicationStage) -> list[tuple[int, float]]:
    """How many tasks the slots did first, second, ..., and by how much each took longer than later
    ones, until they hardly do.

    Later tasks that read less, such as the rest of a file, would have taken longer for as much.
    """
    read = _read_by_tasks(stage)
    if not stage.early_tasks or stage.largest_task_bytes * stage.tasks > SKEWED * read > 0:
        return []
    *turns, later = [*stage.early_tasks, *_later_tasks(stage, read)]
    by_bytes = all(each.read_bytes for each in (later, *turns))

    def warm(turn: TasksInTurn) -> float:
        ratio = turn.read_bytes / later.read_bytes if by_bytes else turn.tasks / later.tasks
        return later.seconds * ratio

    slower = itertools.takewhile(lambda turn: turn.seconds > SLOWER * warm(turn), turns)
    return [(each.tasks, (each.seconds - warm(each)) / each.tasks) for each in slower]


def _later_tasks(stage: ApplicationStage, read: int) -> Iterator[TasksInTurn]:
    """All that no slot did among its first."""
    early = stage.early_tasks
    tasks = stage.finished_tasks - sum(each.tasks for each in early)
    seconds = stage.task_seconds - stage.lost_seconds - sum(each.seconds for each in early)
    if tasks > 0:
        yield TasksInTurn(
            tasks=tasks,
            seconds=max(seconds, 0.0),
            read_bytes=max(read - sum(each.read_bytes for each in early), 0),
        )


def _read_by_tasks(stage: ApplicationStage) -> int:
    shuffled = stage.shuffle_remote_bytes + stage.shuffle_local_bytes
    return sum(stage.read_bytes.values()) + shuffled


def stage_name(stage: ApplicationStage) -> str:
    """Its operators; of one without any, the call that it is of."""
    operators = dict.fromkeys(each.partition(" (")[0] for each in stage.operators)
    return ", ".join(operators) or stage.name or "stage"


def phases_of(application: Application) -> list[StagesAtOnce]:
    """The stages that ran at once, in order of time."""
    found: list[list[ApplicationStage]] = []
    for stage in sorted(application.stages, key=lambda each: each.began_seconds):
        if found and _overlap(found[-1], stage):
            found[-1].append(stage)
        else:
            found.append([stage])
    return [
        StagesAtOnce(some, _covered(some), max(each.longest_task_seconds for each in some))
        for some in found
    ]


def join_alike(phases: Iterable[StagesAtOnce], most: int = MOST_PHASES) -> list[StagesAtOnce]:
    """Phases of the same stages as one; and the shortest as one, if there are too many."""
    alike: dict[tuple[str, ...], list[StagesAtOnce]] = {}
    for each in phases:
        alike.setdefault(each.names, []).append(each)
    found = [_joined(some) for some in alike.values()]
    if len(found) <= most:
        return found
    by_time = sorted(found, key=lambda each: -each.seconds)
    kept = {id(each) for each in by_time[: most - 1]}
    rest = _joined([each for each in found if id(each) not in kept])
    return [*(each for each in found if id(each) in kept), replace(rest, are_others=True)]


def _joined(some: Sequence[StagesAtOnce]) -> StagesAtOnce:
    return StagesAtOnce(
        [stage for each in some for stage in each.stages],
        sum(each.seconds for each in some),
        sum(each.longest_task_seconds for each in some),
        sum(each.times for each in some),
    )


def _overlap(some: Sequence[ApplicationStage], stage: ApplicationStage) -> bool:
    until = max(each.began_seconds + each.seconds for each in some)
    shorter = min(stage.seconds, *(each.seconds for each in some))
    return until - stage.began_seconds > AT_ONCE * shorter


def _covered(some: Sequence[ApplicationStage]) -> float:
    begin = min(each.began_seconds for each in some)
    return max(each.began_seconds + each.seconds for each in some) - begin


def _read(stages: Iterable[ApplicationStage]) -> int:
    """Bytes of input from outside."""
    return sum(
        count for each in stages for source, count in each.read_bytes.items() if source != "cache"
    )


def _unnamed_share(stages: Sequence[ApplicationStage]) -> float:
    """Of the tasks' time, what is neither CPU time nor a wait that the log names."""
    held = sum(each.task_seconds for each in stages)
    named = sum(
        each.cpu_seconds
        + each.gc_seconds
        + each.fetch_wait_seconds
        + each.shuffle_write_seconds
        + each.lost_seconds
        + max(each.task_seconds - each.run_seconds, 0.0)
        for each in stages
    )
    return max(1 - named / held, 0.0) if held else 0.0


def _usual_location(application: Application) -> Location:
    read = {"objects": 0, "local": 0}
    for stage in application.stages:
        for source, count in stage.read_bytes.items():
            if source != "cache":
                read["local" if source == "files" else "objects"] += count
    return "local" if read["local"] > read["objects"] else "objects"


def _written(stage: ApplicationStage) -> int:
    return sum(stage.written_bytes.values())


def cached_bytes(application: Application) -> int:
    """Of the data that it keeps in memory: as its log reports it, or else at least what one stage
    read of it."""
    reported = sum(each.memory_bytes + each.disk_bytes for each in application.cached)
    read = max((each.read_bytes.get("cache", 0) for each in application.stages), default=0)
    return max(reported, read)


def _memory_per_vcpu(application: Application) -> int | None:
    """So that no task has to spill that did not in this run.

    A task that runs alone may take all of its executor's; with others it had its share.
    """
    peak = max((each.peak_memory_bytes for each in application.stages), default=0)
    shares = [
        each.memory_bytes // each.cores
        for each in application.executors
        if each.memory_bytes and each.cores
    ]
    least = min([peak, *shares]) if shares else peak
    return math.ceil(least / MEMORY_FOR_DATA) or None


def _room(
    size: int,
    read: Location,
    written: Location,
    got: int,
    intermediate: int,
    output: int,
    cached: int,
) -> list[SpaceDemand]:
    room = [SpaceDemand(where=SPACES[read], what="input", per_byte=got / size)] if got else []
    if intermediate:
        room.append(
            SpaceDemand(
                where="local", what="shuffled and spilled data", per_byte=intermediate / size
            )
        )
    if output:
        room.append(SpaceDemand(where=SPACES[written], what="output", per_byte=output / size))
    if cached:
        room.append(
            SpaceDemand(
                where="memory",
                what=f"cached data ({MEMORY_SOURCE})",
                per_byte=cached / MEMORY_FOR_DATA / size,
            )
        )
    return room


def _requests(
    size: int, read: Location, written: Location, got: int, put: int
) -> list[RequestDemand]:
    requests = []
    if read == "objects" and got:
        requests.append(RequestDemand(kind="get", per_byte=got / REQUEST_BYTES / size))
    if written == "objects" and put:
        requests.append(RequestDemand(kind="put", per_byte=put / REQUEST_BYTES / size))
    return requests
