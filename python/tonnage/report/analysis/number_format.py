"""Shared by charts and tables of an analysis: units, estimates, citations, axes."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from tonnage.base import formatting
from tonnage.base.records.analysis import Estimate, Subject
from tonnage.report.charts import (
    Chart,
    Trace,
    error_bars,
    layout,
    linear_axis,
    log_axis,
    scatter,
)
from tonnage.report.html_elements import Child, Html, cite, join, tag

SOURCES = "sources"
"""The section that lists all measurements."""
CITED = 3
"""Above this many measurements only their number is given."""
ROW_HEIGHT, LINE_HEIGHT, BAR_HEIGHT = 30, 17, 16
BREAK = "<br>"
WIDEST = 26
"""Characters of a row's label."""
TALL = 12
"""Charts with more rows have their axis on top."""
NOT_ESTIMABLE = "not estimable"
PERCENTILES = {name: name for name in ("mean", "p50", "p90", "p99", "p999", "max")} | {
    "p999": "p99.9"
}
SHADES = {
    "p50": "--read",
    "p90": "--work-two",
    "p99": "--work-one",
    "p999": "--write",
    "max": "--work-three",
}


def unit(subject: Subject) -> formatting.Unit:
    """The unit of an operation's rates."""
    return unit_of(subject.unit, subject.highest or (subject.rate.value if subject.rate else 0.0))


def unit_of(kind: str, highest: float) -> formatting.Unit:
    """The unit of rates of bytes or operations, of which the highest is given."""
    if kind == "operations":
        return formatting.Unit("operations/s", 1.0)
    return formatting.rate_unit(highest)


def queue_depth(concurrency: int | None) -> str:
    return "not stated" if concurrency is None else str(concurrency)


def density_axis(scale: str, edges: Sequence[float], figure: formatting.Unit) -> dict[str, Any]:
    """The axis of a density's rates."""
    if scale == "logarithmic":
        return log_axis(edges, figure.name)
    return linear_axis(figure.name, rangemode="normal")


def histogram_steps(
    edges: Sequence[float], heights: Sequence[float], name: str, hover: str, **style: Any
) -> Trace:
    """The outline of a histogram, from zero to zero."""
    x = [edges[0], *(edge for pair in pairwise(edges) for edge in pair), edges[-1]]
    return scatter(
        x, [0, *(height for height in heights for _ in range(2)), 0], name, hover, line=style
    )


def rate(estimate: Estimate | None, subject: Subject) -> str:
    if estimate is None:
        return "–"
    return formatting.per_second(estimate.value, subject.unit)


def interval(estimate: Estimate | None, figure: formatting.Unit) -> str:
    """An interval in a unit, or how many more values it needs."""
    if estimate is None:
        return "–"
    if estimate.low is None or estimate.high is None:
        return f"{NOT_ESTIMABLE}: needs {_of(estimate.lacking, estimate)} more"
    return range_text(estimate.low / figure.factor, estimate.high / figure.factor)


def range_text(low: float, high: float) -> str:
    return f"{formatting.significant(low)} – {formatting.significant(high)}"


def sample_size(estimate: Estimate | None) -> str:
    if estimate is None:
        return "–"
    said = _of(estimate.size, estimate)
    if estimate.effective_size == estimate.size:
        return said
    return f"{said}, correlated: effectively {formatting.count(estimate.effective_size)}"


def _of(number: int, estimate: Estimate) -> str:
    """A number of the units that an estimate counts."""
    counted = "machine" if estimate.over == "instances" else estimate.over.removesuffix("s")
    return formatting.several(number, counted)


def measurement_links(measurements: Sequence[str]) -> Child:
    """Link to measurements, or to the list of all if there are many."""
    if len(measurements) > CITED:
        return tag("a", formatting.several(len(measurements), "measurement"), href=f"#{SOURCES}")
    return join(map(cite, measurements), Html("<br>"))


def estimate_bars(estimates: Iterable[Estimate], factor: float = 1.0) -> dict[str, Any]:
    """Intervals as error bars; none where not estimable."""
    intervals = ((each.low, each.value, each.high) for each in estimates)
    return error_bars(intervals, factor, color="--ink-soft", thickness=1.2)


def row_chart(
    name: str,
    title: str,
    says: str,
    labels: Sequence[str],
    traces: Sequence[Trace],
    across: dict[str, Any],
    **more: Any,
) -> Chart:
    """A chart with a row for each label, from the top; the ``y`` of traces are labels."""
    places: dict[str, float] = {}
    height = 0.0  # The vertical axis is in pixels.
    for each in dict.fromkeys(labels):
        own = ROW_HEIGHT + LINE_HEIGHT * each.count(BREAK)
        places[each] = height + own / 2
        height += own
    tall = len(places) > TALL
    across |= {"side": "top" if tall else "bottom"}
    down = {
        "automargin": True,
        "range": [height, 0],
        "fixedrange": True,
        "zeroline": False,
        "tickvals": list(places.values()),
        "ticktext": list(places),
        "ticks": "",
    }
    return Chart(
        name=name,
        title=title,
        description=says,
        height=56 + round(height),
        traces=[_placed(trace, places) for trace in traces],
        layout=layout(across, down, l=10, t=30 if tall else 8),
        **more,
    )


def _placed(trace: Trace, places: Mapping[str, float]) -> Trace:
    """A trace with labels replaced by positions."""
    named = [name.replace(BREAK, " ") for name in trace["y"]]
    return trace | {"y": [places[name] for name in trace["y"]], "text": named}


def label(name: str) -> str:
    """Wrap a row's label for narrow screens."""
    lines = [""]
    for part in name.split(", "):
        if lines[-1] and len(lines[-1]) + len(part) > WIDEST:
            lines[-1] += ","
            lines.append(part)
        else:
            lines[-1] += f", {part}" if lines[-1] else part
    return BREAK.join(lines)


def percentile_legend(shades: Mapping[str, str], drawn: Iterable[str]) -> list[tuple[str, str]]:
    """The legend of the drawn percentiles."""
    names = set(drawn)
    return [(shade, PERCENTILES[name]) for name, shade in shades.items() if name in names]
