"""Build Plotly charts, and the figure elements that hold them.

Colours are CSS variables (``--read``), which the style sheet defines for the light and the dark
scheme; the page's script fills them in.
"""

import html
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from tonnage.base import formatting
from tonnage.report.html_elements import Child, Html, tag
from tonnage.report.study.counters import Series

Trace = dict[str, Any]

# The same for every chart over time, so that their axes align.
LEFT, RIGHT, TOP, BOTTOM = 50, 10, 6, 22
MARGIN = {"l": 50, "r": 14, "t": 8, "b": 40}
# Tick labels: 25,000 instead of 25k.
PLAIN = {"separatethousands": True, "exponentformat": "none"}
# Phases shorter than this share of the job have no room for a name.
NAMED_SHARE = 0.08
LANE_HEIGHT = 60
LANE_NAME = 0.36  # The share of a lane that its name takes.
WIDE = 10.0
"""Values that differ by more than this factor get a logarithmic axis."""
MANY_TENFOLDS = 1e3
"""Beyond this factor only powers of ten are labelled."""
DASHED = {"color": "--ink-soft", "width": 1, "dash": "dash"}


class Period(Protocol):
    """A named part of the time, such as a phase."""

    @property
    def name(self) -> str: ...
    @property
    def began_seconds(self) -> float: ...
    @property
    def seconds(self) -> float: ...


@dataclass(frozen=True)
class Chart:
    """A chart with its height in pixels, a text description, and its legend."""

    name: str
    title: str
    description: str
    height: int
    traces: list[Trace]
    layout: dict[str, Any]
    legend: Sequence[tuple[str, str]] = ()
    timed: bool = False
    note: Child = None

    def figure(self) -> Html:
        keys = [
            tag("li", tag("i", style=f"background:var({colour})"), name)
            for colour, name in self.legend
        ]
        legend = tag("ul", *keys, class_="legend", aria_hidden="true") if keys else None
        plot = tag(
            "div",
            class_="plot timed" if self.timed else "plot",
            id=self.name,
            role="img",
            aria_label=self.description,
            style=f"height:{self.height}px",
        )
        title = tag("figcaption", tag("span", self.title), legend)
        note = tag("p", self.note, class_="note") if self.note else None
        return tag("figure", title, plot, note)

    def data(self) -> dict[str, Any]:
        return {"traces": self.traces, "layout": self.layout}


def scatter(
    x: Sequence[float | None],
    y: Sequence[Any],
    name: str,
    hover: str | None,
    *,
    line: dict[str, Any] | None = None,
    marker: dict[str, Any] | None = None,
    **more: Any,
) -> Trace:
    """Points as a line, as markers or both, whichever have a style; ``hover`` is their text."""
    styles = {kind: style for kind, style in (("line", line), ("marker", marker)) if style}
    on_hover = {"hoverinfo": "skip"} if hover is None else {"hovertemplate": hover}
    mode = "+".join(f"{kind}s" for kind in styles)
    return (
        {"type": "scatter", "mode": mode, "x": x, "y": y, "name": name} | styles | on_hover | more
    )


def bars(
    names: Sequence[str],
    values: Sequence[float | None],
    name: str,
    colour: str,
    hover: str,
    **more: Any,
) -> Trace:
    """Horizontal bars, one for each of ``names``; ``hover`` is their text."""
    style = {"type": "bar", "orientation": "h", "marker": {"color": colour}}
    return style | {"name": name, "x": values, "y": names, "hovertemplate": hover} | more


def error_bars(
    intervals: Iterable[tuple[float | None, float, float | None]], factor: float = 1.0, **style: Any
) -> dict[str, Any]:
    """Error bars from lows, middles and highs, divided by a unit; none where an end is unknown."""
    known = list(intervals)
    above = [None if high is None else (high - middle) / factor for _, middle, high in known]
    below = [None if low is None else (middle - low) / factor for low, middle, _ in known]
    drawn = {"color": "--ink", "thickness": 1.5, "width": 4} | style
    return {"type": "data", "symmetric": False, "array": above, "arrayminus": below} | drawn


def line(series: Series, colour: str, name: str, unit: str) -> Trace:
    style = {"color": colour, "width": 1.5}
    return scatter(series.seconds, series.values, name, f"%{{y:,.4~r}} {unit}", line=style)


def area(series: Series, colour: str, name: str, unit: str, stack: str | None = None) -> Trace:
    """A filled line over time, stacked on the lines before it in the same stack."""
    trace = line(series, colour, name, unit)
    trace["line"]["width"] = 0 if stack else 1.5
    trace |= {"fillcolor": colour if stack else f"{colour}-soft"}
    trace |= {"stackgroup": stack} if stack else {"fill": "tozeroy"}
    return trace


def on_axis(axis: int, trace: Trace) -> Trace:
    """A trace on one of several vertical axes."""
    return trace | {"yaxis": "y" if axis == 1 else f"y{axis}"}


def plain_text(text: str) -> str:
    """Text in which Plotly finds no markup."""
    return html.escape(text, quote=False)


def time_layout(until: float, phases: Sequence[Period], *, named: bool = False) -> dict[str, Any]:
    """The layout of a chart over the job's time, with the phases as bands behind it."""
    return {
        "margin": {"l": LEFT, "r": RIGHT, "t": 20 if named else TOP, "b": BOTTOM},
        "hovermode": "x unified",
        "xaxis": {
            "range": [0, until],
            "ticksuffix": " s",
            "hoverformat": ".2f",
            "showgrid": False,
            "zeroline": False,
            "showspikes": False,  # The page draws one line through all charts.
        },
        "yaxis": zero_based_axis(),
        "shapes": [_band(place, phase) for place, phase in enumerate(phases)],
        "annotations": _names(until, phases) if named else [],
    }


def layout(xaxis: dict[str, Any], yaxis: dict[str, Any], **margin: int) -> dict[str, Any]:
    """The layout of a chart that shows the text of the closest point."""
    return {"margin": MARGIN | margin, "hovermode": "closest", "xaxis": xaxis, "yaxis": yaxis}


def zero_based_axis(most: float | None = None, **more: Any) -> dict[str, Any]:
    """An axis from zero that does not zoom."""
    limits = {"rangemode": "tozero"} if most is None else {"range": [0, most]}
    return {"fixedrange": True, "nticks": 5, **PLAIN, **limits, **more}


def linear_axis(title: str = "", **more: Any) -> dict[str, Any]:
    """A titled axis from zero with room for its tick labels."""
    return zero_based_axis(**{"automargin": True, "nticks": 6, "title": titled(title), **more})


def log_axis(values: Sequence[float], title: str = "", **more: Any) -> dict[str, Any]:
    """A logarithmic axis for positive values."""
    figures = (1,) if max(values) > MANY_TENFOLDS * min(values) else (1, 2, 5)
    ticks = [figure * 10.0**power for power in range(-9, 16) for figure in figures]
    shown = {"tickvals": ticks, "ticktext": [formatting.significant(tick, 1) for tick in ticks]}
    return (
        {"type": "log", "fixedrange": True, "automargin": True, "title": titled(title)}
        | shown
        | more
    )


def axis(values: Iterable[float | None], title: str = "", **more: Any) -> dict[str, Any]:
    """An axis for values: linear from zero, or logarithmic if they differ by more than `WIDE`."""
    positive = [value for value in values if value is not None and value > 0]
    if positive and max(positive) > WIDE * min(positive):
        return log_axis(positive, title, **more)
    return linear_axis(title, **more)


def titled(text: str) -> dict[str, Any]:
    return {"text": text, "font": {"size": 11}}


def level_line(value: float, name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """A line across a chart at a value, and its name above it."""
    shape = {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": value, "y1": value}
    return shape | {"line": DASHED}, _words(name, 11, xref="paper", x=1, xanchor="right", y=value)


def upright_line(value: float, **style: Any) -> dict[str, Any]:
    """A vertical line at a value."""
    shape = {"type": "line", "yref": "paper", "x0": value, "x1": value, "y0": 0, "y1": 1}
    return shape | {"line": style}


def split_into_lanes(names: Sequence[str], layout: dict[str, Any]) -> int:
    """Split a layout into a lane for each name, from the top; return its height."""
    layout.pop("yaxis")
    each = 1 / len(names)
    for place, name in enumerate(names):
        top, bottom = 1 - (place + LANE_NAME) * each, 1 - (place + 1) * each
        axis = "yaxis" if place == 0 else f"yaxis{place + 1}"
        layout[axis] = zero_based_axis(1, domain=[max(bottom, 0), top], showgrid=False) | {
            "tickvals": [0, 1],
            "ticktext": ["0", "100 %"],
        }
        place_of_name = {"xref": "paper", "x": 0, "xanchor": "left", "yref": "paper", "y": top}
        layout["annotations"].append(_words(name, 12, "--ink", **place_of_name))
    layout["xaxis"]["anchor"] = "y" if len(names) == 1 else f"y{len(names)}"
    return LANE_HEIGHT * len(names) + TOP + BOTTOM


def grouped_bars_layout(names: Sequence[str]) -> dict[str, Any]:
    """The layout of horizontal bars, a group for each name, from the top."""
    return {
        "margin": {"l": 76, "r": 14, "t": 6, "b": 34},
        "barmode": "group",
        "bargap": 0.32,
        "bargroupgap": 0.08,
        "hovermode": "closest",
        "xaxis": {"rangemode": "tozero", "ticksuffix": " s", "zeroline": True, "fixedrange": True}
        | PLAIN,
        "yaxis": {
            "autorange": "reversed",
            "fixedrange": True,
            "showgrid": False,
            "categoryorder": "array",
            "categoryarray": list(names),
            "ticks": "",
        },
    }


def _band(place: int, phase: Period) -> dict[str, Any]:
    colour = "--band-even" if place % 2 == 0 else "--band-odd"
    return band(phase.began_seconds, phase.began_seconds + phase.seconds, colour)


def band(begin: float, end: float, colour: str) -> dict[str, Any]:
    """A time in another colour, behind a chart."""
    place_of_band = {"xref": "x", "x0": begin, "x1": end, "yref": "paper", "y0": 0, "y1": 1}
    style = {"type": "rect", "layer": "below", "fillcolor": colour, "line": {"width": 0}}
    return style | place_of_band


def _names(until: float, phases: Sequence[Period]) -> list[dict[str, Any]]:
    return [
        _words(formatting.phase(phase.name), 12, xref="x", x=middle, yref="paper", y=1)
        for phase in phases
        if phase.seconds >= NAMED_SHARE * until
        for middle in [phase.began_seconds + phase.seconds / 2]
    ]


def _words(text: str, size: int, colour: str = "--ink-soft", **place: Any) -> dict[str, Any]:
    font = {"size": size, "color": colour}
    return {"text": text, "showarrow": False, "yanchor": "bottom", "font": font, **place}
