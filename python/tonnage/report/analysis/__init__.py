"""Render an analysis: throughput, latency, variation and price of machines, with their uncertainty.

The page lists charts that were left out for lack of data, with the reason.
"""

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
    """Write the page to ``path`` and the analysis as JSON next to it.

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
            PageSection("belief", "Credibility", scorecard_section(analysis)),
            PageSection("sources", "Machines and measurements", sources_section(analysis)),
        ],
        [*comparing_charts, *charts_of_each],
    )
