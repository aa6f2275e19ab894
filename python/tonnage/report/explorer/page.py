"""The explorer as one file of HTML: the form, what can be planned with, and the scripts.

The form comes first and is painted before what the page holds is read, and no library is needed:
the one chart is drawn by `assets/chart.js`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from string import Template
from typing import Any

from tonnage.base import formatting
from tonnage.base.records import write_atomically
from tonnage.report.explorer.page_data import PageData
from tonnage.report.html import Html, escape, join, tag
from tonnage.report.template import asset as of_reports

SCRIPTS = (
    "words",
    "fleets",
    "volumes",
    "evaluate",
    "search",
    "candidates",
    "front",
    "planner",
    "question",
    "explain",
    "chart",
    "view",
    "begin",
)
"""Each takes what those before it define."""
JOBS = {"mapreduce": "MapReduce", "reduce": "reduction"}
"""What jobs are called in a sentence."""
DURABILITIES = {
    "none": "none",
    "replicated": "replicated: a second copy of the output",
    "volumes": "volumes: input and output on network volumes",
}


def write_explorer(world: PageData, job: str, flags: Sequence[str], out: Path) -> Path:
    """Writes the page, whole or not at all.

    Raises:
        OSError: It cannot be written.
    """
    write_atomically(out, render(world, job, flags).encode())
    return out


def render(world: PageData, job: str, flags: Sequence[str]) -> str:
    """The page.

    Args:
        world: What can be planned with.
        job: As ``tonnage plan`` takes it.
        flags: What a ``tonnage plan`` of the same catalogs and profiles needs beside.
    """
    values = world.values | {
        "command": {"job": formatting.command([job]), "flags": formatting.command(flags)}
    }
    durabilities = [name for name in values["variants"] if name]
    dates = (f"{each['name']} (prices of {each['date'] or '?'})" for each in values["catalogs"])
    return Template(_asset("page.html")).substitute(
        title=escape(f"Plan: {job}"),
        heading=escape(f"What to rent for a {JOBS.get(values['job'], values['job'])}"),
        style=of_reports("page.css") + _asset("page.css"),
        durable=Html() if durabilities else Html(" hidden"),
        durabilities=_options((name, DURABILITIES[name]) for name in durabilities),
        providers=_options(
            [("", "any"), *((each, each) for each in _providers(values["catalogs"]))]
        ),
        held=escape(
            f"Held here: {formatting.several(world.offers, 'machine')} that can be planned with, of "
            f"{formatting.listing(dates)}; measured by {formatting.listing(values['profiles'])}."
        ),
        interval=escape(values["interval_rule"]),
        world=_embedded(values),
        script="\n".join(_asset(f"{name}.js") for name in SCRIPTS),
    )


def _options(pairs: Any) -> Html:
    return join(tag("option", said, value=name) for name, said in pairs)


def _providers(catalogs: Sequence[dict[str, Any]]) -> list[str]:
    return list(dict.fromkeys(each["provider"] for each in catalogs))


def _asset(name: str) -> str:
    return (resources.files(__package__) / "assets" / name).read_text(encoding="utf-8")


def _embedded(values: dict[str, Any]) -> Html:
    """Values as JSON that no text within them can end."""
    said = json.dumps(values, separators=(",", ":"), allow_nan=False)
    return Html(said.replace("<", "\\u003c"))
