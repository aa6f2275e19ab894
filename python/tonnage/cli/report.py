"""``tonnage report``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from tonnage.base import core, formatting
from tonnage.base.records import RecordError, ReductionRecord, RunRecord
from tonnage.base.records.discovery import has_schema, measurement_bytes
from tonnage.base.records.plan import NamedPlan, Plan, Plans
from tonnage.cli.options.extras import refuse_without
from tonnage.cli.options.inputs import measured_places, read_all, read_fleets
from tonnage.cli.options.types import Json, whole_number

JOB, RUN = "job.json", "run.json"
"""What tells the directory of a job on a fleet, and its record."""


def report(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="MEASUREMENT_OR_DIR...",
            help="Measurements, or directories that hold some, at any depth; or the --job-dir of a job "
            "on a fleet, or its run.json; or records of reductions, or a directory of them; or "
            "plans, as tonnage plan --json printed them.",
        ),
    ],
    price: Annotated[
        list[str] | None,
        typer.Option(
            "--price",
            metavar="HOST_OR_TYPE=USD_PER_HOUR...",
            help="What a machine costs, by its name or its type's; or HOST=TYPE of the catalog.",
        ),
    ] = None,
    catalog: Annotated[
        str | None,
        typer.Option(
            "--catalog",
            metavar="NAME",
            help="What machine types cost: a catalog's name or CSV file.",
        ),
    ] = None,
    out: Annotated[
        Path,
        typer.Option(
            "--output",
            metavar="FILE.html",
            help="Where the page goes; its figures are put beside it, in FILE.json.",
        ),
    ] = Path("report.html"),
    seed: Annotated[
        int | None,
        typer.Option(
            "--seed",
            parser=whole_number(0, 1 << 62),
            metavar="N",
            help="Of all random draws. Default: 0.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Analyse measurements of one machine or of a fleet, and write a page to look at.

    Of a job on a fleet, a sort or a MapReduce: its phases beside their limits and its plan, node
    by node. Of reductions: what chunks and threads made of them. Of plans: what each machine type
    costs and takes, side by side.
    """
    refuse_without("report", "tonnage report")
    from tonnage.cli.options.prices import prices
    from tonnage.model.analysis.analyse import analyse
    from tonnage.report.analysis import write_analysis

    _refuse_out(out)
    for path in paths:
        if not path.exists():
            raise core.UsageError(
                f"{path}: there is no such file or directory: give what a measurement or a job was "
                "written to, its --output or --job-dir"
            )
    flags = {"--price": price, "--catalog": catalog, "--seed": seed}
    if plans := [path for path in paths if path.is_file() and has_schema(path, Plan)]:
        _refuse_flags(flags, f"{plans[0]} is a plan")
        _report_plans(plans, paths, out, as_json)
        return
    if reductions := [place for path in paths for place in _reductions_at(path)]:
        _refuse_flags(flags, f"{reductions[0]} is a reduction")
        _report_reductions(reductions, out, as_json)
        return
    if runs := [place for path in paths if (place := _run_at(path))]:
        _refuse_flags(flags, f"{paths[0]} is a job")
        if len(paths) > 1:
            raise core.UsageError(f"{runs[0].parent} is a job on a fleet: give it alone")
        _report_run(runs[0], out, as_json)
        return
    costs = prices(price or [], catalog)
    found = measured_places(paths)
    measurements = read_all(found)
    total = sum(map(measurement_bytes, found))
    with core.Progress("analysing", total) as progress:
        analysis = analyse(
            measurements,
            costs,
            seed or 0,
            fleets=read_fleets(paths),
            on_share=lambda share: progress(int(share * total)),
        )
    page = write_analysis(analysis, out)
    if as_json:
        print(json.dumps(analysis.to_json()))
        return
    for said in (*analysis.findings, *analysis.warnings):
        print(said)
    for rule in analysis.scorecard:
        print(f"{formatting.sentence(rule.rule)} {rule.verdict.capitalize()}: {rule.reason}.")
    print(f"Report: {page}")


def _refuse_flags(flags: dict[str, Any], what: str) -> None:
    """Refuses what is for measurements alone."""
    for flag, given in flags.items():
        if given is not None:
            raise core.UsageError(f"{flag}: it is for measurements, and {what}: leave it out")


def _report_plans(plans: list[Path], paths: list[Path], out: Path, as_json: bool) -> None:
    from tonnage.report.plans import MOST_PLANS, best_in_words, write_plans

    if others := [path for path in paths if path not in plans]:
        raise core.UsageError(f"{plans[0]} is a plan, and {others[0]} is none: give plans alone")
    beside = out.with_suffix(".json")
    if beside.resolve() in {path.resolve() for path in plans}:
        raise core.UsageError(
            f"--output {out}: {beside} is a plan, and would be written over: give another"
        )
    if len(plans) > MOST_PLANS:
        raise core.UsageError(f"{len(plans)} plans are more than can be told apart: {MOST_PLANS}")
    stems = [path.stem for path in plans]
    names = stems if len({*stems}) == len(stems) else list(map(str, plans))
    if len({*names}) < len(names):
        raise core.UsageError("a plan is given twice: give each once")
    try:
        found = Plans(
            plans=[
                NamedPlan(name=name, plan=Plan.read(path))
                for name, path in zip(names, plans, strict=True)
            ]
        )
    except RecordError as why:
        raise core.UsageError(str(why)) from None
    page = write_plans(found, out)
    if as_json:
        print(json.dumps(found.to_json()))
        return
    for each in found.plans:
        print(f"{each.name}: {best_in_words(each.plan)}.")
    print(f"Report: {page}")


def _reductions_at(path: Path) -> list[Path]:
    """Records of reductions: a file itself, or those right in a directory."""
    files = sorted(path.glob("*.json")) if path.is_dir() else [path]
    return [each for each in files if each.is_file() and has_schema(each, ReductionRecord)]


def _report_reductions(places: list[Path], out: Path, as_json: bool) -> None:
    from tonnage.cli.output.run_comparison import lines
    from tonnage.model.analysis.reduction_sweep import summarise_sweep
    from tonnage.report.reductions import found_in_words, name_of, write_sweep

    try:
        put_together = summarise_sweep([ReductionRecord.read(place) for place in places])
    except RecordError as why:
        raise core.UsageError(str(why)) from None
    page = write_sweep(put_together, out)
    if as_json:
        print(json.dumps(put_together.to_json()))
        return
    for swept in put_together.swept:
        print(f"{name_of(swept)}. {found_in_words(swept)}")
    for each in put_together.compared:
        for said in lines(each, each.phase_seconds):
            print(said)
    print(f"Report: {page}")


def _run_at(path: Path) -> Path | None:
    """The record of a job on a fleet: a file itself, or that of the job's own directory."""
    place = path / RUN if (path / JOB).is_file() else path
    if place != path and not place.is_file():
        raise core.UsageError(
            f"{path} is of a job that has not finished: the same command goes on, with --job-dir {path}"
        )
    return place if place.is_file() and has_schema(place, RunRecord) else None


def _report_run(place: Path, out: Path, as_json: bool) -> None:
    from tonnage.cli.output.run_comparison import lines
    from tonnage.cli.run.cluster import lost
    from tonnage.report.cluster_run import write_run

    try:
        record = RunRecord.read(place)
    except RecordError as why:
        raise core.UsageError(str(why)) from None
    if not record.nodes:
        raise core.UsageError(
            f"{place}: a {record.job} on one machine: give a job on a fleet; of sorts on one "
            "machine tonnage study reports"
        )
    page = write_run(record, out)
    if as_json:
        print(json.dumps(record.to_json()))
        return
    compared = lines(record.compared, record.seconds) if record.compared else ()
    for said in (*compared, *lost(record)):
        print(said)
    print(f"Report: {page}")


def _refuse_out(out: Path) -> None:
    if out.suffix != ".html" or out.is_dir():
        raise core.UsageError(f"--output {out}: name a file that ends in .html")
