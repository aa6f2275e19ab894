"""``tonnage measure net``."""

from __future__ import annotations

import dataclasses
import re
from typing import Annotated

import typer

from tonnage import engine, words
from tonnage.artifacts import Measurement
from tonnage.cli.arguments import (
    Json,
    command,
    new_directory,
    number,
    parse_size,
    refuse_memory,
    whole_number,
)
from tonnage.cli.measured import (
    MOST_ROUNDS,
    ROUNDS,
    Labels,
    More,
    Out,
    Rounds,
    UntilConfidence,
    labelled,
    show,
)
from tonnage.model.net import costs

LEAST_BLOCK_BYTES = 1 << 10
MOST_BLOCK_BYTES = 1 << 30
RATE_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9}
STARTING_SECONDS = 1.0
"""What a round takes before it begins, for progress only."""


def parse_block(text: str) -> int:
    """A size of a block that a connection hands over at a time."""
    size = parse_size(text)
    if not LEAST_BLOCK_BYTES <= size <= MOST_BLOCK_BYTES:
        raise typer.BadParameter(f"{text!r}: give a size from 1KiB to 1GiB")
    return size


def parse_rate(text: str) -> int:
    """``1Gbit`` or ``200Mbit`` as a number of bits per second."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmg]?)bit\s*", text.lower())
    rate = float(found[1]) * RATE_UNITS[found[2]] if found else 0.0
    if not 1e6 <= rate <= 1e12:
        raise typer.BadParameter(f"{text!r}: write it like 200Mbit or 1Gbit, from 1Mbit on")
    return int(rate)


def measure_net(
    endpoints: Annotated[
        int,
        typer.Option(
            "--endpoints", parser=whole_number(2, 64), metavar="N", help="Processes that take part."
        ),
    ] = "4",  # type: ignore[assignment]
    connections: Annotated[
        int,
        typer.Option(
            "--connections",
            parser=whole_number(1, 64),
            metavar="N",
            help="TCP connections from each endpoint to each other.",
        ),
    ] = "1",  # type: ignore[assignment]
    block: Annotated[
        int,
        typer.Option(
            "--block",
            parser=parse_block,
            metavar="SIZE",
            help="What a connection is handed at a time.",
        ),
    ] = "1MiB",  # type: ignore[assignment]
    seconds: Annotated[
        float,
        typer.Option(
            "--seconds",
            parser=number(0.1, 1_000_000),
            metavar="SECONDS",
            help="How long a round lasts.",
        ),
    ] = "5",  # type: ignore[assignment]
    rounds: Rounds = None,
    until_confidence: UntilConfidence = None,
    one_way: Annotated[
        bool,
        typer.Option("--one-way", help="Only the first endpoint sends, instead of all to all."),
    ] = False,
    namespaces: Annotated[
        bool,
        typer.Option(
            "--namespaces",
            help="Give each endpoint a network namespace of its own, joined to the others by a "
            "bridge, instead of loopback. Needs root.",
        ),
    ] = False,
    rate: Annotated[
        int | None,
        typer.Option(
            "--rate",
            parser=parse_rate,
            metavar="RATE",
            help="With --namespaces: what each endpoint's link carries each way, like 1Gbit.",
        ),
    ] = None,
    label: Labels = None,
    out: Out = None,
    as_json: Json = False,
) -> None:
    """Measure the network that a shuffle meets: all endpoints send to all others, out of memory.

    Endpoints are processes of this machine. The figures are the slowest endpoint's, for which a
    shuffle has to wait, and those of all together. --until-confidence is of the slowest's rate a
    round, each way.
    """
    from tonnage.measure.net import Settings
    from tonnage.measure.net import measure_net as measure

    if rate is not None and not namespaces:
        raise engine.Refused("--rate is that of links between namespaces: give --namespaces too")
    settings = Settings(
        endpoints=endpoints,
        connections=connections,
        block_bytes=block,
        seconds=seconds,
        rounds=rounds or (MOST_ROUNDS if until_confidence else ROUNDS),
        until_confidence=until_confidence,
        one_way=one_way,
        namespaces=namespaces,
        rate_bits_per_second=rate,
    )
    refuse_memory(
        f"--block {words.memory(block)} for so many connections needs "
        f"{words.memory(settings.memory_bytes)},",
        settings.memory_bytes,
        "give less, or a smaller --endpoints or --connections",
    )
    labels = labelled(label)
    out = out or new_directory("tonnage-net")
    most_seconds = settings.rounds * (STARTING_SECONDS + seconds)
    with engine.Progress("measuring", 0, most_seconds) as progress:
        found = measure(out, settings, command=command(), labels=labels, on_progress=progress)
        show(found, out, as_json, _costs)


def _costs(measurement: Measurement) -> More:
    found = costs(measurement)
    cpu = {way: words.significant(each * 1e9) for way, each in found.cpu_seconds_per_byte.items()}
    again = "not known" if found.retransmits is None else words.count(found.retransmits)
    return {"costs": dataclasses.asdict(found)}, [
        "Core seconds a GB, median of all endpoints and rounds: "
        + ", ".join(f"{figure} to {way}" for way, figure in cpu.items()),
        f"Segments sent again: {again}, on {words.several(found.connections, 'connection')}",
    ]
