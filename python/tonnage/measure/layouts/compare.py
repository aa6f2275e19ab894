"""Layouts of the same devices, measured alike: what each carries, and the CPU that it costs.

The layouts take turns, in an order of its own in each round, so that a drift of the machine meets
all of them. In its turn a layout is made anew, measured by the sort's own disk benchmark over all
of its file systems at once, and taken down. A layout is chosen for what will be done on it: here
that is the sort, so there are its patterns (writing, reading, both) and no others. What it costs
is told twice: the core seconds of our threads, and those of the whole machine meanwhile, since file
systems and volumes do part of their work in threads of the kernel. Trials are kept after each turn,
in a directory for each layout.
"""

from __future__ import annotations

import dataclasses
import os
import random
import shlex
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msgspec import structs

from tonnage.base import core
from tonnage.base.records import SINGLE, Environment, Measurement, Trial, TrialSpec
from tonnage.base.system import UndoJournal, open_journal
from tonnage.base.system.block_devices import uses_page_cache
from tonnage.measure.disk import OPERATIONS, queue_depth, run_disk_rounds
from tonnage.measure.layouts.device_checks import TargetDevice, check_devices, preparation
from tonnage.measure.layouts.steps import (
    LayoutPlan,
    Method,
    choose_method,
    describe_method,
    plan_layout,
)
from tonnage.measure.trial import environment
from tonnage.measure.trial.session import MeasurementSession, locked_parent_dir, open_session
from tonnage.measure.trial.trial import STOPPING_RULE

ROOM = Path("/var/lib/tonnage-layouts")
"""Where it is noted what stands, and where layouts are mounted. It outlasts a reboot, as what was
written to the devices does."""

COMMAND = "tonnage measure layouts"

OnRound = Callable[[str], AbstractContextManager[core.OnProgress]]
"""Shows how far a round of a layout is, which it is given the name of."""


@dataclass(frozen=True)
class LayoutSettings:
    """What to measure, and of what."""

    devices: tuple[Path, ...]
    layouts: tuple[str, ...]
    modes: tuple[str, ...]
    """Of `tonnage.measure.disk.OPERATIONS`."""
    file_system: str | None
    stripe_bytes: int | None
    rounds: int
    seconds: float
    size_bytes: int
    memory_bytes: int
    seed: int


def measure_layouts(
    settings: LayoutSettings,
    out: Path,
    *,
    destroy: bool,
    command: list[str],
    labels: Mapping[str, str] | None = None,
    on_round: OnRound,
    room: Path = ROOM,
) -> list[Measurement]:
    """Runs the turns that ``out`` does not have yet: gives a measurement of each layout, in order.

    The devices are empty then.

    Args:
        settings: What to measure; without devices nothing is, and only what was left is undone.
        out: Where trials are kept, in a directory for each layout; see `tonnage.measure.trial.session`.
        destroy: Whether what the devices hold may be lost.
        command: How it can be repeated.
        labels: What else is known of where it is done, like its region.
        on_round: Shows the progress of a round of a layout.
        room: Where what stands is noted; what a killed process left there is undone first.

    Raises:
        UsageError: ``out`` holds something else, or trials of other settings, which is found before a
            device is looked at; a device cannot be used, or this machine cannot make a layout.
        RunError: A device failed, or the machine could not be left as it was found; the trials that
            were done are in ``out``.
        KeyboardInterrupt: Ctrl-C; likewise.
    """
    if os.geteuid():
        raise core.UsageError("only root may lay out devices: use sudo")
    with open_journal(room, COMMAND) as journal:
        if not settings.devices:
            return []
        manner = choose_method(settings.layouts, settings.file_system, settings.stripe_bytes)
        with _held(out, settings, manner, command, labels) as held, ExitStack() as stack:
            devices: dict[str, TargetDevice] = {}
            for number, layout, modes in _turns(settings, held):
                devices = devices or stack.enter_context(_ready(settings, destroy, journal))
                arrangement = plan_layout(layout, list(devices), manner, room, _files(devices))
                label = f"{layout}, round {number + 1} of {settings.rounds}"
                with journal.applied(arrangement.changes), on_round(label) as on_progress:
                    done = _measure(
                        arrangement, number, modes, settings, command, labels, on_progress
                    )
                    held[layout].start(done.environment)
                    for trial in done.trials:
                        held[layout].add(trial)
            return [each.finish(page_cache=_together(each.trials)) for each in held.values()]


@contextmanager
def _held(
    out: Path,
    settings: LayoutSettings,
    manner: Method,
    command: list[str],
    labels: Mapping[str, str] | None,
) -> Iterator[dict[str, MeasurementSession]]:
    """A directory in ``out`` for each layout, with what an earlier command left in it."""
    here = environment.capture([], labels)
    with locked_parent_dir(out, settings.layouts), ExitStack() as stack:
        yield {
            layout: stack.enter_context(
                open_session(
                    out / layout,
                    "layouts",
                    _told(layout, settings, manner),
                    command=command,
                    environment=here,
                    stopping_rule=f"{settings.rounds} rounds, the layout made anew in each; "
                    f"{STOPPING_RULE}",
                    page_cache="said with each trial",
                )
            )
            for layout in settings.layouts
        }


def _told(layout: str, settings: LayoutSettings, manner: Method) -> dict[str, Any]:
    """The settings, and how the layout is made: what is the same whenever a command goes on."""
    return dataclasses.asdict(settings) | {
        "devices": [str(device.absolute()) for device in settings.devices],
        "layout": layout,
        "made_by": describe_method(layout, manner),
        "file_system": manner.file_system,
        "stripe_bytes": manner.stripe_bytes if layout == "raid0" else None,
    }


def _turns(
    settings: LayoutSettings, held: Mapping[str, MeasurementSession]
) -> Iterator[tuple[int, str, Sequence[str]]]:
    """Round after round of all layouts, in an order of its own each, with the modes not kept."""
    for number in range(settings.rounds):
        layouts = list(settings.layouts)
        random.Random(f"{settings.seed} {number}").shuffle(layouts)
        for layout in layouts:
            trials = held[layout].trials
            done = {each.name for each in trials if each.step and each.step.round == number}
            if modes := [mode for mode in settings.modes if mode not in done]:
                yield number, layout, modes


@contextmanager
def _ready(
    settings: LayoutSettings, destroy: bool, journal: UndoJournal
) -> Iterator[dict[str, TargetDevice]]:
    """The devices to lay out, each with what it was given as, once all were found usable."""
    given = check_devices(settings.devices, journal.execute, destroy=destroy)
    _refuse_few(settings, given)
    devices: dict[str, TargetDevice] = {}
    with journal.applied(preparation(given, devices, journal.execute)):
        yield devices


def _files(devices: Mapping[str, TargetDevice]) -> dict[str, Path]:
    """The files that loop devices stand for."""
    return {device: given.path for device, given in devices.items() if given.is_file}


def _refuse_few(settings: LayoutSettings, given: Sequence[TargetDevice]) -> None:
    """Refuses too few devices, and such as do not hold what is read and written."""
    several = [layout for layout in settings.layouts if layout != SINGLE]
    if several and len(given) < 2:
        raise core.UsageError(f"--layout {several[0]} takes two devices or more: give another one")
    sharing = 1 if SINGLE in settings.layouts else len(given)
    wanted = 2 * settings.size_bytes // sharing
    for each in given:
        if each.size_bytes < wanted:
            raise core.UsageError(
                f"{each.path} holds {each.size_bytes} bytes, {wanted} are read and written there: "
                "give less with --size, or a larger device"
            )


def _measure(
    arrangement: LayoutPlan,
    number: int,
    modes: Sequence[str],
    settings: LayoutSettings,
    command: list[str],
    labels: Mapping[str, str] | None,
    on_progress: core.OnProgress,
) -> Measurement:
    """One round of a layout that stands; with its trials goes what is as it is in this one only."""
    done = run_disk_rounds(
        arrangement.mounts,
        arrangement.mounts,
        modes=modes,
        rounds=1,
        seconds=settings.seconds,
        size_bytes=settings.size_bytes,
        memory_bytes=settings.memory_bytes,
        environment=_environment(arrangement.mounts, labels),
        command=command,
        on_progress=on_progress,
    )
    told = {
        "devices": list(arrangement.devices),
        "commands": [shlex.join(step.command) for step in arrangement.changes],
        "page_cache": _page_cache(done, arrangement.devices),
    }
    trials = [
        structs.replace(trial, step=_step(trial, number), settings=told) for trial in done.trials
    ]
    return structs.replace(done, trials=trials)


def _step(trial: Trial, number: int) -> TrialSpec:
    return TrialSpec(
        operation=OPERATIONS[trial.name],
        outstanding=queue_depth(trial.phase),
        round=number,
        suite="layouts",
    )


def _environment(mounts: Sequence[Path], labels: Mapping[str, str] | None) -> Environment:
    here = environment.capture(mounts, labels)
    return structs.replace(here, versions=here.versions | _versions(here))


def _versions(here: Environment) -> dict[str, str]:
    """Of the programs that made the layout."""
    found = {}
    commands = {f"mkfs.{device.file_system}": "-V" for device in here.devices}
    for program, flag in (commands | {"lvm": "version"}).items():
        try:
            said = subprocess.run([program, flag], capture_output=True, text=True)
        except FileNotFoundError:
            continue
        lines = (said.stdout + said.stderr).split("\n")
        found[program] = lines[0].strip()
    return found


def _page_cache(done: Measurement, devices: Sequence[str]) -> str:
    """What was found, and whether a loop device's file has one in the way."""
    buffered = [device for device in devices if uses_page_cache(device)]
    below = f"; in the way below {', '.join(buffered)}, by the page cache of its file"
    return done.page_cache + (below if buffered else "")


def _together(trials: Sequence[Trial]) -> str:
    """What was found of the page cache in all of them."""
    return "; ".join(dict.fromkeys(str(trial.settings["page_cache"]) for trial in trials))
