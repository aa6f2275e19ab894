"""Render each operation: by queue depth, by instance, over time, and its latency."""

from collections.abc import Sequence

from tonnage.base import formatting
from tonnage.base.records.analysis import Analysis, Subject
from tonnage.report.analysis.concurrency import latencies_chart, levels_chart
from tonnage.report.analysis.distribution_charts import latency_chart, lines_chart, spread_chart
from tonnage.report.analysis.number_format import (
    PERCENTILES,
    interval,
    measurement_links,
    queue_depth,
    rate,
    sample_size,
    unit,
)
from tonnage.report.analysis.time_series import time_series_chart
from tonnage.report.charts import Chart
from tonnage.report.html_elements import (
    Child,
    Html,
    fact_list,
    join,
    missing_note,
    section,
    table,
    tag,
)

MAX_OPEN = 8
"""With more operations than this, each is folded."""
CHARTS = (
    *(levels_chart, latencies_chart, lines_chart),
    *(time_series_chart, spread_chart, latency_chart),
)


def operations_section(analysis: Analysis) -> tuple[Html, list[Chart]]:
    drawn: list[Chart] = []
    parts: list[Child] = []
    folded = len(analysis.subjects) > MAX_OPEN
    for subject in analysis.subjects:
        charts = [chart for draw in CHARTS if (chart := draw(subject)) is not None]
        drawn += charts
        body = _body(subject, charts)
        if folded:
            body = tag("details", tag("summary", "Figures and charts"), body)
        parts.append(tag("article", tag("h3", subject.name, class_="exact"), body, id=subject.key))
    if not parts:
        parts.append(missing_note("These measurements have no metrics."))
    return section("operations", "Each operation", *parts), drawn


def _body(subject: Subject, charts: Sequence[Chart]) -> Html:
    figures = [chart.figure() for chart in charts]
    facts, striking = fact_list(_facts(subject)), _striking(subject)
    return join([facts, striking, *figures, _levels(subject), _quantiles(subject)])


def _facts(subject: Subject) -> list[tuple[str, Child]]:
    access = {True: "direct", False: "buffered", None: "not stated"}
    block = subject.block_bytes
    enough = "–" if subject.near_best is None else f"at queue depth {subject.near_best}"
    return [
        ("Tool", subject.tool),
        ("Operation", subject.operation),
        ("Block", "not stated" if block is None else formatting.setting("block_bytes", block)),
        ("Access", access[subject.direct]),
        ("Layout", subject.layout or "not stated"),
        ("95 % of best", enough),
        ("Median", rate(subject.rate, subject)),
        ("Variation", _varies(subject.variation, "between machines")),
        ("Over time", _varies(subject.variation_over_time, "of the median machine")),
        ("From", measurement_links(subject.chosen.measurements)),
    ]


def _varies(variation: float | None, what: str) -> str:
    return "–" if variation is None else f"{formatting.percent(variation)} {what}"


def _striking(subject: Subject) -> Html | None:
    """Exceptional instances with their deviation and false-alarm rate."""
    cells: list[list[Child]] = [
        [
            each.instance,
            "slow outlier" if each.worse else "fast outlier",
            f"{formatting.per_second(each.rate, subject.unit)}, "
            f"{formatting.significant(each.ratio)} of the median machine's rate",
            _chance(each.false_alarm),
            measurement_links(each.measurements),
        ]
        for each in subject.outliers
    ]
    cells += [
        [
            each.instance,
            "alternates",
            formatting.listing(
                f"{formatting.per_second(mode.value, subject.unit)} "
                f"({formatting.percent(mode.share)})"
                for mode in each.modes
            ),
            _chance(each.false_alarm),
            measurement_links(each.measurements),
        ]
        for each in subject.alternating
    ]
    cells += [
        [
            each.instance or "all machines",
            "cycle",
            f"period {formatting.duration(each.period_seconds)}, amplitude "
            + ("–" if each.amplitude_share is None else formatting.percent(each.amplitude_share)),
            _chance(each.false_alarm),
            measurement_links(each.measurements),
        ]
        for each in subject.cycles
    ]
    if not cells:
        return None
    columns = ["Machine", "Finding", "Size", "False alarms", "From"]
    return table("Exceptional machines", columns, cells)


def _chance(false_alarm: float) -> str:
    """The share of uniform clusters that show as much by chance."""
    share = 100 * false_alarm
    shown = "< 0.01" if share < 0.01 else formatting.significant(share, 1)
    return f"{shown} % of healthy clusters"


def _levels(subject: Subject) -> Html:
    figure = unit(subject)
    seen = {each.name for level in subject.levels for each in level.latencies}
    named = [name for name in PERCENTILES if name in seen]
    columns = ["Queue depth", f"Median, {figure.name}", "Interval", "Sample"]
    columns += [f"Latency, {PERCENTILES[name]}" for name in named]
    columns += ["CPU per operation", "CPU, core-s/GB", "From"]
    cells: list[list[Child]] = []
    marked = []
    for place, level in enumerate(subject.levels):
        found = level.rate(subject.unit)
        latencies = {each.name: each.seconds.value for each in level.latencies}
        cpu, cpu_of_byte = level.cpu_seconds_per_operation, level.cpu_seconds_per_byte
        cells.append(
            [
                queue_depth(level.concurrency),
                "–" if found is None else formatting.significant(found.value / figure.factor),
                interval(found, figure),
                sample_size(found),
                *(
                    formatting.latency(latencies[name]) if name in latencies else "–"
                    for name in named
                ),
                "–" if cpu is None else formatting.latency(cpu),
                "–" if cpu_of_byte is None else formatting.significant(1e9 * cpu_of_byte, 2),
                measurement_links(level.measurements),
            ]
        )
        if level.concurrency is not None and level.concurrency == subject.near_best:
            marked.append(place)
    caption = "By queue depth; bold: the smallest queue depth within 5 % of the best rate"
    if subject.near_best is None:
        caption = "By queue depth"
    return table(caption, columns, cells, numeric=columns[1:3], marked=marked)


def _quantiles(subject: Subject) -> Html | None:
    if len(subject.instances) < 2:
        return None
    figure = unit(subject)
    cells: list[list[Child]] = [
        [
            f"{100 * each.share:g} % are below",
            formatting.significant(each.value / figure.factor),
            interval(each, figure),
        ]
        for each in subject.quantiles
    ]
    count = formatting.count(len(subject.instances))
    caption = f"Percentiles of the medians of {count} machines"
    return table(caption, ["Machines", figure.name, "Interval"], cells, numeric=[figure.name])
