"""The frame of all pages: one HTML file with style, script, Plotly and the charts' data."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import resources
from string import Template
from typing import Any

from tonnage.report.charts import Chart
from tonnage.report.html import Html, escape, join, tag


@dataclass(frozen=True)
class PageSection:
    """A section of a page and its name in the navigation."""

    identifier: str
    name: str
    section: Html


def render_page(
    title: str, header: Html, parts: Sequence[PageSection], charts: Iterable[Chart]
) -> str:
    """Render a self-contained page of at least one section and the charts of its figures."""
    from plotly.offline import get_plotlyjs  # Optional: an extra of the package.

    links = [tag("a", part.name, href=f"#{part.identifier}") for part in parts]
    return Template(asset("page.html")).substitute(
        title=escape(title),
        style=asset("page.css"),
        skip=tag("a", f"Skip to: {parts[0].name}", class_="skip", href=f"#{parts[0].identifier}"),
        header=header,
        links=join(links, Html("\n")),
        sections=join(part.section for part in parts),
        charts=_embedded({chart.name: chart.data() for chart in charts}),
        plotly=get_plotlyjs(),
        script=asset("page.js"),
    )


def asset(name: str) -> str:
    """Read an asset."""
    return (resources.files(__package__) / "assets" / name).read_text(encoding="utf-8")


def _embedded(data: dict[str, Any]) -> Html:
    """Encode data as JSON that cannot close its script element."""
    return Html(json.dumps(data, separators=(",", ":")).replace("<", "\\u003c"))
