"""A table of past runs: the runs of one program, for ``tonnage plan``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tonnage.base import core, formatting
from tonnage.cli.measure.importing.job_files import refuse_other_suffix
from tonnage.cli.measure.importing.not_imported import refuse_event_log
from tonnage.cli.measure.importing.run_tables import is_run_table
from tonnage.cli.options.validate import usage_errors
from tonnage.cli.output import print_result
from tonnage.cli.output.observed_runs.past_runs import past_run_lines

if TYPE_CHECKING:
    from tonnage.base.records.past_run import PastRun, RunDemands

SHOWN_JOBS = 8
"""The most that an error lists."""


def import_past_runs(
    file: Path,
    out: Path | None,
    job: str | None,
    cached: int | None,
    observed: Path | None,
    as_json: bool,
) -> None:
    from tonnage.base.records.past_run import PastRuns
    from tonnage.catalog import CatalogError
    from tonnage.plan.past_runs.run_table import read_runs

    refuse_other_suffix(out)
    with usage_errors(CatalogError):
        runs = read_runs(file)
    name = _job(file, runs, job)
    program = next(run.program for run in runs if run.name == name)
    own = [run for run in runs if run.program == program]
    demands = None
    if observed is not None:
        demands, kept = _demands(observed, own)
        cached = kept if cached is None else cached
    past = PastRuns(
        job=name,
        runs=own,
        cached_bytes=cached,
        demands=demands,
    )
    lines = past_run_lines(past)
    if out:
        past.write(out)
        lines.append(f"Results: {out}, for tonnage plan")
    print_result(past, lines, as_json)


def _demands(file: Path, runs: Sequence[PastRun]) -> tuple[RunDemands, int | None]:
    """What one of the runs took, and what it kept in memory, if that is known."""
    from tonnage.base.records.application import Application
    from tonnage.base.records.base import RecordError
    from tonnage.base.records.find_measurements import has_schema
    from tonnage.base.records.job import Job
    from tonnage.measure.importers.metric import one_line
    from tonnage.model.jobs.application import application_job, cached_bytes
    from tonnage.model.past_runs.run_demands import run_demands, run_of_job

    refuse_event_log(str(file), "--demands")
    if is_run_table(str(file)):
        raise core.UsageError(
            f"--demands {file} is a table of past runs, which tells times alone; specify the "
            "imported event log of a run"
        )
    with usage_errors(RecordError, prefix="--demands "):
        if has_schema(file, Application):
            application = Application.read(file)
            job, kept = application_job(application), cached_bytes(application)
        else:
            job, kept = Job.read(file), None
    run = run_of_job(job, runs)
    seconds = job.settings.get("seconds")
    if run is None and isinstance(seconds, int | float):
        raise core.UsageError(
            f"--demands {file}: its run took {formatting.duration(seconds)}, which none of "
            f"{one_line(runs[0].job)} did; specify what is known of one of them"
        )
    found = run_demands(job, run) if run else None
    if found is None:
        raise core.UsageError(
            f"--demands {file}: what its run took is unknown; specify the imported event log of a "
            "run, or its job as tonnage import or tonnage observe writes it"
        )
    return found, kept


def _job(file: Path, runs: Sequence[PastRun], asked: str | None) -> str:
    """The job to plan: the one that was asked for, or the only one of the table."""
    from tonnage.measure.importers.metric import one_line

    names = [*dict.fromkeys(run.name for run in runs)]
    if asked is None and len(names) == 1:
        return names[0]
    if asked in names:
        return str(asked)
    shown = formatting.listing(map(one_line, names[:SHOWN_JOBS]))
    more = f" and {len(names) - SHOWN_JOBS} more" if len(names) > SHOWN_JOBS else ""
    if asked is None:
        raise core.UsageError(f"{file} has runs of {shown}{more}; choose one with --job")
    raise core.UsageError(
        f"--job {one_line(asked)}: {file} has no such job"
        f"{formatting.did_you_mean(asked, names)}; it has {shown}{more}"
    )
