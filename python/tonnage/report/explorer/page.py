"""Render the explorer as one HTML file: the form, the tables to plan from, and the scripts.

The form comes first and is painted before the tables are parsed. No library is needed:
`assets/chart.js` draws the only chart.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from string import Template
from typing import Any

from tonnage.base import formatting
from tonnage.base.records import write_atomically
from tonnage.report.explorer.page_data import PageData
from tonnage.report.html_elements import Html, escape, join, tag
from tonnage.report.page import asset

SCRIPTS = (
    "formatting",
    "capacity_samples",
    "block_volumes",
    "cost_model",
    "search",
    "candidates",
    "pareto",
    "planner",
    "plan_request",
    "explain",
    "chart",
    "view",
    "main",
)
"""In the order of their dependencies."""
JOBS = {"mapreduce": "MapReduce", "reduce": "reduction"}
"""Names of jobs in a sentence."""
LOCATIONS = {
    "objects": "objects: in object storage",
    "volumes": "volumes: on network volumes",
    "local": "local: on the nodes' own disks",
    "replicated": "local, with a second copy of the output",
}


def write_explorer(data: PageData, job: str, flags: Sequence[str], out: Path) -> Path:
    """Write the page atomically.

    Raises:
        OSError: It cannot be written.
    """
    write_atomically(out, render(data, job, flags).encode())
    return out


def render(data: PageData, job: str, flags: Sequence[str]) -> str:
    """Render the page; ``job`` and ``flags`` are those of the same ``tonnage plan``."""
    values = data.values | {
        "command": {"job": formatting.command([job]), "flags": formatting.command(flags)}
    }
    providers = dict.fromkeys(each["provider"] for each in values["catalogs"])
    locations = [name for name in values["variants"] if name]
    dates = (f"{each['name']} (prices of {each['date'] or '?'})" for each in values["catalogs"])
    return Template(asset(__package__, "page.html")).substitute(
        title=escape(f"Plan: {job}"),
        heading=escape(f"What to rent for a {JOBS.get(values['job'], values['job'])}"),
        style=asset("tonnage.report", "page.css") + asset(__package__, "page.css"),
        located=Html() if locations else Html(" hidden"),
        locations=_options((name, LOCATIONS[name]) for name in locations),
        providers=_options([("", "any"), *((each, each) for each in providers)]),
        held=escape(
            f"This page contains {formatting.several(data.offers, 'offer')} "
            f"from {formatting.listing(dates)}; "
            f"measurements: {formatting.listing(values['profiles'])}."
        ),
        interval=escape(values["interval_rule"]),
        page_data=_embedded(values),
        script="\n".join(asset(__package__, f"{name}.js") for name in SCRIPTS),
    )


def _options(pairs: Any) -> Html:
    return join(tag("option", label, value=name) for name, label in pairs)


def _embedded(values: dict[str, Any]) -> Html:
    """Encode values as JSON that cannot close its script element."""
    encoded = json.dumps(values, separators=(",", ":"), allow_nan=False)
    return Html(encoded.replace("<", "\\u003c"))
