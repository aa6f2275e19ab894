"""Operations by how many are outstanding: the sweeps of a systematic look at EC2 I/O.

``explore`` tries each operation with each T of its sweep for a short time; ``steady`` explores and
then runs each for long at the smallest T that comes within 5 % of the best. Trials of a round come
in a random, seeded order, so that a drift of the machine meets all of them. How often each is
tried is set, or found: until the median is known to within a wanted share.
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
    """How to measure."""

    suite: str
    operations: tuple[str, ...]
    outstanding: tuple[int, ...] | None
    """How many at once; ``None`` for each operation's own sweep."""
    rounds: int
    """Trials of each; at most, if they end when it is known well enough."""
    until_confidence: float | None
    """The share of the median within which its interval ends the trials."""
    explore_seconds: float
    """Length of a trial of the exploration."""
    seconds: float
    """Length of a trial of the suite that is asked for."""
    file_bytes: int
    blocking: bool
    batched: bool
    seed: int

    def for_node(self, node: str) -> RandomIoSettings:
        """The same for one node of a fleet, with a seed of its own."""
        return dataclasses.replace(self, seed=repetition.node_seed(self.seed, node))

    @property
    def explores(self) -> bool:
        """Whether it is still to be found how many at once the long trials have."""
        return self.suite == "steady" and (self.outstanding is None or len(self.outstanding) > 1)

    @property
    def trial_kinds(self) -> list[TrialKind]:
        """Each operation with each number of its sweep."""
        return [
            TrialKind(name, outstanding)
            for name in self.operations
            for outstanding in self.outstanding or OPERATIONS[name].sweep
        ]

    @property
    def memory_bytes(self) -> int:
        """The most that the buffers of a trial take."""
        return max(buffer_bytes(each.operation, each.outstanding) for each in self.trial_kinds)

    @property
    def repetition_plan(self) -> RepetitionPlan:
        """How often what is asked for is tried."""
        return RepetitionPlan(self.rounds, self.until_confidence, self.seed)


def trial_order(settings: RandomIoSettings, done: Sequence[Trial]) -> Iterator[TrialSpec]:
    """The trials in their order; what was found in ``done``, which grows, decides what follows."""
    tried = settings.trial_kinds
    if settings.explores:
        once = RepetitionPlan(most=1, seed=settings.seed)
        yield from repetition.trial_specs("explore", tried, once, done)
        tried = [
            TrialKind(name, _smallest_near_the_best(name, done)) for name in settings.operations
        ]
    yield from repetition.trial_specs(settings.suite, tried, settings.repetition_plan, done)


def measure_random_io(
    directory: Path,
    out: Path,
    settings: RandomIoSettings,
    *,
    command: list[str],
    labels: Mapping[str, str] | None = None,
    on_progress: core.OnProgress | None = None,
) -> Iterator[Trial | Measurement]:
    """Runs the trials that ``out`` does not have yet: gives each, and at last the measurement.

    Args:
        directory: Where the file is laid out that is operated on; it is removed at the end.
        out: Where trials are kept; see `tonnage.measure.trial.session`.
        settings: What to do.
        command: How it can be repeated.
        labels: What else is known of where it is done, like its region.
        on_progress: Called with bytes; the first ``file_bytes`` are those that are laid out.

    Raises:
        UsageError: ``out`` holds trials of other settings, or ``directory`` cannot be used.
        RunError: The device failed; the trials that were done are in ``out``.
        KeyboardInterrupt: Ctrl-C; likewise.
    """
    with (
        open_session(
            out,
            "ops",
            dataclasses.asdict(settings) | {"directory": str(directory.resolve())},
            command=command,
            environment=environment.capture([directory], labels),
            stopping_rule=stopping_rule(settings),
            page_cache="bypassed where a reading says direct; what its device counted is beside it",
        ) as trials,
        ExitStack() as stack,
    ):
        manner = IoMethod(settings.blocking, settings.batched, settings.seed)
        file = None
        for number, step in repetition.remaining(
            trial_order(settings, trials.trials), trials.trials
        ):
            if file is None:
                room = stack.enter_context(core.workspace("dir", directory, DATA_PREFIX))
                file = write_test_file(room, settings.file_bytes, on_progress)
            seconds = settings.explore_seconds if step.suite == "explore" else settings.seconds
            yield trials.add(
                run_trial(
                    file,
                    block_devices.devices_of(directory),
                    step,
                    seconds,
                    manner,
                    number,
                    core.offset_progress(settings.file_bytes, on_progress),
                )
            )
        yield trials.finish()


def max_duration_seconds(settings: RandomIoSettings) -> float:
    """How long all trials take at most."""
    tried = len(settings.trial_kinds)
    if settings.explores:
        long = settings.rounds * len(settings.operations) * settings.seconds
        return tried * settings.explore_seconds + long
    return settings.rounds * tried * settings.seconds


def stopping_rule(settings: RandomIoSettings) -> str:
    """When a trial ends, and when there are enough of them."""
    exploration = (
        f"one of each to explore, {_length(settings.explore_seconds)}; then "
        if settings.explores
        else ""
    )
    return f"{exploration}{_length(settings.seconds)}, {repetition.stopping_rule(settings.repetition_plan)}"


def _length(seconds: float) -> str:
    return f"{seconds:g} s each (the first {warm_up(seconds):g} s are not counted)"


def _smallest_near_the_best(name: str, done: Sequence[Trial]) -> int:
    return knee(
        {
            trial.step.outstanding: trial.bytes_per_second
            for trial in done
            if trial.step and trial.step.operation == name and trial.step.suite == "explore"
        }
    )
