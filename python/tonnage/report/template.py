"""The one shell of all pages: a file of HTML with style, script, Plotly and the charts' data."""

from __future__ import annotations

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
    """A section of a page, and what the page's list of parts calls it."""

    identifier: str
    name: str
    section: Html


def render_page(
    title: str, header: Html, parts: Sequence[PageSection], charts: Iterable[Chart]
) -> str:
    """A page that opens anywhere, offline.

    Args:
        title: Of the window.
        header: What stands above the parts.
        parts: In order; there is at least one.
        charts: What the parts' figures are filled with.
    """
    from plotly.offline import get_plotlyjs  # An extra, which who imports this may not have.

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
    """A file that pages are made of."""
    return (resources.files(__package__) / "assets" / name).read_text(encoding="utf-8")


def _embedded(data: dict[str, Any]) -> Html:
    """Data as JSON that no text within it can end."""
    return Html(json.dumps(data, separators=(",", ":")).replace("<", "\\u003c"))
