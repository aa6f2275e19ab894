"""Each operation by itself: by how many outstanding, by instance, over time, by latency."""

from __future__ import annotations

from collections.abc import Sequence

from tonnage.base import formatting
from tonnage.base.records.analysis import Analysis, Subject
from tonnage.report.analysis.concurrency import latencies_chart, levels_chart
from tonnage.report.analysis.distributions import latency_chart, lines_chart, spread_chart
from tonnage.report.analysis.number_format import (
    PERCENTILES,
    interval,
    measurement_links,
    rate,
    sample_size,
    unit,
)
from tonnage.report.analysis.time_series import time_series_chart
from tonnage.report.charts import Chart
from tonnage.report.html import Child, Html, fact_list, join, missing_note, section, table, tag

OPEN_AT_MOST = 8
"""Of more subjects than this each is folded away until it is asked for."""
CHARTS = (
    levels_chart,
    latencies_chart,
    lines_chart,
    time_series_chart,
    spread_chart,
    latency_chart,
)


def operations_section(analysis: Analysis) -> tuple[Html, list[Chart]]:
    """The section and its charts."""
    drawn: list[Chart] = []
    parts: list[Child] = []
    folded = len(analysis.subjects) > OPEN_AT_MOST
    for subject in analysis.subjects:
        charts = [chart for draw in CHARTS if (chart := draw(subject)) is not None]
        drawn += charts
        body = _body(subject, charts)
        if folded:
            body = tag("details", tag("summary", "Figures and charts"), body)
        parts.append(tag("article", tag("h3", subject.name, class_="exact"), body, id=subject.key))
    if not parts:
        parts.append(missing_note("These measurements hold no readings."))
    return section("operations", "Each operation", *parts), drawn


def _body(subject: Subject, charts: Sequence[Chart]) -> Html:
    return join(
        [
            fact_list(_known(subject)),
            _striking(subject),
            *(chart.figure() for chart in charts),
            _levels(subject),
            _quantiles(subject),
        ]
    )


def _known(subject: Subject) -> list[tuple[str, Child]]:
    access = {True: "past the page cache", False: "through the page cache", None: "not said"}
    enough = "–" if subject.near_best is None else f"{subject.near_best} outstanding"
    return [
        ("Tool", subject.tool),
        ("Operation", subject.operation),
        ("Block", "not said" if subject.block_bytes is None else _block(subject.block_bytes)),
        ("Access", access[subject.direct]),
        ("Layout", subject.layout or "not said"),
        ("95 % of best", enough),
        ("Median", rate(subject.rate, subject)),
        ("Differ by", _varies(subject.variation, "between instances")),
        ("Vary by", _varies(subject.variation_over_time, "over time, the median instance")),
        ("From", measurement_links(subject.chosen.measurements)),
    ]


def _varies(variation: float | None, what: str) -> str:
    return "–" if variation is None else f"{formatting.percent(variation)} {what}"


def _block(size: int) -> str:
    return formatting.setting("block_bytes", size)


def _striking(subject: Subject) -> Html | None:
    """The instances that stand out, by how much, and how surely."""
    cells: list[list[Child]] = [
        [
            each.instance,
            "bad apple" if each.worse else "better than the others",
            f"{formatting.per_second(each.rate, subject.unit)}, {formatting.significant(each.ratio)} of the "
            "median instance's",
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
                f"{formatting.per_second(mode.value, subject.unit)} ({formatting.percent(mode.share)})"
                for mode in each.modes
            ),
            _chance(each.false_alarm),
            measurement_links(each.measurements),
        ]
        for each in subject.alternating
    ]
    cells += [
        [
            each.instance or "all together",
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
    columns = ["Instance", "What", "By how much", "By chance in", "From"]
    return table("What stands out", columns, cells)


def _chance(false_alarm: float) -> str:
    """The share of fleets with nothing to find that show as much."""
    share = 100 * false_alarm
    return (
        "< 0.01 % of fleets" if share < 0.01 else f"{formatting.significant(share, 1)} % of fleets"
    )


def _levels(subject: Subject) -> Html:
    figure = unit(subject)
    named = [name for name in PERCENTILES if any(_has(level, name) for level in subject.levels)]
    columns = ["Outstanding", f"Median, {figure.name}", "Interval", "Of"]
    columns += [f"Latency, {PERCENTILES[name]}" for name in named] + [
        "CPU an operation",
        "CPU, core-s/GB",
        "From",
    ]
    cells: list[list[Child]] = []
    marked = []
    for place, level in enumerate(subject.levels):
        found = level.rate(subject.unit)
        latencies = {each.name: each.seconds.value for each in level.latencies}
        cpu, cpu_of_byte = level.cpu_seconds_per_operation, level.cpu_seconds_per_byte
        cells.append(
            [
                "not said" if level.concurrency is None else str(level.concurrency),
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
    caption = "By how many were outstanding; in bold the smallest number within 5 % of the best"
    if subject.near_best is None:
        caption = "By how many were outstanding"
    return table(caption, columns, cells, numeric=columns[1:3], marked=marked)


def _has(level: object, name: str) -> bool:
    return any(each.name == name for each in getattr(level, "latencies", []))


def _quantiles(subject: Subject) -> Html | None:
    if len(subject.instances) < 2:
        return None
    figure = unit(subject)
    cells: list[list[Child]] = [
        [
            f"{100 * each.share:g} % give less than",
            formatting.significant(each.value / figure.factor),
            interval(each, figure),
        ]
        for each in subject.quantiles
    ]
    caption = (
        f"Percentiles over {formatting.count(len(subject.instances))} instances, of their medians"
    )
    return table(caption, ["Instances", figure.name, "Interval"], cells, numeric=[figure.name])
