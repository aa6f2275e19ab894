"""What the commands that measure have in common: options, and how trials and results are shown."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from tonnage import words
from tonnage.artifacts import Figure, Measurement, Reading, Trial
from tonnage.cli.arguments import (
    number,
    parse_measurable,
    parse_share,
    refuse_memory,
    whole_number,
)
from tonnage.cloud_truth import NOT_PROVED

ENGINES = ("ring", "sync")

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
    typer.Option("--rounds", parser=whole_number(1, 10_000), metavar="N", help=ROUNDS_HELP),
]
Out = Annotated[
    Path | None,
    typer.Option(
        "--out",
        metavar="DIR",
        help="Where trials are kept; what was begun there goes on. Default: a new directory here.",
    ),
]


More = tuple[dict[str, Any], list[str]]
"""What is told of a measurement beside itself: as JSON, and in lines."""


def refuse_outstanding(memory_bytes: int) -> None:
    """Refuses operations whose buffers would take more memory than there is."""
    refuse_memory(
        f"--outstanding so many needs {words.memory(memory_bytes)},",
        memory_bytes,
        "give fewer, or smaller ones with --operation",
    )


def line(reading: Reading) -> str:
    """A reading in a line."""
    parts = []
    if reading.bandwidth_bytes_per_second is not None:
        parts.append(words.rate(reading.bandwidth_bytes_per_second))
    if reading.operations_per_second is not None:
        parts.append(f"{reading.operations_per_second:.0f} operations a second")
    latency = reading.latency_seconds
    known = {"half": latency.p50, "99 %": latency.p99, "all": latency.max}
    within = [f"{share} {words.latency(value)}" for share, value in known.items() if value]
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
    in_line: Callable[[Reading], str] = line,
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
        between = f"{words.megabytes(low)} to {words.megabytes(high)}"
        trials = words.several(figure.trials, "trial")
        middle = words.rate(figure.median_bytes_per_second)
        modes = _modes(measurement, figure)
        lines.append(f"{figure.name}: {modes}{middle} ({between}, {trials}{_precision(figure)})")
    lines.append(
        f"{measurement.id}: page cache {measurement.page_cache}; {measurement.stopping_rule}"
    )
    short = [rule for rule in measurement.scorecard if rule.verdict != "pass"]
    others = [f"{rule.rule}: {rule.reason}" for rule in short]
    lines.append(kept_rules(measurement))
    return lines + [f"Falls short: {words.sentence(other)}" for other in others]


def kept_rules(measurement: Measurement) -> str:
    """How many of the rules a measurement keeps."""
    kept = sum(1 for rule in measurement.scorecard if rule.verdict == "pass")
    return f"Keeps {kept} of the {len(measurement.scorecard)} rules of Cloud Truth."


def _modes(measurement: Measurement, figure: Figure) -> str:
    """Where a figure's trials gather, if in several places: what lies between hardly occurs."""
    rates = [each.bytes_per_second for each in measurement.trials if each.name == figure.name]
    from tonnage.statistics import modes  # Here, since it takes a while to load.

    if len(rates) < modes.LEAST:
        return ""
    found = modes.modality(rates, level=modes.LEVEL / len(measurement.figures)).modes
    if len(found) < 2:
        return ""
    each = [f"{words.rate(mode.value)} ({words.percent(mode.share)})" for mode in found]
    return f"{words.several(len(found), 'mode')}, {words.listing(each)}; median "


def _precision(figure: Figure) -> str:
    """The median's interval, how precise that is, and how many trials what was wanted takes."""
    if figure.wanted_share is None:
        return ""  # Of nothing there is no share.
    wanted, more = f"{100 * figure.wanted_share:g} %", figure.still_needed
    takes = "more than a million trials" if more is None else f"{words.several(more, 'trial')} more"
    if figure.interval_bytes_per_second is None or figure.reached_share is None:
        return f"; the median's 95 % interval takes {takes}"
    low, high = map(words.megabytes, figure.interval_bytes_per_second)
    reached = f"within {words.percent(figure.reached_share)} of it"
    told = f"{wanted} is reached" if more == 0 else f"{wanted} takes {takes}"
    return f"; the median's 95 % interval {low} to {high}, {reached}: {told}"
