"""Find the best number of nodes of every machine of a group, by computing all of them.

All numbers up to 10,000, that is; larger ones are 0.1 % apart, since time and cost change so little
with one more node.

Every resource is at its median. Machines with the same advertised rates take the same time, so time
is computed once for them and priced for each. The search is in single precision, some hundred
machines at once, so that arrays stay in a processor's cache; what is reported is in double.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from tonnage.base.records.plan import BilledItem
from tonnage.model.token_bucket import TokenBucket
from tonnage.plan.capacity_samples import CapacitySamples, MedianCapacity
from tonnage.plan.cost_model import (
    Array,
    BillingUnit,
    NodePrice,
    bill,
    job_work,
    machine_hours,
)
from tonnage.plan.demand import AdvertisedResource
from tonnage.plan.layouts import OfferGroup

Objective = Literal["cost", "time", "nearest"]
CHUNK = 1 << 17
"""Machines times cluster sizes that are computed at once."""
LARGEST_CLUSTER = 250
"""The largest cluster that plans consider unless asked: few can rent more machines of one type at
once. Of the published sorts that plans are compared with, one had more (330)."""
EVERY_NUMBER_UP_TO, STEP = 10_000, 1.001
"""Every number of nodes is computed up to this, and numbers this factor apart beyond."""
LONGEST_SECONDS = 1e10
"""Nobody waits longer, 317 years: what would take more, or cost more than there is, is no plan."""
MOST_USD = 1e15
MOST_WORK = np.float32(1e30)
"""Node-seconds beyond this are as many: they are no plan, and their cost stays finite."""
TIE = 3e-6
"""Relative difference that is a tie in single precision."""
SEARCH_ERROR = 1e-5
"""Relative error of what a search finds, which is in single precision."""
UNMEASURED_CREDIT = "unmeasured credit"
"""The draws of the share of a possible credit that a sampled cluster's networks have."""


@dataclass(frozen=True)
class Limits:
    """The limits of a plan; ``nearest`` minimises the factor by which the worst is exceeded."""

    min_nodes: int = 1
    max_nodes: int = LARGEST_CLUSTER
    deadline_seconds: float = math.inf
    budget_usd: float = math.inf
    objective: Objective = "cost"
    billing_unit: BillingUnit = "seconds"

    @property
    def longest_seconds(self) -> float:
        return min(self.deadline_seconds, LONGEST_SECONDS)

    @property
    def most_usd(self) -> float:
        return min(self.budget_usd, MOST_USD)


def cluster_sizes(least: int, most: int) -> npt.NDArray[np.int64]:
    """The numbers of nodes that are computed, in order; the last is ``most``."""
    if least > most:
        return np.empty(0, dtype=np.int64)
    every = np.arange(least, min(most, EVERY_NUMBER_UP_TO) + 1)
    steps = math.ceil(math.log(max(most / EVERY_NUMBER_UP_TO, 1)) / math.log(STEP))
    beyond = (EVERY_NUMBER_UP_TO * STEP ** np.arange(1, steps)).round().astype(np.int64)
    return np.unique(np.concatenate([every, beyond[beyond >= least], [most]]))


@dataclass(frozen=True)
class SearchResult:
    """The best number of nodes of each machine of a group, and its least time and cost.

    ``nodes`` is 0 where no number keeps the limits. The least time and cost are over all numbers of
    nodes that store the job, whatever the deadline and the budget.
    """

    nodes: npt.NDArray[np.int64]
    value: Array
    """The minimised value at that number."""
    fastest_seconds: Array
    cheapest_usd: Array


def search_all(
    groups: Sequence[OfferGroup], size: int, samples: CapacitySamples, limits: Limits
) -> list[SearchResult]:
    return [search(group, size, samples, limits) for group in groups]


def search(group: OfferGroup, size: int, samples: CapacitySamples, limits: Limits) -> SearchResult:
    """Find the best number of nodes of each machine; ties go to fewer."""
    which, set_of = group.distinct_machines
    times = _Times(group, which, size, samples, limits)
    step = max(CHUNK // len(times.sizes), 1)
    chunks = [
        _search(group, times, set_of[begin : begin + step], slice(begin, begin + step), limits)
        for begin in range(0, len(group.machines), step)
    ]
    return SearchResult(*(np.concatenate(each) for each in zip(*chunks, strict=True)))


class _Times:
    """Times of each distinct machine and cluster size, in single precision."""

    def __init__(
        self,
        group: OfferGroup,
        which: npt.NDArray[np.int64],
        size: int,
        samples: CapacitySamples,
        limits: Limits,
    ) -> None:
        begin = min(max(limits.min_nodes, int(group.min_nodes.min())), limits.max_nodes)
        self.sizes = cluster_sizes(begin, limits.max_nodes)
        nodes = self.sizes[None, :].astype(np.float64)
        buckets = {
            thing: each.select((which, None)) for thing, each in group.machines.buckets.items()
        }

        middle = MedianCapacity(samples, self.sizes[None, :])
        interruptions = group.machines.interruptions_per_second[which, None]
        with np.errstate(over="ignore"):
            work = job_work(
                *(group.demand, size, middle, nodes, buckets, np.float32),
                interruptions_per_second=interruptions,
            )
        work = np.minimum(work, MOST_WORK)
        work = np.broadcast_to(work, (len(which), len(self.sizes)))
        nodes = nodes.astype(np.float32)
        self.seconds = work / nodes
        self.fastest = self.seconds.min(axis=1)
        self.all_in_time = bool(self.seconds.max() <= limits.longest_seconds)
        self.hours = machine_hours(work, nodes, group.catalog.billing, limits.billing_unit)
        self.other_usd: Array | None = None
        """The cost of volumes, object storage and egress; ``None`` if there is none."""
        volumes = group.demand.volumes
        outside_usd = group.outside_usd[which, None].astype(np.float32)
        if volumes:
            by_volumes = (volumes.usd_per_hour(nodes.astype(np.float64)) / 3600).astype(np.float32)
            self.other_usd = work * by_volumes + outside_usd
        elif outside_usd.any():
            self.other_usd = np.broadcast_to(outside_usd, work.shape)


def _search(
    group: OfferGroup, times: _Times, set_of: npt.NDArray[np.int64], of: slice, limits: Limits
) -> tuple[npt.NDArray[np.int64], Array, Array, Array]:
    prices = machine_usd_per_hour(group)[of, None].astype(np.float32)
    cost = times.hours[set_of] * prices
    if times.other_usd is not None:
        cost += times.other_usd[set_of]
    needed, allowed = group.min_nodes[of, None], group.most_nodes[of, None]
    all_hold = needed.max() <= times.sizes[0] and allowed.min() >= times.sizes[-1]
    if all_hold and limits.objective == "cost" and times.all_in_time:
        value, fastest, cheapest = cost, times.fastest[set_of], cost.min(axis=1)
    else:
        seconds = times.seconds[set_of]
        if not all_hold:
            sizes = times.sizes[None, :]
            impossible = (sizes < needed) | (sizes > allowed)
            cost[impossible] = np.inf
            seconds[impossible] = np.inf
        fastest, cheapest = seconds.min(axis=1), cost.min(axis=1)
        value = _value(seconds, cost, limits)
    # Machines alone cannot cost more than there is: nobody has so many, for so long.
    has_budget = limits.most_usd < MOST_USD or bool((group.outside_usd > MOST_USD).any())
    if limits.objective != "nearest" and has_budget:
        value = np.where(cost > np.float32(limits.most_usd), np.inf, value)
    least = value.min(axis=1)
    first = np.argmax(value <= (least * np.float32(1 + TIE))[:, None], axis=1)
    return np.where(np.isfinite(least), times.sizes[first], 0), least, fastest, cheapest


def _value(seconds: Array, cost: Array, limits: Limits) -> Array:
    """The value to minimise; infinite where the deadline is missed."""
    if limits.objective == "nearest":
        return limit_excess(seconds, cost, limits)
    value = cost if limits.objective == "cost" else seconds
    return np.where(seconds > np.float32(limits.longest_seconds), np.inf, value)


def limit_excess(seconds: Array, cost: Array, limits: Limits) -> Array:
    """The factor by which the worst limit is exceeded."""
    excess = np.zeros_like(seconds)
    for value, limit in ((seconds, limits.deadline_seconds), (cost, limits.budget_usd)):
        if math.isfinite(limit):
            excess = np.maximum(excess, value / limit)
    return np.where((seconds <= LONGEST_SECONDS) & (cost <= MOST_USD), excess, np.inf)


def node_numbers(group: OfferGroup, place: int, limits: Limits) -> npt.NDArray[np.int64]:
    """All numbers of nodes of a machine that store the job within the quota."""
    least = max(int(group.min_nodes[place]), limits.min_nodes)
    return cluster_sizes(least, min(int(group.most_nodes[place]), limits.max_nodes))


def buckets_at(
    group: OfferGroup, places: npt.ArrayLike
) -> Mapping[AdvertisedResource, TokenBucket]:
    """The advertised rates of the machines at these places."""
    where = np.asarray(places, dtype=np.int64)
    return {thing: each.select(where) for thing, each in group.machines.buckets.items()}


def sampled_buckets(
    group: OfferGroup,
    places: npt.ArrayLike,
    samples: CapacitySamples,
    clusters: int | None = None,
) -> Mapping[AdvertisedResource, TokenBucket]:
    """The same in the first so many sampled clusters, or in all: networks may have some of the
    credit of their size."""
    where = np.asarray(places, dtype=np.int64)
    buckets, (rate, credit) = buckets_at(group, where), group.machines.possible_burst[:, where]
    if not np.any(credit):
        return buckets
    known, drawn = buckets["network"], samples.clusters.uniform(UNMEASURED_CREDIT)[:clusters, None]
    burst = np.where(credit > 0, rate, known.burst)
    return {**buckets, "network": TokenBucket(known.baseline, burst, known.credit + drawn * credit)}


def median_outcomes(
    group: OfferGroup, place: int, nodes: Array, size: int, samples: CapacitySamples, limits: Limits
) -> tuple[Array, Array]:
    """Seconds and dollars of a machine in so many nodes, every resource at its median."""
    cluster_sizes = nodes.astype(np.float64)
    capacity, buckets = MedianCapacity(samples, nodes), buckets_at(group, [place])
    interruptions = group.machines.interruptions_per_second[place]
    work = job_work(
        *(group.demand, size, capacity, cluster_sizes, buckets),
        interruptions_per_second=interruptions,
    )
    work = np.broadcast_to(work, cluster_sizes.shape)
    cost = group_cost_usd(group, [place], work, cluster_sizes, limits.billing_unit)
    return work / cluster_sizes, cost


def machine_usd_per_hour(group: OfferGroup) -> Array:
    """The hourly price of a node of each machine, without its volumes."""
    machines = group.machines
    price = machines.usd_per_hour + machines.address_usd_per_hour
    return np.asarray(price + machines.link_usd_per_hour if group.demand.volumes else price)


def group_bill(
    group: OfferGroup,
    places: Sequence[int] | npt.NDArray[np.int64],
    work: Array,
    nodes: Array,
    billing_unit: BillingUnit,
    factor: Array | float = 1.0,
) -> dict[BilledItem, Array]:
    """The bill of work on the machines at these places, whose own price is times ``factor``."""
    machines, volumes = group.machines, group.demand.volumes
    own = machines.usd_per_hour[places] * factor
    price = NodePrice(
        own + machines.link_usd_per_hour[places] if volumes else own,
        volumes.usd_per_hour(nodes) if volumes else 0.0,
        machines.address_usd_per_hour[places],
    )
    outside = {
        item: np.broadcast_to(usd[places], nodes.shape) for item, usd in group.outside.items()
    }
    return bill(work, nodes, price, group.catalog.billing, billing_unit) | outside


def group_cost_usd(
    group: OfferGroup,
    places: Sequence[int] | npt.NDArray[np.int64],
    work: Array,
    nodes: Array,
    billing_unit: BillingUnit,
    factor: Array | float = 1.0,
) -> Array:
    """The sum of that bill."""
    return np.asarray(sum(group_bill(group, places, work, nodes, billing_unit, factor).values()))
