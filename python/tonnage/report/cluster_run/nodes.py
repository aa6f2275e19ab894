"""Render each node of a cluster: its phases with their limits, and the use of its resources."""

from collections.abc import Sequence
from typing import Any, TypeVar

from tonnage.base import formatting
from tonnage.base.records import NodePhase, NodeRun, PhaseComparison, ResourceUse, RunRecord
from tonnage.report import charts
from tonnage.report.charts import Chart
from tonnage.report.html_elements import (
    Child,
    Html,
    missing_note,
    section,
    share_bar,
    slug,
    table,
    tag,
)
from tonnage.report.study.limits import graph_drawing, stages_table

MOST = 32
"""Charts show this many nodes, the slowest; tables have all."""
OPEN = 8
"""Tables of more nodes are folded."""
USES = ("Node", "Resource", "Moved", "Measured rate", "Minimum time", "Share of the phase")
WAYS = (
    ("read_bytes", "read", "--read"),
    ("sent_bytes", "sent", "--work-one"),
    ("received_bytes", "received", "--work-two"),
    ("written_bytes", "written", "--write"),
)
NodeT = TypeVar("NodeT", NodeRun, NodePhase)
NODES = ("Node", "Read", "Sent", "Received", "Written", "CPU", "Peak memory", "Busy")


def nodes_section(record: RunRecord) -> tuple[Html, list[Chart]]:
    heading = "Node by node"
    if not record.nodes:
        return section("nodes", heading, missing_note("No node did any work.")), []
    moved = _bytes_chart(record.nodes)
    parts: list[Child] = [moved.figure(), _table(record.nodes)]
    found = [moved]
    for phase in record.compared.phases if record.compared else ():
        chart = _chart(phase)
        found.append(chart)
        name, uses = formatting.phase(phase.name), _uses(phase, record.job == "mapreduce")
        parts += [
            tag("h3", name, tag("small", f" {formatting.seconds(phase.seconds)}")),
            chart.figure(),
            _folded(f"Resource use in {name}", uses, len(phase.nodes)),
            _slowest(record, phase),
        ]
    return section("nodes", heading, *parts), found


def _bytes_chart(nodes: Sequence[NodeRun]) -> Chart:
    shown, names = _slowest_nodes(nodes)
    traces = [
        charts.bars(
            names,
            [getattr(node, field) for node in shown],
            name,
            colour,
            f"%{{y}}: %{{x:.4s}}B {name}<extra></extra>",
        )
        for field, name, colour in WAYS
    ]
    layout = _layout(names)
    layout["xaxis"] |= {"ticksuffix": "B", "exponentformat": "SI", "separatethousands": False}
    told = "; ".join(
        f"{node.node} {', '.join(f'{formatting.size(getattr(node, f))} {n}' for f, n, _ in WAYS)}"
        for node in shown
    )
    return Chart(
        name="chart-bytes",
        title="Bytes of both passes, per node",
        description=f"Bytes of each node: {told}.",
        height=44 + 66 * len(shown),
        traces=traces,
        layout=layout,
        legend=[(colour, name) for _, name, colour in WAYS],
        note=_omission_note(len(nodes)),
    )


def _chart(phase: PhaseComparison) -> Chart:
    shown, names = _slowest_nodes(phase.nodes)
    least = [
        max((use.seconds for use in node.uses if use.seconds is not None), default=None)
        for node in shown
    ]
    kinds: list[tuple[str, str, list[float | None]]] = [
        ("took", "--actual", [node.seconds for node in shown]),
        ("its own limit", "--busy", least),
    ]
    bars = [each for each in kinds if any(value is not None for value in each[2])]
    layout, planned = _layout(names), phase.planned_seconds
    longest = max(phase.seconds, phase.limit_seconds or 0, planned or 0)
    layout["xaxis"]["range"] = [0, 1.05 * longest]
    legend = [(colour, name) for name, colour, _ in bars]
    if planned is not None:
        layout["shapes"] = [charts.upright_line(planned, color="--write", width=2)]
        legend.append(("--write", "planned for all nodes"))
    told = "; ".join(
        f"{node.node} {formatting.seconds(node.seconds)}"
        + (f", at least {formatting.seconds(own)}" if own is not None else "")
        for node, own in zip(shown, least, strict=True)
    )
    return Chart(
        name=f"chart-{slug(phase.name)}",
        title=f"{formatting.phase(phase.name).capitalize()}, seconds of each node",
        description=f"Seconds of each node in {formatting.phase(phase.name)}: {told}.",
        height=44 + (12 + 16 * len(bars)) * len(shown),
        traces=[
            charts.bars(names, values, name, colour, f"%{{y}}: %{{x:.2f}} s, {name}<extra></extra>")
            for name, colour, values in bars
        ],
        layout=layout,
        legend=legend,
        note=_omission_note(len(phase.nodes)),
    )


def _layout(names: Sequence[str]) -> dict[str, Any]:
    """Bars of nodes with long names."""
    layout = charts.grouped_bars_layout(names)
    layout["yaxis"] |= {"automargin": True, "type": "category"}
    return layout


def _slowest_nodes(nodes: Sequence[NodeT]) -> tuple[list[NodeT], list[str]]:
    slowest = sorted(nodes, key=lambda node: -node.seconds)[:MOST]
    shown = sorted(slowest, key=lambda node: node.node)
    return shown, [node.node for node in shown]


def _omission_note(number: int) -> str | None:
    if number <= MOST:
        return None
    return f"The {MOST} slowest of {formatting.count(number)} nodes; the table lists all."


def _table(nodes: Sequence[NodeRun]) -> Html:
    seconds = formatting.seconds_like(max((node.seconds for node in nodes), default=0.0))
    rows = [
        [
            f"{node.node} (lost)" if node.lost else node.node,
            *(formatting.size(getattr(node, field)) for field, _, _ in WAYS),
            seconds(node.cpu_seconds),
            formatting.memory(node.peak_memory_bytes),
            seconds(node.seconds),
        ]
        for node in nodes
    ]
    caption = "Totals by node"
    return _folded(caption, table(caption, NODES, rows, numeric=NODES[1:]), len(nodes))


def _uses(phase: PhaseComparison, functions: bool) -> Html:
    """A row for each resource; the CPU excludes user functions."""
    seconds = formatting.seconds_like(phase.seconds)
    rows: list[list[Child]] = []
    marked = []
    for node in phase.nodes:
        for use in node.uses:
            if (use.resource, node.node) == (phase.limit, phase.limit_node):
                marked.append(len(rows))
            row = _use(node, use, phase, seconds(use.seconds) if use.seconds else "–")
            if functions and use.unit == "core seconds":
                row[1] = f"{formatting.resource(use.resource)}, without user functions"
            rows.append(row)
    return table(
        f"Resource use in {formatting.phase(phase.name)}, and the minimum time that it needs",
        USES,
        rows,
        numeric=("Moved", "Measured rate", "Minimum time"),
        marked=marked,
    )


def _use(node: NodePhase, use: ResourceUse, phase: PhaseComparison, seconds: str) -> list[Child]:
    measured = "–"
    if use.capacity is not None:
        measured = formatting.capacity(use.capacity, use.capacity, use.capacity, use.unit)
    share = use.seconds / phase.seconds if use.seconds and phase.seconds else 0.0
    return [
        node.node,
        formatting.resource(use.resource),
        formatting.demand(use.amount, use.unit),
        measured,
        seconds,
        share_bar((share, "accent")) if share else "–",
    ]


def _slowest(record: RunRecord, phase: PhaseComparison) -> Html | None:
    """The stages of the slowest node, for each of its runs of the phase."""
    node = next((each for each in record.nodes if each.node == phase.slowest_node), None)
    ran = [each for each in node.phases if each.name == phase.name] if node else []
    if not ran:
        return None
    said = f"Stages on {phase.slowest_node}, the slowest node"
    tables = [
        part
        for each in ran
        for part in (
            graph_drawing(each.graph),
            stages_table(each, f"{said}: {formatting.seconds(each.seconds)}"),
        )
    ]
    return tag("details", tag("summary", said), *tables)


def _folded(name: str, content: Html, number: int) -> Html:
    return tag("details", tag("summary", name), content) if number > OPEN else content
