"""``tonnage study``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from tonnage.base import core
from tonnage.base.records.cluster_study import STEPS
from tonnage.cli.options.extras import refuse_without
from tonnage.cli.options.files import command_line, new_directory
from tonnage.cli.options.types import Json, Memory, parse_duration, parse_measurable
from tonnage.cli.options.validate import (
    refuse_files,
    refuse_missing,
    refuse_repeated,
    refuse_unknown,
)

SIZE_BYTES = 4_000_000_000
DURABILITIES = ("none", "replicated")


def study(
    size: Annotated[
        int | None,
        typer.Option(
            "--data",
            parser=parse_measurable,
            metavar="SIZE",
            help="How much to sort. Default: 4GB; with --cluster 1GB for each machine of the type "
            "that there are most of.",
        ),
    ] = None,
    directory: Annotated[
        list[Path] | None,
        typer.Option(
            "--dir",
            metavar="DIR...",
            help="Where the data goes, a directory on each device: of several the first half holds "
            "input and output, the rest scratch. Default: here; with --cluster they are each "
            "machine's own, and {node} in them is its name.",
        ),
    ] = None,
    memory: Memory = "1GiB",  # type: ignore[assignment]
    out: Annotated[
        Path | None,
        typer.Option(
            "--output",
            metavar="DIR",
            help="Where the results go. Default: a new tonnage-study-N here. With --cluster what was "
            "begun there goes on.",
        ),
    ] = None,
    fleet: Annotated[
        str | None,
        typer.Option(
            "--cluster",
            metavar="ADDRESS",
            help="Of the Ray cluster at HOST:PORT, or, with auto, of the one that this machine is "
            "in, or, with TYPE@auto, of those of this machine type: survey, measure, model, plan, "
            "run and report, on machines whose labels say what they were rented as.",
        ),
    ] = None,
    durability: Annotated[
        str | None,
        typer.Option(
            "--durability",
            metavar="none|replicated",
            help="With --cluster: what is promised of the output. Default: none.",
        ),
    ] = None,
    deadline: Annotated[
        float | None,
        typer.Option(
            "--deadline",
            parser=parse_duration,
            metavar="TIME",
            help="With --cluster: by when it has to be done, for the cheapest that does. Default: as "
            "fast as these machines can.",
        ),
    ] = None,
    catalog: Annotated[
        list[str] | None,
        typer.Option(
            "--catalog",
            metavar="NAME",
            help="With --cluster: prices, by a catalog's name or CSV file; again for more. Default: "
            "each provider's newest.",
        ),
    ] = None,
    until: Annotated[
        str | None,
        typer.Option(
            "--until",
            metavar="STEP",
            help=f"With --cluster: the last step for now, of {', '.join(STEPS)}; the same command "
            "goes on from there.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Measure, predict a sort, run it, compare, and write a report to look at.

    Of this machine, or with --cluster of many, of which a plan takes as many as the job needs.
    """
    refuse_without("report", "tonnage study")
    refuse_unknown("--durability", [durability] if durability else [], DURABILITIES)
    refuse_unknown("--until", [until] if until else [], STEPS)
    if fleet is not None:
        from tonnage.cli.study.cluster import study_on_fleet

        study_on_fleet(
            fleet,
            directory or [],
            size,
            memory,
            durability or DURABILITIES[0],
            deadline,
            catalog or [],
            out,
            until or STEPS[-1],
            as_json,
        )
        return
    of_fleet = {
        "--durability": durability,
        "--deadline": deadline,
        "--catalog": catalog,
        "--until": until,
    }
    for flag, given in of_fleet.items():
        if given is not None:
            raise core.UsageError(f"{flag} is for a fleet: give --cluster too")
    _study_here(size or SIZE_BYTES, directory or [Path()], memory, out, as_json)


def _study_here(
    size: int, directories: list[Path], memory: int, out: Path | None, as_json: bool
) -> None:
    from tonnage.cli.output.next_steps import from_study
    from tonnage.study.local import LocalStudySettings
    from tonnage.study.local import run_study as run_study

    where = out or new_directory("tonnage-study")
    refuse_missing("--dir", directories)
    refuse_repeated("--dir", directories)
    refuse_files("--output", [where])
    settings = LocalStudySettings(
        size_bytes=size,
        memory_bytes=memory,
        directories=tuple(directories),
        out=where,
    )
    done = run_study(settings, command_line())
    if as_json:
        print(json.dumps(done.to_json()))
        return
    for said in (*done.findings, *done.warnings):
        print(said)
    print(f"Report: {done.report}")
    print("\n".join(from_study(where)))
