"""Build the reported candidates: the best number of nodes of each offer and layout."""

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from tonnage.base import formatting
from tonnage.base.records.job import INTERRUPTIONS, Job
from tonnage.base.records.plan import (
    AttachedVolumes,
    Candidate,
    CostLine,
    PlannedPhase,
    Range,
    SpaceFit,
)
from tonnage.catalog.published.core_speeds import family_of
from tonnage.plan.calibration import cite
from tonnage.plan.capacity_samples import CapacitySamples
from tonnage.plan.cost_model import Array
from tonnage.plan.demand import LayoutDemand, PhaseDemand, ResourceClass
from tonnage.plan.layouts import OfferGroup, disk_fit, memory_fit
from tonnage.plan.monte_carlo import Outcome, sample_outcome
from tonnage.plan.resources.machines import Machine, network_caution
from tonnage.plan.search import Limits, SearchResult, limit_excess

NOTEWORTHY = 0.1
"""A smaller share of the time is not worth a note."""
OWN_CORES = (
    "its cores were not measured; they are assumed to work as in Tonnage's own benchmarks, as fast "
    "as others measured cores of its type"
)
SEEN_CORES = (
    "its cores did not run this job; core seconds are scaled from those that did, as fast as "
    "others measured cores of both types"
)
NEARLY_FULL = 0.98
"""Above this share of disks or memory, what is not counted may be missing."""
FILE_SYSTEM_NEEDS = "the file system needs another 1 to 2 %: the data may not fit"
MEMORY_NEEDS = "a little more data would not fit"


Item = TypeVar("Item")

CLOSE = 1.02
"""Costs or times that differ by no more are not told apart."""


@dataclass(frozen=True)
class Choice:
    group: OfferGroup
    place: int
    nodes: int

    @property
    def machine(self) -> Machine:
        return self.group.machines[self.place]


def candidates(
    job: Job, size: int, choices: Iterable[Choice], samples: CapacitySamples, limits: Limits
) -> list[Candidate]:
    """Turn choices into candidates, group by group."""
    by_group: dict[int, list[Choice]] = {}
    for choice in choices:
        by_group.setdefault(id(choice.group), []).append(choice)
    found = []
    for same in by_group.values():
        group = same[0].group
        places, nodes = [each.place for each in same], [each.nodes for each in same]
        outcome = sample_outcome(group, places, nodes, size, samples, limits.billing_unit)
        in_time = outcome.in_time(limits.deadline_seconds)
        found += [
            _candidate(job, size, each, outcome, at, float(in_time[at]), limits)
            for at, each in enumerate(same)
        ]
    return found


def _candidate(
    job: Job, size: int, choice: Choice, outcome: Outcome, at: int, in_time: float, limits: Limits
) -> Candidate:
    machine, demand = choice.machine, choice.group.demand
    disks = disk_fit(job, size, demand, machine, choice.nodes)
    memory = memory_fit(job, size, machine, choice.nodes)
    phases = [_phase(phase, terms, at) for phase, terms in outcome.phases]
    return Candidate(
        catalog=machine.catalog.name,
        provider=machine.offer.provider,
        offer=machine.offer.type,
        layout=demand.layout,
        placement=machine.placement,
        nodes=choice.nodes,
        seconds=_range(outcome.seconds_interval, outcome.seconds, at),
        cost_usd=_range(outcome.usd_interval, outcome.cost_usd, at),
        usd_per_hour=float(outcome.usd_per_hour[at]),
        phases=[
            *phases,
            *_interruptions(float(outcome.interruption_seconds[at])),
        ],
        capacity=disks,
        evidence=demand.evidence,
        deadline_probability=in_time if math.isfinite(limits.deadline_seconds) else None,
        own_disks=demand.own_disks,
        volumes=_attached(demand, choice.nodes),
        memory=memory,
        calibrated=cite(demand.calibration_match.calibration),
        run_seconds=_range(outcome.run_interval, outcome.run_seconds, at)
        if demand.start_up
        else None,
        costs=[
            CostLine(item=item, usd=float(usd[at])) for item, usd in outcome.bill.items() if usd[at]
        ],
        notes=[
            *demand.calibration_match.notes,
            *_space_notes(disks, memory),
            *_notes(demand, machine, choice.nodes),
            *_task_notes(phases, demand, machine, choice.nodes),
        ],
    )


def _interruptions(seconds: float) -> list[PlannedPhase]:
    if not seconds:
        return []
    return [PlannedPhase(name=INTERRUPTIONS, seconds=seconds, bottleneck="spot machines")]


def _attached(demand: LayoutDemand, nodes: int) -> AttachedVolumes | None:
    if demand.volumes is None:
        return None
    return AttachedVolumes(
        kind=demand.volumes.kind.name,
        count=demand.volumes.count,
        gib_each=demand.volumes.gib_of_one(nodes),
    )


def _range(between: Array, middle: Array, at: int) -> Range:
    return Range(low=float(between[0, at]), median=float(middle[at]), high=float(between[1, at]))


def _phase(
    phase: PhaseDemand, terms: Sequence[tuple[ResourceClass, Array]], at: int
) -> PlannedPhase:
    longest: list[tuple[str, float]] = [(thing, float(each[at])) for thing, each in terms]
    thing, seconds = max(longest, key=lambda term: term[1], default=("nothing", 0.0))
    if phase.fixed_seconds > seconds:
        thing = "fixed time"
    return PlannedPhase(name=phase.name, seconds=seconds + phase.fixed_seconds, bottleneck=thing)


def _space_notes(disks: SpaceFit, memory: SpaceFit | None) -> list[str]:
    return [
        f"the job fills its {space} to {formatting.percent(fit.share)}, and {rest}"
        for space, fit, rest in (
            ("disks", disks, FILE_SYSTEM_NEEDS),
            ("memory", memory, MEMORY_NEEDS),
        )
        if fit and fit.share > NEARLY_FULL
    ]


def _notes(demand: LayoutDemand, machine: Machine, nodes: int) -> list[str]:
    notes = []
    if any(part.advertised for part in demand.parts if part.resource.startswith("object")):
        notes.append("object storage was not measured; it is assumed to be as fast as the network")
    if "cores" in demand.advertised_resources:
        seen = any(
            part.advertised == "cores" and part.resource == "cpu" and not part.per_node
            for part in demand.parts
        )
        notes.append(SEEN_CORES if seen else OWN_CORES)
    notes += machine.purchase_notes
    used = {term.resource_class for phase in demand.phases for term in phase.terms}
    caution = network_caution(machine.offer)
    if caution and "network" in demand.advertised_resources:
        notes.append(caution)
    if "network" in used and demand.curve is None and not demand.at_scale:
        notes.append("its network was not measured in clusters of several sizes")
    if demand.curve and demand.curve is not demand.measured_curve:
        notes.append(f"its network is assumed to {demand.curve.assumption}")
    if demand.curve and (warning := demand.curve.warning(nodes)):
        notes.append(warning)
    return notes


def _task_notes(
    phases: Sequence[PlannedPhase], demand: LayoutDemand, machine: Machine, nodes: int
) -> list[str]:
    """What of its time more machines do not shorten, and where they are idle."""
    notes = []
    whole = sum(phase.seconds for phase in phases)
    skew = sum(phase.seconds for phase in phases if phase.bottleneck == "longest task")
    if skew > NOTEWORTHY * whole:
        notes.append(
            f"{formatting.percent(skew / whole)} of the time is that of single long tasks, which "
            "no number of machines shortens"
        )
    slots = nodes * float(machine.buckets["slots"].baseline) if "slots" in machine.buckets else 0.0
    tasks = [term.tasks for phase in demand.phases for term in phase.terms if term.tasks]
    few = sum(each < slots for each in tasks)
    if few:
        notes.append(
            f"{few} of its phases have fewer tasks than the {formatting.count(round(slots))} vCPUs "
            "of the cluster, so that some are idle"
        )
    return notes


def best_per_layout(groups: Sequence[OfferGroup], results: Sequence[SearchResult]) -> list[Choice]:
    """The best choice of each offer and layout, whatever its volumes; ties go to fewer nodes."""
    if not groups:
        return []
    which = np.concatenate([np.full(len(each.nodes), at) for at, each in enumerate(results)])
    places = np.concatenate([np.arange(len(each.nodes)) for each in results])
    # Choices with the same number share offer and layout.
    numbers = np.concatenate(
        [2 * group.machines.numbers + group.demand.own_disks for group in groups]
    )
    nodes = np.concatenate([each.nodes for each in results])
    values = np.concatenate([each.value for each in results])
    order = np.lexsort((nodes, values, numbers))
    order = order[nodes[order] > 0]
    _, first = np.unique(numbers[order], return_index=True)
    return [
        Choice(groups[which[at]], int(places[at]), int(nodes[at]))
        for at in sorted(order[first].tolist())
    ]


def ranked(some: Iterable[Candidate], limits: Limits) -> list[Candidate]:
    """Candidates, best first; of those within 2 % of the best, fewer nodes come first.

    No plan is so exact that it tells them apart, and fewer machines are less to rent and to lose.
    Egress costs as much whatever the machines, so 2 % are of the rest.
    """
    found = sorted(some, key=lambda each: rank_key(each, limits))
    if not found:
        return found
    least = rank_key(found[0], limits)[0]
    egress = sum(line.usd for line in found[0].costs if line.item == "egress")
    most = least + (CLOSE - 1) * (least - egress if limits.objective == "cost" else least)
    close = [each for each in found if rank_key(each, limits)[0] <= most]
    return sorted(close, key=lambda each: each.nodes) + found[len(close) :]


def rank_key(each: Candidate, limits: Limits) -> tuple[float, float, int, str, str]:
    """The sort key, rounded to eight digits: what differs by less is a tie."""
    usd, seconds = (float(f"{value:.8g}") for value in (each.cost_usd.median, each.seconds.median))
    if limits.objective == "nearest":
        missed = float(limit_excess(np.array([seconds]), np.array([usd]), limits)[0])
        return missed, usd, each.nodes, each.offer, each.layout
    first, second = (usd, seconds) if limits.objective == "cost" else (seconds, usd)
    # By cost, ties go to fewer nodes before less time.
    if limits.objective == "cost":
        return first, each.nodes, 0, each.offer, each.layout
    return first, second, each.nodes, each.offer, each.layout


def first_of_each(
    ranked: Sequence[Item], family_of_item: Callable[[Item], Hashable], most: int
) -> list[tuple[int, Item]]:
    """The items of a short table, with their ranks from 1.

    The first of each family, so that the table shows several ideas; all if they are at most
    ``most``.
    """
    numbered = [*enumerate(ranked, start=1)]
    if len(numbered) <= most:
        return numbered
    first: dict[Hashable, tuple[int, Item]] = {}
    for number, item in numbered:
        first.setdefault(family_of_item(item), (number, item))
    return [*first.values()][:most]


def best_of_families(candidates: Sequence[Candidate], most: int) -> list[tuple[int, Candidate]]:
    """The first candidate of each family of machine types, at most ``most``, with its rank."""
    return first_of_each(
        candidates,
        lambda each: (each.catalog, family_of(each.provider, each.offer), each.placement),
        most,
    )
