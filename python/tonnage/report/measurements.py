"""Render each measurement with its trials, raw rates and method."""

from collections.abc import Iterable, Sequence

from tonnage.base import formatting
from tonnage.base.records import Measurement, RunRecord, Study, Trial
from tonnage.report.charts import Chart, Trace, layout, scatter, titled, zero_based_axis
from tonnage.report.html_elements import (
    Html,
    code_block,
    definition,
    escape,
    fact_list,
    join,
    missing_note,
    section,
    slug,
    table,
    tag,
)
from tonnage.report.study.counters import drawn_precision
from tonnage.report.study.limits import graph_drawing, stages_table

COLOURS = {
    "wo": "--write",
    "ro": "--read",
    "rw": "--work-one",
    "partition": "--work-one",
    "sort": "--work-two",
}
OTHER = "--work-three"
# Without a disk the harness is so much faster that disks would be flat on one axis.
APART = "headroom"


def measurements_section(study: Study) -> tuple[Html, list[Chart]]:
    drawn: list[Chart] = []
    parts: list[Html] = []
    for measurement in study.measurements:
        element, more = _measurement(measurement, study)
        parts.append(element)
        drawn += more
    if not parts:
        parts.append(missing_note("Nothing was measured."))
    return section("measurements", "Measured throughput of this machine", *parts), drawn


def _when(measurement: Measurement, run: RunRecord | None) -> str:
    """Whether a measurement was before or after the job; timestamps compare as text."""
    if run is None:
        return ""
    return ", before the job" if measurement.began_at < run.began_at else ", after the job"


def _measurement(measurement: Measurement, study: Study) -> tuple[Html, list[Chart]]:
    together = [trial for trial in measurement.trials if trial.name != APART]
    apart = [trial for trial in measurement.trials if trial.name == APART]
    drawn = [
        _chart(f"chart-{slug(measurement.id)}-{place}", trials)
        for place, trials in enumerate((together, apart))
        if trials
    ]
    if not measurement.trials:
        body = missing_note("This measurement has no trials.")
    else:
        body = join([_table(measurement), *(chart.figure() for chart in drawn)])
    kind = formatting.KINDS.get(measurement.kind, measurement.kind)
    article = tag(
        "article",
        tag("h3", kind, _when(measurement, study.run)),
        tag("p", "Cited as ", tag("code", measurement.id), class_="note"),
        body,
        _how(measurement, study.command),
        _graphs(measurement),
        id=f"measurement-{slug(measurement.id)}",
    )
    return article, drawn


def _table(measurement: Measurement) -> Html:
    """A row for each kind of trial, with the result of each round in order."""
    columns = ["Trial", "MB/s of each trial", "CPU core-s/GB of each trial", "Bottleneck"]
    rows = []
    for kind, trials in _by_kind(measurement.trials).items():
        per_gigabyte = [1e9 * trial.cpu_seconds_per_byte for trial in trials]
        rows.append(
            [
                formatting.trial(kind),
                _dotted(formatting.megabytes(trial.bytes_per_second) for trial in trials),
                _dotted(formatting.significant(figure, 2) for figure in per_gigabyte),
                formatting.listing(dict.fromkeys(trial.phase.bottleneck for trial in trials)),
            ]
        )
    caption = "Trials, interleaved; the rates are those of the last stage"
    return table(caption, columns, rows)


def _dotted(figures: Iterable[str]) -> str:
    return " · ".join(figures)


def _by_kind(trials: Sequence[Trial]) -> dict[str, list[Trial]]:
    kinds: dict[str, list[Trial]] = {}
    for trial in trials:
        kinds.setdefault(trial.name, []).append(trial)
    return kinds


def _chart(name: str, trials: Sequence[Trial]) -> Chart:
    kinds = _by_kind(trials)
    unit = formatting.rate_unit(
        max((rate for trial in trials for rate in trial.rates), default=0.0)
    )
    boxes = [_box(kind, alike, unit) for kind, alike in kinds.items()]
    said = [
        f"{formatting.trial(trial.name)} {formatting.rate(trial.bytes_per_second)}"
        for trial in trials
    ]
    bare = {"showticklabels": False, "showgrid": False, "fixedrange": True}
    return Chart(
        name=name,
        title=f"Raw rates, {unit.name}, in the order measured, and their distribution",
        description="Raw rates of each trial over time, and their distribution. "
        f"Trials: {'; '.join(said)}.",
        height=240 if len(kinds) > 1 else 180,
        traces=[*_in_order(trials, unit), *boxes],
        layout=layout(
            bare
            | {"domain": [0, 0.66], "zeroline": False, "title": titled("windows, trial by trial")},
            zero_based_axis(nticks=6, automargin=True),  # Room for long tick labels.
            r=10,
            b=24,
        )
        | {"xaxis2": bare | {"domain": [0.7, 1], "title": titled("quartiles, median")}},
        legend=[(_colour(kind), formatting.trial(kind)) for kind in kinds],
    )


def _in_order(trials: Sequence[Trial], unit: formatting.Unit) -> list[Trace]:
    traces, first = [], 0
    for trial in trials:
        colour = _colour(trial.name)
        traces.append(
            scatter(
                list(range(first, first + len(trial.rates))),
                _scaled(trial.rates, unit),
                formatting.trial(trial.name),
                f"%{{y:,.4~r}} {unit.name}<extra>%{{fullData.name}}</extra>",
                line={"color": f"{colour}-soft", "width": 1},
                marker={"color": colour, "size": 4.5},
            )
        )
        first += len(trial.rates) + 2  # A gap before the next trial.
    return traces


def _box(kind: str, trials: Sequence[Trial], unit: formatting.Unit) -> Trace:
    rates = [rate for trial in trials for rate in trial.rates]
    colour = _colour(kind)
    return {
        "type": "box",
        "xaxis": "x2",
        "y": _scaled(rates, unit),
        "name": formatting.trial(kind),
        "boxpoints": "outliers",
        "marker": {"color": colour, "size": 3},
        "line": {"color": colour, "width": 1.5},
        "fillcolor": f"{colour}-soft",
        "hoverinfo": "y+name",
        "hoverlabel": {"namelength": -1},
    }


def _scaled(rates: Sequence[float], unit: formatting.Unit) -> list[float]:
    return [drawn_precision(rate / unit.factor) for rate in rates]


def _colour(kind: str) -> str:
    return COLOURS.get(kind, OTHER)


def _how(measurement: Measurement, studied: list[str]) -> Html:
    modes = dict.fromkeys(
        formatting.mode(mode) for trial in measurement.trials for mode in trial.phase.disk_modes
    )
    pairs: list[tuple[str, Html | str]] = [
        ("Started", formatting.moment(measurement.began_at)),
        ("Stopping rule", measurement.stopping_rule),
        ("Page cache", measurement.page_cache),
        ("Disk access", join(map(escape, modes), Html("<br>")) if modes else "no disk"),
    ]
    pairs += [
        (name, formatting.setting(key, measurement.settings[key]))
        for name, key in (("Reads", "read"), ("Writes", "write"))
        if key in measurement.settings
    ]
    alone = measurement.command != studied
    name = (
        "Command to repeat the measurement"
        if alone
        else "The study's command, which includes the measurement"
    )
    command = formatting.command(measurement.command)
    return join([fact_list(pairs), tag("h4", name), code_block(command, name)])


def _graphs(measurement: Measurement) -> Html | None:
    kinds = _by_kind(measurement.trials)
    if not kinds:
        return None
    graphs = [
        definition(formatting.trial(kind), graph_drawing(trials[0].phase.graph))
        for kind, trials in kinds.items()
    ]
    tables = [
        stages_table(
            trial.phase,
            f"Trial {number}: {formatting.trial(trial.name)}, "
            f"{formatting.seconds(trial.phase.seconds)}; the rate excludes the warm-up, "
            f"the first {formatting.seconds(trial.warm_up_seconds)}",
        )
        for number, trial in enumerate(measurement.trials, start=1)
    ]
    summary = tag("summary", "Stages of every trial")
    return join(
        [
            tag("h4", "Graph of each trial"),
            tag("dl", *graphs, class_="graphs"),
            tag("details", summary, *tables),
        ]
    )
