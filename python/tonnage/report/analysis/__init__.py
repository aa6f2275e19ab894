"""Render an analysis: throughput, latency, variation and price of machines, with their uncertainty.

The page lists charts that were left out for lack of data, with the reason.
"""

from pathlib import Path

from tonnage.base.records.analysis import Analysis
from tonnage.report.analysis.comparisons import comparisons_section
from tonnage.report.analysis.operations import operations_section
from tonnage.report.analysis.overview import header, overview_section, title
from tonnage.report.analysis.scorecard import scorecard_section, sources_section
from tonnage.report.page import PageSection, render_page, write_page

__all__ = ["render", "write_analysis"]


def write_analysis(analysis: Analysis, path: Path) -> Path:
    """Write the page to ``path`` and the analysis as JSON next to it."""
    return write_page(analysis, render(analysis), path)


def render(analysis: Analysis) -> str:
    compared, comparing_charts = comparisons_section(analysis)
    each, charts_of_each = operations_section(analysis)
    return render_page(
        title(analysis),
        header(analysis),
        [
            PageSection("overview", "Overview", overview_section(analysis)),
            PageSection("across", "Side by side", compared),
            PageSection("operations", "Each operation", each),
            PageSection("belief", "Credibility", scorecard_section(analysis)),
            PageSection("sources", "Machines and measurements", sources_section(analysis)),
        ],
        [*comparing_charts, *charts_of_each],
    )
