"""A study as one file of HTML, with its style, its script, Plotly and the charts' data inside."""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path
from string import Template
from typing import Any

import plotly.offline

from tonnage.artifacts import Study, read_table, write_atomically
from tonnage.report.circumstances import circumstances
from tonnage.report.counters import Table
from tonnage.report.headline import header, title
from tonnage.report.limits import limits
from tonnage.report.markup import Html, join, text
from tonnage.report.measurements import measurements
from tonnage.report.prediction import prediction
from tonnage.report.timeline import timeline

NAME = "report.html"


def write_report(directory: Path) -> Path:
    """Writes the report of the study in ``directory`` beside it, whole or not at all.

    Raises:
        ArtifactError: ``study.json`` is no study, or one of an unknown version.
        OSError: A file cannot be read or written.
    """
    study = Study.read(directory / "study.json")
    page = render(study, _tables(directory, study.files))
    path = directory / NAME
    write_atomically(path, page.encode())
    return path


def render(study: Study, tables: dict[str, Table]) -> str:
    """The page of a study whose tables have been read."""
    predicted, prediction_charts = prediction(study)
    over_time, timeline_charts = timeline(study, tables)
    measured, measurement_charts = measurements(study)
    sections = join([predicted, over_time, limits(study), measured, circumstances(study)])
    charts = [*prediction_charts, *timeline_charts, *measurement_charts]
    return Template(_asset("page.html")).substitute(
        title=text(f"{title(study)} · {study.environment.host}"),
        style=_asset("page.css"),
        header=header(study),
        sections=sections,
        charts=_embedded({chart.name: chart.data() for chart in charts}),
        plotly=plotly.offline.get_plotlyjs(),
        script=_asset("page.js"),
    )


def _tables(directory: Path, files: dict[str, str]) -> dict[str, Table]:
    """The tables that are there: a study that was cut short may name one that is not."""
    paths = {name: directory / file for name, file in files.items() if file.endswith(".parquet")}
    return {name: read_table(path) for name, path in paths.items() if path.is_file()}


def _asset(name: str) -> str:
    return (resources.files(__package__) / "assets" / name).read_text(encoding="utf-8")


def _embedded(data: dict[str, Any]) -> Html:
    """Data as JSON that no text within it can end."""
    return Html(json.dumps(data, separators=(",", ":")).replace("<", "\\u003c"))
