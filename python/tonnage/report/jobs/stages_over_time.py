"""Chart an application over time: its stages, its cores, its executors; on one axis.

A lane is a phase of the table, so that lanes are few however many stages there are. In it, stages
that ran at once are below each other. What is too narrow to be seen is drawn as one with its
neighbours.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tonnage.base import formatting
from tonnage.base.records.application import ApplicationStage
from tonnage.base.records.application_analysis import AnalysedPhase, ApplicationAnalysis
from tonnage.report import charts
from tonnage.report.charts import Chart, Trace, plain_text
from tonnage.report.html_elements import Html, section, tag
from tonnage.report.jobs.core_time import COLOURS_OF_LIMITS
from tonnage.report.study.counters import Series

KEY = "timeline"
LANE = 34
BAR = 0.5
"""Of a lane; above it is its name."""
MOST_BELOW = 4
"""Stages of a lane that are drawn below each other; more share the last place."""
NARROW = 1 / 2000
"""Of the time; about half a pixel."""
VISIBLE_GAP = 1 / 500
"""Of the time; about two pixels."""
FEW_BARS = 10
MOST_STEPS = 1000
GAP_COLOUR = "--notice"


@dataclass(frozen=True)
class _Bar:
    """Stages drawn as one bar."""

    begin: float
    end: float
    text: str
    stages: int = 1


def timeline_section(analysis: ApplicationAnalysis) -> tuple[Html, list[Chart]]:
    drawn = [_stages(analysis)]
    if analysis.core_seconds is not None:
        drawn.append(_cores(analysis))
    drawn.append(_executors(analysis))
    said = (
        "Seconds since the start of the application. In shaded times no stage ran: the driver was "
        "alone, or nothing was there yet."
    )
    figures = [chart.figure() for chart in drawn]
    return section(
        KEY,
        "The job over time",
        tag("p", said, class_="note"),
        tag("div", *figures, class_="panels"),
    ), drawn


def _stages(analysis: ApplicationAnalysis) -> Chart:
    until = _until(analysis)
    layout = _layout(analysis)
    traces: list[Trace] = []
    for lane, (phase, stages) in enumerate(_lanes(analysis)):
        places = _below_each_other(stages, until)
        height = BAR / len(places)
        for place, bars in enumerate(places):
            middle = lane + 1 - BAR + (place + 0.5) * height
            traces.append(_bars(bars, middle, height, phase))
        layout["annotations"].append(_lane_name(phase.name, lane))
    lanes = len(analysis.phases)
    layout["yaxis"] = charts.zero_based_axis(showgrid=False, showticklabels=False)
    layout["yaxis"] |= {"range": [lanes + 0.1, 0], "zeroline": False}
    layout |= {"barmode": "overlay", "hovermode": "closest"}
    limits = dict.fromkeys(each.limit for each in analysis.phases)
    told = "; ".join(
        f"{each.name} {formatting.seconds(each.seconds)}, limited by {each.limit}"
        for each in analysis.phases
    )
    return Chart(
        name="chart-stages",
        title="Stages, by what limited their phase",
        description=f"The stages of each phase over time: {told}.",
        height=LANE * lanes + charts.TOP + charts.BOTTOM,
        traces=traces,
        layout=layout,
        legend=[
            *((COLOURS_OF_LIMITS[limit], limit) for limit in limits),
            (GAP_COLOUR, "no stage"),
        ],
        timed=True,
    )


def _lanes(
    analysis: ApplicationAnalysis,
) -> Iterable[tuple[AnalysedPhase, list[ApplicationStage]]]:
    by_id: dict[int, list[ApplicationStage]] = {}
    for stage in analysis.application.stages:
        by_id.setdefault(stage.id, []).append(stage)
    for phase in analysis.phases:
        yield phase, [stage for id in phase.stages for stage in by_id.pop(id, [])]


def _below_each_other(stages: Iterable[ApplicationStage], until: float) -> list[list[_Bar]]:
    """Bars by their place in a lane: of stages that ran at once, one below the other."""
    places: list[list[_Bar]] = []
    for stage in sorted(stages, key=lambda each: each.began_seconds):
        begin, end = stage.began_seconds, stage.began_seconds + stage.seconds
        free = (place for place in places if place[-1].end <= begin + NARROW * until)
        place = next(free, None)
        if place is None and len(places) < MOST_BELOW:
            places.append([])
        if place is None:
            place = places[-1]
        _draw(place, _Bar(begin, end, _text(stage)), NARROW * until)
    return places or [[]]


def _draw(place: list[_Bar], bar: _Bar, narrow: float) -> None:
    last = place[-1] if place else None
    is_near = last is not None and bar.begin - last.end < narrow
    if last is None or not is_near or min(bar.end - bar.begin, last.end - last.begin) > narrow:
        place.append(bar)
        return
    stages = last.stages + 1
    text = f"{formatting.several(stages, 'stage')}, from {last.text.rpartition('from ')[2]}"
    place[-1] = replace(last, end=max(last.end, bar.end), text=text, stages=stages)


def _text(stage: ApplicationStage) -> str:
    attempt = f", attempt {stage.attempt}" if stage.attempt else ""
    failed = "" if stage.finished else ", not finished"
    name = plain_text(stage.name[:80])
    tasks = formatting.several(stage.tasks, "task")
    return f"stage {stage.id}{attempt}{failed}: {tasks}, {name}"


def _bars(bars: Sequence[_Bar], middle: float, height: float, phase: AnalysedPhase) -> Trace:
    return {
        "type": "bar",
        "orientation": "h",
        "name": plain_text(phase.name),
        "base": [round(bar.begin, 3) for bar in bars],
        "x": [round(bar.end - bar.begin, 3) for bar in bars],
        "y": [middle for _ in bars],
        "width": 0.9 * height,
        "customdata": [
            f"{bar.text}<br>{formatting.seconds(bar.end - bar.begin)}, from "
            f"{formatting.seconds(bar.begin)}"
            for bar in bars
        ],
        "hovertemplate": "%{customdata}<extra></extra>",
        "marker": {
            "color": COLOURS_OF_LIMITS[phase.limit],
            # Between a few; among many, borders would be most of what is drawn.
            "line": {"color": "--card", "width": 0.5 if len(bars) <= FEW_BARS else 0},
        },
    }


def _lane_name(name: str, lane: int) -> dict[str, Any]:
    place = {"xref": "paper", "x": 0, "xanchor": "left", "yref": "y", "y": lane + 1 - BAR}
    font = {"size": 12, "color": "--ink"}
    text = plain_text(name)
    return {"text": text, "showarrow": False, "yanchor": "bottom", "font": font, **place}


def _cores(analysis: ApplicationAnalysis) -> Chart:
    until = _until(analysis)
    executors = analysis.application.executors
    there = _steps(
        ((each.began_seconds, each.ended_seconds, each.cores or 0) for each in executors), until
    )
    share = (analysis.core_seconds or 0.0) and _cores_of_slot(analysis)
    held = _steps(
        (
            (
                each.began_seconds,
                each.began_seconds + each.seconds,
                share * each.task_seconds / each.seconds,
            )
            for each in analysis.application.stages
            if each.seconds
        ),
        until,
    )
    return Chart(
        name="chart-cores",
        title="Cores",
        description="The executors' cores over time, and how many of them tasks held.",
        height=150,
        traces=[
            _stepped(charts.area(there, "--work-three", "of executors", "cores")),
            _stepped(charts.line(held, "--busy", "held by tasks, on average of each stage", "")),
        ],
        layout=_layout(analysis),
        legend=[
            ("--work-three", "of executors"),
            ("--busy", "held by tasks, on average of each stage"),
        ],
        timed=True,
    )


def _cores_of_slot(analysis: ApplicationAnalysis) -> float:
    cores = sum(
        shape.executors * (shape.cores or 0) for shape in analysis.application.largest_cluster()
    )
    return cores / analysis.slots


def _executors(analysis: ApplicationAnalysis) -> Chart:
    executors = analysis.application.executors
    series = _steps(
        ((each.began_seconds, each.ended_seconds, 1) for each in executors), _until(analysis)
    )
    return Chart(
        name="chart-executors",
        title="Executors",
        description="The number of executors over time.",
        height=100,
        traces=[_stepped(charts.area(series, "--read", "executors", ""))],
        layout=_layout(analysis) | {"yaxis": charts.zero_based_axis(nticks=3)},
        timed=True,
    )


def _stepped(trace: Trace) -> Trace:
    trace["line"] |= {"shape": "hv", "width": 1.5}
    return trace


def _steps(spans: Iterable[tuple[float, float, float]], until: float) -> Series:
    """The sum of what each span has, step by step; means over windows if there are too many."""
    changes: dict[float, float] = {0.0: 0.0, until: 0.0}
    for begin, end, amount in spans:
        changes[begin] = changes.get(begin, 0.0) + amount
        changes[end] = changes.get(end, 0.0) - amount
    seconds = sorted(changes)
    values, value = [], 0.0
    for time in seconds:
        value += changes[time]
        values.append(max(value, 0.0))
    if len(seconds) > MOST_STEPS:
        seconds, values = _means(seconds, values, until)
    return Series([round(each, 3) for each in seconds], [round(each, 3) for each in values])


def _means(
    seconds: Sequence[float], values: Sequence[float], until: float
) -> tuple[list[float], list[float]]:
    """Means over equal windows, of values that last until the next of ``seconds``."""
    width = until / MOST_STEPS
    sums = [0.0] * MOST_STEPS
    for place, value in enumerate(values[:-1]):
        begin, end = seconds[place], min(seconds[place + 1], until)
        while begin < end:
            window = min(int(begin / width), MOST_STEPS - 1)
            part = end if window == MOST_STEPS - 1 else min(end, (window + 1) * width)
            if part <= begin:
                part = end
            sums[window] += value * (part - begin)
            begin = part
    return [place * width for place in range(MOST_STEPS)], [each / width for each in sums]


def _layout(analysis: ApplicationAnalysis) -> dict[str, Any]:
    until = _until(analysis)
    layout = charts.time_layout(until, [])
    layout["shapes"] = [
        charts.band(begin, end, GAP_COLOUR) for begin, end in _gaps(analysis, until)
    ]
    return layout


def _gaps(analysis: ApplicationAnalysis, until: float) -> list[tuple[float, float]]:
    """Times without a stage, of those that can be seen."""
    gaps, covered = [], 0.0
    for stage in sorted(analysis.application.stages, key=lambda each: each.began_seconds):
        gaps.append((covered, stage.began_seconds))
        covered = max(covered, stage.began_seconds + stage.seconds)
    gaps.append((covered, until))
    return [(begin, end) for begin, end in gaps if end - begin > VISIBLE_GAP * until]


def _until(analysis: ApplicationAnalysis) -> float:
    """The end of the axis, also of an application that took no time."""
    return max(analysis.application.seconds, 1e-3)
