"""``tonnage study``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from tonnage.cli.arguments import (
    Json,
    Memory,
    command,
    new_directory,
    parse_measurable,
    refuse_files,
    refuse_missing,
    refuse_twice,
)
from tonnage.cli.extras import refuse_without


def study(
    size: Annotated[
        int,
        typer.Option("--size", parser=parse_measurable, metavar="SIZE", help="How much to sort."),
    ] = "4GB",  # type: ignore[assignment]  # the parser makes it a number
    directory: Annotated[
        list[Path] | None,
        typer.Option(
            "--dir",
            metavar="DIR...",
            help="Where the data goes, a directory on each device: of several the first half holds "
            "input and output, the rest scratch. Default: here.",
        ),
    ] = None,
    memory: Memory = "1GiB",  # type: ignore[assignment]
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="DIR",
            help="Where the results go. Default: a new tonnage-study-N here.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Measure this machine, predict a sort, run it, compare, and write a report to look at."""
    refuse_without("report", "tonnage study")
    from tonnage.cli.onward import from_study
    from tonnage.study import Settings
    from tonnage.study import study as run_study

    where = out or new_directory("tonnage-study")
    directories = directory or [Path()]
    refuse_missing("--dir", directories)
    refuse_twice("--dir", directories)
    refuse_files("--out", [where])
    settings = Settings(
        size_bytes=size,
        memory_bytes=memory,
        directories=tuple(directories),
        out=where,
    )
    done = run_study(settings, command())
    if as_json:
        print(json.dumps(done.to_json()))
        return
    for said in (*done.findings, *done.warnings):
        print(said)
    print(f"Report: {done.report}")
    print("\n".join(from_study(where)))
