"""Build Plotly charts, and the figure elements that hold them.

Colours are CSS variables (``--read``), which the style sheet defines for the light and the dark scheme;
the page's script fills them in.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tonnage.base import formatting
from tonnage.base.records import Phase
from tonnage.report.html import Child, Html, tag
from tonnage.report.study.counters import Series

Trace = dict[str, Any]

# The same for every chart over time, so that their axes align.
LEFT, RIGHT, TOP, BOTTOM = 50, 10, 6, 22
# Tick labels: 25,000 instead of 25k.
PLAIN = {"separatethousands": True, "exponentformat": "none"}
# Phases shorter than this share of the job have no room for a name.
NAMED_SHARE = 0.08
LANE_HEIGHT = 60
LANE_NAME = 0.36  # The share of a lane that its name takes.


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
        """The figure element that the chart is drawn into."""
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
        """The data that the page's script draws."""
        return {"traces": self.traces, "layout": self.layout}


def line(series: Series, colour: str, name: str, unit: str) -> Trace:
    """A line over time."""
    return {
        "type": "scatter",
        "mode": "lines",
        "x": series.seconds,
        "y": series.values,
        "name": name,
        "line": {"color": colour, "width": 1.5},
        "hovertemplate": f"%{{y:,.4~r}} {unit}",
    }


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


def time_layout(until: float, phases: Sequence[Phase], *, named: bool = False) -> dict[str, Any]:
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


def zero_based_axis(most: float | None = None, **more: Any) -> dict[str, Any]:
    """A vertical axis from zero that does not zoom."""
    limits = {"rangemode": "tozero"} if most is None else {"range": [0, most]}
    return {"fixedrange": True, "nticks": 5, **PLAIN, **limits, **more}


def level_line(value: float, name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """A line across a chart at a value, and its name above it."""
    shape = {
        "type": "line",
        "xref": "paper",
        "x0": 0,
        "x1": 1,
        "y0": value,
        "y1": value,
        "line": {"color": "--ink-soft", "width": 1, "dash": "dash"},
    }
    annotation = {
        "xref": "paper",
        "x": 1,
        "xanchor": "right",
        "y": value,
        "yanchor": "bottom",
        "text": name,
        "showarrow": False,
        "font": {"size": 11, "color": "--ink-soft"},
    }
    return shape, annotation


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
        layout["annotations"].append(
            {
                "xref": "paper",
                "x": 0,
                "xanchor": "left",
                "yref": "paper",
                "y": top,
                "yanchor": "bottom",
                "text": name,
                "showarrow": False,
                "font": {"size": 12, "color": "--ink"},
            }
        )
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
        "xaxis": {
            "rangemode": "tozero",
            "ticksuffix": " s",
            "zeroline": True,
            "fixedrange": True,
            **PLAIN,
        },
        "yaxis": {
            "autorange": "reversed",
            "fixedrange": True,
            "showgrid": False,
            "categoryorder": "array",
            "categoryarray": list(names),
            "ticks": "",
        },
    }


def _band(place: int, phase: Phase) -> dict[str, Any]:
    return {
        "type": "rect",
        "layer": "below",
        "xref": "x",
        "yref": "paper",
        "x0": phase.began_seconds,
        "x1": phase.began_seconds + phase.seconds,
        "y0": 0,
        "y1": 1,
        "fillcolor": "--band-even" if place % 2 == 0 else "--band-odd",
        "line": {"width": 0},
    }


def _names(until: float, phases: Sequence[Phase]) -> list[dict[str, Any]]:
    return [
        {
            "xref": "x",
            "x": phase.began_seconds + phase.seconds / 2,
            "yref": "paper",
            "y": 1,
            "yanchor": "bottom",
            "text": formatting.phase(phase.name),
            "showarrow": False,
            "font": {"size": 12, "color": "--ink-soft"},
        }
        for phase in phases
        if phase.seconds >= NAMED_SHARE * until
    ]
