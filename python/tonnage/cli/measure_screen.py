"""``tonnage measure screen``."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tonnage import words
from tonnage.artifacts import FleetMeasurement
from tonnage.cli import fleet as fleets
from tonnage.cli.arguments import Json, Memory, refuse_relative
from tonnage.cli.measure_disk import work_on
from tonnage.cli.measured import (
    ROUNDS,
    Instances,
    Labels,
    More,
    Out,
    Patience,
    TrialSeconds,
    TrialSize,
    output,
    where,
)

if TYPE_CHECKING:
    from tonnage.model.screening import Screened, Suspect

MODES = ("ro", "wo")


def measure_screen(
    fleet: Annotated[
        str,
        typer.Option(
            "--fleet",
            metavar="ADDRESS",
            help="The machines of the Ray cluster at HOST:PORT, or, with auto, of the one that "
            "this machine is in.",
        ),
    ] = "auto",
    directory: Annotated[
        list[Path] | None,
        typer.Option(
            "--dir",
            metavar="DIR...",
            help="A directory on each device of a machine, from / on; {node} in it is its name.",
        ),
    ] = None,
    size: TrialSize = "1GB",  # type: ignore[assignment]
    seconds: TrialSeconds = "8",  # type: ignore[assignment]
    memory: Memory = "256MiB",  # type: ignore[assignment]
    instances: Instances = None,
    patience: Patience = "60s",  # type: ignore[assignment]
    label: Labels = None,
    out: Out = None,
    as_json: Json = False,
) -> None:
    """Look for a minute at each machine's disks, and name those that are slow, and how sure.

    A machine is held against others of its type. Who does not measure at all is named too.
    """
    from tonnage.measure.disk import Settings

    directories = directory or [Path()]
    refuse_relative(directories)
    settings = Settings(
        read=tuple(directories),
        write=tuple(directories),
        modes=MODES,
        rounds=ROUNDS,
        seconds=seconds,
        size_bytes=size,
        memory_bytes=memory,
    )
    fleets.measure(
        fleet,
        output("screen", out),
        "screen",
        work_on(settings),
        settings.told,
        where(fleet, instances, False, patience, label),
        as_json,
        of_all=_screened,
    )


def _screened(whole: FleetMeasurement) -> More:
    from tonnage.model.screening import screen

    found = screen(whole)
    return {
        "suspects": [dataclasses.asdict(each) for each in found.suspects],
        "not_judged": found.not_judged,
    }, _lines(found)


def _lines(found: Screened) -> list[str]:
    lines = [_line(each) for each in found.suspects]
    for why in sorted(set(found.not_judged.values())):
        nodes = [node for node, reason in sorted(found.not_judged.items()) if reason == why]
        lines.append(f"Not judged, since {why}: {words.listing(nodes)}")
    return lines or ["No machine is suspect."]


def _line(suspect: Suspect) -> str:
    if suspect.ratio_to_median is None:
        return f"Suspect: {suspect.node} {suspect.what}"
    what = words.TRIALS.get(suspect.what, suspect.what)
    return (
        f"Suspect: {suspect.node}, {what}: {words.percent(suspect.ratio_to_median)} of what its "
        f"kind carries, {words.percent(suspect.confidence)} sure"
    )
