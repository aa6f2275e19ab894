"""Candidates as they are reported: of each offer and layout the best number of nodes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from tonnage.base import formatting
from tonnage.base.records.job import Job
from tonnage.base.records.plan import AttachedVolumes, Candidate, PlannedPhase, Range, SpaceFit
from tonnage.plan.calibration import cite
from tonnage.plan.capacity_samples import CapacitySamples
from tonnage.plan.cost_model import Array
from tonnage.plan.demand import LayoutDemand, PhaseDemand, ResourceClass
from tonnage.plan.layouts import OfferGroup, storage_fit
from tonnage.plan.machines import Machine
from tonnage.plan.monte_carlo import Outcome, sample_outcome
from tonnage.plan.search import Limits, SearchResult, limit_excess

TIGHT = 0.98
"""Of what there is, if more has to be held: what a file system takes may lack."""


@dataclass(frozen=True)
class Choice:
    """A machine of a group and a number of nodes."""

    group: OfferGroup
    place: int
    nodes: int

    @property
    def machine(self) -> Machine:
        """The machine."""
        return self.group.machines[self.place]


def candidates(
    job: Job, size: int, choices: Iterable[Choice], rates: CapacitySamples, limits: Limits
) -> list[Candidate]:
    """The choices as candidates, group by group."""
    together: dict[int, list[Choice]] = {}
    for choice in choices:
        together.setdefault(id(choice.group), []).append(choice)
    found = []
    for same in together.values():
        group = same[0].group
        places, nodes = [each.place for each in same], [each.nodes for each in same]
        came = sample_outcome(group, places, nodes, size, rates, limits.billing_unit)
        in_time = came.in_time(limits.deadline_seconds)
        found += [
            _candidate(job, size, each, came, at, float(in_time[at]), limits)
            for at, each in enumerate(same)
        ]
    return found


def _candidate(
    job: Job, size: int, choice: Choice, came: Outcome, at: int, in_time: float, limits: Limits
) -> Candidate:
    machine, shape = choice.machine, choice.group.demand
    needed, had = storage_fit(job, size, shape, machine, choice.nodes)
    return Candidate(
        catalog=machine.catalog.name,
        provider=machine.offer.provider,
        offer=machine.offer.type,
        layout=shape.layout,
        placement=machine.placement,
        nodes=choice.nodes,
        seconds=_range(came.seconds_interval, came.seconds, at),
        cost_usd=_range(came.usd_interval, came.cost_usd, at),
        usd_per_hour=float(came.usd_per_hour[at]),
        phases=[_phase(phase, terms, at) for phase, terms in came.phases],
        capacity=SpaceFit(needed_bytes=needed, have_bytes=had),
        evidence=shape.evidence,
        deadline_probability=in_time if math.isfinite(limits.deadline_seconds) else None,
        own_disks=shape.own_disks,
        volumes=_attached(shape, choice.nodes),
        calibrated=cite(shape.calibration_match.calibration),
        notes=_notes(shape, machine, choice.nodes, needed / had if had else 0.0),
    )


def _attached(shape: LayoutDemand, nodes: int) -> AttachedVolumes | None:
    if shape.volumes is None:
        return None
    return AttachedVolumes(
        kind=shape.volumes.kind.name,
        count=shape.volumes.count,
        gib_each=shape.volumes.gib_of_one(nodes),
    )


def _range(between: Array, middle: Array, at: int) -> Range:
    return Range(low=float(between[0, at]), median=float(middle[at]), high=float(between[1, at]))


def _phase(
    phase: PhaseDemand, terms: Sequence[tuple[ResourceClass, Array]], at: int
) -> PlannedPhase:
    longest: list[tuple[str, float]] = [(thing, float(each[at])) for thing, each in terms]
    thing, seconds = max(longest, key=lambda term: term[1], default=("nothing", 0.0))
    if phase.fixed_seconds > seconds:
        thing = "what is fixed"
    return PlannedPhase(name=phase.name, seconds=seconds + phase.fixed_seconds, bottleneck=thing)


def _notes(shape: LayoutDemand, machine: Machine, nodes: int, full: float) -> list[str]:
    """What is to be minded of a candidate."""
    notes = list(shape.calibration_match.notes)
    if full > TIGHT:
        notes.append(
            f"its disks are full to {formatting.percent(full)}, as the papers count it; a file system "
            "takes 1 or 2 % of them"
        )
    if any(part.advertised for part in shape.parts if part.resource.startswith("object")):
        notes.append("object storage was not measured, and is taken to be as fast as its network")
    price = machine.offer.on_demand
    if price and price.caution:
        notes.append(f"its price is {price.caution}")
    used = {term.resource_class for phase in shape.phases for term in phase.terms}
    if (
        "network" in shape.advertised_classes
        and machine.offer.network.baseline_bytes_per_second is None
    ):
        notes.append("of its network only the peak is told: what lasts may be less")
    if "network" in used and shape.curve is None and not shape.at_scale:
        notes.append("its network was not measured in fleets of several sizes")
    if shape.curve and shape.curve is not shape.measured_curve:
        notes.append(f"its network is taken to fall in larger fleets as in {shape.curve.source}")
    if shape.curve and (warning := shape.curve.warning(nodes)):
        notes.append(warning)
    return notes


def best_per_layout(groups: Sequence[OfferGroup], found: Sequence[SearchResult]) -> list[Choice]:
    """Of each offer and layout the best, whatever its volumes; ties to fewer nodes."""
    if not groups:
        return []
    which = np.concatenate([np.full(len(each.nodes), at) for at, each in enumerate(found)])
    places = np.concatenate([np.arange(len(each.nodes)) for each in found])
    # Of several choices with the same number, offer and layout are the same.
    numbers = np.concatenate(
        [2 * group.machines.numbers + group.demand.own_disks for group in groups]
    )
    nodes = np.concatenate([each.nodes for each in found])
    values = np.concatenate([each.value for each in found])
    order = np.lexsort((nodes, values, numbers))
    order = order[nodes[order] > 0]
    _, first = np.unique(numbers[order], return_index=True)
    return [
        Choice(groups[which[at]], int(places[at]), int(nodes[at]))
        for at in sorted(order[first].tolist())
    ]


def rank_key(each: Candidate, limits: Limits) -> tuple[float, float, int, str, str]:
    """What comes first: to eight digits, since what differs by less is alike."""
    usd, seconds = (float(f"{value:.8g}") for value in (each.cost_usd.median, each.seconds.median))
    if limits.objective == "nearest":
        missed = float(limit_excess(np.array([seconds]), np.array([usd]), limits)[0])
        return missed, usd, each.nodes, each.offer, each.layout
    first, second = (usd, seconds) if limits.objective == "cost" else (seconds, usd)
    # Fewer nodes come before what comes second, which for money is time.
    if limits.objective == "cost":
        return first, each.nodes, 0, each.offer, each.layout
    return first, second, each.nodes, each.offer, each.layout
