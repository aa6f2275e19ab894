"""What the commands that measure have in common: options, and how trials and results are shown."""

from __future__ import annotations

import dataclasses
import functools
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from tonnage.base import core, formatting
from tonnage.base.credibility import NOT_PROVED
from tonnage.base.records import Measurement, Metric, Summary, Trial
from tonnage.cli.options.files import command_line, new_directory
from tonnage.cli.options.types import (
    number,
    parse_duration,
    parse_measurable,
    parse_share,
    whole_number,
)
from tonnage.cli.options.validate import refuse_memory, refuse_missing, refuse_relative

ENGINES = ("ring", "sync")
NODE = "{node}"
"""In a directory's path on a fleet, the node's name."""

Operations = Annotated[
    list[str] | None,
    typer.Option(
        "--operation",
        metavar="OPERATION...",
        help="Of read4k, read4m, write4k, write4m (each write durable) and write4k-64 (one in 64 "
        "is). Default: all.",
    ),
]
Directory = Annotated[
    Path,
    typer.Option(
        "--dir", metavar="DIR", help="A directory on the device to measure. Default: here."
    ),
]
FileSize = Annotated[
    int,
    typer.Option(
        "--file-size",
        parser=parse_measurable,
        metavar="SIZE",
        help="Size of the file that is operated on: larger than what a device or host could cache.",
    ),
]
EngineName = Annotated[
    str,
    typer.Option(
        "--engine",
        metavar="ENGINE",
        help="ring: one io_uring for all that is outstanding; sync: a thread that blocks for each.",
    ),
]
TrialSize = Annotated[
    int,
    typer.Option(
        "--size",
        parser=parse_measurable,
        metavar="SIZE",
        help="How much a trial reads, and how much it writes, at most.",
    ),
]
TrialSeconds = Annotated[
    float,
    typer.Option(
        "--seconds",
        parser=number(0.1, 1_000_000),
        metavar="SECONDS",
        help="How long a trial lasts at most.",
    ),
]
Seed = Annotated[
    int,
    typer.Option(
        "--seed", parser=whole_number(0, 1 << 62), metavar="N", help="Of offsets and of the order."
    ),
]
UntilConfidence = Annotated[
    float | None,
    typer.Option(
        "--until-confidence",
        parser=parse_share,
        metavar="PERCENT",
        help="End when the median's 95 % interval lies within this of it, like 2%.",
    ),
]
ROUNDS = 3
MOST_ROUNDS = 30
"""With --until-confidence, unless it is said."""
ROUNDS_HELP = f"Trials of each. Default: {ROUNDS}; with --until-confidence at most, {MOST_ROUNDS}."
Rounds = Annotated[
    int | None,
    typer.Option("--repetitions", parser=whole_number(1, 10_000), metavar="N", help=ROUNDS_HELP),
]
Out = Annotated[
    Path | None,
    typer.Option(
        "--output",
        metavar="DIR",
        help="Where trials are kept; what was begun there goes on. Default: a new directory here.",
    ),
]
FleetAddress = Annotated[
    str | None,
    typer.Option(
        "--cluster",
        metavar="ADDRESS",
        help="Measure on every machine of the Ray cluster at HOST:PORT, or, with auto, of the one "
        "that this machine is in; TYPE@auto: on those of this machine type. Directories are each "
        "machine's own; {node} in them is its name. Whoever is missing in the end, the others' "
        "results are kept, and the exit code is 1.",
    ),
]
Instances = Annotated[
    int | None,
    typer.Option(
        "--nodes",
        parser=whole_number(1, 10_000),
        metavar="N",
        help="With --cluster: on so many machines. Default: all.",
    ),
]
OneAtATime = Annotated[
    bool,
    typer.Option(
        "--one-at-a-time", help="With --cluster: one machine after another, instead of together."
    ),
]
Patience = Annotated[
    float,
    typer.Option(
        "--timeout",
        parser=parse_duration,
        metavar="TIME",
        help="With --cluster: a machine that says nothing, or moves nothing, for so long is given "
        "up, and said to be missing. To start there it has 60 s, or this if that is more.",
    ),
]
Labels = Annotated[
    list[str] | None,
    typer.Option(
        "--label",
        metavar="NAME=VALUE...",
        help="What is to be known of where this is measured, like region=us-east-1; machine-type "
        "and provider say what a machine was rented as.",
    ),
]

More = tuple[dict[str, Any], list[str]]
"""What is told of a measurement beside itself: as JSON, and in lines."""
Measure = Callable[..., Iterator[Trial | Measurement]]
"""Measures into a directory; takes ``command``, ``labels`` and ``on_progress`` by name."""


@dataclass(frozen=True)
class Where:
    """Where a command measures: on this machine, or on a fleet."""

    fleet: str | None
    instances: int | None
    one_at_a_time: bool
    patience_seconds: float
    labels: Mapping[str, str]

    @property
    def asked(self) -> dict[str, Any]:
        """What is asked of any fleet, as `tonnage.measure.cluster.driver.Asked` takes it."""
        return {
            "command": command_line(),
            "labels": self.labels,
            "instances": self.instances,
            "patience_seconds": self.patience_seconds,
        }


def where(
    fleet: str | None,
    instances: int | None,
    one_at_a_time: bool,
    patience_seconds: float,
    label: Sequence[str] | None,
) -> Where:
    """Where the options say."""
    if fleet is None and (instances is not None or one_at_a_time):
        flag = "--one-at-a-time" if instances is None else "--nodes"
        raise core.UsageError(f"{flag} is for a fleet: give --cluster too")
    return Where(fleet, instances, one_at_a_time, patience_seconds, labelled(label))


def labelled(label: Sequence[str] | None) -> dict[str, str]:
    """What the labels say."""
    labels = {}
    for each in label or []:
        name, separator, value = each.partition("=")
        if not separator or not name or not value:
            raise core.UsageError(f"--label {each}: write NAME=VALUE, like region=us-east-1")
        labels[name] = value
    return labels


def placed(directory: Path, node: str | None) -> Path:
    """A directory as it is called on a node; on this machine as it is."""
    return directory if node is None else Path(str(directory).replace(NODE, node))


def in_directory(
    directory: Path, measure: Measure, settings: Any
) -> tuple[Callable[[str | None], Measure], dict[str, Any]]:
    """What measures in one directory, with settings that nodes have their own of, and these.

    The first two that `carry_out` takes after the kind.
    """

    def work(node: str | None) -> Measure:
        own = settings if node is None else settings.of_node(node)
        return functools.partial(measure, placed(directory, node), settings=own)

    return work, dataclasses.asdict(settings) | {"directory": directory}


def refuse_directories(at: Where, directories: Sequence[Path]) -> None:
    """Refuses ``--dir`` that is not there, or, on a fleet, that is nowhere for sure."""
    for directory in directories:
        unknown = [each for each in re.findall(r"\{[^{}/]*\}", str(directory)) if each != NODE]
        if at.fleet is not None and unknown:
            raise core.UsageError(
                f"--dir {directory}: there is no {unknown[0]}, only {NODE}, the node's name"
            )
        if at.fleet is None and NODE in str(directory) and not directory.is_dir():
            raise core.UsageError(
                f"--dir {directory}: {NODE} is the name of a fleet's node: give --cluster too"
            )
    if at.fleet is None:
        refuse_missing("--dir", directories)
    else:
        refuse_relative(directories)


def output(kind: str, out: Path | None) -> Path:
    """Where trials are kept; a new directory here unless it was said."""
    return out or new_directory(f"tonnage-{kind}")


def carry_out(
    kind: str,
    work: Callable[[str | None], Measure],
    settings: Mapping[str, Any],
    at: Where,
    out: Path | None,
    as_json: bool,
    *,
    total_bytes: int = 0,
    total_seconds: float = 0.0,
    pause_seconds: float = 0.0,
    in_step: bool = False,
    more: Callable[[Measurement], More] = lambda _: ({}, []),
    in_line: Callable[[Metric], str] | None = None,
) -> None:
    """Measures, and shows what is found as it comes.

    Args:
        kind: What is measured.
        work: What measures on the node of a name; on this machine, of `None`.
        settings: As a fleet keeps them, the same for all nodes.
        at: Where.
        out: Where trials are kept; None for a new directory here.
        as_json: Whether to print JSON.
        total_bytes: How much is moved before the rest takes a set time, for progress.
        total_seconds: How long that is.
        pause_seconds: How long nothing may be moved although all is well.
        in_step: Whether nodes of a fleet do each trial together, so that what one has not done all
            do again.
        more: What is told of a measurement besides.
        in_line: A trial's reading in a line.
    """
    out = output(kind, out)
    if at.fleet is not None:
        from tonnage.cli.measure import cluster as fleet

        fleet.measure(
            at.fleet,
            out,
            kind,
            work,
            settings,
            at,
            as_json,
            pause_seconds=pause_seconds,
            in_step=in_step,
            more=more,
            in_line=in_line or line,
        )
        return
    with core.Progress("measuring", total_bytes, total_seconds) as progress:
        found = work(None)(out, command=command_line(), labels=at.labels, on_progress=progress)
        show(found, out, as_json, more, in_line or line)


def refuse_outstanding(memory_bytes: int) -> None:
    """Refuses operations whose buffers would take more memory than there is."""
    refuse_memory(
        f"--queue-depth so many needs {formatting.memory(memory_bytes)},",
        memory_bytes,
        "give fewer, or smaller ones with --operation",
    )


def line(reading: Metric) -> str:
    """A reading in a line."""
    parts = []
    if reading.bandwidth_bytes_per_second is not None:
        parts.append(formatting.rate(reading.bandwidth_bytes_per_second))
    if reading.operations_per_second is not None:
        parts.append(f"{reading.operations_per_second:.0f} operations a second")
    latency = reading.latency_seconds
    known = {"half": latency.p50, "99 %": latency.p99, "all": latency.max}
    within = [f"{share} {formatting.latency(value)}" for share, value in known.items() if value]
    if within:
        parts.append(f"within: {', '.join(within)}")
    if reading.cached:
        parts.append(f"from a cache: {reading.cached}")
    elif NOT_PROVED in reading.details:
        parts.append(f"not proved that no cache gave it: {reading.details[NOT_PROVED]}")
    return "; ".join(parts) or "nothing"


def show(
    found: Iterable[Trial | Measurement],
    out: Path,
    as_json: bool,
    more: Callable[[Measurement], More] = lambda _: ({}, []),
    in_line: Callable[[Metric], str] = line,
) -> None:
    """Prints each trial when it is done, and the whole at the end; as JSON the whole alone.

    Args:
        found: Trials, and at last the measurement.
        out: Where they are kept.
        as_json: Whether to print JSON.
        more: What is told of the whole besides.
        in_line: A trial's reading in a line.
    """
    for each in found:
        if isinstance(each, Trial):
            if not as_json and each.reading:
                print(f"{each.name}: {in_line(each.reading)}", flush=True)
            continue
        values, lines = more(each)
        if as_json:
            print(json.dumps(each.to_json() | values))
            continue
        print("\n".join(summary(each) + lines))
        print(f"Kept in {out}; a page of it: tonnage report {out}")


def summary(measurement: Measurement) -> list[str]:
    """The figures, what they rest on, and how far they can be believed."""
    lines = []
    for figure in measurement.figures:
        low, high = figure.low_bytes_per_second, figure.high_bytes_per_second
        between = f"{formatting.megabytes(low)} to {formatting.megabytes(high)}"
        trials = formatting.several(figure.trials, "trial")
        middle = formatting.rate(figure.median_bytes_per_second)
        modes = _modes(measurement, figure)
        lines.append(f"{figure.name}: {modes}{middle} ({between}, {trials}{_precision(figure)})")
    lines.append(
        f"{measurement.id}: page cache {measurement.page_cache}; {measurement.stopping_rule}"
    )
    short = [rule for rule in measurement.scorecard if rule.verdict != "pass"]
    others = [f"{rule.rule}: {rule.reason}" for rule in short]
    lines.append(kept_rules(measurement))
    return lines + [f"Falls short: {formatting.sentence(other)}" for other in others]


def kept_rules(measurement: Measurement) -> str:
    """How many of the rules a measurement keeps."""
    kept = sum(1 for rule in measurement.scorecard if rule.verdict == "pass")
    return f"Keeps {kept} of the {len(measurement.scorecard)} rules of Cloud Truth."


def _modes(measurement: Measurement, figure: Summary) -> str:
    """Where a figure's trials gather, if in several places: what lies between hardly occurs."""
    rates = [each.bytes_per_second for each in measurement.trials if each.name == figure.name]
    from tonnage.base.stats import multimodality as modes  # Here, since it takes a while to load.

    if len(rates) < modes.LEAST:
        return ""
    found = modes.modality(rates, level=modes.LEVEL / len(measurement.figures)).modes
    if len(found) < 2:
        return ""
    each = [f"{formatting.rate(mode.value)} ({formatting.percent(mode.share)})" for mode in found]
    return f"{formatting.several(len(found), 'mode')}, {formatting.listing(each)}; median "


def _precision(figure: Summary) -> str:
    """The median's interval, how precise that is, and how many trials what was wanted takes."""
    if figure.wanted_share is None:
        return ""  # Of nothing there is no share.
    wanted, more = f"{100 * figure.wanted_share:g} %", figure.still_needed
    takes = (
        "more than a million trials"
        if more is None
        else f"{formatting.several(more, 'trial')} more"
    )
    if figure.interval_bytes_per_second is None or figure.reached_share is None:
        return f"; the median's 95 % interval takes {takes}"
    low, high = map(formatting.megabytes, figure.interval_bytes_per_second)
    reached = f"within {formatting.percent(figure.reached_share)} of it"
    told = f"{wanted} is reached" if more == 0 else f"{wanted} takes {takes}"
    return f"; the median's 95 % interval {low} to {high}, {reached}: {told}"
