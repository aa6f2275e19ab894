"""The frame of all reports: one HTML file with style, script, Plotly and the charts' data."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from string import Template
from typing import Any

from tonnage.base.records import Record, write_atomically
from tonnage.report.charts import Chart
from tonnage.report.html_elements import Child, Html, escape, join, tag

SCRIPTS = ("page", "search")
"""In their order: a search listens to the charts that the page has drawn."""


@dataclass(frozen=True)
class Tile:
    """A key figure with a note."""

    name: str
    figure: str
    note: Child


@dataclass(frozen=True)
class PageSection:
    """A section of a page and its name in the navigation."""

    identifier: str
    name: str
    section: Html


def write_page(record: Record, page: str, path: Path) -> Path:
    """Write a page to ``path`` and its record as JSON next to it.

    Raises:
        OSError: A file cannot be written.
    """
    record.write(path.with_suffix(".json"))
    write_atomically(path, page.encode())
    return path


def page_header(where: str, title: str, *parts: Child) -> Html:
    """The head of a page: the program, where or when, and the first sentence."""
    eyebrow = tag("p", tag("b", "Tonnage"), f" · {where}", class_="eyebrow")
    return tag("header", eyebrow, tag("h1", f"{title}."), *parts)


def notice(text: str, section: str) -> Html:
    """A warning at the head of a page, with a link to a section."""
    return tag("p", tag("a", text, href=f"#{section}"), class_="notice", role="note")


def tile_list(some: Iterable[Tile]) -> Html | None:
    """Key figures side by side."""
    found = [
        tag("div", tag("dt", tile.name), tag("dd", tag("b", tile.figure), tag("small", tile.note)))
        for tile in some
    ]
    return tag("dl", *found, class_="tiles") if found else None


def render_page(
    title: str, header: Html, parts: Sequence[PageSection], charts: Iterable[Chart]
) -> str:
    """Render a self-contained page of at least one section and the charts of its figures."""
    from plotly.offline import get_plotlyjs  # Optional: an extra of the package.

    links = [tag("a", part.name, href=f"#{part.identifier}") for part in parts]
    return Template(asset(__package__, "page.html")).substitute(
        title=escape(title),
        style=asset(__package__, "page.css"),
        skip=tag("a", f"Skip to: {parts[0].name}", class_="skip", href=f"#{parts[0].identifier}"),
        header=header,
        links=join(links, Html("\n")),
        sections=join(part.section for part in parts),
        charts=_embedded({chart.name: chart.data() for chart in charts}),
        plotly=get_plotlyjs(),
        script="\n".join(asset(__package__, f"{name}.js") for name in SCRIPTS),
    )


def asset(package: str, name: str) -> str:
    """The text of a file in the assets of a package."""
    return (resources.files(package) / "assets" / name).read_text(encoding="utf-8")


def _embedded(data: dict[str, Any]) -> Html:
    """Encode data as JSON that cannot close its script element."""
    return Html(json.dumps(data, separators=(",", ":")).replace("<", "\\u003c"))
