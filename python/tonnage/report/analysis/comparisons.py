"""Compare operations: per dollar, latency, layouts, labels, direct and buffered access."""

from collections.abc import Sequence

from tonnage.base import formatting
from tonnage.base.records.analysis import Analysis, Comparison, CostEfficiency, Estimate, Subject
from tonnage.report.analysis.labels import label_comparisons
from tonnage.report.analysis.number_format import (
    BAR_HEIGHT,
    NOT_ESTIMABLE,
    PERCENTILES,
    SHADES,
    estimate_bars,
    label,
    measurement_links,
    percentile_legend,
    queue_depth,
    range_text,
    row_chart,
    sample_size,
)
from tonnage.report.charts import (
    DASHED,
    Chart,
    Trace,
    axis,
    bars,
    linear_axis,
    scatter,
    upright_line,
)
from tonnage.report.html_elements import Child, Html, missing_note, section, table

PLAIN_UNIT = formatting.Unit("", 1.0)
MAX_DRAWN = 60
"""Charts with more rows are left out."""
MEGABYTES = formatting.Unit("MB", 1e6)


def comparisons_section(analysis: Analysis) -> tuple[Html, list[Chart]]:
    parts: list[Child] = []
    drawn: list[Chart] = []
    for charts, tables in (
        _dollars(analysis.per_dollar),
        _latencies(analysis.subjects),
        _ratios("layouts", "Layouts' ratio", analysis.layouts),
        label_comparisons(analysis.by_label),
        _ratios("labels", "By label", analysis.labels),
        _ratios("direct", "Direct against buffered", analysis.direct_against_buffered),
    ):
        drawn += charts
        parts += [chart.figure() for chart in charts] + tables
    if not drawn:
        parts.append(missing_note("Nothing to compare."))
    return section("across", "Side by side", *parts), drawn


ChartsAndTables = tuple[list[Chart], list[Html]]


def _dollars(found: Sequence[CostEfficiency]) -> ChartsAndTables:
    charts = []
    for name, title, unit, pairs in (
        ("operations", "Operations per dollar", PLAIN_UNIT, [(e, e.operations) for e in found]),
        ("megabytes", "Megabytes per dollar", MEGABYTES, [(e, e.bytes) for e in found]),
    ):
        known = [(each, estimate) for each, estimate in pairs if estimate]
        if 0 < len(known) <= MAX_DRAWN:
            charts.append(_bought(name, title, unit, known))
    if not found:
        return [], []
    crowded = [_too_many("Throughput per dollar", len(found))] if not charts else []
    cells: list[list[Child]] = [
        [
            each.subject,
            each.priced_as,
            f"{each.usd_per_hour:g}",
            _bought_in_words(each.operations, PLAIN_UNIT),
            _bought_in_words(each.bytes, MEGABYTES),
            sample_size(each.operations or each.bytes),
            measurement_links(each.measurements),
        ]
        for each in found
    ]
    columns = ["Operation", "Machine", "USD per hour", "Operations", "MB", "Of", "From"]
    numeric = ("USD per hour", "Operations", "MB")
    bought = table("Throughput per dollar: medians", columns, cells, numeric=numeric)
    return charts, [*crowded, bought]


def _bought(
    name: str, title: str, unit: formatting.Unit, known: Sequence[tuple[CostEfficiency, Estimate]]
) -> Chart:
    several = len({each.priced_as for each, _ in known}) > 1
    labels = [
        label(f"{each.subject}, {each.priced_as}" if several else each.subject) for each, _ in known
    ]
    estimates = [estimate for _, estimate in known]
    said = [
        f"{each.subject} on {each.priced_as} {_bought_in_words(estimate, unit)}"
        for each, estimate in known
    ]
    trace = _dots(labels, estimates, unit.factor, "--accent")
    return row_chart(
        f"chart-dollar-{name}",
        title,
        f"{title}: {'; '.join(said)}.",
        labels,
        [trace],
        axis(trace["x"]),
        note="Medians, with intervals where estimable.",
    )


def _bought_in_words(estimate: Estimate | None, unit: formatting.Unit) -> str:
    return "–" if estimate is None else formatting.significant(estimate.value / unit.factor)


def _latencies(subjects: Sequence[Subject]) -> ChartsAndTables:
    known = [subject for subject in subjects if subject.chosen.latencies]
    if not 0 < len(known) <= MAX_DRAWN:
        return [], [_too_many("Latency percentiles", len(known))] if known else []
    traces: list[Trace] = []
    for name, colour in SHADES.items():
        pairs = [
            (label(subject.name), each.seconds)
            for subject in known
            for each in subject.chosen.latencies
            if each.name == name and each.seconds.value > 0
        ]
        if pairs:
            labels, estimates = [at for at, _ in pairs], [of for _, of in pairs]
            dots = _dots(labels, estimates, 1e-3, colour)
            traces.append(dots | {"name": PERCENTILES[name]})
    if not traces:
        return [], []
    said = [
        f"{subject.name} "
        + ", ".join(
            f"{PERCENTILES[each.name]} {formatting.latency(each.seconds.value)}"
            for each in subject.chosen.latencies
        )
        for subject in known
    ]
    chart = row_chart(
        "chart-latencies",
        "Latency percentiles, ms",
        f"Latency percentiles of each operation: {'; '.join(said)}.",
        [label(subject.name) for subject in known],
        traces,
        axis(value for trace in traces for value in trace["x"]),
        legend=percentile_legend(SHADES, (each.name for s in known for each in s.chosen.latencies)),
        note="Medians over machines of each machine's own percentiles.",
    )
    return [chart], []


def _ratios(name: str, title: str, found: Sequence[Comparison]) -> ChartsAndTables:
    if not found:
        return [], []
    labels = [label(f"{each.subject}, {each.way} : {each.than}") for each in found]
    ratios = [each.ratio for each in found]
    chart = row_chart(
        f"chart-{name}",
        f"{title}: speedup",
        f"{title}: {'; '.join(map(_ratio_sentence, found))}.",
        labels,
        [
            bars(
                labels,
                [each.value for each in ratios],
                title,
                "--accent",
                "%{text}: %{x:.3~r}<extra></extra>",
                error_x=estimate_bars(ratios),
                width=BAR_HEIGHT,
                textposition="none",
            )
        ],
        linear_axis(),
    )
    chart.layout["shapes"] = [upright_line(1, **DASHED)]
    cells: list[list[Child]] = [
        [
            each.subject,
            each.way,
            each.than,
            queue_depth(each.concurrency),
            formatting.significant(each.ratio.value),
            _interval_text(each.ratio),
            sample_size(each.ratio),
            _per_gigabyte(each.way_cpu_seconds_per_byte),
            _per_gigabyte(each.than_cpu_seconds_per_byte),
            measurement_links(each.measurements),
        ]
        for each in found
    ]
    columns = ["Operation", "Variant", "Baseline", "Queue depth", "Ratio", "Interval", "Sample"]
    columns += ["CPU, core-s/GB", "Baseline's CPU, core-s/GB", "From"]
    return [chart], [table(title, columns, cells, numeric=[*columns[3:6], *columns[7:9]])]


def _too_many(what: str, number: int) -> Html:
    count = formatting.count(number)
    return missing_note(f"{what}: {count} are too many for a chart; see the tables.")


def _per_gigabyte(seconds: float | None) -> str:
    return "–" if seconds is None else formatting.significant(1e9 * seconds, 2)


def _ratio_sentence(each: Comparison) -> str:
    ratio = formatting.significant(each.ratio.value)
    return f"{each.subject}: {each.way} is {ratio} times {each.than}"


def _interval_text(ratio: Estimate) -> str:
    if ratio.low is None or ratio.high is None:
        return NOT_ESTIMABLE
    return range_text(ratio.low, ratio.high)


def _dots(
    labels: Sequence[str], estimates: Sequence[Estimate], factor: float, colour: str
) -> Trace:
    return scatter(
        [each.value / factor for each in estimates],
        labels,
        "",
        "%{text}: %{x:,.4~r}<extra>%{fullData.name}</extra>",
        marker={"color": colour, "size": 9},
        error_x=estimate_bars(estimates, factor),
    )
