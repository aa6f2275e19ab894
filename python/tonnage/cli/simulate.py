"""``tonnage simulate sort``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from tonnage.base import core
from tonnage.base.records.durability import DURABILITIES
from tonnage.cli.options.option_groups import default
from tonnage.cli.options.planning import BUILT_IN, CatalogNames, load_catalogs, require_offer
from tonnage.cli.options.types import (
    Count,
    Json,
    Key,
    Option,
    RecordBytes,
    Size,
    Switch,
    Time,
    parse_layout,
    parse_measurable,
)
from tonnage.cli.options.validate import refuse_unknown, usage_errors
from tonnage.cli.output import print_result
from tonnage.cli.output.simulation import simulation_lines

if TYPE_CHECKING:
    from tonnage.catalog import Offer
    from tonnage.model.profiles.repository import OfferCapacity
    from tonnage.plan.demand import AdvertisedResource

MAX_NODES = 10_000


@dataclass(frozen=True)
class SlowNodes:
    """So many nodes that carry a part of what they would."""

    nodes: int
    factor: float


def parse_slow(text: str) -> SlowNodes:
    """``3:0.5``: three nodes at half speed."""
    match = re.fullmatch(r"([0-9]{1,5}):(0?\.[0-9]{1,6}|1)", text)
    if match is None or not int(match[1]) or not float(match[2]):
        raise typer.BadParameter(
            f"{text!r}: use NODES:FACTOR with a factor of at most 1, like 3:0.5"
        )
    return SlowNodes(int(match[1]), float(match[2]))


@dataclass(frozen=True, kw_only=True)
class NodeOptions:
    offer: Annotated[str | None, Option("OFFER", "Machine type: TYPE, or PROVIDER/TYPE.")] = None
    catalog: CatalogNames = None
    profile: Annotated[
        str | None,
        Option(
            "NAME_OR_DIR",
            "Measured capacities: a profile, or measurements. Without --offer, they must cover "
            f"exactly one machine type. Default: {' and '.join(BUILT_IN)}.",
        ),
    ] = None
    placement: Annotated[
        bool | None,
        Switch(
            "--placement/--no-placement",
            "Nodes in a placement group, or outside one. Default: whichever was measured; if both "
            "were, in a placement group.",
        ),
    ] = None
    memory: Annotated[
        int | None, Size("Memory for the sort on each node. Default: half of the node's memory.")
    ] = None
    cores: Annotated[
        int | None, Count("Cores of each node. Default: the offer's vCPUs.", 1, 4096)
    ] = None
    connections: Annotated[int, Count("TCP connections from each node to every other.", 1, 64)] = (
        default("1")
    )


@dataclass(frozen=True, kw_only=True)
class FaultOptions:
    durability: Annotated[
        str,
        Option(
            "none|replicated",
            "What protects the output: none; replicated (a copy on another node).",
        ),
    ] = "none"
    input_copies: Annotated[
        int | None,
        Count(
            "Number of nodes with a copy of each part of the input. Default: one more than --lose.",
            1,
            MAX_NODES,
        ),
    ] = None
    lose: Annotated[int, Count("Number of nodes that fail, at random times.", 0, MAX_NODES)] = (
        default("0")
    )
    slow: Annotated[
        SlowNodes | None,
        Option(
            "NODES:FACTOR",
            "Number of slow nodes, and their speed: 3:0.5 means three nodes at half speed.",
            parse_slow,
        ),
    ] = None
    mtbf: Annotated[
        float | None,
        Time(
            "Mean time between failures of one node. Used only for the probability that some node "
            "fails during the job; to simulate failures, use --lose. Default: 183d."
        ),
    ] = None


def simulate_sort(
    *,
    nodes: Annotated[int, Count("Number of nodes.", 2, MAX_NODES)],
    data: Annotated[int, Size("Size of the input, like 100TB.", parse_measurable)],
    node: NodeOptions,
    faults: FaultOptions,
    even: Annotated[
        bool,
        Switch(
            "--even", "Make all partitions the same size, as if keys had been sampled perfectly."
        ),
    ] = False,
    descriptors: Annotated[
        int, Count("Maximum open files and sockets of a process (ulimit -n).", 1, 1 << 30)
    ] = default("1024"),
    per_node: Annotated[
        bool,
        Switch(
            "--per-node",
            "In the table of cluster sizes, keep the data per node constant instead of the total.",
        ),
    ] = False,
    seed: Annotated[int, Count("Random seed.", 0, 1 << 31)] = default("0"),
    record_bytes: RecordBytes = default("100"),
    key: Key = "0:10",
    as_json: Json = False,
) -> None:
    """Simulate a sort on a cluster of up to 10,000 nodes, and show which limit is reached first as
    the cluster grows.

    The schedule and memory use are those of a real sort; the capacities of nodes are drawn at
    random from measurements.

    Examples:
        tonnage simulate sort --nodes 1000 --data 100TB --offer i2.8xlarge
        tonnage simulate sort --nodes 100 --data 10TB --offer i2.8xlarge --lose 2
    """
    from tonnage.plan.resources.engine_memory import MEMORY_SHARE, local_devices
    from tonnage.simulate.cluster import Machine, SimulationError
    from tonnage.simulate.scalability_limits import MTBF_SECONDS
    from tonnage.simulate.scenario import Scenario, run_scenario

    refuse_unknown("--durability", [faults.durability], DURABILITIES)
    measured = _capacity(node)
    offer = measured.offer
    if node.memory is None and (offer is None or offer.memory_bytes is None):
        raise core.UsageError("the node's memory is unknown; add --memory")
    if node.cores is None and (offer is None or not offer.vcpus):
        raise core.UsageError("the node's number of cores is unknown; add --cores")
    cores = node.cores or int((offer.vcpus or 1) if offer else 1)
    machine = Machine(
        memory_bytes=node.memory or int((offer.memory_bytes or 0) if offer else 0) // MEMORY_SHARE,
        cores=cores,
        devices=local_devices(offer) if offer else 1,
        connections=node.connections,
        layout=parse_layout(record_bytes, key),
    )
    scenario = Scenario(
        nodes=nodes,
        data_bytes=data,
        machine=machine,
        capacity=measured.capacity,
        shares=measured.shares,
        figures=_advertised(offer, cores),
        durability=faults.durability,  # type: ignore[arg-type]
        input_copies=faults.input_copies or faults.lose + 1,
        lose=faults.lose,
        slow=(faults.slow.nodes, faults.slow.factor) if faults.slow else None,
        even=even,
        seed=seed,
        mtbf_seconds=faults.mtbf or MTBF_SECONDS,
        descriptors=descriptors,
        per_node=per_node,
    )
    with usage_errors(SimulationError, prefix=f"--offer {offer}: "):
        result = run_scenario(scenario)
    print_result(result.to_json(), simulation_lines(result), as_json)


class NodeCapacity(NamedTuple):
    capacity: OfferCapacity
    shares: OfferCapacity
    offer: Offer | None


def _capacity(node: NodeOptions) -> NodeCapacity:
    from tonnage.model.profiles.repository import (
        NO_CAPACITY,
        ProfileError,
        index_profiles,
        read_profiles,
    )
    from tonnage.plan.resources.machines import advertised_rates

    if node.offer is None and node.profile is None:
        raise core.UsageError(
            "no machine type; add --offer OFFER, or a --profile that covers only one type"
        )
    catalogs = load_catalogs(node.catalog)
    with usage_errors(ProfileError, prefix="--profile: "):
        names = [node.profile] if node.profile else BUILT_IN
        index = index_profiles(
            [
                each
                for name in names
                for each in read_profiles(name, lambda: advertised_rates(catalogs))
            ]
        )
    offer = None
    if node.offer is not None:
        offer = require_offer("--offer", catalogs, node.offer)
        key = offer.provider, offer.type
    elif len(index.offers) == 1:
        (key,) = index.offers
    else:
        types = ", ".join(sorted(kind for _, kind in index.offers)) or "no machine type"
        raise core.UsageError(f"--profile {node.profile} covers {types}; select one with --offer")
    by_placement = index.offers.get(key, {})
    placed = node.placement if node.placement is not None else max(by_placement, default=False)
    if placed in by_placement:
        return NodeCapacity(by_placement[placed], index.shares, offer)
    capacity = index.apart_from_placement(*key)
    if capacity is NO_CAPACITY:
        raise core.UsageError(
            f"this profile has no measurements of {key[1]}; use a --profile that does"
        )
    return NodeCapacity(capacity, index.shares, offer)


def _advertised(offer: Offer | None, cores: int) -> dict[AdvertisedResource, float]:
    from tonnage.plan.resources.machines import sustained_network

    figures: dict[AdvertisedResource, float] = {"cpu": float(cores)}
    if offer is None:
        return figures
    if network := sustained_network(offer):
        figures["network"] = network
    read, write = offer.local_read_bytes_per_second, offer.local_write_bytes_per_second
    if read and write:
        figures |= {"local read": read, "local write": write}
    return figures
