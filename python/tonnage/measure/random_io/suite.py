"""Measure random I/O by queue depth, as "A Systematic Look at EC2 I/O" does.

``explore`` tries each operation briefly at each queue depth of its sweep. ``steady`` explores, then
runs each operation for longer at the smallest queue depth within 5 % of the best. The trials of a
round come in a random, seeded order, so that a drift of the machine affects them all. Each kind of
trial is repeated a fixed number of times, or until its median is known precisely enough.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from tonnage.base import core
from tonnage.base.records import Measurement, Trial, TrialSpec
from tonnage.base.stats.knee import knee
from tonnage.base.system import block_devices
from tonnage.measure.random_io.trial import (
    OPERATIONS,
    IoMethod,
    buffer_bytes,
    run_trial,
    warm_up,
    write_test_file,
)
from tonnage.measure.trial import environment, repetition
from tonnage.measure.trial.repetition import RepetitionPlan, TrialKind
from tonnage.measure.trial.session import open_session

DATA_PREFIX = ".tonnage-ops-"
SUITES = ("explore", "steady")


@dataclass(frozen=True)
class RandomIoSettings:
    suite: str
    operations: tuple[str, ...]
    outstanding: tuple[int, ...] | None
    """Queue depths; ``None`` for each operation's own sweep."""
    rounds: int
    """Trials of each kind; with ``until_confidence``, at most."""
    until_confidence: float | None
    explore_seconds: float
    seconds: float
    """The length of any other trial."""
    file_bytes: int
    blocking: bool
    batched: bool
    seed: int

    def for_node(self, node: str) -> RandomIoSettings:
        return dataclasses.replace(self, seed=repetition.node_seed(self.seed, node))

    @property
    def explores(self) -> bool:
        return self.suite == "steady" and (self.outstanding is None or len(self.outstanding) > 1)

    @property
    def trial_kinds(self) -> list[TrialKind]:
        return [
            TrialKind(name, outstanding)
            for name in self.operations
            for outstanding in self.outstanding or OPERATIONS[name].sweep
        ]

    @property
    def memory_bytes(self) -> int:
        return max(buffer_bytes(kind.operation, kind.outstanding) for kind in self.trial_kinds)

    @property
    def repetition_plan(self) -> RepetitionPlan:
        return RepetitionPlan(self.rounds, self.until_confidence, self.seed)


def trial_order(settings: RandomIoSettings, completed: Sequence[Trial]) -> Iterator[TrialSpec]:
    kinds = settings.trial_kinds
    if settings.explores:
        once = RepetitionPlan(most=1, seed=settings.seed)
        yield from repetition.trial_specs("explore", kinds, once, completed)
        kinds = [
            TrialKind(name, _best_queue_depth(name, completed)) for name in settings.operations
        ]
    yield from repetition.trial_specs(settings.suite, kinds, settings.repetition_plan, completed)


def measure_random_io(
    directory: Path,
    out: Path,
    settings: RandomIoSettings,
    *,
    command: list[str],
    labels: Mapping[str, str] | None = None,
    on_progress: core.OnProgress | None = None,
) -> Iterator[Trial | Measurement]:
    """Yield the trials that are not in ``out`` yet, and finally the measurement."""
    with (
        open_session(
            out,
            "ops",
            dataclasses.asdict(settings) | {"directory": str(directory.resolve())},
            command=command,
            environment=environment.capture([directory], labels),
            stopping_rule=stopping_rule(settings),
            page_cache="bypassed where a result states direct; the device's counters are next to "
            "the result",
        ) as session,
        ExitStack() as stack,
    ):
        method = IoMethod(settings.blocking, settings.batched, settings.seed)
        file = None
        for number, step in repetition.remaining(
            trial_order(settings, session.trials), session.trials
        ):
            if file is None:
                room = stack.enter_context(core.workspace("dir", directory, DATA_PREFIX))
                file = write_test_file(room, settings.file_bytes, on_progress)
            seconds = settings.explore_seconds if step.suite == "explore" else settings.seconds
            yield session.add(
                run_trial(
                    file,
                    block_devices.devices_of(directory),
                    step,
                    seconds,
                    method,
                    number,
                    core.offset_progress(settings.file_bytes, on_progress),
                )
            )
        yield session.finish()


def max_duration_seconds(settings: RandomIoSettings) -> float:
    kinds = len(settings.trial_kinds)
    if settings.explores:
        long_trials = settings.rounds * len(settings.operations) * settings.seconds
        return kinds * settings.explore_seconds + long_trials
    return settings.rounds * kinds * settings.seconds


def stopping_rule(settings: RandomIoSettings) -> str:
    exploration = (
        f"one of each to explore, {_length(settings.explore_seconds)}; then "
        if settings.explores
        else ""
    )
    rule = repetition.stopping_rule(settings.repetition_plan)
    return f"{exploration}{_length(settings.seconds)}, {rule}"


def _length(seconds: float) -> str:
    return f"{seconds:g} s each (the first {warm_up(seconds):g} s are not counted)"


def _best_queue_depth(name: str, completed: Sequence[Trial]) -> int:
    return knee(
        {
            trial.step.outstanding: trial.bytes_per_second
            for trial in completed
            if trial.step and trial.step.operation == name and trial.step.suite == "explore"
        }
    )
