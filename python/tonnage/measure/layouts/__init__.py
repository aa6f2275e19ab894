"""Layouts of the same devices, measured alike: what each carries, and the CPU that it costs.

The layouts take turns, in an order of its own in each round, so that a drift of the machine meets
all of them. In its turn a layout is made anew, measured by the sort's own disk benchmark over all
of its file systems at once, and taken down. What it costs is told twice: the core seconds of our
threads, and those of the whole machine meanwhile, since file systems and volumes do part of their
work in threads of the kernel.
"""

from __future__ import annotations

import dataclasses
import os
import random
import shlex
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tonnage import engine
from tonnage.artifacts import Environment, Measurement
from tonnage.cloud_truth import scorecard
from tonnage.measure import environment, system
from tonnage.measure.disk import measure_disk
from tonnage.measure.layouts.arrangement import Arrangement, Manner, arrange, attached, choose
from tonnage.measure.layouts.cutting import beside
from tonnage.measure.layouts.given import Given, look_at
from tonnage.measure.layouts.journal import Journal, Step, opened
from tonnage.measure.trials import STOPPING_RULE, figures, new_id

ROOM = Path("/run/tonnage-layouts")
"""Where it is noted what stands, and where layouts are mounted."""
ALONE = "single"
"""The layout that takes one device."""

OnRound = Callable[[str], AbstractContextManager[engine.OnProgress]]
"""Shows how far a round of a layout is, which it is given the name of."""


@dataclass(frozen=True)
class Settings:
    """What to measure, and of what."""

    devices: tuple[Path, ...]
    layouts: tuple[str, ...]
    modes: tuple[str, ...]
    file_system: str | None
    stripe_bytes: int | None
    rounds: int
    seconds: float
    size_bytes: int
    memory_bytes: int
    seed: int
    destroy: bool


def measure_layouts(
    settings: Settings, *, command: list[str], on_round: OnRound, room: Path = ROOM
) -> list[Measurement]:
    """Measures the layouts, in their order; each is a measurement. The devices are empty then.

    Args:
        settings: What to measure; without devices nothing is, and only what was left is undone.
        command: How it can be repeated.
        on_round: Shows the progress of a round of a layout.
        room: Where what stands is noted; what a killed process left there is undone first.

    Raises:
        Refused: A device cannot be used, or this machine cannot make a layout.
        Failed: A device failed, or the machine could not be left as it was found.
    """
    if os.geteuid():
        raise engine.Refused("only root may lay out devices: use sudo")
    with opened(room) as journal:
        if not settings.devices:
            return []
        given = look_at(settings.devices, journal.execute, destroy=settings.destroy)
        _refuse_few(settings, given)
        manner = choose(settings.layouts, settings.file_system, settings.stripe_bytes)
        devices: list[str] = []
        measured: dict[str, list[Measurement]] = {layout: [] for layout in settings.layouts}
        with journal.standing(_made_ready(given, devices, journal)):
            for number, layout in _turns(settings):
                arrangement = arrange(layout, devices, manner, room)
                label = f"{layout}, round {number + 1} of {settings.rounds}"
                with journal.standing(arrangement.steps), on_round(label) as on_progress:
                    done = _measure(arrangement, settings, command, on_progress)
                told = _told(layout, arrangement, manner, settings, given, devices)
                measured[layout].append(
                    dataclasses.replace(done, settings=told, page_cache=_page_cache(done, devices))
                )
    return [_together(layout, rounds) for layout, rounds in measured.items()]


def _refuse_few(settings: Settings, given: Sequence[Given]) -> None:
    """Refuses too few devices, and such as do not hold what is read and written."""
    several = [layout for layout in settings.layouts if layout != ALONE]
    if several and len(given) < 2:
        raise engine.Refused(f"--layout {several[0]} takes two devices or more: give another one")
    sharing = 1 if ALONE in settings.layouts else len(given)
    wanted = 2 * settings.size_bytes // sharing
    for each in given:
        if each.size_bytes < wanted:
            raise engine.Refused(
                f"{each.path} holds {each.size_bytes} bytes, {wanted} are read and written there: "
                "give less with --size, or a larger device"
            )


def _made_ready(given: Sequence[Given], devices: list[str], journal: Journal) -> Iterator[Step]:
    """Files become loop devices, and what may be destroyed goes; the devices are put in a list."""
    for each in given:
        device = str(each.path)
        if each.is_file:
            device = journal.execute(("losetup", "--find"))
            yield attached(each.path, device)
        if each.signatures:
            yield Step(("wipefs", "--all", device))
        devices.append(device)


def _turns(settings: Settings) -> Iterator[tuple[int, str]]:
    """Round after round of all layouts, in an order of its own each."""
    for number in range(settings.rounds):
        layouts = list(settings.layouts)
        random.Random(f"{settings.seed} {number}").shuffle(layouts)
        for layout in layouts:
            yield number, layout


def _measure(
    arrangement: Arrangement,
    settings: Settings,
    command: list[str],
    on_progress: engine.OnProgress,
) -> Measurement:
    """One round of a layout that stands."""
    names = [Path(device).name for device in arrangement.devices]
    with system.Watch(names) as watch:
        done = measure_disk(
            arrangement.mounts,
            arrangement.mounts,
            modes=settings.modes,
            rounds=1,
            seconds=settings.seconds,
            size_bytes=settings.size_bytes,
            memory_bytes=settings.memory_bytes,
            environment=_environment(arrangement.mounts),
            command=command,
            on_progress=on_progress,
        )
    trials = [
        dataclasses.replace(trial, began_at=done.began_at, beside=beside(trial.phase, names, watch))
        for trial in done.trials
    ]
    return dataclasses.replace(done, trials=trials)


def _environment(mounts: Sequence[Path]) -> Environment:
    here = environment.capture(mounts)
    return dataclasses.replace(here, versions=here.versions | _versions(here))


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


def _told(
    layout: str,
    arrangement: Arrangement,
    manner: Manner,
    settings: Settings,
    given: Sequence[Given],
    devices: Sequence[str],
) -> dict[str, Any]:
    """The settings, and how the layout was made."""
    return dataclasses.asdict(settings) | {
        "layout": layout,
        "made_by": arrangement.made_by,
        "file_system": manner.file_system,
        "stripe_bytes": manner.stripe_bytes if layout == "raid0" else None,
        "devices": [
            f"{device} ({each.path})" if each.is_file else device
            for device, each in zip(devices, given, strict=True)
        ],
        "commands": [shlex.join(step.do) for step in arrangement.steps],
    }


def _page_cache(done: Measurement, devices: Sequence[str]) -> str:
    """What was found, and whether a loop device's file has one in the way."""
    buffered = [device for device in devices if _is_buffered(device)]
    below = f"; in the way below {', '.join(buffered)}, by the page cache of its file"
    return done.page_cache + (below if buffered else "")


def _is_buffered(device: str) -> bool:
    direct = Path("/sys/block") / Path(device).name / "loop" / "dio"
    return direct.exists() and direct.read_text().strip() == "0"


def _together(layout: str, rounds: Sequence[Measurement]) -> Measurement:
    """The rounds of a layout as one measurement."""
    trials = [trial for each in rounds for trial in each.trials]
    done = dataclasses.replace(
        rounds[0],
        id=new_id(f"layout-{layout}"),
        kind="layouts",
        stopping_rule=f"{len(rounds)} rounds, the layout made anew in each; {STOPPING_RULE}",
        page_cache="; ".join(dict.fromkeys(each.page_cache for each in rounds)),
        figures=figures(trials),
        trials=trials,
    )
    return dataclasses.replace(done, scorecard=scorecard([done]))
