"""Chart throughput and latency by queue depth."""

from tonnage.base import formatting
from tonnage.base.records.analysis import Subject
from tonnage.report.analysis.number_format import (
    PERCENTILES,
    SHADES,
    estimate_bars,
    percentile_legend,
    unit,
)
from tonnage.report.charts import Chart, Trace, axis, layout, linear_axis, scatter

QUEUE_DEPTH = "queue depth"


def levels_chart(subject: Subject) -> Chart | None:
    """Throughput by queue depth; ``None`` for a single one."""
    known = [
        (level.concurrency, rate)
        for level in subject.levels
        if level.concurrency is not None and (rate := level.rate(subject.unit))
    ]
    if len(known) < 2:
        return None
    figure = unit(subject)
    estimates = [rate for _, rate in known]
    trace = scatter(
        [number for number, _ in known],
        [rate.value / figure.factor for rate in estimates],
        subject.name,
        f"queue depth %{{x}}: %{{y:,.4~r}} {figure.name}<extra></extra>",
        line={"color": "--accent", "width": 2},
        marker={"size": 7, "color": "--accent"},
        error_y=estimate_bars(estimates, figure.factor),
    )
    said = [
        f"{number}: {formatting.per_second(rate.value, subject.unit)}" for number, rate in known
    ]
    best = f"Queue depth {subject.near_best} is the smallest within 5 % of the best."
    return Chart(
        name=f"chart-{subject.key}-levels",
        title=f"Throughput by queue depth, {figure.name}",
        description=f"Throughput of {subject.name} by queue depth: {'; '.join(said)}.",
        height=240,
        traces=[trace],
        layout=layout(linear_axis(QUEUE_DEPTH), linear_axis()),
        note=None if subject.near_best is None else best,
    )


def latencies_chart(subject: Subject) -> Chart | None:
    """Latency percentiles by queue depth; ``None`` for a single one."""
    known = [each for each in subject.levels if each.concurrency is not None and each.latencies]
    if len(known) < 2:
        return None
    traces: list[Trace] = []
    for name, colour in SHADES.items():
        points = [
            (level.concurrency, each.seconds.value)
            for level in known
            for each in level.latencies
            if each.name == name and each.seconds.value > 0
        ]
        if points:
            traces.append(
                scatter(
                    [number for number, _ in points],
                    [1e3 * value for _, value in points],
                    PERCENTILES[name],
                    "queue depth %{x}: %{y:,.4~r} ms<extra>%{fullData.name}</extra>",
                    line={"color": colour, "width": 1.5},
                    marker={"size": 5, "color": colour},
                )
            )
    if not traces:
        return None
    return Chart(
        name=f"chart-{subject.key}-latencies",
        title="Latency percentiles by queue depth, ms",
        description=f"Latency percentiles of {subject.name} by queue depth.",
        height=240,
        traces=traces,
        layout=layout(
            linear_axis(QUEUE_DEPTH), axis(value for trace in traces for value in trace["y"])
        ),
        legend=percentile_legend(
            SHADES, (each.name for level in known for each in level.latencies)
        ),
        note="Medians over machines of each machine's own percentiles.",
    )
