"""Chart how instances differ: percentiles from best to worst, histograms, latencies."""

from tonnage.base import formatting
from tonnage.base.records.analysis import InstancePercentiles, LatencyHistogram, Subject
from tonnage.report.analysis.number_format import (
    PERCENTILES,
    SHADES,
    density_axis,
    histogram_steps,
    unit,
)
from tonnage.report.analysis.time_series import MARKS, exceptional_instances
from tonnage.report.charts import Chart, Trace, axis, layout, linear_axis, log_axis, scatter

MAX_NAMED = 6
"""Names of more instances would overlap."""
RATE_SHADES = ("--write", "--work-one", "--read", "--work-two", "--busy")
ROLES = {"best": "--read", "middle": "--work-one", "worst": "--write", "only": "--accent"}


def lines_chart(subject: Subject) -> Chart | None:
    """Percentiles of each instance, best to worst; ``None`` for a single instance."""
    found = subject.lines
    if found is None:
        return None
    latency = found.of == "latency"
    figure = formatting.Unit("ms", 1e-3) if latency else unit(subject)
    shades = [SHADES[name] for name in found.percentiles] if latency else list(RATE_SHADES)
    called = [PERCENTILES.get(name, name) for name in found.percentiles]
    traces: list[Trace] = [
        scatter(
            list(range(1, len(found.instances) + 1)),
            [None if value is None else value / figure.factor for value in values],
            name,
            f"%{{text}}: %{{y:,.4~r}} {figure.name}<extra>%{{fullData.name}}</extra>",
            line={"color": shade, "width": 1.5},
            marker={"size": 4, "color": shade},
            text=found.instances,
        )
        for name, shade, values in zip(called, shades, found.values, strict=False)
    ]
    traces.append(_name_trace(subject, found, figure))
    what = "latency" if latency else "rate over time"
    return Chart(
        name=f"chart-{subject.key}-lines",
        title=f"Variation across machines, best to worst: {what}, {figure.name}",
        description=f"Percentiles of {what} of {subject.name} on each of {len(found.instances)} "
        f"machines, from {found.instances[0]}, the best, to {found.instances[-1]}, the worst.",
        height=280,
        traces=traces,
        layout=layout(
            linear_axis("machines, from the best to the worst", rangemode="normal", zeroline=False),
            axis(value for trace in traces for value in trace["y"]),
            t=20,
        ),
        legend=list(zip(shades, called, strict=False)),
    )


def spread_chart(subject: Subject) -> Chart | None:
    """The histogram over instances with its density; ``None`` for too few."""
    found = subject.spread
    if found is None:
        return None
    figure = unit(subject)
    edges = [edge / figure.factor for edge in found.edges]
    marked = exceptional_instances(subject)
    apart = [each for each in subject.instances if each.name in marked]
    colours = [MARKS[marked[each.name]] for each in apart]
    traces: list[Trace] = [
        histogram_steps(
            edges,
            found.counts,
            "machines",
            f"%{{x:,.4~r}} {figure.name}: %{{y}} machines<extra></extra>",
            color="--read",
            width=1,
        )
        | {"fill": "tozeroy", "fillcolor": "--read-soft"},
        scatter(
            [value / figure.factor for value in found.values],
            found.densities,
            "density",
            None,
            line={"color": "--work-one", "width": 2},
        ),
        scatter(
            [each.rate.value / figure.factor for each in apart],
            [0 for _ in apart],
            "exceptional",
            f"%{{text}}, %{{x:,.4~r}} {figure.name}<extra></extra>",
            marker={"size": 9, "symbol": "diamond", "color": colours},
            text=[f"{each.name}: {marked[each.name]}" for each in apart],
            cliponaxis=False,
        ),
    ]
    modes = formatting.listing(
        f"{formatting.per_second(mode.value, subject.unit)} ({formatting.percent(mode.share)})"
        for mode in found.modes
    )
    several = f" Modes: {modes}." if len(found.modes) > 1 else ""
    return Chart(
        name=f"chart-{subject.key}-spread",
        title="Machines by throughput, with density",
        description=f"Histogram of machines by throughput of {subject.name}: "
        f"{max(found.counts)} in the fullest of "
        f"{formatting.several(len(found.counts), 'bin')}.{several}",
        height=240,
        traces=traces,
        layout=layout(density_axis(found.axis, edges, figure), linear_axis("machines")),
        legend=[("--read", "machines"), ("--work-one", "density, machines per bin")],
        note=f"{formatting.sentence(found.rule)}{several}",
    )


def latency_chart(subject: Subject) -> Chart | None:
    """The latency histogram; ``None`` where it was not recorded."""
    found = subject.latency_histograms
    if not found:
        return None
    counts = [f"{_role(each)}, {formatting.several(each.count, 'operation')}" for each in found]
    return Chart(
        name=f"chart-{subject.key}-histogram",
        title="Latency histogram, % of operations in each bin",
        description=f"Latency of {subject.name}: {'; '.join(counts)}.",
        height=240,
        traces=[_steps(each) for each in found],
        layout=layout(
            log_axis([1e3 * edge for each in found for edge in each.edges_seconds], "ms"),
            linear_axis(),
        ),
        legend=[(ROLES[each.role], _role(each)) for each in found],
        note="One line for each machine, since latencies are never pooled.",
    )


def _name_trace(subject: Subject, found: InstancePercentiles, figure: formatting.Unit) -> Trace:
    """The names of exceptional instances, at their medians."""
    marked = exceptional_instances(subject)
    middle = found.values[found.percentiles.index("p50")]
    places = [
        (place + 1, value / figure.factor, name)
        for place, (name, value) in enumerate(zip(found.instances, middle, strict=True))
        if name in marked and value
    ]
    colours = [MARKS[marked[name]] for _, _, name in places]
    return scatter(
        [at for at, _, _ in places],
        [value for _, value, _ in places],
        "exceptional",
        "%{hovertext}<extra></extra>",
        marker={"size": 10, "symbol": "diamond", "color": colours},
        text=[name for _, _, name in places],
        # The median is the lowest line of latencies.
        textposition="bottom left" if found.of == "latency" else "top left",
        textfont={"size": 11, "color": "--ink"},
        hovertext=[f"{name}: {marked[name]}" for _, _, name in places],
    ) | ({"mode": "markers+text"} if len(places) <= MAX_NAMED else {})


def _role(each: LatencyHistogram) -> str:
    return each.instance if each.role == "only" else f"{each.role}: {each.instance}"


def _steps(each: LatencyHistogram) -> Trace:
    return histogram_steps(
        [1e3 * edge for edge in each.edges_seconds],
        [100 * share for share in each.shares],
        each.instance,
        "%{x:,.3~r} ms: %{y:.2f} %<extra>%{fullData.name}</extra>",
        color=ROLES[each.role],
        width=1.5,
    )
