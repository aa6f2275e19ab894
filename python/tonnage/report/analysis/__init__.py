"""The page of an analysis: what a machine, or a fleet of them, carries, at what price, how surely.

It computes nothing: every figure is the analysis's. A chart without data is left out, and the page
says which and why.
"""

from __future__ import annotations

from pathlib import Path

from tonnage.base.records import write_atomically
from tonnage.base.records.analysis import Analysis
from tonnage.report.analysis.comparisons import across
from tonnage.report.analysis.operations import subjects
from tonnage.report.analysis.overview import header, overview, title
from tonnage.report.analysis.scorecard import belief, sources
from tonnage.report.template import Part, page

__all__ = ["render", "write_analysis"]


def write_analysis(analysis: Analysis, path: Path) -> Path:
    """Writes the page to ``path``, and the analysis beside it, as JSON of the same name.

    Raises:
        OSError: A file cannot be written.
    """
    analysis.write(path.with_suffix(".json"))
    write_atomically(path, render(analysis).encode())
    return path


def render(analysis: Analysis) -> str:
    """The page."""
    compared, comparing_charts = across(analysis)
    each, charts_of_each = subjects(analysis)
    return page(
        title(analysis),
        header(analysis),
        [
            Part("overview", "Overview", overview(analysis)),
            Part("across", "Side by side", compared),
            Part("operations", "Each operation", each),
            Part("belief", "How far to believe it", belief(analysis)),
            Part("sources", "Machines and measurements", sources(analysis)),
        ],
        [*comparing_charts, *charts_of_each],
    )
