"""The same short trials at fixed intervals, for minutes or days: Magellan's timed benchmark.

Time is cut into slots from the moment at which it began. In each, every operation is tried once;
between them nothing is done. A slot in which nobody measured, since the command was killed or the
machine was down, stays empty: a gap, and never filled in later.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from tonnage.base import core
from tonnage.base.records import Measurement, Trial, TrialSpec
from tonnage.base.system import block_devices
from tonnage.measure.random_io.trial import (
    IoMethod,
    buffer_bytes,
    run_trial,
    warm_up,
    write_test_file,
)
from tonnage.measure.trial import environment, repetition
from tonnage.measure.trial.session import MeasurementSession, open_session

DATA_PREFIX = ".tonnage-over-time-"
LONGEST_SLEEP_SECONDS = 0.5
"""So long a wait may take to notice that the clock was set, or that it is to say how far it is."""


@dataclass(frozen=True)
class OverTimeSettings:
    """What to measure, and when."""

    operations: tuple[str, ...]
    outstanding: int
    every_seconds: float
    for_seconds: float
    seconds: float
    """Length of a trial."""
    file_bytes: int
    blocking: bool
    seed: int

    def for_node(self, node: str) -> OverTimeSettings:
        """The same for one node of a fleet, with a seed of its own."""
        return dataclasses.replace(self, seed=repetition.node_seed(self.seed, node))

    @property
    def slots(self) -> int:
        """How many there are."""
        return max(1, int(self.for_seconds / self.every_seconds))

    @property
    def memory_bytes(self) -> int:
        """The most that the buffers of a trial take."""
        return max(buffer_bytes(operation, self.outstanding) for operation in self.operations)


def measure_over_time(
    directory: Path,
    out: Path,
    settings: OverTimeSettings,
    *,
    command: list[str],
    labels: Mapping[str, str] | None = None,
    on_progress: core.OnProgress | None = None,
) -> Iterator[Trial | Measurement]:
    """Runs the trials of the slots that are left: gives each, and at last the measurement.

    Args:
        directory: Where the file is laid out that is operated on, at the beginning and each time
            the command goes on; it is removed at the end.
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
            "over-time",
            dataclasses.asdict(settings) | {"directory": str(directory.resolve())},
            command=command,
            environment=environment.capture([directory], labels),
            stopping_rule=f"{settings.slots} slots, {settings.every_seconds:g} s apart; in each a "
            f"trial of each operation, {settings.seconds:g} s (the first "
            f"{warm_up(settings.seconds):g} s are not counted)",
            page_cache="bypassed where a reading says direct; what its device counted is beside it",
        ) as trials,
        ExitStack() as stack,
    ):
        file = None
        watched = core.offset_progress(settings.file_bytes, on_progress)
        manner = IoMethod(settings.blocking, batched=False, seed=settings.seed)
        began = datetime.fromisoformat(trials.header.began_at).timestamp()
        while (step := next_trial(settings, trials, time.time() - began)) is not None:
            if file is None:
                room = stack.enter_context(core.workspace("dir", directory, DATA_PREFIX))
                file = write_test_file(room, settings.file_bytes, on_progress)
                continue  # That took a while.
            _sleep_until(began + step.round * settings.every_seconds, watched)
            yield trials.add(
                run_trial(
                    file,
                    block_devices.devices_of(directory),
                    step,
                    settings.seconds,
                    manner,
                    len(trials.trials),
                    watched,
                )
            )
        yield trials.finish()


def next_trial(
    settings: OverTimeSettings, trials: MeasurementSession, passed: float
) -> TrialSpec | None:
    """The next trial when so many seconds have passed since the beginning; None: no slot is left.

    A slot whose time is over is left out, and one that is under way is begun only if it is the
    first or has been begun: what comes late is not what was asked for.
    """
    slots: dict[int, int] = {}
    for trial in trials.trials:
        if trial.step:
            slots[trial.step.round] = slots.get(trial.step.round, 0) + 1
    now = max(int(passed / settings.every_seconds), 0)
    for slot in (now, now + 1):
        done = slots.get(slot, 0)
        begun = slot > now or not slots or done > 0
        if slot < settings.slots and begun and done < len(settings.operations):
            return TrialSpec(
                operation=settings.operations[done],
                outstanding=settings.outstanding,
                round=slot,
                suite="over-time",
            )
    return None


def _sleep_until(moment: float, on_progress: Callable[[int], None] | None) -> None:
    """Waits by the clock that dates trials, which may be set meanwhile."""
    while (left := moment - time.time()) > 0:
        time.sleep(min(left, LONGEST_SLEEP_SECONDS))
        if on_progress:
            on_progress(0)
