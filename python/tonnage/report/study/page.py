"""Render a study as one HTML file."""

from pathlib import Path

from tonnage.base.records import Study, read_table, write_atomically
from tonnage.report.environment import environment_section
from tonnage.report.measurements import measurements_section
from tonnage.report.page import PageSection, render_page
from tonnage.report.study.counters import Table
from tonnage.report.study.headline import header, title
from tonnage.report.study.limits import limits_section
from tonnage.report.study.prediction import prediction_section
from tonnage.report.study.timeline import timeline_section

NAME = "report.html"


def write_report(directory: Path) -> Path:
    """Write the report of the study in ``directory`` there, atomically.

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
    predicted, prediction_charts = prediction_section(study)
    over_time, timeline_charts = timeline_section(study, tables)
    measured, measurement_charts = measurements_section(study)
    return render_page(
        f"{title(study)} · {study.environment.host}",
        header(study),
        [
            PageSection("prediction", "Prediction", predicted),
            PageSection("timeline", "Over time", over_time),
            PageSection("limits", "Bottlenecks", limits_section(study)),
            PageSection("measurements", "Measured throughput", measured),
            PageSection("circumstances", "Machine and settings", environment_section(study)),
        ],
        [*prediction_charts, *timeline_charts, *measurement_charts],
    )


def _tables(directory: Path, files: dict[str, str]) -> dict[str, Table]:
    """Read the tables that exist: an incomplete study may name others."""
    paths = {name: directory / file for name, file in files.items() if file.endswith(".parquet")}
    return {name: read_table(path) for name, path in paths.items() if path.is_file()}
