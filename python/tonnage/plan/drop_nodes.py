"""What a job would gain on a fleet that is there, if some of its machines were left out.

The fleet is known, so nothing is drawn: each resource carries what its slowest machine carried when
it was measured, of which the job has its demands as in any plan (`shapes`, `evaluate`). With fewer
machines each has more to do; without slow ones each is as fast as the slowest that is left. What
cores do is counted where a catalog tells how many there are. Of what was measured for a minute
there is no interval.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from msgspec import structs

from tonnage.base import formatting
from tonnage.base.records.job import Job
from tonnage.base.records.profile import CapacityDistribution, Mode
from tonnage.catalog import Billing, Offer
from tonnage.model.profiles.repository import NO_CAPACITY, OfferCapacity
from tonnage.model.token_bucket import TokenBucket
from tonnage.plan.capacity_samples import CapacitySamples, MedianCapacity
from tonnage.plan.cost_model import cost_usd, job_work
from tonnage.plan.demand import RESOURCE_CLASSES, LayoutDemand, ResourceClass, layout_demand

HERE: frozenset[ResourceClass] = frozenset({"local disks", "network", "cpu"})
"""What a job may use whose machines are all that is measured."""


@dataclass(frozen=True)
class MeasuredNode:
    """A machine of the fleet."""

    name: str
    rates: Mapping[str, float]
    """Bytes a second, by the resources that jobs name."""
    offer: Offer | None
    """What it was rented as; ``None``: not known, or in no catalog."""
    billing: Billing | None


@dataclass(frozen=True)
class Forecast:
    """The job on some of the machines."""

    nodes: int
    seconds: float
    usd: float | None
    """``None``: of some machine the price is not known."""


@dataclass(frozen=True)
class Gain:
    """What leaving machines out saves; less than nothing if that makes it slower, or dearer."""

    all_nodes: Forecast
    remaining: Forecast
    notes: list[str]

    @property
    def seconds(self) -> float:
        """How much sooner the job is done."""
        return self.all_nodes.seconds - self.remaining.seconds

    @property
    def usd(self) -> float | None:
        """How much cheaper."""
        if self.all_nodes.usd is None or self.remaining.usd is None:
            return None
        return self.all_nodes.usd - self.remaining.usd


class NotEstimable(Exception):
    """Why there is no forecast, in one line."""


def resources_off_node(job: Job) -> list[ResourceClass]:
    """What the job uses and no machine has of its own: volumes, object storage."""
    used = {RESOURCE_CLASSES[demand.resource] for phase in job.phases for demand in phase.demands}
    return sorted(used - HERE)


def gain(job: Job, size: int, nodes: Sequence[MeasuredNode], left_out: Collection[str]) -> Gain:
    """The job on all machines, and without those that are left out.

    Args:
        job: The job; it uses nothing that is `beyond` machines.
        size: Bytes of input.
        nodes: The machines.
        left_out: Names of some.

    Raises:
        CannotTell: No machine is left, they do not hold the job as far as their catalog tells, or
            what the job uses was not measured of all.
    """
    rest = [node for node in nodes if node.name not in left_out]
    for some in (nodes, rest):
        _refuse_full(job, size, some)
    cores = _vcpus(nodes)
    if cores is None:
        job = _without_cores(job)
        if not any(phase.demands for phase in job.phases):
            raise NotEstimable("it uses cores alone, and no catalog tells how many there are")
    with_all, without = (_forecast(job, size, some, cores) for some in (nodes, rest))
    notes = [] if _counts_cores(job) else ["what cores have to do is not counted"]
    return Gain(with_all, without, notes)


def _forecast(job: Job, size: int, nodes: Sequence[MeasuredNode], cores: float | None) -> Forecast:
    used = {demand.resource for phase in job.phases for demand in phase.demands}
    laws: dict[str, CapacityDistribution] = {}
    for name in sorted(used):
        rates = {node.name: node.rates[name] for node in nodes if name in node.rates}
        if 0 < len(rates) < len(nodes):
            raise NotEstimable(f"of {name} not all machines were measured")
        if rates:
            laws[name] = _law(name, rates)
    found = layout_demand(
        job,
        "local",
        own_disks=True,
        volumes=None,
        laws=OfferCapacity(laws),
        shares=NO_CAPACITY,
        network="scaled",
    )
    if found.unknown_classes:
        raise NotEstimable(f"{formatting.listing(found.unknown_classes)}: not measured")
    seconds = _seconds(found, size, len(nodes), cores)
    return Forecast(len(nodes), seconds, _usd(nodes, seconds))


def _law(resource: str, rates: Mapping[str, float]) -> CapacityDistribution:
    """What the slowest carries, whose rate is the fleet's."""
    slowest = min(rates, key=lambda node: (rates[node], node))
    if not rates[slowest]:
        raise NotEstimable(f"of {resource} {slowest} carried nothing")
    return CapacityDistribution(
        resource=resource,
        modes=[Mode(median=rates[slowest], spread=0.0, instances=len(rates))],
        of_fleet=True,
        at_scale=True,
        evidence="measured",
        source=f"{slowest}, the slowest of {len(rates)}",
        spread_source="none: these machines, as they were measured",
    )


def _seconds(found: LayoutDemand, size: int, count: int, cores: float | None) -> float:
    sizes = np.array([count])
    figures: dict[ResourceClass, TokenBucket] = (
        {"cpu": TokenBucket.constant(cores)} if cores else {}
    )
    spent = job_work(
        found,
        size,
        MedianCapacity(CapacitySamples(count, count), sizes),
        sizes.astype(float),
        figures,
    )
    return float(spent[0]) / count


def _usd(nodes: Sequence[MeasuredNode], seconds: float) -> float | None:
    """Each machine's own price for so long."""
    total = 0.0
    for node in nodes:
        price = node.offer.on_demand if node.offer else None
        if price is None or node.billing is None:
            return None
        spent, one = np.array([seconds]), np.ones(1)
        hourly = np.array([price.usd_per_hour])
        total += float(cost_usd(spent, one, hourly, 0.0, 0.0, node.billing, "seconds")[0])
    return total


def _vcpus(nodes: Sequence[MeasuredNode]) -> float | None:
    """Of the machine that has fewest; ``None`` where that is not known, or does not last."""
    known = [node.offer.vcpus for node in nodes if node.offer and not node.offer.cores_burst]
    counts = [each for each in known if each]
    return min(counts) if len(counts) == len(nodes) else None


def _counts_cores(job: Job) -> bool:
    return any(demand.resource == "cpu" for phase in job.phases for demand in phase.demands)


def _without_cores(job: Job) -> Job:
    phases = [
        structs.replace(
            phase, demands=[d for d in phase.demands if RESOURCE_CLASSES[d.resource] != "cpu"]
        )
        for phase in job.phases
    ]
    return structs.replace(job, phases=phases)


def _refuse_full(job: Job, size: int, nodes: Sequence[MeasuredNode]) -> None:
    """Refuses machines of which one cannot hold its share, as far as their catalog tells."""
    if not nodes:
        raise NotEstimable("no machine is left")
    share = size * sum(room.per_byte for room in job.room if room.where == "local") / len(nodes)
    # Of one without disks, or with some that nobody knows, what was looked at are others.
    offers = {node.name: node.offer for node in nodes if node.offer}
    held = {name: offer.local_bytes for name, offer in offers.items() if offer.all_disks_known}
    known = {name: room for name, room in held.items() if room}
    small = min(known, key=lambda name: known[name], default=None)
    if small is not None and known[small] < share:
        raise NotEstimable(
            f"it does not fit on {formatting.several(len(nodes), 'machine')}: each has to hold "
            f"{formatting.size(share)} of it, and the disks of {small} hold {formatting.size(known[small])}"
        )
