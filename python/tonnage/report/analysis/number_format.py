"""Shared by charts and tables of an analysis: units, estimates, citations, axes."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tonnage.base import formatting
from tonnage.base.records.analysis import Estimate, Subject
from tonnage.report.charts import PLAIN, Chart, Trace
from tonnage.report.html import Child, Html, cite, join, tag

SOURCES = "sources"
"""The section that lists all measurements."""
CITED = 3
"""Above this many measurements only their number is given."""
MARGIN = {"l": 50, "r": 14, "t": 8, "b": 40}
ROW_HEIGHT, LINE_HEIGHT, BAR_HEIGHT = 30, 17, 16
BREAK = "<br>"
WIDEST = 26
"""Characters of a row's label."""
WIDE = 10.0
"""Values that differ by more than this factor get a logarithmic axis."""
MANY_TENFOLDS = 1e3
"""Beyond this factor only powers of ten are labelled."""
TALL = 12
"""Charts with more rows have their axis on top."""
NOT_ESTIMABLE = "not estimable"
PERCENTILES = {
    "mean": "mean",
    "p50": "p50",
    "p90": "p90",
    "p99": "p99",
    "p999": "p99.9",
    "max": "max",
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
    if subject.unit == "operations":
        return formatting.Unit("operations/s", 1.0)
    return formatting.rate_unit(subject.highest or (subject.rate.value if subject.rate else 0.0))


def rate(estimate: Estimate | None, subject: Subject) -> str:
    """A rate with its unit."""
    if estimate is None:
        return "–"
    return formatting.per_second(estimate.value, subject.unit)


def interval(estimate: Estimate | None, figure: formatting.Unit) -> str:
    """An interval in a unit, or how many more values it needs."""
    if estimate is None:
        return "–"
    if estimate.low is None or estimate.high is None:
        return f"{NOT_ESTIMABLE}: needs {_of(estimate.lacking, estimate)} more"
    low, high = (
        formatting.significant(each / figure.factor) for each in (estimate.low, estimate.high)
    )
    return f"{low} – {high}"


def sample_size(estimate: Estimate | None) -> str:
    """The sample size of an estimate."""
    if estimate is None:
        return "–"
    said = _of(estimate.size, estimate)
    if estimate.effective_size == estimate.size:
        return said
    return f"{said}, correlated: effectively {formatting.count(estimate.effective_size)}"


def _of(number: int, estimate: Estimate) -> str:
    """A number of the units that an estimate counts."""
    return formatting.several(number, estimate.over.removesuffix("s"))


def measurement_links(measurements: Sequence[str]) -> Child:
    """Link to measurements, or to the list of all if there are many."""
    if len(measurements) > CITED:
        return tag("a", formatting.several(len(measurements), "measurement"), href=f"#{SOURCES}")
    return join(map(cite, measurements), Html("<br>"))


def error_bars(estimates: Sequence[Estimate], factor: float = 1.0) -> dict[str, Any]:
    """Intervals as error bars; none where not estimable."""
    return {
        "type": "data",
        "symmetric": False,
        "array": [
            None if each.high is None else (each.high - each.value) / factor for each in estimates
        ],
        "arrayminus": [
            None if each.low is None else (each.value - each.low) / factor for each in estimates
        ],
        "color": "--ink-soft",
        "thickness": 1.2,
        "width": 4,
    }


def axis(values: Iterable[float | None], title: str = "", **more: Any) -> dict[str, Any]:
    """An axis for values: linear from zero, or logarithmic if they differ by more than `WIDE`."""
    positive = [value for value in values if value is not None and value > 0]
    if positive and max(positive) > WIDE * min(positive):
        return log_axis(positive, title, **more)
    return linear_axis(title, **more)


def log_axis(values: Sequence[float], title: str = "", **more: Any) -> dict[str, Any]:
    """A logarithmic axis for positive values."""
    figures = (1,) if max(values) > MANY_TENFOLDS * min(values) else (1, 2, 5)
    ticks = [figure * 10.0**power for power in range(-9, 16) for figure in figures]
    return {
        "type": "log",
        "tickvals": ticks,
        "ticktext": [formatting.significant(tick, 1) for tick in ticks],
        "fixedrange": True,
        "automargin": True,
        "title": {"text": title, "font": {"size": 11}},
        **more,
    }


def linear_axis(title: str = "", **more: Any) -> dict[str, Any]:
    """A linear axis from zero."""
    return {
        "rangemode": "tozero",
        "fixedrange": True,
        "automargin": True,
        "nticks": 6,
        "title": {"text": title, "font": {"size": 11}},
        **PLAIN,
        **more,
    }


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
    return Chart(
        name=name,
        title=title,
        description=says,
        height=56 + round(height),
        traces=[_placed(trace, places) for trace in traces],
        layout={
            "margin": {**MARGIN, "l": 10, "t": 30 if tall else 8},
            "hovermode": "closest",
            "xaxis": across | {"side": "top" if tall else "bottom"},
            "yaxis": {
                "automargin": True,
                "range": [height, 0],
                "fixedrange": True,
                "zeroline": False,
                "tickvals": list(places.values()),
                "ticktext": list(places),
                "ticks": "",
            },
        },
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
