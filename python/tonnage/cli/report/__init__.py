"""``tonnage report``."""

from pathlib import Path
from typing import Annotated, Any, NamedTuple

from tonnage.base import core, formatting
from tonnage.base.records import Record, ReductionRecord, RunRecord
from tonnage.base.records.find_measurements import has_schema, measurement_bytes
from tonnage.base.records.plan import NamedPlan, Plan, Plans
from tonnage.cli.options.inputs import load_all, load_clusters, measurement_files
from tonnage.cli.options.optional_dependencies import refuse_missing_extra
from tonnage.cli.options.types import Argument, Count, Json, Option
from tonnage.cli.options.validate import refuse_suffix
from tonnage.cli.output import print_result
from tonnage.cli.output.run_comparison import comparison_lines
from tonnage.cli.output.run_record import lost_lines
from tonnage.cli.report.jobs import JOB, find_job_record, write_job_report

RUN = "run.json"
"""The record of a job on a cluster, in a directory with a `JOB`."""


class Report(NamedTuple):
    page: Path
    record: Record
    lines: list[str]


def report(
    *,
    paths: Annotated[
        list[Path],
        Argument(
            "PATH...",
            "One of: measurements, or directories that contain them at any depth; one job on a "
            "cluster (its --job-dir, or its run.json); one application (tonnage import) or one "
            "observation (the --output of tonnage observe); records of reductions (tonnage run "
            "reduce --json); plans (tonnage plan --json).",
        ),
    ],
    price: Annotated[
        list[str] | None,
        Option(
            "HOST_OR_TYPE=USD_PER_HOUR...",
            "Price of a host or of a machine type; or HOST=TYPE, which takes the price of TYPE "
            "from --catalog.",
        ),
    ] = None,
    catalog: Annotated[
        str | None, Option("NAME", "Catalog with prices of machine types: a name, or a CSV file.")
    ] = None,
    out: Annotated[
        Path,
        Option(
            "FILE.html",
            "File for the report; its figures are written to FILE.json, next to it.",
            flag="--output",
        ),
    ] = Path("report.html"),
    seed: Annotated[int | None, Count("Random seed. Default: 0.", 0, 1 << 62)] = None,
    as_json: Json = False,
) -> None:
    """Analyse measurements, jobs or plans, and write an HTML report.

    For a sort or MapReduce on a cluster, the report compares each phase, node by node, with the
    predicted limit and with the plan. For an application of another engine or an observed command,
    it shows where the cores' time went, what limited each phase, and what to change first. For
    reductions, it shows the effect of the chunk size and of
    the number of concurrent requests; for plans, it compares machine types by cost and time.

    Examples:
        tonnage report results --price i4i.large=0.172 --output report.html
        tonnage report job --output run.html
        tonnage report job.json --output nightly.html
    """
    refuse_missing_extra("report", "tonnage report")
    refuse_suffix(out, ".html")
    for path in paths:
        if not path.exists():
            raise core.UsageError(
                f"{path}: no such file or directory; use the --output of a measurement, or the "
                "--job-dir of a job"
            )
    flags = {"--price": price, "--catalog": catalog, "--seed": seed}
    if plans := [path for path in paths if path.is_file() and has_schema(path, Plan)]:
        _refuse_flags(flags, f"{plans[0]} is a plan")
        page, record, lines = _report_plans(plans, paths, out)
    elif reductions := [place for path in paths for place in _reductions_at(path)]:
        _refuse_flags(flags, f"{reductions[0]} is a reduction")
        page, record, lines = _report_reductions(reductions, out)
    elif jobs := [place for path in paths if (place := find_job_record(path))]:
        _refuse_flags(flags, f"{jobs[0]} is a job's record")
        if len(paths) > 1:
            raise core.UsageError(f"{jobs[0]} is of one job; it must be the only path")
        page, record, lines = write_job_report(jobs[0], out)
    elif runs := [place for path in paths if (place := _run_at(path))]:
        _refuse_flags(flags, f"{paths[0]} is a job")
        if len(paths) > 1:
            raise core.UsageError(f"{runs[0].parent} is a cluster job; it must be the only path")
        page, record, lines = _report_run(runs[0], out)
    else:
        page, record, lines = _report_measurements(paths, price, catalog, seed, out)
    print_result(record, [*lines, f"Report: {page}"], as_json)


def _refuse_flags(flags: dict[str, Any], what: str) -> None:
    for flag, given in flags.items():
        if given is not None:
            raise core.UsageError(f"{flag} applies only to measurements, but {what}; remove {flag}")


def _report_measurements(
    paths: list[Path], price: list[str] | None, catalog: str | None, seed: int | None, out: Path
) -> Report:
    from tonnage.cli.options.prices import prices
    from tonnage.model.analysis.analyse import analyse
    from tonnage.report.analysis import write_analysis

    costs = prices(price or [], catalog)
    files = measurement_files(paths)
    measurements = load_all(files)
    total = sum(map(measurement_bytes, files))
    with core.Progress("analysing", total) as progress:
        analysis = analyse(
            measurements,
            costs,
            seed or 0,
            clusters=load_clusters(paths),
            on_share=lambda share: progress(int(share * total)),
        )
    rules = [
        f"{formatting.sentence(rule.rule)} {rule.verdict.capitalize()}: {rule.reason}."
        for rule in analysis.scorecard
    ]
    page = write_analysis(analysis, out)
    return Report(page, analysis, [*analysis.findings, *analysis.warnings, *rules])


def _report_plans(plans: list[Path], paths: list[Path], out: Path) -> Report:
    from tonnage.report.plans import MAX_PLANS, best_in_words, write_plans

    if others := [path for path in paths if path not in plans]:
        raise core.UsageError(f"{plans[0]} is a plan, but {others[0]} is not; pass only plans")
    figures = out.with_suffix(".json")
    if figures.resolve() in {path.resolve() for path in plans}:
        raise core.UsageError(
            f"--output {out}: writing it would overwrite {figures}, which is a plan; use another "
            "file name"
        )
    if len(plans) > MAX_PLANS:
        raise core.UsageError(
            f"{len(plans)} plans are too many to compare; pass at most {MAX_PLANS}"
        )
    stems = [path.stem for path in plans]
    names = stems if len({*stems}) == len(stems) else list(map(str, plans))
    if len({*names}) < len(names):
        raise core.UsageError(f"{names[0]} is passed twice; pass each plan only once")
    named = [
        NamedPlan(name=name, plan=Plan.read(path)) for name, path in zip(names, plans, strict=True)
    ]
    lines = [f"{each.name}: {best_in_words(each.plan)}." for each in named]
    record = Plans(plans=named)
    return Report(write_plans(record, out), record, lines)


def _reductions_at(path: Path) -> list[Path]:
    files = sorted(path.glob("*.json")) if path.is_dir() else [path]
    return [each for each in files if each.is_file() and has_schema(each, ReductionRecord)]


def _report_reductions(places: list[Path], out: Path) -> Report:
    from tonnage.model.analysis.reduction_sweep import summarise_sweep
    from tonnage.report.reductions import found_in_words, name_of, write_sweep

    sweep = summarise_sweep([ReductionRecord.read(place) for place in places])
    lines = [f"{name_of(each)}. {found_in_words(each)}" for each in sweep.swept]
    for each in sweep.compared:
        lines += comparison_lines(each, each.phase_seconds)
    return Report(write_sweep(sweep, out), sweep, lines)


def _run_at(path: Path) -> Path | None:
    """The record of a job on a cluster: a file itself, or the one in its job directory."""
    place = path / RUN if (path / JOB).is_file() else path
    if place != path and not place.is_file():
        raise core.UsageError(
            f"{path}: the job has not finished; to resume it, run its command again with --job-dir "
            f"{path}"
        )
    return place if place.is_file() and has_schema(place, RunRecord) else None


def _report_run(place: Path, out: Path) -> Report:
    from tonnage.report.cluster_run import write_run

    record = RunRecord.read(place)
    if not record.nodes:
        raise core.UsageError(
            f"{place} is a {record.job} on one machine, but reports are made of jobs on a cluster; "
            "for a report of a sort on one machine, use tonnage study"
        )
    compared = comparison_lines(record.compared, record.seconds) if record.compared else ()
    return Report(write_run(record, out), record, [*compared, *lost_lines(record)])
