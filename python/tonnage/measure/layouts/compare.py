"""Compare layouts of the same devices: the throughput of each, and its cost in CPU time.

The layouts take turns, in a new order in each round, so that a drift of the machine affects them
all. In its turn a layout is created, measured with the sort's own disk benchmark over all of its
file systems at once, and removed. A layout is chosen for a workload: here that is the sort, so only
its patterns are measured (writing, reading, both). CPU time is recorded for our threads and for the
whole machine, since file systems and volumes do part of their work in kernel threads. Trials are
written after each turn, in one directory per layout.
"""

import dataclasses
import os
import random
import shlex
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msgspec import structs

from tonnage.base import core
from tonnage.base.records import SINGLE, Environment, Measurement, Trial, TrialSpec
from tonnage.base.system import UndoJournal, open_journal
from tonnage.base.system.block_devices import uses_page_cache
from tonnage.measure.disk import OPERATIONS, DiskSettings, queue_depth, run_disk_rounds
from tonnage.measure.layouts.device_checks import TargetDevice, check_devices, preparation
from tonnage.measure.layouts.layout_steps import (
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
"""The undo journal and the mount points; it survives a reboot, as the data on the devices does."""

COMMAND = "tonnage measure layouts"

OnRound = Callable[[str], AbstractContextManager[core.OnProgress]]
"""Shows the progress of a layout's round, given its label."""


@dataclass(frozen=True)
class LayoutSettings:
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
    """Run the turns that are not in ``out`` yet; returns a measurement of each layout, in order.

    What a killed process left in ``room`` is undone first; without devices, nothing else is done.
    ``destroy`` allows destroying the devices' data; they are empty afterwards. The rest is as in
    `tonnage.measure`; wrong settings are refused before any device is touched.
    """
    if os.geteuid():
        raise core.UsageError("creating layouts requires root; use sudo")
    with open_journal(room, COMMAND) as journal:
        if not settings.devices:
            return []
        method = choose_method(settings.layouts, settings.file_system, settings.stripe_bytes)
        with (
            _open_sessions(out, settings, method, command, labels) as sessions,
            ExitStack() as stack,
        ):
            devices: dict[str, TargetDevice] = {}
            for number, layout, modes in _turns(settings, sessions):
                devices = devices or stack.enter_context(
                    _prepare_devices(settings, destroy, journal)
                )
                plan = plan_layout(layout, list(devices), method, room, _files(devices))
                label = f"{layout}, round {number + 1} of {settings.rounds}"
                with journal.apply_temporarily(plan.changes), on_round(label) as on_progress:
                    measurement = _measure(
                        plan, number, modes, settings, command, labels, on_progress
                    )
                    sessions[layout].start(measurement.environment)
                    for trial in measurement.trials:
                        sessions[layout].add(trial)
            return [
                session.finish(page_cache=_page_cache_of_all(session.trials))
                for session in sessions.values()
            ]


@contextmanager
def _open_sessions(
    out: Path,
    settings: LayoutSettings,
    method: Method,
    command: list[str],
    labels: Mapping[str, str] | None,
) -> Iterator[dict[str, MeasurementSession]]:
    here = environment.capture([], labels)
    with locked_parent_dir(out, settings.layouts), ExitStack() as stack:
        yield {
            layout: stack.enter_context(
                open_session(
                    out / layout,
                    "layouts",
                    _recorded_settings(layout, settings, method),
                    command=command,
                    environment=here,
                    stopping_rule=f"{settings.rounds} rounds, each with a newly created layout; "
                    f"{STOPPING_RULE}",
                    page_cache="stated with each trial",
                )
            )
            for layout in settings.layouts
        }


def _recorded_settings(layout: str, settings: LayoutSettings, method: Method) -> dict[str, Any]:
    """The settings and the method: what must be the same to resume."""
    return dataclasses.asdict(settings) | {
        "devices": [str(device.absolute()) for device in settings.devices],
        "layout": layout,
        "made_by": describe_method(layout, method),
        "file_system": method.file_system,
        "stripe_bytes": method.stripe_bytes if layout == "raid0" else None,
    }


def _turns(
    settings: LayoutSettings, sessions: Mapping[str, MeasurementSession]
) -> Iterator[tuple[int, str, Sequence[str]]]:
    """The turns that are left, round by round: its number, the layout, the modes to measure."""
    for number in range(settings.rounds):
        layouts = list(settings.layouts)
        random.Random(f"{settings.seed} {number}").shuffle(layouts)
        for layout in layouts:
            trials = sessions[layout].trials
            done = {trial.name for trial in trials if trial.step and trial.step.round == number}
            if modes := [mode for mode in settings.modes if mode not in done]:
                yield number, layout, modes


@contextmanager
def _prepare_devices(
    settings: LayoutSettings, destroy: bool, journal: UndoJournal
) -> Iterator[dict[str, TargetDevice]]:
    targets = check_devices(settings.devices, journal.execute, destroy=destroy)
    _require_devices(settings, targets)
    devices: dict[str, TargetDevice] = {}
    with journal.apply_temporarily(preparation(targets, devices, journal.execute)):
        yield devices


def _files(devices: Mapping[str, TargetDevice]) -> dict[str, Path]:
    return {device: target.path for device, target in devices.items() if target.is_file}


def _require_devices(settings: LayoutSettings, targets: Sequence[TargetDevice]) -> None:
    several = [layout for layout in settings.layouts if layout != SINGLE]
    if several and len(targets) < 2:
        raise core.UsageError(
            f"{several[0]} needs at least two devices; add another device", setting="layouts"
        )
    sharing = 1 if SINGLE in settings.layouts else len(targets)
    needed = 2 * settings.size_bytes // sharing
    for target in targets:
        if target.size_bytes < needed:
            raise core.UsageError(
                f"{target.path} has {target.size_bytes} bytes, but the trials need {needed}; "
                "reduce the size, or use a larger device"
            )


def _measure(
    plan: LayoutPlan,
    number: int,
    modes: Sequence[str],
    settings: LayoutSettings,
    command: list[str],
    labels: Mapping[str, str] | None,
    on_progress: core.OnProgress,
) -> Measurement:
    measurement = run_disk_rounds(
        DiskSettings(
            read=plan.mounts,
            write=plan.mounts,
            modes=tuple(modes),
            rounds=1,
            seconds=settings.seconds,
            size_bytes=settings.size_bytes,
            memory_bytes=settings.memory_bytes,
        ),
        environment=_environment(plan.mounts, labels),
        command=command,
        on_progress=on_progress,
    )
    recorded = {
        "devices": list(plan.devices),
        "commands": [shlex.join(change.command) for change in plan.changes],
        "page_cache": _page_cache(measurement, plan.devices),
    }
    trials = [
        structs.replace(
            trial,
            step=TrialSpec(
                operation=OPERATIONS[trial.name],
                outstanding=queue_depth(trial.phase),
                round=number,
                suite="layouts",
            ),
            settings=recorded,
        )
        for trial in measurement.trials
    ]
    return structs.replace(measurement, trials=trials)


def _environment(mounts: Sequence[Path], labels: Mapping[str, str] | None) -> Environment:
    here = environment.capture(mounts, labels)
    file_systems = {device.file_system for device in here.devices}
    return structs.replace(here, versions=here.versions | _program_versions(file_systems))


def _program_versions(file_systems: Iterable[str]) -> dict[str, str]:
    versions = {}
    commands = {f"mkfs.{file_system}": "-V" for file_system in file_systems}
    for program, flag in (commands | {"lvm": "version"}).items():
        try:
            output = subprocess.run([program, flag], capture_output=True, text=True)
        except FileNotFoundError:
            continue
        lines = (output.stdout + output.stderr).split("\n")
        versions[program] = lines[0].strip()
    return versions


def _page_cache(measurement: Measurement, devices: Sequence[str]) -> str:
    """State the use of the page cache, also by the files of loop devices."""
    buffered = [device for device in devices if uses_page_cache(device)]
    below = f"; used for the files of {', '.join(buffered)}"
    return measurement.page_cache + (below if buffered else "")


def _page_cache_of_all(trials: Sequence[Trial]) -> str:
    return "; ".join(dict.fromkeys(str(trial.settings["page_cache"]) for trial in trials))
