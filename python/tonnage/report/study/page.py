"""A study as one file of HTML."""

from __future__ import annotations

from pathlib import Path

from tonnage.base.records import Study, read_table, write_atomically
from tonnage.report.environment import circumstances
from tonnage.report.measurements import measurements
from tonnage.report.study.counters import Table
from tonnage.report.study.headline import header, title
from tonnage.report.study.limits import limits
from tonnage.report.study.prediction import prediction
from tonnage.report.study.timeline import timeline
from tonnage.report.template import Part, page

NAME = "report.html"


def write_report(directory: Path) -> Path:
    """Writes the report of the study in ``directory`` beside it, whole or not at all.

    Raises:
        RecordError: ``study.json`` is no study, or one of an unknown version.
        OSError: A file cannot be read or written.
    """
    study = Study.read(directory / "study.json")
    content = render(study, _tables(directory, study.files))
    path = directory / NAME
    write_atomically(path, content.encode())
    return path


def render(study: Study, tables: dict[str, Table]) -> str:
    """The page of a study whose tables have been read."""
    predicted, prediction_charts = prediction(study)
    over_time, timeline_charts = timeline(study, tables)
    measured, measurement_charts = measurements(study)
    return page(
        f"{title(study)} · {study.environment.host}",
        header(study),
        [
            Part("prediction", "Prediction", predicted),
            Part("timeline", "Over time", over_time),
            Part("limits", "What limited it", limits(study)),
            Part("measurements", "What the machine carries", measured),
            Part("circumstances", "Machine and settings", circumstances(study)),
        ],
        [*prediction_charts, *timeline_charts, *measurement_charts],
    )


def _tables(directory: Path, files: dict[str, str]) -> dict[str, Table]:
    """The tables that are there: a study that was cut short may name one that is not."""
    paths = {name: directory / file for name, file in files.items() if file.endswith(".parquet")}
    return {name: read_table(path) for name, path in paths.items() if path.is_file()}
