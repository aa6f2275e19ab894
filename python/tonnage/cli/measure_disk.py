"""``tonnage measure disk``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from tonnage import engine
from tonnage.cli.arguments import (
    Json,
    Memory,
    command,
    refuse_missing,
    refuse_twice,
    refuse_unknown,
    whole_number,
)
from tonnage.cli.measured import TrialSeconds, TrialSize, summary
from tonnage.model.findings import disk_warnings


def measure_disk(
    directory: Annotated[
        list[Path] | None,
        typer.Option(
            "--dir",
            metavar="DIR...",
            help="A directory on each device to measure: of several the first half is read and the "
            "rest written, one does both. Default: here.",
        ),
    ] = None,
    mode: Annotated[
        list[str] | None,
        typer.Option("--mode", metavar="MODE...", help="Of rw, ro, wo and headroom. Default: all."),
    ] = None,
    size: TrialSize = "2GB",  # type: ignore[assignment]
    seconds: TrialSeconds = "5",  # type: ignore[assignment]
    rounds: Annotated[
        int,
        typer.Option(
            "--rounds", parser=whole_number(1, 10_000), metavar="N", help="Trials of each mode."
        ),
    ] = "3",  # type: ignore[assignment]
    memory: Memory = "1GiB",  # type: ignore[assignment]
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", metavar="DIR", help="Where the measurement is kept. Default: nowhere."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Measure disks with the sort's own reading and writing stages, the page cache bypassed."""
    from tonnage.measure import environment
    from tonnage.measure.disk import MODES
    from tonnage.measure.disk import measure_disk as measure

    refuse_unknown("--mode", mode or [], MODES)
    directories = directory or [Path()]
    refuse_missing("--dir", directories)
    refuse_twice("--dir", directories)
    half = (len(directories) + 1) // 2
    modes = mode or MODES
    with engine.Progress("measuring", size, rounds * len(modes) * seconds) as progress:
        done = measure(
            directories[:half],
            directories[half:] or directories,
            modes=modes,
            rounds=rounds,
            seconds=seconds,
            size_bytes=size,
            memory_bytes=memory,
            environment=environment.capture(directories),
            command=command(),
            on_progress=progress,
        )
    if out:
        done.write(out / f"{done.id}.json")
    if as_json:
        print(json.dumps(done.to_json()))
        return
    print("\n".join(summary(done)))
    for said in disk_warnings(trial.phase for trial in done.trials):
        print(said)
