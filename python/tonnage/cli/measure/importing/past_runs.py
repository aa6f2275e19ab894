"""A table of past runs: the runs of one program, for ``tonnage plan``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tonnage.base import core, formatting
from tonnage.cli.measure.importing.job_files import refuse_other_suffix
from tonnage.cli.measure.importing.told_demands import told_demands
from tonnage.cli.options.validate import usage_errors
from tonnage.cli.output import print_result
from tonnage.cli.output.observed_runs.past_runs import past_run_lines

if TYPE_CHECKING:
    from tonnage.base.records.past_run import PastRun

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
        demands, kept = told_demands(observed, own)
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
