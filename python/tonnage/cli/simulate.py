"""``tonnage simulate``."""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer
from msgspec import structs

from tonnage.base import core
from tonnage.base.core.sockets import DESCRIPTORS
from tonnage.cli.options.cluster import CandidateNumber
from tonnage.cli.options.option_groups import default, flags_and_values
from tonnage.cli.options.plan_file import select_candidate
from tonnage.cli.options.planning import (
    BUILT_IN,
    CatalogNames,
    job_from,
    load_catalogs,
    load_profiles,
    require_offer,
)
from tonnage.cli.options.types import (
    Argument,
    Count,
    Json,
    Key,
    Option,
    RecordBytes,
    Size,
    Switch,
    Time,
    number,
    parse_layout,
    parse_measurable,
)
from tonnage.cli.options.validate import refuse_unknown, refuse_without, usage_errors
from tonnage.cli.output import print_result
from tonnage.cli.output.simulation import simulation_lines

if TYPE_CHECKING:
    from tonnage.base.records.job import Job
    from tonnage.catalog import Catalog, Offer
    from tonnage.model.profiles.repository import OfferCapacity
    from tonnage.plan.demand import AdvertisedResource
    from tonnage.simulate.cluster import Buckets
    from tonnage.simulate.division import Machine
    from tonnage.simulate.scenario import Scenario

MAX_NODES = 10_000
TWO_PASS = ("sort", "mapreduce")


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
class PlanOptions:
    plan: Annotated[
        Path | None,
        Option(
            "FILE",
            "A plan from tonnage plan --json: its job, machines, layout and number of nodes are "
            "simulated, and compared with it.",
        ),
    ] = None
    candidate: CandidateNumber = None


@dataclass(frozen=True, kw_only=True)
class JobOptions:
    """The job and the cluster, where no plan says what they are."""

    nodes: Annotated[int | None, Count("Number of nodes.", 1, MAX_NODES)] = None
    data: Annotated[int | None, Size("Size of the input, like 100TB.", parse_measurable)] = None
    offer: Annotated[str | None, Option("OFFER", "Machine type: TYPE, or PROVIDER/TYPE.")] = None
    from_: Annotated[
        str | None,
        Option(
            "objects|volumes|local",
            "Where the input is: objects (in object storage), local (on the nodes' own disks). "
            "Default: local. Volumes are simulated with --plan only.",
            flag="--from",
        ),
    ] = None
    to: Annotated[
        str | None,
        Option("objects|volumes|local", "Where the output goes. Default: where the input is."),
    ] = None
    durability: Annotated[
        str | None,
        Option(
            "none|replicated",
            "What protects the output: none; replicated (a copy on another node). Default: none.",
        ),
    ] = None
    map_share: Annotated[
        float | None,
        Option(
            "RATIO",
            "mapreduce: ratio of map output to input bytes. Default: 1.",
            number(1e-9, 1e9),
        ),
    ] = None
    reduce_share: Annotated[
        float | None,
        Option(
            "RATIO",
            "mapreduce: ratio of reduce output to map output bytes. Default: 1.",
            number(1e-9, 1e9),
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

    @property
    def job_flags(self) -> dict[str, Any]:
        others = ("--nodes", "--data", "--offer", "--placement")
        given = flags_and_values(self)
        return {
            flag: value for flag, value in given.items() if value is not None and flag not in others
        }


@dataclass(frozen=True, kw_only=True)
class NodeOptions:
    catalog: CatalogNames = None
    profile: Annotated[
        str | None,
        Option(
            "NAME_OR_DIR",
            "Measured capacities: a profile, or measurements. Without --offer, they must cover "
            f"exactly one machine type. Default: the plan's; without one "
            f"{' and '.join(BUILT_IN)}.",
        ),
    ] = None
    memory: Annotated[
        int | None, Size("Memory for the job on each node. Default: half of the node's memory.")
    ] = None
    cores: Annotated[
        int | None, Count("Cores of each node. Default: the offer's vCPUs.", 1, 4096)
    ] = None
    connections: Annotated[
        int | None,
        Count(
            "TCP connections from each node to every other. Default: as many in all as it has "
            "cores, up to 256.",
            1,
            64,
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class FaultOptions:
    input_copies: Annotated[
        int | None,
        Count(
            "Number of nodes with a copy of each part of input that is on nodes. Default: one more "
            "than --lose.",
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


def simulate(
    *,
    job: Annotated[
        str | None, Argument("JOB", "sort or mapreduce. Default: that of --plan.")
    ] = None,
    planned: PlanOptions,
    described: JobOptions,
    node: NodeOptions,
    faults: FaultOptions,
    even: Annotated[
        bool,
        Switch(
            "--even",
            "sort: make all partitions the same size, as if keys had been sampled perfectly.",
        ),
    ] = False,
    descriptors: Annotated[
        int, Count("Maximum open files and sockets of a process (ulimit -n).", 1, 1 << 30)
    ] = default(str(DESCRIPTORS)),
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
    """Simulate a sort or a MapReduce on a cluster of up to 10,000 nodes, and show which limit is
    reached first as the cluster grows.

    The schedule and memory use are those of a real job; the capacities of nodes are drawn at random
    from measurements. With --plan, the planned cluster is simulated and compared with the plan.

    Examples:
        tonnage simulate --plan plan.json
        tonnage simulate sort --nodes 1000 --data 100TB --offer i2.8xlarge
        tonnage simulate sort --nodes 100 --data 10TB --offer i2.8xlarge --lose 2
    """
    from tonnage.simulate.cluster import SimulationError
    from tonnage.simulate.scalability_limits import MTBF_SECONDS
    from tonnage.simulate.scenario import run_scenario

    layout = parse_layout(record_bytes, key)
    if planned.plan is not None:
        scenario = _planned(planned.plan, planned.candidate, job, described, node)
    else:
        refuse_without("--plan", {"--candidate": planned.candidate})
        scenario = _described(job, described, node)
    scenario = dataclasses.replace(
        scenario,
        machine=dataclasses.replace(scenario.machine, layout=layout),
        input_copies=faults.input_copies or faults.lose + 1,
        lose=faults.lose,
        slow=(faults.slow.nodes, faults.slow.factor) if faults.slow else None,
        even=even,
        seed=seed,
        mtbf_seconds=faults.mtbf or MTBF_SECONDS,
        descriptors=descriptors,
        per_node=per_node,
    )
    prefix = f"--plan {planned.plan}: " if planned.plan else f"--offer {described.offer}: "
    with usage_errors(SimulationError, prefix=prefix):
        result = run_scenario(scenario)
    print_result(result.to_json(), simulation_lines(result), as_json)


def _planned(
    path: Path, number: int | None, job: str | None, described: JobOptions, node: NodeOptions
) -> Scenario:
    """The scenario of a plan's candidate: that cluster and that job."""
    from tonnage.plan.planner import PlanError, find_choice
    from tonnage.simulate.cluster import SimulationError
    from tonnage.simulate.planned import planned_scenario

    flag = f"--plan {path}"
    for other, value in {**flags_and_values(described), "--cores": node.cores}.items():
        if value is not None:
            raise core.UsageError(f"{flag} decides what {other} is; remove one of them")
    made, candidate = select_candidate(flag, path, number, job)
    catalogs = load_catalogs(node.catalog or [candidate.catalog])
    profiles = load_profiles([node.profile] if node.profile else made.profiles, catalogs)
    hint = "; name the plan's --catalog and --profile, or plan again"
    with usage_errors(PlanError, prefix=f"{flag}: ", hint=hint):
        choice = find_choice(made, candidate, catalogs, profiles)
    with usage_errors(SimulationError, prefix=f"{flag}: "):
        return planned_scenario(
            made,
            candidate,
            choice,
            memory_bytes=node.memory,
            connections=node.connections,
        )


def _described(job: str | None, described: JobOptions, node: NodeOptions) -> Scenario:
    """The scenario of the job and the cluster that the options describe."""
    from tonnage.plan.demand import layout_demand
    from tonnage.simulate.scenario import Scenario

    if job is None:
        raise core.UsageError("no job; add sort or mapreduce, or --plan FILE")
    refuse_unknown("JOB", [job], TWO_PASS)
    for flag, value in (("--nodes", described.nodes), ("--data", described.data)):
        if value is None:
            raise core.UsageError(f"no size of the cluster and its data; add {flag}")
    for flag, location in (("--from", described.from_), ("--to", described.to)):
        if location == "volumes":
            raise core.UsageError(
                f"{flag} volumes: which volumes a node has is a plan's; add --plan FILE instead"
            )
    asked = job_from(job, described.job_flags, "local")
    measured = _capacity(described, node)
    machine = _machine(node, measured.offer, asked)
    store = measured.catalog.object_store if measured.catalog else None
    demand = layout_demand(
        asked,
        "local",
        own_disks=True,
        volumes=None,
        laws=measured.capacity,
        shares=measured.shares,
        network="scaled",
        store=store.limits if store else None,
    )
    return Scenario(
        nodes=described.nodes or 0,
        data_bytes=described.data or 0,
        machine=machine,
        job=asked,
        demand=demand,
        buckets=_buckets(measured, machine.cores),
    )


def _machine(node: NodeOptions, offer: Offer | None, job: Job) -> Machine:
    """What the job has of a node."""
    from tonnage.plan.resources.engine_memory import MEMORY_SHARE, local_devices
    from tonnage.simulate.division import Machine

    if node.memory is None and (offer is None or offer.memory_bytes is None):
        raise core.UsageError("the node's memory is unknown; add --memory")
    if node.cores is None and (offer is None or not offer.vcpus):
        raise core.UsageError("the node's number of cores is unknown; add --cores")
    return Machine.for_job(
        job,
        memory_bytes=node.memory or int((offer.memory_bytes or 0) if offer else 0) // MEMORY_SHARE,
        cores=node.cores or int((offer.vcpus or 1) if offer else 1),
        devices=local_devices(offer) if offer else 1,
        connections=node.connections,
    )


class NodeCapacity(NamedTuple):
    capacity: OfferCapacity
    shares: OfferCapacity
    offer: Offer | None
    catalog: Catalog | None


def _capacity(described: JobOptions, node: NodeOptions) -> NodeCapacity:
    from tonnage.model.jobs.core_throughput import core_throughput
    from tonnage.model.profiles.repository import (
        NO_CAPACITY,
        ProfileError,
        index_profiles,
        read_profiles,
    )
    from tonnage.plan.resources.machines import advertised_rates

    if described.offer is None and node.profile is None:
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
    if described.offer is not None:
        offer = require_offer("--offer", catalogs, described.offer)
        key = offer.provider, offer.type
    elif len(index.offers) == 1:
        (key,) = index.offers
    else:
        types = ", ".join(sorted(kind for _, kind in index.offers)) or "no machine type"
        raise core.UsageError(f"--profile {node.profile} covers {types}; select one with --offer")
    shares = dataclasses.replace(index.shares, engine=core_throughput())
    catalog = next((each for each in catalogs if offer in each.offers), None)
    by_placement = index.offers.get(key, {})
    placed = described.placement
    placed = placed if placed is not None else max(by_placement, default=False)
    if placed in by_placement:
        return NodeCapacity(by_placement[placed], shares, offer, catalog)
    capacity = index.apart_from_placement(*key)
    if capacity is NO_CAPACITY:
        raise core.UsageError(
            f"this profile has no measurements of {key[1]}; use a --profile that does"
        )
    return NodeCapacity(capacity, shares, offer, catalog)


def _buckets(measured: NodeCapacity, cores: int) -> Buckets:
    """The advertised rates of a machine, as a plan has them; without an offer, only its cores."""
    from tonnage.model.token_bucket import TokenBucket
    from tonnage.plan.resources.machines import (
        THREADS_PER_CORE,
        priced_machine,
        reference_cores,
    )

    offer, catalog = measured.offer, measured.catalog
    buckets: dict[AdvertisedResource, TokenBucket] = {}
    reference = cores / THREADS_PER_CORE
    if offer is not None and catalog is not None:
        made = priced_machine(catalog, offer, False, "on-demand", 0)
        buckets |= {} if isinstance(made, str) else made.buckets
        other = structs.replace(offer, vcpus=cores, cores=None)
        reference = reference_cores(offer if offer.vcpus == cores else other) or reference
    buckets["cpu"] = TokenBucket.constant(cores)
    buckets["cores"] = TokenBucket.constant(reference)
    return buckets
