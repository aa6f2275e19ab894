"""``tonnage simulate sort``."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from tonnage.base import core
from tonnage.cli.options.planning import BUILT_IN, Catalogs, catalogs_of, find_offer
from tonnage.cli.options.types import (
    Json,
    Key,
    RecordBytes,
    parse_duration,
    parse_layout,
    parse_measurable,
    parse_size,
    whole_number,
)
from tonnage.cli.options.validate import refuse_unknown

if TYPE_CHECKING:
    from tonnage.catalog import Offer
    from tonnage.model.profiles.repository import OfferCapacity
    from tonnage.plan.demand import ResourceClass

MOST_NODES = 10_000
DURABILITIES = ("none", "replicated")
MEMORY_SHARE = 2
"""One part of so many of a machine's memory is the sort's, if nothing else is said."""


@dataclass(frozen=True)
class Slow:
    """So many nodes that carry a part of what they would."""

    nodes: int
    factor: float


def parse_slow(text: str) -> Slow:
    """``3:0.5``: three nodes that carry half."""
    found = re.fullmatch(r"([0-9]{1,5}):(0?\.[0-9]{1,6}|1)", text)
    if found is None or not int(found[1]) or not float(found[2]):
        raise typer.BadParameter(f"{text!r}: write NODES:FACTOR, like 3:0.5, of at most 1")
    return Slow(int(found[1]), float(found[2]))


def simulate_sort(
    nodes: Annotated[
        int,
        typer.Option(
            "--nodes", parser=whole_number(2, MOST_NODES), metavar="N", help="The fleet's machines."
        ),
    ],
    data: Annotated[
        int,
        typer.Option("--data", parser=parse_measurable, metavar="SIZE", help="Input, like 100TB."),
    ],
    offer: Annotated[
        str | None,
        typer.Option("--offer", metavar="NAME", help="What they are: TYPE, or PROVIDER/TYPE."),
    ] = None,
    catalog: Catalogs = None,
    profile: Annotated[
        str | None,
        typer.Option(
            "--profile",
            metavar="NAME_OR_FILE",
            help="What they carry: a profile, or measurements. Without --offer, the one machine "
            "that it tells of. Default: themis-2014.",
        ),
    ] = None,
    placement: Annotated[
        bool | None,
        typer.Option(
            "--placement/--no-placement",
            help="Placed close together, or not. Default: as they were measured, close if both.",
        ),
    ] = None,
    memory: Annotated[
        int | None,
        typer.Option(
            "--memory",
            parser=parse_size,
            metavar="SIZE",
            help="Of each for the sort. Default: half of what the offer has.",
        ),
    ] = None,
    cores: Annotated[
        int | None,
        typer.Option(
            "--cores",
            parser=whole_number(1, 1024),
            metavar="N",
            help="Of each. Default: the offer's vCPUs.",
        ),
    ] = None,
    connections: Annotated[
        int,
        typer.Option(
            "--connections",
            parser=whole_number(1, 64),
            metavar="N",
            help="From each machine to each other.",
        ),
    ] = "1",  # type: ignore[assignment]
    durability: Annotated[
        str,
        typer.Option(
            "--durability",
            metavar="HOW",
            help="none; replicated: a second copy of the output on another node.",
        ),
    ] = "none",
    input_copies: Annotated[
        int | None,
        typer.Option(
            "--input-copies",
            parser=whole_number(1, MOST_NODES),
            metavar="N",
            help="How many machines have each part of the input. Default: one more than --lose.",
        ),
    ] = None,
    lose: Annotated[
        int,
        typer.Option(
            "--lose",
            parser=whole_number(0, MOST_NODES),
            metavar="K",
            help="So many machines die, at any moment of the sort.",
        ),
    ] = "0",  # type: ignore[assignment]
    slow: Annotated[
        Slow | None,
        typer.Option(
            "--slow",
            parser=parse_slow,
            metavar="NODES:FACTOR",
            help="So many carry only a part of what they would: 3:0.5.",
        ),
    ] = None,
    even: Annotated[
        bool,
        typer.Option("--even", help="Partitions all alike, as with a sample without error."),
    ] = False,
    mtbf: Annotated[
        float | None,
        typer.Option(
            "--mtbf",
            parser=parse_duration,
            metavar="TIME",
            help="Between two failures of one machine, on average. Default: 183d.",
        ),
    ] = None,
    descriptors: Annotated[
        int,
        typer.Option(
            "--descriptors",
            parser=whole_number(1, 1 << 30),
            metavar="N",
            help="Files and sockets that a process may have open (ulimit -n).",
        ),
    ] = "1024",  # type: ignore[assignment]
    per_node: Annotated[
        bool,
        typer.Option(
            "--per-node", help="Tabulate fleets with as many bytes a node, not as many in all."
        ),
    ] = False,
    seed: Annotated[
        int,
        typer.Option(
            "--seed", parser=whole_number(0, 1 << 31), metavar="N", help="Of all that is drawn."
        ),
    ] = "0",  # type: ignore[assignment]
    record_bytes: RecordBytes = "100",  # type: ignore[assignment]
    key: Key = "0:10",
    as_json: Json = False,
) -> None:
    """Simulate a sort on a fleet that is not there, and tell what breaks first as it grows.

    Schedule and division of memory are those of a real sort; what machines carry is drawn from what
    was measured of them.
    """
    from tonnage.cli.output import simulation
    from tonnage.simulate.cluster import Machine, SimulationError
    from tonnage.simulate.scalability_limits import MTBF_SECONDS
    from tonnage.simulate.scenario import Scenario, run_scenario

    refuse_unknown("--durability", [durability], DURABILITIES)
    laws, shares, found = _machine(offer, catalog, profile, placement)
    if memory is None and (found is None or found.memory_bytes is None):
        raise core.UsageError("the machine's memory is unknown: give --memory")
    if cores is None and (found is None or not found.vcpus):
        raise core.UsageError("how many cores the machine has is unknown: give --cores")
    own = memory or int((found.memory_bytes or 0) if found else 0) // MEMORY_SHARE
    threads = cores or int((found.vcpus or 1) if found else 1)
    machine = Machine(
        memory_bytes=own,
        cores=threads,
        devices=_devices(found),
        connections=connections,
        layout=parse_layout(record_bytes, key),
    )
    wanted = Scenario(
        nodes=nodes,
        data_bytes=data,
        machine=machine,
        laws=laws,
        shares=shares,
        figures=_figures(found, threads),
        durability=durability,  # type: ignore[arg-type]
        input_copies=input_copies or lose + 1,
        lose=lose,
        slow=(slow.nodes, slow.factor) if slow else None,
        even=even,
        seed=seed,
        mtbf_seconds=mtbf or MTBF_SECONDS,
        descriptors=descriptors,
        per_node=per_node,
    )
    try:
        told = run_scenario(wanted)
    except SimulationError as why:
        raise core.UsageError(str(why)) from why
    print(json.dumps(told.to_json()) if as_json else "\n".join(simulation.lines(told)))


def _machine(
    offer: str | None, catalog: list[str] | None, profile: str | None, placement: bool | None
) -> tuple[OfferCapacity, OfferCapacity, Offer | None]:
    """What was measured of the machine, what share of advertised figures is reached, its offer."""
    from tonnage.model.profiles.repository import (
        NO_CAPACITY,
        ProfileError,
        index_profiles,
        read_profiles,
    )
    from tonnage.plan.advertised import advertised_figures

    if offer is None and profile is None:
        raise core.UsageError("give --offer NAME, or --profile FILE of one machine")
    catalogs = catalogs_of(catalog, ())
    try:
        all_known = index_profiles(
            read_profiles(profile or BUILT_IN, lambda: advertised_figures(catalogs))
        )
    except ProfileError as why:
        raise core.UsageError(f"--profile: {why}") from why
    found = None
    if offer is not None:
        found = find_offer("--offer", catalogs, offer)
        of = found.provider, found.type
    elif len(all_known.offers) == 1:
        (of,) = all_known.offers
    else:
        types = ", ".join(sorted(kind for _, kind in all_known.offers)) or "no machine"
        raise core.UsageError(f"--profile {profile}: it is of {types}: give --offer, one of them")
    placed = all_known.offers.get(of, {})
    wanted = placement if placement is not None else max(placed, default=False)
    if wanted in placed:
        return placed[wanted], all_known.shares, found
    laws = all_known.apart_from_placement(*of)
    if laws is NO_CAPACITY:
        raise core.UsageError(f"nothing was measured of {of[1]}: give its --profile")
    return laws, all_known.shares, found


def _devices(offer: Offer | None) -> int:
    """How many disks an offer has of its own."""
    disks = (offer.disks or ()) if offer else ()
    return max(sum(each.count or 1 for each in disks), 1)


def _figures(offer: Offer | None, cores: int) -> dict[ResourceClass, float]:
    """What is advertised, and how many cores there are."""
    from tonnage.plan.machines import sustained_network

    network = sustained_network(offer) if offer else None
    figures: dict[ResourceClass, float] = {"cpu": float(cores)}
    return figures | ({"network": network} if network else {})
