"""Estimate what a job gains on an existing cluster if some of its nodes are left out.

The cluster is known, so nothing is drawn: each resource is as fast as its slowest node's measured
rate, and demands are a plan's (`demand`, `cost_model`). Fewer nodes do more each; without slow ones
the rest are faster. CPU time counts where a catalog knows the number of cores. A measurement of a
minute gives no interval.
"""

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
from tonnage.plan.demand import (
    RESOURCE_CLASSES,
    AdvertisedResource,
    LayoutDemand,
    ResourceClass,
    layout_demand,
)
from tonnage.plan.resources.machines import lasting_vcpus

ON_NODES: frozenset[ResourceClass] = frozenset({"local disks", "network", "cpu"})
"""The classes that measuring nodes covers."""


@dataclass(frozen=True)
class MeasuredNode:
    name: str
    rates: Mapping[str, float]
    """Bytes per second by resource."""
    offer: Offer | None
    """Its offer; ``None`` if unknown or in no catalog."""
    billing: Billing | None


@dataclass(frozen=True)
class Forecast:
    """The job's time and cost on some of the nodes."""

    nodes: int
    seconds: float
    usd: float | None
    """``None`` if some node's price is unknown."""


@dataclass(frozen=True)
class Gain:
    """Savings from leaving nodes out; negative if that is slower or more expensive."""

    all_nodes: Forecast
    remaining: Forecast
    notes: list[str]

    @property
    def seconds(self) -> float:
        return self.all_nodes.seconds - self.remaining.seconds

    @property
    def usd(self) -> float | None:
        """``None`` if a price is unknown."""
        if self.all_nodes.usd is None or self.remaining.usd is None:
            return None
        return self.all_nodes.usd - self.remaining.usd


class NotEstimable(Exception):
    """Why there is no forecast, in one line."""


def resources_off_node(job: Job) -> list[ResourceClass]:
    """The classes that the job uses outside of nodes: volumes, object storage."""
    used = {RESOURCE_CLASSES[demand.resource] for phase in job.phases for demand in phase.demands}
    return sorted(used - ON_NODES)


def gain(job: Job, size: int, nodes: Sequence[MeasuredNode], left_out: Collection[str]) -> Gain:
    """Compare the job on all nodes with the job without those left out.

    The job uses nothing outside of nodes (`resources_off_node`); ``size`` is bytes of input.

    Raises:
        NotEstimable: No node remains, the catalog says that the job does not fit, or a resource
            that the job uses was not measured on all nodes.
    """
    rest = [node for node in nodes if node.name not in left_out]
    for some in (nodes, rest):
        _refuse_full(job, size, some)
    cores = _vcpus(nodes)
    if cores is None:
        job = _without_cores(job)
        if not any(phase.demands for phase in job.phases):
            raise NotEstimable("the job uses only CPU, and the number of cores is in no catalog")
    with_all, without = (_forecast(job, size, some, cores) for some in (nodes, rest))
    counted = any(demand.resource == "cpu" for phase in job.phases for demand in phase.demands)
    return Gain(with_all, without, [] if counted else ["CPU time is not included"])


def _forecast(job: Job, size: int, nodes: Sequence[MeasuredNode], cores: float | None) -> Forecast:
    used = {demand.resource for phase in job.phases for demand in phase.demands}
    laws: dict[str, CapacityDistribution] = {}
    for name in sorted(used):
        rates = {node.name: node.rates[name] for node in nodes if name in node.rates}
        if 0 < len(rates) < len(nodes):
            raise NotEstimable(f"{name} was not measured on all nodes")
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
        raise NotEstimable(
            f"there is no measurement of {formatting.listing(found.unknown_classes)}"
        )
    seconds = _seconds(found, size, len(nodes), cores)
    return Forecast(len(nodes), seconds, _usd(nodes, seconds))


def _law(resource: str, rates: Mapping[str, float]) -> CapacityDistribution:
    """The slowest node's rate, which is the cluster's."""
    slowest = min(rates, key=lambda node: (rates[node], node))
    if not rates[slowest]:
        raise NotEstimable(f"{slowest} moved no data ({resource})")
    return CapacityDistribution(
        resource=resource,
        modes=[Mode(median=rates[slowest], spread=0.0, instances=len(rates))],
        of_fleet=True,
        at_scale=True,
        evidence="measured",
        source=f"{slowest}, the slowest of {len(rates)}",
        spread_source="none: these nodes as measured",
    )


def _seconds(found: LayoutDemand, size: int, count: int, cores: float | None) -> float:
    sizes = np.array([count])
    buckets: dict[AdvertisedResource, TokenBucket] = (
        {"cpu": TokenBucket.constant(cores)} if cores else {}
    )
    capacity = MedianCapacity(CapacitySamples(count, count), sizes)
    spent = job_work(found, size, capacity, sizes.astype(float), buckets)
    return float(spent[0]) / count


def _usd(nodes: Sequence[MeasuredNode], seconds: float) -> float | None:
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
    """The fewest of any node; ``None`` if unknown."""
    known = [lasting_vcpus(node.offer) for node in nodes if node.offer]
    counts = [each for each in known if each]
    return min(counts) if len(counts) == len(nodes) else None


def _without_cores(job: Job) -> Job:
    phases = [
        structs.replace(
            phase, demands=[d for d in phase.demands if RESOURCE_CLASSES[d.resource] != "cpu"]
        )
        for phase in job.phases
    ]
    return structs.replace(job, phases=phases)


def _refuse_full(job: Job, size: int, nodes: Sequence[MeasuredNode]) -> None:
    """Refuse nodes of which one cannot store its share, according to the catalog."""
    if not nodes:
        raise NotEstimable("no node remains")
    share = size * sum(room.per_byte for room in job.room if room.where == "local") / len(nodes)
    # A node with no or unknown disks was measured on other ones.
    offers = {node.name: node.offer for node in nodes if node.offer}
    held = {name: offer.local_bytes for name, offer in offers.items() if offer.all_disks_known}
    known = {name: room for name, room in held.items() if room}
    small = min(known, key=lambda name: known[name], default=None)
    if small is not None and known[small] < share:
        raise NotEstimable(
            f"the job does not fit on {formatting.several(len(nodes), 'node')}: each must store "
            f"{formatting.size(share)}, but the disks of {small} have only "
            f"{formatting.size(known[small])}"
        )
