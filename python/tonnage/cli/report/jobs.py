"""Reports of jobs that other programs ran: imported applications and observed commands."""

from collections.abc import Iterator
from pathlib import Path

from tonnage.base import core
from tonnage.base.records import Job, Observation, Record, read_table
from tonnage.base.records.application import Application
from tonnage.base.records.find_measurements import has_schema
from tonnage.base.records.past_run import PastRuns
from tonnage.cli.measure.importing.not_imported import refuse_not_imported
from tonnage.measure.importers.metric import one_line

OBSERVATION, JOB, SERIES = "observation.json", "job.json", "series.parquet"
OBSERVATION_OF_JOB = "{stem}-observation.json"
"""Where an import writes what it saw of a run, by the name of the job's file."""


def find_job_record(path: Path) -> Path | None:
    """The record of an application or an observation that a path is, has, or is the job of.

    Raises:
        UsageError: It is a job, and what it was made of is not next to it.
    """
    refuse_not_imported(str(path))
    if path.is_dir():
        records = ((path / OBSERVATION, Observation), (path / JOB, Application))
        return next((place for place, kind in records if _is_a(place, kind)), None)
    if not path.is_file():
        return None
    if _is_a(path, Application) or _is_a(path, Observation):
        return path
    if has_schema(path, PastRuns):
        raise core.UsageError(
            f"{path} has the times of past runs, which make no report; use tonnage plan {path}"
        )
    return _record_of_job(path) if has_schema(path, Job) else None


def write_job_report(place: Path, out: Path) -> tuple[Path, Record, list[str]]:
    """Write the page of a record; the page, what it shows, and its main lines."""
    _refuse_overwriting(place, out)
    is_application = has_schema(place, Application)
    page, record, lines = (_write_application if is_application else _write_observation)(place, out)
    return page, record, [*map(one_line, lines)]


def _is_a(path: Path, kind: type[Record]) -> bool:
    return path.is_file() and has_schema(path, kind)


def _record_of_job(path: Path) -> Path:
    settings = Job.read(path).settings
    observation = settings.get("observation")
    for place in _observations_near(path):
        if has_schema(place, Observation) and Observation.read(place).id == observation:
            return place
    what = "the record that its demands come from"
    if observation:
        what = f"the record of {observation}, an observation.json, which is not next to it"
    elif application := settings.get("application"):
        what = f"the record of {application}, which tonnage import --output DIR writes"
    raise core.UsageError(f"{path} is a job as demands, which has no report; use {what}")


def _observations_near(path: Path) -> Iterator[Path]:
    for name in (OBSERVATION, OBSERVATION_OF_JOB.format(stem=path.stem)):
        if (place := path.with_name(name)).is_file():
            yield place


def _refuse_overwriting(place: Path, out: Path) -> None:
    figures = out.with_suffix(".json")
    if figures.resolve() == place.resolve():
        raise core.UsageError(
            f"--output {out}: writing it would overwrite {figures}, which it is made of; use "
            "another file name"
        )


def _write_application(place: Path, out: Path) -> tuple[Path, Record, list[str]]:
    from tonnage.model.jobs.application_analysis import analyse_application
    from tonnage.report.jobs.application import summary_lines, write_application

    analysis = analyse_application(Application.read(place))
    return write_application(analysis, out), analysis, summary_lines(analysis)


def _write_observation(place: Path, out: Path) -> tuple[Path, Record, list[str]]:
    from tonnage.model.jobs.observation_findings import analyse_observation
    from tonnage.report.jobs.observation import summary_lines, write_observation

    series = place.with_name(SERIES)
    table = read_table(series) if place.name == OBSERVATION and series.is_file() else None
    analysis = analyse_observation(Observation.read(place))
    return write_observation(analysis, table, out), analysis, summary_lines(analysis)
