"""Compare measurements by the values of a label: densities in a chart, medians in a table."""

from collections.abc import Sequence

from tonnage.base import formatting
from tonnage.base.records.analysis import LabelComparison
from tonnage.report.analysis.number_format import (
    density_axis,
    histogram_steps,
    interval,
    measurement_links,
    queue_depth,
    sample_size,
    unit_of,
)
from tonnage.report.charts import Chart, Trace, layout, linear_axis, scatter
from tonnage.report.html_elements import Child, Html, table

COLOURS = ("--read", "--write", "--work-one", "--work-two", "--busy", "--work-three")
"""Colours of values in the order of their names; further values are in the table only."""


def label_comparisons(found: Sequence[LabelComparison]) -> tuple[list[Chart], list[Html]]:
    """A chart for each operation and label with enough values, and a table of all."""
    if not found:
        return [], []
    charts = [_densities(number, each) for number, each in enumerate(found) if each.is_dense]
    cells: list[list[Child]] = [
        [
            of.subject,
            of.label,
            each.value,
            queue_depth(of.concurrency),
            formatting.per_second(each.rate.value, of.unit),
            interval(each.rate, _unit(of)),
            sample_size(each.rate),
            measurement_links(each.measurements),
        ]
        for of in found
        for each in of.values
    ]
    columns = ["Operation", "Label", "Value", "Queue depth", "Median", "Interval", "Of", "From"]
    return charts, [table("Medians by label", columns, cells, numeric=columns[3:6])]


def _densities(number: int, found: LabelComparison) -> Chart:
    unit = _unit(found)
    edges = [edge / unit.factor for edge in found.edges]
    places = [place / unit.factor for place in found.places]
    traces: list[Trace] = []
    drawn = list(zip(COLOURS, (each for each in found.values if each.densities), strict=False))
    for colour, each in drawn:
        hover = f"%{{x:,.4~r}} {unit.name}: %{{y:.3~r}} %<extra>%{{fullData.name}}</extra>"
        shares, densities = (
            [100 * share for share in some or []] for some in (each.shares, each.densities)
        )
        traces += [
            histogram_steps(edges, shares, each.value, hover, color=colour, width=1, dash="dot"),
            scatter(places, densities, each.value, None, line={"color": colour, "width": 2}),
        ]
    said = [
        f"{each.value} {formatting.per_second(each.rate.value, found.unit)}" for _, each in drawn
    ]
    return Chart(
        name=f"chart-label-{number + 1}",
        title=f"{found.subject} by {found.label}: density and histogram, % in each bin",
        description=f"Distribution of {found.subject} by {found.label}; "
        f"medians: {'; '.join(said)}.",
        height=240,
        traces=traces,
        layout=layout(density_axis(found.axis, edges, unit), linear_axis("%")),
        legend=[(colour, each.value) for colour, each in drawn],
        note=formatting.sentence(found.rule),
    )


def _unit(found: LabelComparison) -> formatting.Unit:
    return unit_of(found.unit, max(each.rate.value for each in found.values))
