"""``tonnage plan RUNS.json``: a job of which only past runs are known."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tonnage.base import core
from tonnage.cli.measure.importing.not_imported import refuse_not_imported
from tonnage.cli.options.planning import shipped_catalogs
from tonnage.cli.options.validate import usage_errors
from tonnage.cli.output import print_result
from tonnage.cli.output.plan import print_plan
from tonnage.cli.output.planning.next_run import next_run_document, next_run_lines
from tonnage.cli.output.planning.no_candidate import why_no_candidate

if TYPE_CHECKING:
    from tonnage.base.records.past_run import PastRuns
    from tonnage.catalog import Catalog
    from tonnage.plan.planner import PlanRequest
    from tonnage.plan.recommendations.current_cluster import Cluster


def past_runs_in(name: str) -> PastRuns | None:
    """The past runs in a file; ``None`` if JOB is anything else."""
    from tonnage.base.records.base import RecordError
    from tonnage.base.records.find_measurements import has_schema
    from tonnage.base.records.past_run import PastRuns

    path = Path(name)
    refuse_not_imported(name, "JOB")
    if not path.is_file():
        return None
    with usage_errors(RecordError, prefix="JOB "):
        return PastRuns.read(path) if has_schema(path, PastRuns) else None


def refuse_for_past_runs(name: str, given: Mapping[str, object]) -> None:
    for flag, value in given.items():
        if value:
            raise core.UsageError(
                f"{flag} does not apply to {name}, of which only past runs are known; remove it"
            )


def print_plan_of_past_runs(
    past: PastRuns,
    request: PlanRequest,
    size: int | None,
    catalogs: Sequence[Catalog],
    now: Cluster | None,
    runs_per_month: float | None,
    *,
    every: bool,
    as_json: bool,
) -> None:
    from tonnage.catalog import CatalogError
    from tonnage.plan.past_runs.known_runs import NoFinishedRun
    from tonnage.plan.past_runs.planner import plan_past_runs
    from tonnage.plan.planner import PlanError

    _refuse_unknown_size(past, size)
    with usage_errors(PlanError, CatalogError):
        try:
            made = plan_past_runs(
                request, past, size, catalogs, now, runs_per_month, shipped_catalogs()
            )
        except NoFinishedRun:
            raise core.UsageError(_no_finished_run(past)) from None
    if as_json:
        print_result(made, [], as_json)
    no_slower = now is not None and math.isinf(request.limits.deadline_seconds)
    if not made.candidates:
        raise core.UsageError(why_no_candidate(made, no_slower))
    if not as_json:
        print_plan(made, every, no_slower)


def print_next_runs(
    past: PastRuns,
    request: PlanRequest,
    size: int | None,
    catalogs: Sequence[Catalog],
    as_json: bool,
) -> None:
    from tonnage.catalog import CatalogError
    from tonnage.plan.past_runs.known_runs import NoFinishedRun
    from tonnage.plan.past_runs.next_run import propose_runs
    from tonnage.plan.past_runs.planner import price_clusters
    from tonnage.plan.planner import PlanError

    _refuse_unknown_size(past, size)
    with usage_errors(PlanError, CatalogError):
        try:
            priced, _ = price_clusters(request, past, size, catalogs, None, shipped_catalogs())
        except NoFinishedRun:
            raise core.UsageError(_no_finished_run(past)) from None
    deadline = request.limits.deadline_seconds
    longest = max(run.seconds for run in past.runs if run.name == past.job and run.outcome == "ok")
    proposed = propose_runs(priced, longest, deadline if math.isfinite(deadline) else None)
    print_result(next_run_document(proposed), next_run_lines(proposed), as_json)


def _refuse_unknown_size(past: PastRuns, size: int | None) -> None:
    stated = any(run.data_bytes for run in past.runs if run.name == past.job)
    if size is not None and not stated:
        raise core.UsageError(
            f"--data {size}: the runs of {past.job} do not state how much data they had (column "
            "data_bytes), so how its time grows is unknown; remove --data"
        )


def _no_finished_run(past: PastRuns) -> str:
    return (
        f"no run of {past.job} finished, so nothing is known of its time; add one, or choose "
        "another job with tonnage import --job"
    )
