"""``tonnage measure net``."""

import re
from dataclasses import asdict
from functools import partial
from typing import Annotated

import typer

from tonnage.base import core, formatting
from tonnage.base.records import Measurement
from tonnage.cli.measure.cluster import print_measurement, run_and_print
from tonnage.cli.measure.options import REPETITIONS, ClusterOptions, RepetitionOptions, Seed
from tonnage.cli.measure.suite import Suite, run_suite
from tonnage.cli.options.cluster import refuse_without_ray
from tonnage.cli.options.option_groups import default
from tonnage.cli.options.types import (
    Count,
    Option,
    Size,
    Switch,
    Time,
    duration,
    parse_size,
    whole_number,
)
from tonnage.cli.options.validate import refuse_memory, refuse_without
from tonnage.cli.output.cluster_measurement import network_lines
from tonnage.cli.output.trials import Details
from tonnage.model.analysis.cpu_cost import network_cost

MIN_BLOCK_BYTES = 1 << 10
MAX_BLOCK_BYTES = 1 << 30
ENDPOINTS = 4
BLOCK_BYTES = 512 << 10
SECONDS, CLUSTER_SECONDS = 5.0, 2.0
CLUSTER_CONNECTIONS = (1, 2, 4)
RATE_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9}
STARTING_SECONDS = 1.0
"""How long a repetition takes to start, for progress only."""


def parse_block(text: str) -> int:
    size = parse_size(text)
    if not MIN_BLOCK_BYTES <= size <= MAX_BLOCK_BYTES:
        raise typer.BadParameter(f"{text!r} is not a size from 1KiB to 1GiB")
    return size


def parse_rate(text: str) -> int:
    """``1Gbit`` or ``200Mbit`` as a number of bits per second."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmg]?)bit\s*", text.lower())
    rate = float(match[1]) * RATE_UNITS[match[2]] if match else 0.0
    if not 1e6 <= rate <= 1e12:
        raise typer.BadParameter(
            f"{text!r} is not a bandwidth; use at least 1Mbit, like 200Mbit or 1Gbit"
        )
    return int(rate)


def measure_net(
    *,
    endpoints: Annotated[
        int | None,
        Count(f"Number of processes on this machine that take part. Default: {ENDPOINTS}.", 2, 64),
    ] = None,
    connections: Annotated[
        list[int] | None,
        Option(
            "N...",
            "TCP connections from each endpoint to every other; each value is tried in turn. "
            "Default: 1; with --cluster, 1, 2 and 4.",
            whole_number(1, 64),
        ),
    ] = None,
    block: Annotated[
        int | None,
        Size(
            "Bytes that a connection sends at a time. Default: 512KiB, as in a sort. Only complete "
            "blocks are counted, so on a slow link use a smaller block or a longer --seconds.",
            parse_block,
        ),
    ] = None,
    seconds: Annotated[
        float | None,
        Time(
            f"Duration of a trial. Default: {SECONDS:g}s; with --cluster, which runs many trials, "
            f"{CLUSTER_SECONDS:g}s.",
            duration(0.1, 1_000_000),
        ),
    ] = None,
    one_way: Annotated[
        bool, Switch("--one-way", "Only the first endpoint sends, instead of all of them.")
    ] = False,
    namespaces: Annotated[
        bool,
        Switch(
            "--namespaces",
            "Run each endpoint in its own network namespace on a bridge, instead of using "
            "loopback. Needs root.",
        ),
    ] = False,
    rate: Annotated[
        int | None,
        Option(
            "RATE",
            "With --namespaces: bandwidth of each endpoint's link in each direction, like 1Gbit.",
            parse_rate,
        ),
    ] = None,
    sizes: Annotated[
        list[int] | None,
        Option(
            "N...",
            "With --cluster: cluster sizes for the all-to-all trials. Default: 2, 4, 8, ..., and "
            "all nodes.",
            whole_number(2, 10_000),
        ),
    ] = None,
    seed: Seed = default("1"),
    repetition: RepetitionOptions,
    options: ClusterOptions,
) -> None:
    """Measure the network as a shuffle uses it: every endpoint sends to all others.

    Data goes from memory to memory; disks are not used. Endpoints are processes on this machine.
    The results are the rate of the slowest endpoint, for which a shuffle has to wait, and the total
    rate of all endpoints.

    With --cluster, endpoints are nodes. The trials are: every pair of nodes; one node with all
    others; and all-to-all on increasing numbers of nodes. All-to-all rates are shown as a fraction
    of the slowest pair's rate.

    Examples:
        tonnage measure net --endpoints 4
        tonnage measure net --cluster auto --sizes 2 4 8 --output network
    """
    if options.cluster is not None:
        here_only = {
            "--endpoints": endpoints,
            "--one-way": one_way,
            "--namespaces": namespaces,
            "--rate": rate,
            "--until-confidence": repetition.until_confidence,
        }
        for flag in [flag for flag, value in here_only.items() if value]:
            raise core.UsageError(f"{flag} applies only to one machine; remove {flag} or --cluster")
        refuse_without_ray()
        from tonnage.measure.net.cluster import ClusterNetSettings, measure_cluster_net

        of_cluster = ClusterNetSettings(
            connections=tuple(connections or CLUSTER_CONNECTIONS),
            sizes=tuple(sizes) if sizes else None,
            block_bytes=block or BLOCK_BYTES,
            seconds=seconds or CLUSTER_SECONDS,
            rounds=repetition.repetitions or REPETITIONS,
            seed=seed,
        )
        out = options.directory("net")
        measure = partial(measure_cluster_net, out=out, settings=of_cluster, **options.request)
        (measurement,) = run_and_print("net", options, measure)
        print_measurement(measurement, out, options.as_json, more_lines=network_lines(measurement))
        return
    from tonnage.measure.net.local import NetSettings
    from tonnage.measure.net.local import measure_net as measure_here

    refuse_without("--cluster", {"--sizes": sizes})
    if connections and len(connections) > 1:
        raise core.UsageError(
            "--connections: several numbers need --cluster; use one number, or add --cluster"
        )
    if not namespaces:
        refuse_without("--namespaces", {"--rate": rate})
    settings = NetSettings(
        endpoints=endpoints or ENDPOINTS,
        connections=connections[0] if connections else 1,
        block_bytes=block or BLOCK_BYTES,
        seconds=seconds or SECONDS,
        rounds=repetition.most,
        until_confidence=repetition.until_confidence,
        one_way=one_way,
        namespaces=namespaces,
        rate_bits_per_second=rate,
    )
    refuse_memory(
        f"--block {formatting.memory(settings.block_bytes)} for all connections needs "
        f"{formatting.memory(settings.memory_bytes)},",
        settings.memory_bytes,
        "lower --block, --endpoints or --connections",
    )
    suite = Suite(
        kind="net",
        work=lambda _: partial(measure_here, settings=settings),
        settings=asdict(settings),
        total_seconds=settings.rounds * (STARTING_SECONDS + settings.seconds),
        details=_cpu_details,
    )
    run_suite(suite, options)


def _cpu_details(measurement: Measurement) -> Details:
    cost = network_cost(measurement)
    cpu = {
        way: formatting.significant(each * 1e9) for way, each in cost.cpu_seconds_per_byte.items()
    }
    retransmits = "unknown" if cost.retransmits is None else formatting.count(cost.retransmits)
    return {"costs": asdict(cost)}, [
        "Core seconds per GB, median of all endpoints and repetitions: "
        + ", ".join(f"{figure} to {way}" for way, figure in cpu.items()),
        f"Retransmitted segments: {retransmits}, on "
        f"{formatting.several(cost.connections, 'connection')}",
    ]
