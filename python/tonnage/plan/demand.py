"""A job on a layout: what of each phase a node's disks, volumes, network and cores have to carry.

    seconds(phase) = max over terms of (sum over parts of demand / capacity) + what is fixed

A term is what one thing carries: its parts' times add up, since reading and writing share it. Local
disks whose rate was measured each way while both are used have one part, the larger of both ways
(Themis on EC2, equation 5); where the ways were measured apart, a part each. BlockVolumes share a node's
link, so reading and writing are a part each. What a store gives or takes during a shuffle goes
through the same link of a node, and is a part of both. A thing's credits are shared by the phases
in proportion to what it carries in each.

Where runs of the job were seen, what they showed of a phase goes before (`calibrated`).

A part's capacity is a law; where the law is one of shares, times what is advertised. All machines
with the same shape are computed at once.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from tonnage.base.records.calibration import Calibration
from tonnage.base.records.job import Demand, Job, JobPhase, Resource
from tonnage.base.records.profile import CapacityDistribution, Mode
from tonnage.model.capacity import UNKNOWN_SPREAD
from tonnage.model.profiles.network_scaling import ScalingCurve
from tonnage.model.profiles.repository import OfferCapacity
from tonnage.plan.block_volumes import BlockVolumes
from tonnage.plan.calibration import (
    NO_MATCH,
    OUTSIDE_PHASES,
    CalibrationMatch,
    calibrated_phase,
    observed_capacity,
    slow_node_rate,
)

ResourceClass = Literal["local disks", "volumes", "network", "object storage", "cpu"]
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
}
LINK_CLASSES: tuple[ResourceClass, ...] = ("network", "object storage")
"""What goes through a node's link."""
CORES = CapacityDistribution(
    resource="cpu",
    modes=[Mode(median=1.0, spread=UNKNOWN_SPREAD, instances=1)],
    of_fleet=True,
    evidence="advertised",
    source="vCPUs, taken for the cores of the machine that was watched",
    spread_source="assumed, as of a single trial",
)


@dataclass(frozen=True, eq=False)
class DemandPart:
    """So much of a resource for each byte of input, and the law of what is carried."""

    resource: str
    per_byte: float
    capacity: CapacityDistribution
    advertised: bool
    """Whether the law is of shares of the advertised figure of the term's thing."""
    sources: str
    curve: ScalingCurve | None = None
    """How the capacity falls with the number of nodes."""
    remote_only: bool = False
    """Whether a node of N keeps 1/N of it, which is counted then."""


@dataclass(frozen=True, eq=False)
class DemandTerm:
    """What one thing carries in a phase."""

    resource_class: ResourceClass
    parts: tuple[DemandPart, ...]
    credit_share: float
    """What share of the thing's credits is for this phase."""
    max_per_node: float | None = None
    """No more of the thing is used by a node, however much it has."""

    @property
    def work_key(self) -> object:
        """The same for terms of several phases that take as long."""
        parts = tuple((id(part.capacity), part.per_byte, part.remote_only) for part in self.parts)
        return self.resource_class, parts, self.credit_share, self.max_per_node

    @property
    def per_byte(self) -> float:
        """Bytes for each byte of input."""
        return sum(part.per_byte for part in self.parts)


@dataclass(frozen=True, eq=False)
class PhaseDemand:
    """A phase on a layout."""

    name: str
    terms: tuple[DemandTerm, ...]
    fixed_seconds: float
    local_per_byte: float
    """What local disks have to carry, the larger of both ways, for each byte of input."""


@dataclass(frozen=True, eq=False)
class LayoutDemand:
    """A job on a layout."""

    layout: str
    own_disks: bool
    """Whether a node's own disks are used."""
    volumes: BlockVolumes | None
    phases: tuple[PhaseDemand, ...]
    unknown_classes: tuple[str, ...]
    """Resources of which nothing is known, whatever the machine."""
    advertised_classes: frozenset[ResourceClass]
    """Things of which a machine's advertised figure is needed."""
    measured_curve: ScalingCurve | None
    """The fall of its network that was measured."""
    calibration_match: CalibrationMatch = NO_MATCH
    """The runs that it is calibrated by."""

    @cached_property
    def parts(self) -> list[DemandPart]:
        """Of all terms of all phases."""
        return [part for phase in self.phases for term in phase.terms for part in term.parts]

    @cached_property
    def at_scale(self) -> bool:
        """Whether the network's rate is one of a large fleet already."""
        return any(part.capacity.at_scale for part in self.parts)

    @cached_property
    def curve(self) -> ScalingCurve | None:
        """How the network falls in larger fleets, if it is used and that is known."""
        return next((part.curve for part in self.parts if part.curve), None)

    @cached_property
    def evidence(self) -> Literal["measured", "advertised", "mixed"]:
        """What the capacities rest on."""
        kinds = {part.capacity.evidence == "advertised" for part in self.parts}
        if len(kinds) > 1:
            return "mixed"
        return "advertised" if True in kinds else "measured"


def move_to_volumes(demand: Demand) -> Demand:
    """The demand where everything lies on volumes."""
    if demand.resource == "local read":
        return Demand(
            resource="volume read", per_byte=demand.per_byte, source=f"{demand.source}, on volumes"
        )
    if demand.resource == "local write":
        return Demand(
            resource="volume write", per_byte=demand.per_byte, source=f"{demand.source}, on volumes"
        )
    return demand


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
) -> LayoutDemand:
    """The job on this layout.

    Args:
        job: The job.
        layout: What the layout is called.
        own_disks: Whether what the job keeps locally lies on the node's own disks; else on volumes.
        volumes: The volumes, if there are any.
        laws: What was measured of the machine.
        shares: What share of advertised figures is reached.
        network: ``scaled``: as it was measured to fall in larger fleets; ``baseline``: as between
            two nodes; ``infinite``: left out.
        chosen: What runs of the job showed.
    """
    if network != "scaled":
        laws, shares = (dataclasses.replace(each, curve=None) for each in (laws, shares))
    wanted = [_wanted(phase, own_disks, network) for phase in job.phases]
    missing: dict[str, None] = {}
    figures: set[ResourceClass] = set()
    phases = []
    runs = calibration_match.calibration
    for place, (phase, things) in enumerate(zip(job.phases, wanted, strict=True)):
        terms = []
        if runs and (held := _limit(calibrated_phase(runs, place).limits, things, network)):
            things[held] = []
        for thing, demands in things.items():
            parts = _parts(thing, demands, laws, shares)
            if runs and not (network == "infinite" and thing == "network"):
                as_run = _as_run(thing, demands, parts, runs, place, laws.curve or shares.curve)
                if as_run is None:
                    continue
                parts = as_run
            if not parts and thing == "cpu":
                continue  # A job that was never run has no figure of it; the plan says so.
            if not parts:
                missing[thing] = None
            if any(part.advertised for part in parts):
                figures.add("network" if thing == "object storage" else thing)
            whole = sum(_through(thing, each) for each in wanted) or 1.0
            most = phase.most_cores if thing == "cpu" else None
            terms.append(DemandTerm(thing, parts, _through(thing, things) / whole, most))
        if runs:  # Of those that take as long, what held it up is named.
            terms.sort(
                key=lambda term: term.resource_class not in calibrated_phase(runs, place).limits
            )
        local = _larger_way(things.get("local disks", ()))
        phases.append(PhaseDemand(phase.name, tuple(terms), phase.fixed_seconds, local))
    if runs and runs.other_seconds:
        phases.append(PhaseDemand(OUTSIDE_PHASES, (), runs.other_seconds, 0.0))
    return LayoutDemand(
        layout,
        own_disks,
        volumes,
        tuple(phases),
        tuple(missing),
        frozenset(figures),
        laws.curve,
        calibration_match,
    )


def _limit(
    limits: Sequence[str], things: Mapping[ResourceClass, object], network: str
) -> ResourceClass | None:
    """What held a phase up, if it is none of what the job's demands have."""
    if things.keys() & {*limits} or (network == "infinite" and "network" in limits):
        return None
    return next(thing for thing in RESOURCE_CLASSES.values() if thing in limits)


def _as_run(
    thing: ResourceClass,
    demands: list[Demand],
    own: tuple[DemandPart, ...],
    runs: Calibration,
    place: int,
    curve: ScalingCurve | None,
) -> tuple[DemandPart, ...] | None:
    """Parts of one thing as runs had it: just so, if it held them up; else no slower.

    ``None`` if it did not, and what is known of it would have taken longer than the run: then it
    is as fast as what did, whatever the fleet. That is not so of a network beside other things,
    of which more nodes need more, and one needs none.
    """
    phase = calibrated_phase(runs, place)
    held_up = thing in phase.limits
    alike = "network" not in (thing, *phase.limits)
    sent = 1 - 1 / runs.nodes
    amounts = {False: 1.0}
    if thing == "local disks" and demands:
        amounts = {False: _larger_way(demands)}
    elif demands:
        amounts = {
            kept: _bytes(demand for demand in demands if demand.shuffled == kept)
            for kept in sorted({demand.shuffled for demand in demands})
        }
        own = tuple(
            dataclasses.replace(part, remote_only=demand.shuffled)
            for part, demand in zip(own, demands, strict=bool(own))
        )
    moved = sum(each * (sent if kept else 1.0) for kept, each in amounts.items())
    found = observed_capacity(runs, phase, moved, curve if thing == "network" else None)
    if found is None:
        return own
    if own and not held_up:
        advertised = any(part.advertised for part in own)
        if advertised and thing == "network":
            return own
        # Seconds of a byte of input on each node, in as large a fleet, if it is a slow one.
        alone = sum(
            part.per_byte * (sent if part.remote_only else 1) / slow_node_rate(part.capacity)
            for part in own
        )
        if not advertised and alone <= moved / found.pace:
            return own
    if alike and not held_up:
        return None
    resource = demands[0].resource if demands else thing
    sources = "; ".join(dict.fromkeys(demand.source for demand in demands)) or "as it was run"
    return tuple(
        DemandPart(resource, each, found.law, False, sources, found.curve, remote_only=kept)
        for kept, each in amounts.items()
    )


def _wanted(phase: JobPhase, own_disks: bool, network: str) -> dict[ResourceClass, list[Demand]]:
    """A phase's demands by what carries them."""
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
                source=f"{sources}: a store is behind the link that a shuffle takes, too",
            )
        )
    return found


def _through(thing: ResourceClass, things: Mapping[ResourceClass, Sequence[Demand]]) -> float:
    """Bytes in a phase of what has one credit: a node's link is its way to a store, too."""
    alike = LINK_CLASSES if thing in LINK_CLASSES else (thing,)
    return max(_bytes(things.get(each, ())) for each in alike)


def _bytes(demands: Iterable[Demand]) -> float:
    return sum(demand.per_byte for demand in demands)


def _parts(
    thing: ResourceClass,
    demands: list[Demand],
    laws: OfferCapacity,
    shares: OfferCapacity,
) -> tuple[DemandPart, ...]:
    """Parts of one thing; none if its capacity for one of them is unknown."""
    both = laws.distributions.get("local both")
    if thing == "local disks" and both:
        mixed = len({demand.resource for demand in demands}) > 1
        apart = all(demand.resource in laws.distributions for demand in demands)
        if mixed or not apart:
            # Of one way alone at least as much is carried as of each of two.
            sources = "; ".join(dict.fromkeys(demand.source for demand in demands))
            return (DemandPart("local both", _larger_way(demands), both, False, sources),)
    found = []
    for demand in demands:
        own = laws.distributions.get(demand.resource)
        law = own or _share(demand.resource, shares.distributions)
        if law is None:
            return ()
        # A law of cores is of one of them: times as many as there are.
        advertised = own is None or thing == "cpu"
        curve = None
        if demand.resource == "network" and (own is None or not own.at_scale):
            # A fall that nobody measured of it is taken to be another's.
            curve = (laws.curve if own else None) or shares.curve
        found.append(
            DemandPart(demand.resource, demand.per_byte, law, advertised, demand.source, curve)
        )
    return tuple(found)


def _larger_way(demands: Iterable[Demand]) -> float:
    """Of what is read and what is written the more (equation 5)."""
    per_way: dict[str, float] = {}
    for demand in demands:
        per_way[demand.resource] = per_way.get(demand.resource, 0.0) + demand.per_byte
    return max(per_way.values(), default=0.0)


def _share(
    resource: str, shares: Mapping[str, CapacityDistribution]
) -> CapacityDistribution | None:
    """The share of an advertised figure that is reached.

    Object storage is reached through the network, whose figure bounds it.
    """
    if resource == "cpu":
        return CORES
    return shares.get("network" if resource.startswith("object") else resource)
