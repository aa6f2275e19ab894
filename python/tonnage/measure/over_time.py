"""Repeat short trials at fixed intervals, for minutes or days (Magellan's timed benchmark).

Time is divided into slots from the start of the measurement. In each slot every operation is tried
once, and the machine is idle in between. A slot that was missed, since the command was killed or
the machine was down, stays a gap; it is never filled in later.
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
"""How often a waiting command checks the clock, which may be set, and reports its progress."""


@dataclass(frozen=True)
class OverTimeSettings:
    operations: tuple[str, ...]
    outstanding: int
    every_seconds: float
    for_seconds: float
    seconds: float
    file_bytes: int
    blocking: bool
    seed: int

    def for_node(self, node: str) -> OverTimeSettings:
        return dataclasses.replace(self, seed=repetition.node_seed(self.seed, node))

    @property
    def slots(self) -> int:
        return max(1, int(self.for_seconds / self.every_seconds))

    @property
    def memory_bytes(self) -> int:
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
    """Yield the trials of the slots that are left, and finally the measurement.

    The test file is written to ``directory`` at the start and at each resumption.
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
            page_cache="bypassed where a result states direct; the device's counters are next to "
            "the result",
        ) as session,
        ExitStack() as stack,
    ):
        file = None
        progress = core.offset_progress(settings.file_bytes, on_progress)
        method = IoMethod(settings.blocking, batched=False, seed=settings.seed)
        began = datetime.fromisoformat(session.header.began_at).timestamp()
        while (step := next_trial(settings, session, time.time() - began)) is not None:
            if file is None:
                room = stack.enter_context(core.workspace("dir", directory, DATA_PREFIX))
                file = write_test_file(room, settings.file_bytes, on_progress)
                continue  # Writing the file took a while.
            _sleep_until(began + step.round * settings.every_seconds, progress)
            yield session.add(
                run_trial(
                    file,
                    block_devices.devices_of(directory),
                    step,
                    settings.seconds,
                    method,
                    len(session.trials),
                    progress,
                )
            )
        yield session.finish()


def next_trial(
    settings: OverTimeSettings, session: MeasurementSession, passed: float
) -> TrialSpec | None:
    """The next trial, ``passed`` seconds after the start; None if no slot is left.

    Slots that are over are skipped. The current slot is started only if it is the first: a late
    start is not what was asked for.
    """
    slots: dict[int, int] = {}
    for trial in session.trials:
        if trial.step:
            slots[trial.step.round] = slots.get(trial.step.round, 0) + 1
    now = max(int(passed / settings.every_seconds), 0)
    for slot in (now, now + 1):
        done = slots.get(slot, 0)
        may_start = slot > now or not slots or done > 0
        if slot < settings.slots and may_start and done < len(settings.operations):
            return TrialSpec(
                operation=settings.operations[done],
                outstanding=settings.outstanding,
                round=slot,
                suite="over-time",
            )
    return None


def _sleep_until(deadline: float, on_progress: Callable[[int], None] | None) -> None:
    """Wait by the wall clock, which dates the trials and may be set during the wait."""
    while (left := deadline - time.time()) > 0:
        time.sleep(min(left, LONGEST_SLEEP_SECONDS))
        if on_progress:
            on_progress(0)
