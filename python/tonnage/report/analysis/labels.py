"""Compare measurements by the values of a label: densities in a chart, medians in a table."""

from collections.abc import Sequence
from itertools import pairwise

from tonnage.base import formatting
from tonnage.base.records.analysis import LabelComparison
from tonnage.report.analysis.number_format import (
    MARGIN,
    interval,
    linear_axis,
    log_axis,
    measurement_links,
    sample_size,
)
from tonnage.report.charts import Chart, Trace
from tonnage.report.html import Child, Html, table

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
            "not stated" if of.concurrency is None else str(of.concurrency),
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
        steps = {
            "type": "scatter",
            "mode": "lines",
            "x": [edges[0], *(edge for pair in pairwise(edges) for edge in pair), edges[-1]],
            "y": [0, *(100 * share for share in each.shares for _ in range(2)), 0],
            "line": {"color": colour, "width": 1, "dash": "dot"},
            "name": each.value,
            "hovertemplate": f"%{{x:,.4~r}} {unit.name}: %{{y:.3~r}} %"
            "<extra>%{fullData.name}</extra>",
        }
        density = {
            "type": "scatter",
            "mode": "lines",
            "x": places,
            "y": [100 * share for share in each.densities or []],
            "line": {"color": colour, "width": 2},
            "name": each.value,
            "hoverinfo": "skip",
        }
        traces += [steps, density]
    said = [
        f"{each.value} {formatting.per_second(each.rate.value, found.unit)}" for _, each in drawn
    ]
    across = linear_axis(unit.name, rangemode="normal")
    if found.axis == "logarithmic":
        across = log_axis(edges, unit.name)
    return Chart(
        name=f"chart-label-{number + 1}",
        title=f"{found.subject} by {found.label}: density and histogram, % in each bin",
        description=f"Distribution of {found.subject} by {found.label}; medians: {'; '.join(said)}.",
        height=240,
        traces=traces,
        layout={
            "margin": MARGIN,
            "hovermode": "closest",
            "xaxis": across,
            "yaxis": linear_axis("%"),
        },
        legend=[(colour, each.value) for colour, each in drawn],
        note=formatting.sentence(found.rule),
    )


def _unit(found: LabelComparison) -> formatting.Unit:
    if found.unit == "operations":
        return formatting.Unit("operations/s", 1.0)
    return formatting.rate_unit(max(each.rate.value for each in found.values))
