"""The page of an analysis: what a machine, or a fleet of them, carries, at what price, how surely.

It computes nothing: every figure is the analysis's. A chart without data is left out, and the page
says which and why.
"""

from __future__ import annotations

from pathlib import Path

from tonnage.base.records import write_atomically
from tonnage.base.records.analysis import Analysis
from tonnage.report.analysis.comparisons import comparisons_section
from tonnage.report.analysis.operations import operations_section
from tonnage.report.analysis.overview import header, overview_section, title
from tonnage.report.analysis.scorecard import scorecard_section, sources_section
from tonnage.report.template import PageSection, render_page

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
    compared, comparing_charts = comparisons_section(analysis)
    each, charts_of_each = operations_section(analysis)
    return render_page(
        title(analysis),
        header(analysis),
        [
            PageSection("overview", "Overview", overview_section(analysis)),
            PageSection("across", "Side by side", compared),
            PageSection("operations", "Each operation", each),
            PageSection("belief", "How far to believe it", scorecard_section(analysis)),
            PageSection("sources", "Machines and measurements", sources_section(analysis)),
        ],
        [*comparing_charts, *charts_of_each],
    )
