"""Render the phases of a job on a cluster with their limits and plan."""

from tonnage.base import formatting
from tonnage.base.records import PhaseComparison, RunComparison, RunRecord
from tonnage.report import charts
from tonnage.report.charts import Chart
from tonnage.report.html_elements import Child, Html, missing_note, section, table, tag

WHOLE = "all phases"
COLUMNS = (
    *("Phase", "Time", "Slowest node", "Median node", "Limit", "Predicted bottleneck"),
    *("Efficiency", "Bottleneck", "As predicted"),
)
PLANNED = ("Phase", "Time", "Planned", "Planned bottleneck", "Bottleneck", "As planned")
YES_NO = {None: "–", True: "yes", False: "no"}


def phases_section(record: RunRecord) -> tuple[Html, list[Chart]]:
    compared = record.compared
    heading = "Phases, limits and plan"
    if compared is None or not compared.phases:
        why = "This record has no phases: there was nothing to do, or an older version wrote it."
        return section("phases", heading, missing_note(why)), []
    chart = _chart(compared)
    parts: list[Child] = [chart.figure(), _table(compared)]
    if compared.limit:
        parts.append(
            tag("p", f"The limit: {formatting.sentence(compared.limit.rule)}", class_="note")
        )
    elif all(phase.limit is None for phase in compared.phases):
        parts.append(missing_note("No limits, because no measured capacities were specified."))
    if compared.planned:
        parts += [tag("h3", "The plan"), _planned(compared), _candidate(compared)]
    else:
        parts.append(missing_note("No plan was specified."))
    if compared.notes:
        notes = [tag("li", formatting.sentence(note)) for note in compared.notes]
        parts += [tag("h3", "Notes"), tag("ul", *notes, class_="findings")]
    return section("phases", heading, *parts), [chart]


def _chart(compared: RunComparison) -> Chart:
    names = [formatting.phase(phase.name) for phase in compared.phases]
    kinds: list[tuple[str, str, list[float | None]]] = [
        ("took", "--actual", [phase.seconds for phase in compared.phases]),
        ("limit", "--busy", [phase.limit_seconds for phase in compared.phases]),
        ("planned", "--predicted", [phase.planned_seconds for phase in compared.phases]),
    ]
    shown = [each for each in kinds if any(value is not None for value in each[2])]
    traces = [
        charts.bars(names, values, name, colour, f"%{{y}}: %{{x:.2f}} s {name}<extra></extra>")
        for name, colour, values in shown
    ]
    said = "; ".join(
        f"{name} {', '.join(_labelled_seconds(kind, values[place]) for kind, _, values in shown)}"
        for place, name in enumerate(names)
    )
    return Chart(
        name="chart-phases",
        title="Seconds, per phase",
        description=f"Seconds of each phase: {said}.",
        height=44 + (24 + 18 * len(shown)) * len(names),
        traces=traces,
        layout=charts.grouped_bars_layout(names),
        legend=[(colour, name) for name, colour, _ in shown],
    )


def _labelled_seconds(kind: str, value: float | None) -> str:
    return f"{kind} {formatting.seconds(value)}" if value is not None else f"{kind} unknown"


def _table(compared: RunComparison) -> Html:
    seconds = formatting.seconds_like(compared.phase_seconds)
    rows = [_row(phase) for phase in compared.phases]
    limit, share = compared.limit, compared.phase_efficiency
    rows.append(
        [
            WHOLE,
            seconds(compared.phase_seconds),
            *("–", "–"),
            seconds(limit.seconds) if limit else "–",
            "–",
            formatting.percent(share) if share is not None else "–",
            *("–", "–"),
        ]
    )
    return table(
        "Time and limit of each phase",
        COLUMNS,
        rows,
        numeric=("Time", "Median node", "Limit", "Efficiency"),
        marked=[len(rows) - 1],
        hide_caption=True,
    )


def _row(phase: PhaseComparison) -> list[Child]:
    seconds = formatting.seconds_like(phase.seconds)
    predicted = f"{formatting.resource(phase.limit)} ({phase.limit_node})" if phase.limit else "–"
    return [
        formatting.phase(phase.name),
        seconds(phase.seconds),
        phase.slowest_node,
        seconds(phase.median_seconds),
        seconds(phase.limit_seconds) if phase.limit_seconds is not None else "–",
        predicted,
        formatting.percent(phase.efficiency) if phase.efficiency is not None else "–",
        f"{formatting.resource(phase.bottleneck)} ({phase.bottleneck_node})",
        YES_NO[phase.as_limited],
    ]


def _planned(compared: RunComparison) -> Html:
    rows = [
        [
            formatting.phase(phase.name),
            _time_with_replication(phase),
            formatting.seconds(phase.planned_seconds) if phase.planned_seconds is not None else "–",
            phase.planned_bottleneck or "–",
            formatting.resource(phase.bottleneck),
            YES_NO[phase.as_planned],
        ]
        for phase in compared.phases
    ]
    caption = "Planned and actual phases"
    return table(caption, PLANNED, rows, numeric=("Time", "Planned"), hide_caption=True)


def _time_with_replication(phase: PhaseComparison) -> str:
    """The time of a phase, and with replication where the plan includes it."""
    took = formatting.seconds(phase.seconds)
    if phase.came_seconds is None or phase.came_seconds <= phase.seconds:
        return took
    return f"{took}; with replication {formatting.seconds(phase.came_seconds)}"


def _candidate(compared: RunComparison) -> Html | None:
    planned = compared.planned
    if planned is None:
        return None
    of, seconds = planned.candidate, planned.seconds
    between = formatting.seconds_between(seconds.low, seconds.high)
    return tag(
        "p",
        f"Planned {formatting.moment(planned.made_at)}: {of.nodes} x {of.provider}/{of.offer} "
        f"({of.layout}) for {formatting.size(planned.bytes)}, "
        f"{formatting.usd(of.cost_usd.median)}, {of.evidence}. "
        f"Scaled to the actual bytes: {formatting.seconds(seconds.median)} ({between}).",
        class_="note",
    )
