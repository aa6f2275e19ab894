"""Render an observed run: its phases, what limited each, its resources over time."""

from pathlib import Path
from typing import Any

from tonnage.base import formatting
from tonnage.base.records.observation import Observation, ObservedPhase
from tonnage.base.records.observation_analysis import ObservationAnalysis
from tonnage.report import charts
from tonnage.report.charts import Chart, Trace
from tonnage.report.environment import command_block, machine_facts
from tonnage.report.html_elements import (
    Child,
    Html,
    fact_list,
    missing_note,
    section,
    table,
    tag,
)
from tonnage.report.jobs.findings import findings_section, saving
from tonnage.report.jobs.phases import limit_cell
from tonnage.report.page import (
    PageSection,
    Tile,
    notice,
    page_header,
    render_page,
    tile_list,
    write_page,
)
from tonnage.report.study import counters
from tonnage.report.study.counters import Table

COMMAND_LENGTH = 80
COLUMNS = (
    *("Phase", "Time", "Limited by", "CPU", "Of all cores", "Read", "Written"),
    *("Received", "Sent", "Peak memory"),
)
NUMERIC = (COLUMNS[1], *COLUMNS[3:])
NODE_COLUMNS = (
    *("Node", "Limited by", "CPU", "Waits for disks", "Read", "Written", "Received", "Sent"),
    "Peak memory",
)
GIB = 1 << 30


def write_observation(analysis: ObservationAnalysis, series: Table | None, path: Path) -> Path:
    """Write the page to ``path`` and the analysis as JSON next to it.

    ``series`` has the samples of the observation; without them there are no charts.
    """
    return write_page(analysis, render(analysis, series), path)


def render(analysis: ObservationAnalysis, series: Table | None) -> str:
    observation = analysis.observation
    over_time, drawn = _over_time(observation, series)
    return render_page(
        title(observation),
        _header(analysis),
        [
            PageSection("phases", "Phases", _phases(observation)),
            PageSection("timeline", "Over time", over_time),
            *_node_sections(observation),
            PageSection(
                "findings",
                "What to change",
                findings_section(analysis.findings, observation.seconds, 0.0),
            ),
            PageSection("circumstances", "How it was observed", _circumstances(observation)),
        ],
        drawn,
    )


def title(observation: Observation) -> str:
    """The first sentence, without its full stop."""
    line = " ".join(formatting.command(observation.command).split())
    if len(line) > COMMAND_LENGTH:
        line = f"{line[:COMMAND_LENGTH]} ..."
    what = line or _unnamed(observation)
    on = f" on {formatting.several(len(observation.nodes), 'node')}" if observation.nodes else ""
    return f"{what}: {formatting.duration(observation.seconds)}{on}"


def _unnamed(observation: Observation) -> str:
    if observation.pids:
        return formatting.several(len(observation.pids), "observed process tree")
    return "an observed run"


def summary_lines(analysis: ObservationAnalysis) -> list[str]:
    """The page's main figures, for a terminal."""
    observation = analysis.observation
    return [
        f"{title(observation)}.",
        *(
            f"{each.name}: {formatting.duration(each.seconds)}, limited by "
            f"{formatting.resource(each.bottleneck)}."
            for each in observation.phases
        ),
        *(
            f"{each.name}: saves at most {saving(each, observation.seconds, 0.0)}."
            for each in analysis.findings
        ),
    ]


def _header(analysis: ObservationAnalysis) -> Html:
    observation = analysis.observation
    lead: list[Child] = []
    if analysis.findings:
        first = analysis.findings[0]
        at_most = saving(first, observation.seconds, 0.0)
        link = tag("a", first.name, href="#findings")
        lead = ["To change first: ", link, f", which saves at most {at_most}."]
    code = observation.exit_code
    return page_header(
        f"observed · {formatting.moment(observation.began_at)}",
        title(observation),
        tag("p", *lead, class_="lead") if lead else None,
        notice(f"It ended with exit code {code}", "circumstances") if code else None,
        tile_list(_tiles(observation)),
    )


def _tiles(observation: Observation) -> list[Tile]:
    phases = observation.phases
    sums = {
        name: sum(getattr(each, name) for each in phases)
        for name in (
            *("cpu_seconds", "read_bytes", "written_bytes"),
            *("network_received_bytes", "network_sent_bytes"),
        )
    }
    of = "the size of its input is not known"
    if observation.input_bytes:
        of = f"for {formatting.size(observation.input_bytes)} of input"
    received = formatting.size(sums["network_received_bytes"])
    peak = max((each.peak_memory_bytes for each in phases), default=0)
    return [
        Tile("Time", formatting.duration(observation.seconds), of),
        Tile("CPU", formatting.duration(sums["cpu_seconds"]), "of cores"),
        Tile("Read", formatting.size(sums["read_bytes"]), "from devices"),
        Tile("Written", formatting.size(sums["written_bytes"]), "to the page cache or devices"),
        Tile("Sent", formatting.size(sums["network_sent_bytes"]), f"{received} received"),
        Tile(
            "Peak memory",
            formatting.memory(peak),
            "of the node that used most" if observation.nodes else "of its processes together",
        ),
    ]


def _phases(observation: Observation) -> Html:
    heading = "What limited each phase"
    if not observation.phases:
        return section("phases", heading, missing_note("No phase was found."))
    seconds = formatting.seconds_like(max(each.seconds for each in observation.phases))
    rows: list[list[Child]] = [
        [
            formatting.phase(each.name),
            seconds(each.seconds),
            limit_cell(_colour(each.bottleneck), formatting.resource(each.bottleneck), each.why),
            formatting.seconds(each.cpu_seconds),
            formatting.percent(each.shares["cpu"]) if "cpu" in each.shares else "–",
            formatting.size(each.read_bytes),
            formatting.size(each.written_bytes),
            formatting.size(each.network_received_bytes),
            formatting.size(each.network_sent_bytes),
            formatting.memory(each.peak_memory_bytes),
        ]
        for each in observation.phases
    ]
    said = (
        "A phase is a time of similar demands. The resource that it used most limits it, if it "
        "used it for at least half of the time."
    )
    return section(
        "phases",
        heading,
        tag("p", said, class_="note"),
        table("Phases", COLUMNS, rows, numeric=NUMERIC, hide_caption=True),
    )


def _node_sections(observation: Observation) -> list[PageSection]:
    """What each node did in each phase, of a run on several."""
    phases = [each for each in observation.phases if each.nodes]
    if not phases:
        return []
    parts = [
        tag("details", tag("summary", formatting.phase(phase.name)), _nodes(phase))
        for phase in phases
    ]
    return [PageSection("nodes", "Nodes", section("nodes", "Node by node", *parts))]


def _nodes(phase: ObservedPhase) -> Html:
    rows: list[list[Child]] = [
        [
            each.node,
            limit_cell(_colour(each.bottleneck), formatting.resource(each.bottleneck), each.why),
            formatting.seconds(each.cpu_seconds),
            formatting.seconds(each.io_wait_seconds),
            formatting.size(each.read_bytes),
            formatting.size(each.written_bytes),
            formatting.size(each.network_received_bytes),
            formatting.size(each.network_sent_bytes),
            formatting.memory(each.peak_memory_bytes),
        ]
        for each in phase.nodes
    ]
    caption = f"Nodes in {formatting.phase(phase.name)}"
    return table(caption, NODE_COLUMNS, rows, numeric=NODE_COLUMNS[2:])


def _colour(bottleneck: str) -> str:
    if bottleneck in ("cpu", "one core"):
        return "--busy"
    if bottleneck == "network":
        return "--work-one"
    return "--write" if bottleneck.startswith("disk") else "--iowait"


def _over_time(observation: Observation, series: Table | None) -> tuple[Html, list[Chart]]:
    heading = "Over time"
    if series is None or not series["seconds"]:
        why = "No samples are next to the record (series.parquet)."
        return section("timeline", heading, missing_note(why)), []
    environment = observation.environment
    drawn = [
        _chart(
            observation,
            "cores",
            "Cores",
            "Cores that it used over time.",
            [_rate(series, "cpu_seconds", "--busy", "used", "cores", 1.0)],
            level=environment.cores if environment else None,
            named=True,
        ),
        _chart(
            observation,
            "disk",
            "Read and written, MB/s",
            "Bytes read and written over time, in MB/s.",
            [
                _rate(series, "read_bytes", "--read", "read", "MB/s", 1e-6),
                _rate(series, "written_bytes", "--write", "written", "MB/s", 1e-6),
            ],
            legend=[("--read", "read"), ("--write", "written")],
        ),
        _chart(
            observation,
            "network",
            "Network, MB/s",
            "Bytes received and sent over time, in MB/s.",
            [
                _rate(series, "network_received_bytes", "--read", "received", "MB/s", 1e-6),
                _rate(series, "network_sent_bytes", "--write", "sent", "MB/s", 1e-6),
            ],
            legend=[("--read", "received"), ("--write", "sent")],
        ),
        _chart(
            observation,
            "memory",
            "Memory, GiB",
            "Memory of its processes over time, in GiB.",
            [
                charts.area(
                    counters.gauge(series, "memory_bytes").scaled(1 / GIB),
                    "--work-two",
                    "resident",
                    "GiB",
                )
            ],
        ),
    ]
    said = tag("p", "Seconds since its start. Bands are the phases.", class_="note")
    figures = tag("div", *(chart.figure() for chart in drawn), class_="panels")
    return section("timeline", heading, said, figures), drawn


def _rate(series: Table, column: str, colour: str, name: str, unit: str, factor: float) -> Trace:
    return charts.line(counters.rate(series, column).scaled(factor), colour, name, unit)


def _chart(
    observation: Observation,
    name: str,
    title: str,
    description: str,
    traces: list[Trace],
    *,
    level: int | None = None,
    named: bool = False,
    **more: Any,
) -> Chart:
    layout = charts.time_layout(max(observation.seconds, 1e-3), observation.phases, named=named)
    if level:
        shape, words = charts.level_line(level, formatting.several(level, "core"))
        layout["shapes"].append(shape)
        layout["annotations"].append(words)
        layout["yaxis"] = charts.zero_based_axis(1.25 * level)
    return Chart(f"chart-{name}", title, description, 150, traces, layout, timed=True, **more)


def _circumstances(observation: Observation) -> Html:
    notes = [tag("li", f"{note}.") for note in observation.notes]  # Some begin with a node's name.
    parts: list[Child] = [
        tag("h3", "Notes"),
        tag("ul", *notes, class_="warnings") if notes else tag("p", "None."),
        fact_list(
            [
                ("Id", observation.id),
                (
                    "Samples",
                    f"{formatting.count(observation.samples)}, the longest gap "
                    f"{formatting.seconds(observation.longest_gap_seconds)}",
                ),
                ("CPU from", observation.cpu_from),
                ("Operations of", observation.operations_of),
                ("Network", observation.network_of),
                ("Control group", observation.control_group),
                ("Input", observation.input_from),
            ]
        ),
    ]
    if observation.device_bytes:
        rows: list[list[Child]] = [
            [name, formatting.size(read), formatting.size(written)]
            for name, (read, written) in observation.device_bytes.items()
        ]
        columns = ("Device", "Read", "Written")
        parts.append(table("Bytes of its devices", columns, rows, numeric=columns[1:]))
    if observation.environment:
        parts += [tag("h3", "Machine"), machine_facts(observation.environment)]
    if observation.command:
        parts.append(command_block("The command", observation.command))
    return section("circumstances", "How it was observed", *parts)
