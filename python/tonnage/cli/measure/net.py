"""``tonnage measure net``."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from tonnage.base import core, formatting
from tonnage.base.records import ClusterMeasurement, Measurement
from tonnage.cli.measure.options import (
    MOST_ROUNDS,
    ROUNDS,
    Instances,
    Labels,
    More,
    Out,
    Patience,
    Rounds,
    UntilConfidence,
    Where,
    output,
    show,
    where,
)
from tonnage.cli.options.files import command_line
from tonnage.cli.options.types import Json, number, parse_size, whole_number
from tonnage.cli.options.validate import refuse_memory
from tonnage.model.analysis.cpu_cost import network_cost

LEAST_BLOCK_BYTES = 1 << 10
MOST_BLOCK_BYTES = 1 << 30
ENDPOINTS = 4
BLOCK_BYTES = 512 << 10
SECONDS, FLEETS_SECONDS = 5.0, 2.0
FLEETS_CONNECTIONS = (1, 2, 4)
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
        int | None,
        typer.Option(
            "--endpoints",
            parser=whole_number(2, 64),
            metavar="N",
            help=f"Processes of this machine that take part. Default: {ENDPOINTS}.",
        ),
    ] = None,
    connections: Annotated[
        list[int] | None,
        typer.Option(
            "--connections",
            parser=whole_number(1, 64),
            metavar="N...",
            help="TCP connections from each endpoint to each other. Default: 1; with --cluster 1, 2 "
            "and 4.",
        ),
    ] = None,
    block: Annotated[
        int | None,
        typer.Option(
            "--block",
            parser=parse_block,
            metavar="SIZE",
            help="What a connection is handed at a time, by default 512KiB, as a sort's are. "
            "Whole ones are counted: over a slow link give less, or more --seconds.",
        ),
    ] = None,
    seconds: Annotated[
        float | None,
        typer.Option(
            "--seconds",
            parser=number(0.1, 1_000_000),
            metavar="SECONDS",
            help=f"How long they send. Default: {SECONDS:g}; with --cluster {FLEETS_SECONDS:g}, as "
            "that is done many times.",
        ),
    ] = None,
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
    sizes: Annotated[
        list[int] | None,
        typer.Option(
            "--sizes",
            parser=whole_number(2, 10_000),
            metavar="N...",
            help="With --cluster: how many machines send all to all. Default: 2, 4, 8 .. and all.",
        ),
    ] = None,
    seed: Annotated[
        int,
        typer.Option(
            "--seed",
            parser=whole_number(0, 1 << 62),
            metavar="N",
            help="With --cluster: of the machines' order in each round.",
        ),
    ] = "1",  # type: ignore[assignment]
    fleet: Annotated[
        str | None,
        typer.Option(
            "--cluster",
            metavar="ADDRESS",
            help="Between the machines of the Ray cluster at HOST:PORT, or, with auto, of the one "
            "that this machine is in; TYPE@auto: between those of this machine type.",
        ),
    ] = None,
    instances: Instances = None,
    patience: Patience = "60s",  # type: ignore[assignment]
    label: Labels = None,
    out: Out = None,
    as_json: Json = False,
) -> None:
    """Measure the network that a shuffle meets: all endpoints send to all others, out of memory.

    Endpoints are processes of this machine. The figures are the slowest endpoint's, for which a
    shuffle has to wait, and those of all together. --until-confidence is of the slowest's rate a
    round, each way.

    With --cluster they are machines: pairs of them, each alone with all others, and all to all as
    there are more, which is told as a share of what the slowest pair carries.
    """
    at = where(fleet, instances, False, patience, label)
    if at.fleet is not None:
        of_one = {
            "--endpoints": endpoints is not None,
            "--one-way": one_way,
            "--namespaces": namespaces,
            "--rate": rate is not None,
            "--until-confidence": until_confidence is not None,
        }
        for flag in [flag for flag, given in of_one.items() if given]:
            raise core.UsageError(
                f"{flag} is of endpoints on this machine: leave out --cluster, or it"
            )
        _between_machines(
            at,
            output("net", out),
            as_json,
            connections=tuple(connections or FLEETS_CONNECTIONS),
            sizes=tuple(sizes) if sizes else None,
            block_bytes=block or BLOCK_BYTES,
            seconds=seconds or FLEETS_SECONDS,
            rounds=rounds or ROUNDS,
            seed=seed,
        )
        return
    from tonnage.measure.net import NetSettings
    from tonnage.measure.net import measure_net as measure

    if sizes:
        raise core.UsageError("--sizes are of a fleet: give --cluster too")
    if connections and len(connections) > 1:
        raise core.UsageError("--connections: give one number, or --cluster too")
    if rate is not None and not namespaces:
        raise core.UsageError("--rate is that of links between namespaces: give --namespaces too")
    block = block or BLOCK_BYTES
    settings = NetSettings(
        endpoints=endpoints or ENDPOINTS,
        connections=connections[0] if connections else 1,
        block_bytes=block,
        seconds=seconds or SECONDS,
        rounds=rounds or (MOST_ROUNDS if until_confidence else ROUNDS),
        until_confidence=until_confidence,
        one_way=one_way,
        namespaces=namespaces,
        rate_bits_per_second=rate,
    )
    refuse_memory(
        f"--block {formatting.memory(block)} for so many connections needs "
        f"{formatting.memory(settings.memory_bytes)},",
        settings.memory_bytes,
        "give less, or a smaller --endpoints or --connections",
    )
    out = output("net", out)
    most_seconds = settings.rounds * (STARTING_SECONDS + settings.seconds)
    with core.Progress("measuring", 0, most_seconds) as progress:
        found = measure(
            out, settings, command=command_line(), labels=at.labels, on_progress=progress
        )
        show(found, out, as_json, _costs)


def _between_machines(at: Where, out: Path, as_json: bool, **told: Any) -> None:
    from tonnage.cli.measure import cluster as fleets

    fleets.refuse_without_ray()
    from tonnage.measure.net.cluster import ClusterNetSettings, measure_cluster_net

    assert at.fleet is not None
    measured = partial(measure_cluster_net, out=out, settings=ClusterNetSettings(**told), **at.asked)
    fleets.show(at.fleet, out, "net", measured, as_json, in_lines=shuffled)


def shuffled(found: ClusterMeasurement) -> Iterator[str]:
    """What the network between machines carries, in lines."""
    if found.baseline_bytes_per_second is not None:
        types = found.types
        mixed = f", of pairs of {formatting.listing(types)} machines" if len(types) > 1 else ""
        rate = formatting.rate(found.baseline_bytes_per_second)
        yield f"The median pair{mixed}: {rate}{_duplex(found)}"
    if slowest := found.slowest_link:
        yield f"The slowest link: {slowest.node}, {formatting.rate(slowest.slower_direction)} with all others"
    for size in found.sizes:
        share = size.fraction_of_baseline
        of_pair = "" if share is None else f", {formatting.percent(share)} of the slowest pair's"
        yield (
            f"{formatting.several(size.nodes, 'node')} all to all, "
            f"{formatting.several(size.connections, 'connection')} a pair: slowest {size.slowest_node} "
            f"{formatting.rate(size.slowest_bytes_per_second)}{of_pair}; "
            f"{formatting.rate(size.sum_bytes_per_second)} in all"
        )


def _duplex(found: ClusterMeasurement) -> str:
    if found.both_ways_share is None:
        return ""
    kind = "full" if found.full_duplex else "half"
    return f"; both ways at once {found.both_ways_share:.2f} times that: {kind} duplex"


def _costs(measurement: Measurement) -> More:
    found = network_cost(measurement)
    cpu = {
        way: formatting.significant(each * 1e9) for way, each in found.cpu_seconds_per_byte.items()
    }
    again = "not known" if found.retransmits is None else formatting.count(found.retransmits)
    return {"costs": dataclasses.asdict(found)}, [
        "Core seconds a GB, median of all endpoints and rounds: "
        + ", ".join(f"{figure} to {way}" for way, figure in cpu.items()),
        f"Segments sent again: {again}, on {formatting.several(found.connections, 'connection')}",
    ]
