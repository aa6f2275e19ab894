"""Chart throughput over time by instance; exceptional ones are coloured and on top."""

from tonnage.base import formatting
from tonnage.base.records.analysis import Estimate, SteadyState, Subject, TimeSeries
from tonnage.report.analysis.number_format import BREAK, interval, sample_size, unit
from tonnage.report.charts import Chart, Trace, layout, linear_axis, scatter

MARKS = {
    "slow outlier": "--write",
    "fast outlier": "--busy",
    "alternates": "--work-one",
    "cycle": "--read",
}
"""Kinds of exceptional instances and their colours."""
OTHERS = "--work-three-soft"
ALONE = "--accent"
HOUR = 3600.0


def exceptional_instances(subject: Subject) -> dict[str, str]:
    found = {
        each.instance: "slow outlier" if each.worse else "fast outlier" for each in subject.outliers
    }
    found |= {each.instance: "alternates" for each in subject.alternating}
    return found | {each.instance: "cycle" for each in subject.cycles if each.instance}


def time_series_chart(subject: Subject) -> Chart | None:
    """The chart; ``None`` without time series."""
    if not subject.courses or subject.highest is None:
        return None
    marked = exceptional_instances(subject)
    longest = max(course.seconds[-1] for course in subject.courses)
    hours = longest > 2 * HOUR
    # Draw exceptional instances last, on top.
    order = sorted(subject.courses, key=lambda course: course.instance in marked)
    alone = len(order) == 1
    known = {each.name: _median(each.rate, unit(subject)) for each in subject.instances}
    for course in subject.courses:
        known.setdefault(course.instance, []).extend(_steady(course.steady))
    traces = [
        _line(course, marked, HOUR if hours else 1.0, alone, known[course.instance])
        for course in order
    ]
    highest = formatting.per_second(subject.highest, subject.unit)
    standing_out = [f"{name} ({what})" for name, what in marked.items()]
    said = f" Exceptional: {formatting.listing(standing_out)}." if standing_out else ""
    facts = known[order[0].instance] if alone else []
    middle = f" {formatting.sentence(', '.join(facts))}" if facts else ""
    used = [(MARKS[what], what) for what in MARKS if what in marked.values()]
    return Chart(
        name=f"chart-{subject.key}-courses",
        title="Throughput over time, share of the highest; one line for each machine",
        description=f"Throughput of {subject.name} over time, one line for each of "
        f"{formatting.several(len(order), 'machine')}.{said}",
        height=260,
        traces=traces,
        layout=layout(
            linear_axis("hours" if hours else "seconds", fixedrange=False, showgrid=False),
            linear_axis(range=[0, 1.05], tickvals=[0, 0.25, 0.5, 0.75, 1]),
        ),
        legend=[] if alone else [(OTHERS, "others"), *used],
        note=f"1 is {highest}.{middle}{said}",
    )


def _median(estimate: Estimate, figure: formatting.Unit) -> list[str]:
    """An instance's median over time with interval and sample size."""
    middle = formatting.significant(estimate.value / figure.factor)
    return [
        f"median {middle} {figure.name}",
        f"interval {interval(estimate, figure)}",
        f"of {sample_size(estimate)}",
    ]


def _steady(found: SteadyState | None) -> list[str]:
    """When a long trial reached steady state, and by which rule."""
    if found is None:
        return []
    if found.begins_seconds is None:
        return [f"never steady ({found.rule})"]
    slope = ""
    if found.slope_per_second is not None:
        slope = f"; it changed by {formatting.percent(60 * found.slope_per_second)} a minute"
    return [f"steady from {formatting.duration(found.begins_seconds)} ({found.rule}{slope})"]


def _line(
    course: TimeSeries, marked: dict[str, str], length: float, alone: bool, known: list[str]
) -> Trace:
    what = marked.get(course.instance)
    colour = MARKS[what] if what else ALONE if alone else OTHERS
    points = sum(1 for share in course.shares if share is not None)
    return scatter(
        [second / length for second in course.seconds],
        course.shares,
        course.instance,
        f"%{{y:.2f}}<extra>{BREAK.join(['%{fullData.name}', *known])}</extra>",
        line={"color": colour, "width": 2 if what or alone else 0.8},
        marker={"color": colour, "size": 4} if points < 30 else None,
        connectgaps=False,
    )
