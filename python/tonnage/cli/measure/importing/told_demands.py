"""``tonnage import RUNS.csv --demands FILE``: what one of the runs took, as it was imported."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tonnage.base import core, formatting
from tonnage.cli.measure.importing.not_imported import refuse_event_log
from tonnage.cli.measure.importing.run_tables import is_run_table
from tonnage.cli.options.planning import shipped_catalogs
from tonnage.cli.options.validate import usage_errors

if TYPE_CHECKING:
    from tonnage.base.records.application import Application
    from tonnage.base.records.job import Job
    from tonnage.base.records.past_run import PastRun, RunDemands

FLAG = "--demands"


def told_demands(file: Path, runs: Sequence[PastRun]) -> tuple[RunDemands, int | None]:
    """What one of the runs took, and what it kept in memory, if that is known."""
    from tonnage.base.records.application import Application
    from tonnage.base.records.base import RecordError
    from tonnage.base.records.find_measurements import has_schema
    from tonnage.base.records.job import Job
    from tonnage.model.jobs.application import cached_bytes

    _refuse_other_files(file)
    with usage_errors(RecordError, prefix=f"{FLAG} "):
        if not has_schema(file, Application):
            return _demands(file, Job.read(file), runs), None
        application = Application.read(file)
    if not application.ended:
        raise core.UsageError(
            f"{FLAG} {file}: its application has not ended; specify that of a finished run"
        )
    return _demands(file, _job(application, runs), runs), cached_bytes(application)


def _refuse_other_files(file: Path) -> None:
    if not file.is_file():
        raise core.UsageError(f"{FLAG} {file}: no such file")
    refuse_event_log(str(file), FLAG)
    if is_run_table(str(file)):
        raise core.UsageError(
            f"{FLAG} {file}: a table of past runs tells times alone; specify the imported event "
            "log of one of the runs, or the job of its observation"
        )


def _job(application: Application, runs: Sequence[PastRun]) -> Job:
    """Its job, as the catalogs know the run's machines."""
    from tonnage.catalog import CatalogError
    from tonnage.model.jobs.application import application_job
    from tonnage.model.past_runs.run_demands import run_that_took
    from tonnage.plan.past_runs.run_machines import Machines
    from tonnage.plan.recommendations.seen_application import job_seen_on

    run = run_that_took(application.seconds, runs)
    if run is None:
        return application_job(application)
    with usage_errors(CatalogError):
        offer = Machines(shipped_catalogs()).offer(run.provider, run.machine_type)
    return job_seen_on(application, offer, run.nodes)


def _demands(file: Path, job: Job, runs: Sequence[PastRun]) -> RunDemands:
    from tonnage.measure.importers.metric import one_line
    from tonnage.model.past_runs.run_demands import run_demands, run_that_took

    seconds = job.settings.get("seconds")
    run = run_that_took(seconds, runs) if isinstance(seconds, int | float) else None
    if run is None and isinstance(seconds, int | float):
        raise core.UsageError(
            f"{FLAG} {file}: its run took {formatting.duration(seconds)}, which none of "
            f"{one_line(runs[0].job)} did; specify what is known of one of them"
        )
    found = run_demands(job, run) if run else None
    if found is None:
        raise core.UsageError(
            f"{FLAG} {file}: what its run took is unknown; specify the imported event log of a "
            "run, or its job as tonnage import or tonnage observe writes it"
        )
    return found
