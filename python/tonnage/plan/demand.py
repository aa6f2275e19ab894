"""A job's demand on a layout: what each phase asks of a node's disks, volumes, network and cores.

    seconds(phase) = max over terms of (sum over parts of demand / capacity) + fixed seconds

A term is one resource class. Its parts' times add up, since reads and writes share the resource.
Local disks measured with both ways at once have one part, the larger way (Themis on EC2, equation
5); measured apart, a part each. Reads and writes of volumes are parts, since they share the node's
link. Object storage traffic during a shuffle uses the node's network link, and is a part of both
terms. Credits are shared among phases in proportion to their bytes.

Runs of the job override the model (`calibration`). A part's capacity is a distribution, either of
rates or of shares of the advertised rate. All machines with the same demand are computed at once.

Where threads read or write in turn with their other work, N of them do no more than N times what
one does in that order (Lazowska et al., Quantitative System Performance, section 5.2):

    seconds(phase) >= CPU work of the node / its cores + bytes in turn / capacity / threads

A phase of T tasks runs in waves of as many as there are slots, one a vCPU, and ends with its
longest (Graham, Bounds on Multiprocessing Timing Anomalies, 1969):

    seconds(phase) >= (CPU work / cores + waits of tasks / slots) x ceil(T / slots) x slots / T
    seconds(phase) >= longest task
"""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Literal

from tonnage.base.records.calibration import Calibration
from tonnage.base.records.job import OUTSIDE_PHASES, START_UP, Demand, Job, JobPhase, Resource
from tonnage.base.records.profile import CapacityDistribution, Mode
from tonnage.catalog import StoreLimits
from tonnage.model.capacity import UNKNOWN_SPREAD
from tonnage.model.jobs.core_throughput import BEGIN, ENGINE_JOBS, NODE_CORE_SECONDS
from tonnage.model.profiles.network_scaling import ScalingCurve
from tonnage.model.profiles.repository import OfferCapacity
from tonnage.plan.calibration import (
    NO_MATCH,
    CalibrationMatch,
    calibrated_phase,
    observed_capacity,
    slow_node_rate,
)
from tonnage.plan.resources.block_volumes import BlockVolumes
from tonnage.plan.resources.object_store import (
    CONNECTIONS,
    Requests,
    RequestSize,
    SharedClass,
    SharedDemand,
    connection_law,
    shared_demands,
)

ResourceClass = (
    Literal["local disks", "volumes", "network", "object storage", "cpu", "start"]
    | Literal["object connections", "threads", "task slots", "longest task", "warm-up"]
    | SharedClass
)
RESOURCE_CLASSES: Mapping[Resource, ResourceClass] = {
    "local read": "local disks",
    "local write": "local disks",
    "volume read": "volumes",
    "volume write": "volumes",
    "object get": "object storage",
    "object put": "object storage",
    "network": "network",
    "cpu": "cpu",
    "cpu partition": "cpu",
    "cpu sort": "cpu",
    "cpu object": "cpu",
    "cpu copy": "cpu",
    "cpu kmeans": "cpu",
    "cpu pca": "cpu",
    "task wait": "task slots",
}
VOLUMES_FOR: Mapping[Resource, Resource] = {
    "local read": "volume read",
    "local write": "volume write",
}
AdvertisedResource = (
    Literal["local read", "local write", "volumes", "network", "cpu", "cores", "requests"]
    | Literal["threads", "slots", "core speed"]
    | RequestSize
)
"""What machines advertise a rate of: local disks each way, the others as a class.

``cpu`` is the number of vCPUs, ``cores`` that of physical cores, as fast as the reference's, and
``core speed`` what a slot of tasks has of these; ``slots`` is how many tasks run at once. The size
of requests follows from the memory; how many are under way at once, and how many threads there
are, from the vCPUs.
"""
ADVERTISED_RESOURCES: Mapping[str, AdvertisedResource] = {
    "local read": "local read",
    "local write": "local write",
    "volume read": "volumes",
    "volume write": "volumes",
    "object get": "network",
    "object put": "network",
    "network": "network",
    "cpu": "cpu",
    "cpu partition": "cpu",
    "cpu sort": "cpu",
    "cpu object": "cpu",
    "cpu copy": "cpu",
    "cpu kmeans": "cpu",
    "cpu pca": "cpu",
    "task wait": "slots",
}
LINK_CLASSES: tuple[ResourceClass, ...] = ("network", "object storage")
"""The classes that share a node's network link."""
CORES = CapacityDistribution(
    resource="cpu",
    modes=[Mode(median=1.0, spread=UNKNOWN_SPREAD, instances=1)],
    of_fleet=True,
    evidence="advertised",
    source="vCPUs, assumed equal to the observed machine's cores",
    spread_source="assumed, as for a single trial",
)


CLOCK = CapacityDistribution(
    resource="cpu",
    modes=[Mode(median=1.0, spread=0.0, instances=1)],
    of_fleet=True,
    evidence="measured",
    source="as long as it took there, on any machine",
    spread_source="none: it is counted as it was seen",
)
"""Of what takes as long on any machine."""


CORE_SPEED: AdvertisedResource = "core speed"
CORE_SPEED_SPREAD = 0.08
CORE_SPEED_SOURCE = (
    "how far families of machines were from what their cores sort, for ten jobs whose runs are "
    "public"
)


@dataclass(frozen=True, eq=False)
class DemandPart:
    """Demand on one resource per byte of input, and the resource's capacity."""

    resource: str
    per_byte: float
    capacity: CapacityDistribution
    advertised: AdvertisedResource | None
    """What the machine advertises, if the capacity is a share of that rate."""
    sources: str
    curve: ScalingCurve | None = None
    """How the capacity falls with the number of nodes."""
    remote_only: bool = False
    """Whether the 1/N that a node of N keeps for itself is not counted."""
    per_node: bool = False
    """Whether ``per_byte`` is what one node needs, however large the input is."""
    shared: bool = False
    """Whether the capacity is that of all nodes together."""
    outside: bool = False
    """Whether it is traffic with others than the nodes, which a single node has, too."""
    in_turn: bool = False
    """Whether each of a node's threads does a part of it, in turn with its other work."""


@dataclass(frozen=True, eq=False)
class DemandTerm:
    resource_class: ResourceClass
    parts: tuple[DemandPart, ...]
    credit_share: float
    """The share of the class's credits for this phase."""
    max_per_node: float | None = None
    """A node uses no more than this of what it advertises; of requests whose size is a machine's,
    the longest."""
    tasks: int | None = None
    """Into how many tasks its work is divided; ``None``: any."""

    @cached_property
    def work_key(self) -> object:
        """Equal for terms that take equally long, of whatever phase."""
        parts = tuple(
            (
                *(id(part.capacity), part.per_byte, part.remote_only, part.per_node, part.shared),
                *(part.outside, part.in_turn),
            )
            for part in self.parts
        )
        return self.resource_class, parts, self.credit_share, self.max_per_node, self.tasks

    @property
    def per_byte(self) -> float:
        """Bytes for each byte of input."""
        return sum(part.per_byte for part in self.parts)


@dataclass(frozen=True, eq=False)
class PhaseDemand:
    name: str
    terms: tuple[DemandTerm, ...]
    fixed_seconds: float
    local_per_byte: float
    """Bytes of the larger way on local disks per byte of input."""


@dataclass(frozen=True, eq=False)
class LayoutDemand:
    layout: str
    own_disks: bool
    """Whether local disks are used."""
    volumes: BlockVolumes | None
    phases: tuple[PhaseDemand, ...]
    unknown_classes: tuple[str, ...]
    """Classes without any capacity, measured or advertised."""
    advertised_resources: frozenset[AdvertisedResource]
    """The advertised rates that are needed of each machine."""
    measured_curve: ScalingCurve | None
    """How this offer's own network was measured to scale."""
    calibration_match: CalibrationMatch = NO_MATCH
    """The runs that calibrate it."""
    spread: float = 0.0
    """Of the job's time beyond that of capacities (`Job.spread`)."""
    with_third_pass: "LayoutDemand | None" = None
    """The demand on machines with too little memory for two passes."""

    @property
    def start_up(self) -> tuple[DemandTerm, ...]:
        """The term of the machines' start; none if they are ready."""
        return next((phase.terms for phase in self.phases if phase.name == START_UP), ())

    @cached_property
    def parts(self) -> list[DemandPart]:
        return [part for phase in self.phases for term in phase.terms for part in term.parts]

    @cached_property
    def at_scale(self) -> bool:
        """Whether the network was measured in a large cluster."""
        return any(part.capacity.at_scale for part in self.parts)

    @cached_property
    def curve(self) -> ScalingCurve | None:
        """How the network scales, if the job uses it and that is known."""
        return next((part.curve for part in self.parts if part.curve), None)

    @cached_property
    def evidence(self) -> Literal["measured", "advertised", "mixed"]:
        """Of all but the start, what nodes share, connections, and cores whose work is Tonnage's
        own figure."""
        kinds = {
            part.capacity.evidence == "advertised"
            for part in self.parts
            if part.advertised not in ("cores", "requests", "slots")
            and not part.per_node
            and not part.shared
        }
        if len(kinds) > 1:
            return "mixed"
        return "advertised" if True in kinds else "measured"


def move_to_volumes(demand: Demand) -> Demand:
    moved = VOLUMES_FOR.get(demand.resource)
    if moved is None:
        return demand
    return Demand(resource=moved, per_byte=demand.per_byte, source=f"{demand.source}, on volumes")


def layout_demand(
    job: Job,
    layout: str,
    *,
    own_disks: bool,
    volumes: BlockVolumes | None,
    laws: OfferCapacity,
    shares: OfferCapacity,
    network: str,
    calibration_match: CalibrationMatch = NO_MATCH,
    startup: Sequence[CapacityDistribution] = (),
    store: StoreLimits | None = None,
    requests: Sequence[Requests] = (),
) -> LayoutDemand:
    """Compute the job's demand on this layout.

    Args:
        own_disks: Whether local data is on the node's own disks, or else on volumes.
        laws: Capacities measured of the machine.
        shares: Shares of advertised rates that are reached.
        network: ``scaled``: slows down with cluster size, as measured; ``baseline``: as between two
            nodes; ``infinite``: ignored.
        startup: Machines per second of each step of starting; none: the machines are ready.
        store: What all nodes share of the object storage, and what each can have of it.
        requests: The job's requests to it.
    """
    if network != "scaled":
        laws, shares = (
            dataclasses.replace(each, curve=None, profile_curve=None) for each in (laws, shares)
        )
    if job.core_speed is not None:
        seen = {"cpu": seen_cores(job.core_speed)}
        shares = dataclasses.replace(shares, engine={**shares.engine, **seen})
    phases_demands = [_demands_by_class(phase, own_disks, network) for phase in job.phases]
    totals = {
        each: sum(_credited_bytes(each, demands_of) for demands_of in phases_demands) or 1.0
        for each in {*RESOURCE_CLASSES.values()}
    }
    shared = shared_demands(job, store, requests) if store else [[] for _ in job.phases]
    unknown: dict[str, None] = {}
    advertised: set[AdvertisedResource] = {each.size for each in requests if each.size}
    phases = [_start_up(startup)] if startup else []
    runs = calibration_match.calibration
    for place, (phase, demands_of) in enumerate(zip(job.phases, phases_demands, strict=True)):
        terms = []
        limits = calibrated_phase(runs, place).limits if runs else []
        if limits and (bottleneck := _unmodelled_bottleneck(limits, demands_of, network)):
            demands_of[bottleneck] = []
        for resource_class, demands in demands_of.items():
            parts = _parts(resource_class, demands, laws, shares)
            if resource_class == "task slots":
                parts = (*_parts("cpu", demands_of.get("cpu", []), laws, shares), *parts)
            if resource_class == "network" and not job.divisible:
                parts = tuple(dataclasses.replace(each, outside=True) for each in parts)
            if runs and not (network == "infinite" and resource_class == "network"):
                calibrated = _calibrated_parts(
                    resource_class,
                    demands,
                    parts,
                    runs,
                    place,
                    laws.curve or laws.profile_curve or shares.curve,
                )
                if calibrated is None:
                    continue
                parts = calibrated
            if not parts and resource_class == "cpu":
                continue  # The CPU time of a job that never ran is unknown; the plan says so.
            if not parts:
                unknown[resource_class] = None
            advertised.update(part.advertised for part in parts if part.advertised)
            most = phase.most_cores if resource_class == "cpu" else None
            if resource_class == "object storage" and store:
                most = store.node_bytes_per_second
            terms.append(
                DemandTerm(
                    resource_class,
                    parts,
                    _credited_bytes(resource_class, demands_of) / totals[resource_class],
                    most,
                    phase.tasks if resource_class == "task slots" else None,
                )
            )
        terms += _of_one_core(phase, job.core_speed)
        terms += [_shared_term(each) for each in shared[place]]
        stored = demands_of.get("object storage", [])
        if store and not runs and _is_unmeasured(stored, laws) and (law := connection_law(store)):
            terms.append(_connections_term(stored, law))
            advertised.add("requests")
        if not runs and (in_turn := _threads_term(terms, demands_of, laws, shares)):
            terms.append(in_turn)
            advertised.add("threads")
        if runs:  # Of terms that take equally long, name the observed bottleneck.
            terms.sort(key=lambda term: term.resource_class not in limits)
        local = _larger_way(demands_of.get("local disks", ()))
        phases.append(PhaseDemand(phase.name, tuple(terms), phase.fixed_seconds, local))
    if runs and runs.other_seconds:
        phases.append(PhaseDemand(OUTSIDE_PHASES, (), runs.other_seconds, 0.0))
    elif not runs and job.name in ENGINE_JOBS and BEGIN in shares.engine:
        phases.append(_outside_phases(shares.engine[BEGIN]))
        advertised.add("cores")
    return LayoutDemand(
        layout,
        own_disks,
        volumes,
        tuple(phases),
        tuple(unknown),
        frozenset(advertised),
        laws.curve,
        calibration_match,
        job.spread,
    )


def _start_up(steps: Sequence[CapacityDistribution]) -> PhaseDemand:
    parts = tuple(
        DemandPart(step.resource, 1.0, step, None, "once on each machine", per_node=True)
        for step in steps
    )
    return PhaseDemand(START_UP, (DemandTerm("start", parts, 0.0),), 0.0, 0.0)


def _outside_phases(law: CapacityDistribution) -> PhaseDemand:
    """What each node's process takes to begin and to end, on one core."""
    part = DemandPart(
        *("cpu", NODE_CORE_SECONDS, law, "cores", "each node starts a process"), per_node=True
    )
    term = DemandTerm("cpu", (part,), 0.0, max_per_node=1.0)
    return PhaseDemand(OUTSIDE_PHASES, (term,), 0.0, 0.0)


def _of_one_core(phase: JobPhase, core_speed: float | None) -> Iterator[DemandTerm]:
    """What a single core takes, with however many others."""
    law, advertised = (CLOCK, None) if core_speed is None else (seen_cores(core_speed), CORE_SPEED)
    seen = law, advertised, "seen in the run"
    if longest := phase.longest_task_per_byte:
        part = DemandPart("longest task", longest, *seen, shared=True)
        yield DemandTerm("longest task", (part,), 0.0)
    if warm_up := phase.warm_up_seconds:
        part = DemandPart("warm-up", warm_up, *seen, per_node=True)
        yield DemandTerm("warm-up", (part,), 0.0)


@cache
def seen_cores(core_speed: float) -> CapacityDistribution:
    """Core seconds of a vCPU of this speed that a core of the reference does in a second."""
    return CapacityDistribution(
        resource="cpu",
        modes=[Mode(median=1 / core_speed, spread=CORE_SPEED_SPREAD, instances=1)],
        of_fleet=True,
        evidence="advertised",
        source=f"{core_speed:.3g} reference cores did it in the same time where it was seen",
        spread_source=CORE_SPEED_SOURCE,
    )


def _is_unmeasured(demands: Sequence[Demand], laws: OfferCapacity) -> bool:
    """Whether no measurement, which made requests of its own, counts for these demands."""
    return bool(demands) and not any(each.resource in laws.distributions for each in demands)


def _connections_term(demands: Sequence[Demand], law: CapacityDistribution) -> DemandTerm:
    """What a node's requests carry that are under way at once."""
    parts = [
        DemandPart(each.resource, each.per_byte, law, "requests", each.source) for each in demands
    ]
    return DemandTerm(CONNECTIONS, tuple(parts), 0.0)


def _threads_term(
    terms: Sequence[DemandTerm],
    demands_of: Mapping[ResourceClass, list[Demand]],
    laws: OfferCapacity,
    shares: OfferCapacity,
) -> DemandTerm | None:
    """What a node's threads take that read or write in turn with their other work; ``None`` if
    there is no such data, or that work is unknown."""
    term_of = {term.resource_class: term for term in terms}
    waited_for = {
        resource_class: [each for each in demands if each.in_turn]
        for resource_class, demands in demands_of.items()
    }
    in_turn = [
        dataclasses.replace(part, in_turn=True)
        for resource_class, demands in waited_for.items()
        if demands
        for part in _parts(resource_class, demands, laws, shares)
    ]
    if "cpu" not in term_of or not in_turn:
        return None
    shares_of_credit = (
        term_of[resource_class].credit_share
        for resource_class, demands in waited_for.items()
        if demands
    )
    parts = (*term_of["cpu"].parts, *in_turn)
    return DemandTerm("threads", parts, min(shares_of_credit))


def _shared_term(shared: SharedDemand) -> DemandTerm:
    part = DemandPart(
        shared.resource, shared.per_byte, shared.capacity, shared.size, shared.source, shared=True
    )
    return DemandTerm(shared.resource_class, (part,), 0.0, shared.longest)


def _unmodelled_bottleneck(
    limits: Sequence[str], demands_of: Mapping[ResourceClass, object], network: str
) -> ResourceClass | None:
    """The run's bottleneck, if the job has no demand on it."""
    if demands_of.keys() & {*limits} or (network == "infinite" and "network" in limits):
        return None
    return next(
        resource_class for resource_class in RESOURCE_CLASSES.values() if resource_class in limits
    )


def _calibrated_parts(
    resource_class: ResourceClass,
    demands: list[Demand],
    own: tuple[DemandPart, ...],
    runs: Calibration,
    place: int,
    curve: ScalingCurve | None,
) -> tuple[DemandPart, ...] | None:
    """Parts of one class as runs had it: the run's rate for the bottleneck, else no slower.

    ``None`` if the class was not the bottleneck and its known capacity would be slower than the
    run: then it is as fast as the bottleneck in any cluster. That does not hold for a network among
    other classes, since more nodes use more of it, and one uses none.
    """
    phase = calibrated_phase(runs, place)
    is_bottleneck = resource_class in phase.limits
    no_network = "network" not in (resource_class, *phase.limits)
    sent = 1 - 1 / runs.nodes
    amounts = {False: 1.0}
    if resource_class == "local disks" and demands:
        amounts = {False: _larger_way(demands)}
    elif demands:
        amounts = {
            kept: _bytes(demand for demand in demands if demand.shuffled == kept)
            for kept in sorted({demand.shuffled for demand in demands})
        }
    moved = sum(each * (sent if kept else 1.0) for kept, each in amounts.items())
    observed = observed_capacity(runs, phase, moved, curve if resource_class == "network" else None)
    if observed is None:
        return own
    if own and not is_bottleneck:
        advertised = any(part.advertised for part in own)
        if advertised and resource_class == "network":
            return own
        # Seconds per byte of input and node, on a slow node of as large a cluster.
        alone = sum(
            part.per_byte * (sent if part.remote_only else 1) / slow_node_rate(part.capacity)
            for part in own
        )
        if not advertised and alone <= moved / observed.rate:
            return own
    if no_network and not is_bottleneck:
        return None
    resource = demands[0].resource if demands else resource_class
    sources = "; ".join(dict.fromkeys(demand.source for demand in demands)) or "observed in the run"
    return tuple(
        DemandPart(resource, each, observed.law, None, sources, observed.curve, remote_only=kept)
        for kept, each in amounts.items()
    )


def _demands_by_class(
    phase: JobPhase, own_disks: bool, network: str
) -> dict[ResourceClass, list[Demand]]:
    found: dict[ResourceClass, list[Demand]] = {}
    for demand in phase.demands:
        left_out = network == "infinite" and demand.resource == "network"
        if demand.per_byte > 0 and not left_out:
            moved = demand if own_disks else move_to_volumes(demand)
            found.setdefault(RESOURCE_CLASSES[moved.resource], []).append(moved)
    stored = found.get("object storage", [])
    if stored and any(demand.shuffled for demand in found.get("network", ())):
        sources = "; ".join(dict.fromkeys(demand.source for demand in stored))
        found["network"].append(
            Demand(
                resource="network",
                per_byte=_larger_way(stored),
                source=f"{sources}; object storage shares the link with the shuffle",
            )
        )
    return found


def _credited_bytes(
    resource_class: ResourceClass, demands_of: Mapping[ResourceClass, Sequence[Demand]]
) -> float:
    """Bytes of a phase that share one credit: object storage shares the network link."""
    alike = LINK_CLASSES if resource_class in LINK_CLASSES else (resource_class,)
    return max(_bytes(demands_of.get(each, ())) for each in alike)


def _bytes(demands: Iterable[Demand]) -> float:
    return sum(demand.per_byte for demand in demands)


def _parts(
    resource_class: ResourceClass, demands: list[Demand], laws: OfferCapacity, shares: OfferCapacity
) -> tuple[DemandPart, ...]:
    """Parts of one class; none if the capacity of any is unknown."""
    both = laws.distributions.get("local both")
    if resource_class == "local disks" and both:
        both_ways = len({demand.resource for demand in demands}) > 1
        measured_apart = all(demand.resource in laws.distributions for demand in demands)
        if both_ways or not measured_apart:
            # One way alone is at least as fast as each of both.
            sources = "; ".join(dict.fromkeys(demand.source for demand in demands))
            return (DemandPart("local both", _larger_way(demands), both, None, sources),)
    found = []
    for demand in demands:
        found_law = _law(demand.resource, laws, shares)
        if found_law is None:
            if resource_class == "cpu":
                continue  # What no profile knows of the sort's work is left out.
            return ()
        law, advertised = found_law
        own = laws.distributions.get(demand.resource)
        curve = None
        if demand.resource == "network" and (own is None or not own.at_scale):
            # Without its own scaling curve, assume that of its profile, or of all profiles.
            curve = ((laws.curve or laws.profile_curve) if own else None) or shares.curve
        # A rate that was derived by a study's equations counts all of a shuffle, as they do.
        found.append(
            DemandPart(
                *(demand.resource, demand.per_byte, law, advertised, demand.source, curve),
                remote_only=demand.shuffled and law.evidence != "derived",
            )
        )
    return tuple(found)


def _larger_way(demands: Iterable[Demand]) -> float:
    """The larger of bytes read and bytes written (equation 5)."""
    per_way: dict[str, float] = {}
    for demand in demands:
        per_way[demand.resource] = per_way.get(demand.resource, 0.0) + demand.per_byte
    return max(per_way.values(), default=0.0)


def _law(
    resource: Resource, laws: OfferCapacity, shares: OfferCapacity
) -> tuple[CapacityDistribution, AdvertisedResource | None] | None:
    """A resource's capacity, and what it is a share of: of object storage, of the network.

    Capacities of cores are those of one core.
    """
    if own := laws.distributions.get(resource):
        return own, "cpu" if RESOURCE_CLASSES[resource] == "cpu" else None
    if resource == "cpu":
        seen = shares.engine.get(resource)
        return (seen, "cores") if seen else (CORES, "cpu")
    if resource == "task wait":
        return CLOCK, "slots"
    if law := shares.distributions.get("network" if resource.startswith("object") else resource):
        return law, ADVERTISED_RESOURCES[resource]
    if law := shares.engine.get(resource):
        return law, "cores"
    return None
