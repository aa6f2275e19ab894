"""Chart the job over time: stages, devices, CPU, network and memory on one axis."""

from typing import Any

from tonnage.base import formatting
from tonnage.base.records import Phase, RunRecord, Study
from tonnage.report import charts
from tonnage.report.charts import Chart, Trace
from tonnage.report.html_elements import Html, join, missing_note, section, slug, tag
from tonnage.report.study import counters
from tonnage.report.study.counters import Series, Table

STATES = (
    ("busy_seconds", "busy", "--busy"),
    ("blocked_seconds", "blocked", "--blocked"),
    ("starved_seconds", "starved", "--starved"),
)
STATE_LEGEND = (
    ("--busy", "busy: working or waiting for its device"),
    ("--blocked", "blocked: downstream is full"),
    ("--starved", "starved: no input"),
)
CPU = (
    ("cpu_user_seconds", "user", "--user"),
    ("cpu_system_seconds", "system", "--system"),
    ("cpu_iowait_seconds", "waiting for I/O", "--iowait"),
    ("cpu_steal_seconds", "stolen", "--steal"),
)
NETWORK = (
    ("network_received_bytes", "received", "--read"),
    ("network_sent_bytes", "sent", "--write"),
)
COLOURS = {"read": "--read", "partition": "--work-one", "sort": "--work-two", "write": "--write"}
OTHER = "--work-three"
MIB = 1 << 20

# Stages of shorter phases would be empty lanes.
DRAWN_SHARE = 0.02


def timeline_section(study: Study, tables: dict[str, Table]) -> tuple[Html, list[Chart]]:
    heading = "The job over time"
    run = study.run
    if run is None:
        return section("timeline", heading, missing_note("The job was not run.")), []
    drawn: list[Chart] = []
    parts: list[Html] = [_explained(run)]
    for name, draw in (("timeline", _stages), ("devices", _devices), ("host", _host)):
        if name not in tables:
            parts.append(missing_note(f"The study contains no table “{name}”."))
            continue
        element, more = draw(run, tables[name])
        parts.append(element)
        drawn += more
    return section("timeline", heading, tag("div", *parts, class_="panels")), drawn


def _explained(run: RunRecord) -> Html:
    seconds = formatting.seconds_like(run.seconds)
    bands = [f"{formatting.phase(phase.name)} ({seconds(phase.seconds)})" for phase in run.phases]
    said = f"Seconds since the start of the job. Bands: {formatting.listing(bands)}."
    return tag("p", said, class_="note")


def _stages(run: RunRecord, table: Table) -> tuple[Html, list[Chart]]:
    colours = _colours(run)
    rates, lanes = [], []
    for name, colour in colours.items():
        parts = _parts(run.phases, counters.split(table, "stage").get(name), name)
        rate = counters.concatenate(counters.rate(part, "bytes") for part in parts).scaled(1e-6)
        rates.append(charts.line(rate, colour, name, "MB/s"))
        lanes.append([_state(parts, column, label, tint) for column, label, tint in STATES])
    moved = _chart(
        run,
        "stages-rate",
        "Rate of each stage, MB/s",
        f"Rate of each stage over time, in MB/s. {_bottlenecks(run)}",
        200,
        rates,
        layout=charts.time_layout(run.seconds, run.phases, named=True),
        legend=[(colour, name) for name, colour in colours.items()],
    )
    layout = charts.time_layout(run.seconds, run.phases)
    states = _chart(
        run,
        "stages-state",
        "State of each stage",
        f"Share of time that each stage was busy, blocked or starved. {_bottlenecks(run)}",
        charts.split_into_lanes(list(colours), layout),
        [charts.on_axis(at, trace) for at, lane in enumerate(lanes, start=1) for trace in lane],
        layout=layout,
        legend=STATE_LEGEND,
        note=_left_out(run, colours),
    )
    heading = tag("h3", "Stages")
    return join([heading, moved.figure(), states.figure()]), [moved, states]


def _state(parts: list[Table], column: str, name: str, colour: str) -> Trace:
    every = [state for state, _, _ in STATES]
    share = counters.concatenate(counters.share(part, column, every) for part in parts)
    trace = charts.area(share, colour, name, "", stack="state")
    return trace | {"hovertemplate": "%{y:.0%}"}


def _parts(phases: list[Phase], table: Table | None, stage: str) -> list[Table]:
    """A stage's rows by phase: counters restart with each."""
    parts = []
    for phase in phases:
        if table is None or all(each.name != stage for each in phase.stages):
            continue
        ended = phase.began_seconds + phase.seconds
        kept = [
            place
            for place, (name, at) in enumerate(zip(table["phase"], table["seconds"], strict=True))
            # A phase may be repeated; a sample may be a little late.
            if name == phase.name and phase.began_seconds <= at <= ended + 0.05
        ]
        rows = {name: [values[place] for place in kept] for name, values in table.items()}
        parts.append(counters.prepend_zeros(rows, phase.began_seconds))
    return parts


def _colours(run: RunRecord) -> dict[str, str]:
    """The drawn stages in data-flow order, with their colours."""
    order = {"read": 0, "write": 2}
    names = dict.fromkeys(
        stage.name
        for phase in run.phases
        if phase.seconds >= DRAWN_SHARE * run.seconds
        for stage in phase.stages
    )
    in_order = sorted(names, key=lambda name: order.get(name, 1))
    return {name: COLOURS.get(name, OTHER) for name in in_order}


def _left_out(run: RunRecord, drawn: dict[str, str]) -> str | None:
    names = {stage.name: None for phase in run.phases for stage in phase.stages}
    left_out = [name for name in names if name not in drawn]
    if not left_out:
        return None
    return f"Too short for the chart (see the tables below): {formatting.listing(left_out)}."


def _bottlenecks(run: RunRecord) -> str:
    said = [
        f"{formatting.phase(phase.name)} is limited by its stage {phase.bottleneck}"
        for phase in run.phases
        if phase.seconds >= DRAWN_SHARE * run.seconds
    ]
    return f"{formatting.listing(said)}.".capitalize() if said else ""


def _devices(run: RunRecord, table: Table) -> tuple[Html, list[Chart]]:
    parts: list[Html] = [tag("h3", "Block devices")]
    drawn: list[Chart] = []
    idle = []
    for name, rows in counters.split(table, "device").items():
        read = counters.rate(rows, "read_bytes").scaled(1e-6)
        written = counters.rate(rows, "written_bytes").scaled(1e-6)
        if read.is_zero and written.is_zero:
            idle.append(str(name))
            continue
        charts_here = _device(run, str(name), rows, read, written)
        parts.append(tag("h4", tag("code", str(name)), _model(run, str(name))))
        parts += [chart.figure() for chart in charts_here]
        drawn += charts_here
    if idle:
        parts.append(tag("p", f"Idle: {formatting.listing(idle)}.", class_="note"))
    if not drawn and not idle:
        parts.append(missing_note("No block device was sampled."))
    return join(parts), drawn


def _model(run: RunRecord, name: str) -> str | None:
    device = next((each for each in run.environment.devices if each.name == name), None)
    return f" {device.model}" if device and device.model else None


def _device(run: RunRecord, name: str, rows: Table, read: Series, written: Series) -> list[Chart]:
    key = f"device-{slug(name)}"
    busy = counters.rate(rows, "busy_seconds").scaled(100)
    depth = counters.gauge(rows, "in_flight")
    return [
        _chart(
            run,
            f"{key}-rate",
            "Read and written, MB/s",
            f"Bytes read and written by {name} over time, in MB/s.",
            160,
            [
                charts.line(read, "--read", "read", "MB/s"),
                charts.line(written, "--write", "written", "MB/s"),
            ],
            legend=[("--read", "read"), ("--write", "written")],
        ),
        _chart(
            run,
            f"{key}-busy",
            "Utilisation, % of time with a request in flight",
            f"Utilisation of {name} over time, in percent.",
            96,
            [charts.area(busy, "--busy", "utilisation", "%")],
            yaxis=charts.zero_based_axis(105, tickvals=[0, 50, 100]),
        ),
        _chart(
            run,
            f"{key}-depth",
            "Queue depth, requests in flight",
            f"Requests that {name} had in flight over time.",
            96,
            [charts.area(depth, "--work-one", "in flight", "requests")],
            yaxis=charts.zero_based_axis(nticks=3),
        ),
    ]


def _host(run: RunRecord, table: Table) -> tuple[Html, list[Chart]]:
    cpu, memory = _cpu(run, table), _memory(run, table)
    network, is_idle = _network(run, table)
    parts = [tag("h3", "The machine"), cpu.figure()]
    if is_idle:
        summary = tag("summary", "Network: idle")
        parts.append(tag("details", summary, network.figure()))
    else:
        parts.append(network.figure())
    return join([*parts, memory.figure()]), [cpu, network, memory]


def _cpu(run: RunRecord, table: Table) -> Chart:
    cores = run.environment.cores
    return _chart(
        run,
        "cpu",
        "CPU of the whole machine, cores",
        f"Cores in use over time, of {cores}: user, system, waiting for I/O, stolen.",
        150,
        [
            charts.area(counters.rate(table, column), colour, name, "cores", stack="cpu")
            for column, name, colour in CPU
        ],
        level=(cores, f"{cores} cores"),
        yaxis=charts.zero_based_axis(cores * 1.18),
        legend=[(colour, name) for _, name, colour in CPU],
    )


def _network(run: RunRecord, table: Table) -> tuple[Chart, bool]:
    lines = [
        (counters.rate(table, column).scaled(1e-6), name, colour)
        for column, name, colour in NETWORK
    ]
    chart = _chart(
        run,
        "network",
        "Network, MB/s",
        "Network throughput of the machine over time, in MB/s.",
        110,
        [charts.line(series, colour, name, "MB/s") for series, name, colour in lines],
        legend=[(colour, name) for _, name, colour in lines],
    )
    return chart, all(series.is_zero for series, _, _ in lines)


def _memory(run: RunRecord, table: Table) -> Chart:
    used = counters.gauge(table, "process_memory_bytes").scaled(1 / MIB)
    level, yaxis = None, None
    says = f"Memory of the process over time; at most {formatting.memory(run.peak_memory_bytes)}"
    budget = run.settings.get("memory_bytes")
    if budget:
        says += f", of a budget of {formatting.memory(budget)}"
        level = (budget / MIB, f"budget of the buffers: {formatting.memory(budget)}")
        # Room for the line's label.
        yaxis = charts.zero_based_axis(1.25 * max(budget, run.peak_memory_bytes) / MIB)
    return _chart(
        run,
        "memory",
        "Memory of the process, MiB",
        f"{says}.",
        130,
        [charts.area(used, "--work-two", "resident", "MiB")],
        level=level,
        yaxis=yaxis,
    )


def _chart(
    run: RunRecord,
    name: str,
    title: str,
    description: str,
    height: int,
    traces: list[Trace],
    *,
    layout: dict[str, Any] | None = None,
    level: tuple[float, str] | None = None,
    yaxis: dict[str, Any] | None = None,
    **more: Any,
) -> Chart:
    """A chart over the job's time; ``level`` is a line across it with its name."""
    layout = layout or charts.time_layout(run.seconds, run.phases)
    if level:
        shape, annotation = charts.level_line(*level)
        layout["shapes"].append(shape)
        layout["annotations"].append(annotation)
    layout |= {"yaxis": yaxis} if yaxis else {}
    return Chart(f"chart-{name}", title, description, height, traces, layout, timed=True, **more)
