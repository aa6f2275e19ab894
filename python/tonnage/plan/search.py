"""The best number of nodes of every machine of a group: all of them are computed.

Times are those with every resource at its middle. Machines of which the same is advertised take the
same time, so time is computed once for all of them; what they cost is that time at their price. In
single precision, some hundred machines at once, since the arrays then stay in a processor's cache;
what is reported is computed in double.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from tonnage.model.token_bucket import TokenBucket
from tonnage.plan.capacity_samples import CapacitySamples, MedianCapacity
from tonnage.plan.cost_model import Array, BillingUnit, job_work, machine_hours
from tonnage.plan.demand import ResourceClass
from tonnage.plan.layouts import OfferGroup

Objective = Literal["cost", "time", "nearest"]
AT_ONCE = 1 << 17
"""Machines times fleet sizes that are computed at once."""
ALIKE = 3e-6
"""What differs by less is a tie, in single precision."""


@dataclass(frozen=True)
class Limits:
    """What a plan has to keep; ``nearest`` minimises by how much the worst of them is missed."""

    min_nodes: int = 1
    max_nodes: int = 1_000
    deadline_seconds: float = math.inf
    budget_usd: float = math.inf
    objective: Objective = "cost"
    billing_unit: BillingUnit = "seconds"


@dataclass(frozen=True)
class SearchResult:
    """For each machine of a group its best number of nodes, and what it can do at best.

    ``nodes`` is 0 where no number keeps the limits. The fastest and the cheapest are over all
    numbers of nodes that hold the job, whatever the deadline and the budget.
    """

    nodes: npt.NDArray[np.int64]
    value: Array
    """What was minimised, at that number."""
    fastest_seconds: Array
    cheapest_usd: Array


def search_all(
    groups: Sequence[OfferGroup], size: int, rates: CapacitySamples, limits: Limits
) -> list[SearchResult]:
    """The best of each group."""
    return [search(group, size, rates, limits) for group in groups]


def search(group: OfferGroup, size: int, rates: CapacitySamples, limits: Limits) -> SearchResult:
    """The best number of nodes of each machine; of those that tie the fewest."""
    which, alike = group.distinct_machines
    times = _Times(group, which, size, rates, limits)
    step = max(AT_ONCE // len(times.sizes), 1)
    chunks = [
        _search(group, times, alike[begin : begin + step], slice(begin, begin + step), limits)
        for begin in range(0, len(group.machines), step)
    ]
    return SearchResult(*(np.concatenate(each) for each in zip(*chunks, strict=True)))


class _Times:
    """Of each kind of machine and each fleet size, in single precision."""

    def __init__(
        self,
        group: OfferGroup,
        which: npt.NDArray[np.int64],
        size: int,
        rates: CapacitySamples,
        limits: Limits,
    ) -> None:
        begin = min(max(limits.min_nodes, int(group.min_nodes.min())), limits.max_nodes)
        self.sizes = np.arange(begin, limits.max_nodes + 1, dtype=np.int64)
        nodes = self.sizes[None, :].astype(np.float64)
        figures = {
            thing: each.select((which, None)) for thing, each in group.machines.buckets.items()
        }

        middle = MedianCapacity(rates, self.sizes[None, :])
        spent = job_work(group.demand, size, middle, nodes, figures, np.float32)
        spent = np.broadcast_to(spent, (len(which), len(self.sizes)))
        nodes = nodes.astype(np.float32)
        self.seconds = spent / nodes
        self.fastest = self.seconds.min(axis=1)
        self.hours = machine_hours(spent, nodes, group.catalog.billing, limits.billing_unit)
        self.other_usd: Array | None = None
        """Of volumes and of what the job does outside; ``None`` is nothing."""
        volumes = group.demand.volumes
        if volumes:
            by_volumes = (volumes.usd_per_hour(nodes.astype(np.float64)) / 3600).astype(np.float32)
            self.other_usd = spent * by_volumes + np.float32(group.outside_usd)
        elif group.outside_usd:
            self.other_usd = np.full_like(spent, group.outside_usd)


def _search(
    group: OfferGroup, times: _Times, alike: npt.NDArray[np.int64], of: slice, limits: Limits
) -> tuple[npt.NDArray[np.int64], Array, Array, Array]:
    prices = machine_usd_per_hour(group)[of, None].astype(np.float32)
    cost = times.hours[alike] * prices
    if times.other_usd is not None:
        cost += times.other_usd[alike]
    needed = group.min_nodes[of, None]
    all_hold = needed.max() <= times.sizes[0]
    if all_hold and limits.objective == "cost" and math.isinf(limits.deadline_seconds):
        value, fastest, cheapest = cost, times.fastest[alike], cost.min(axis=1)
    else:
        seconds = times.seconds[alike]
        if not all_hold:
            small = times.sizes[None, :] < needed
            cost[small] = np.inf
            seconds[small] = np.inf
        fastest, cheapest = seconds.min(axis=1), cost.min(axis=1)
        value = _value(seconds, cost, limits)
    if limits.objective != "nearest" and math.isfinite(limits.budget_usd):
        value = np.where(cost > np.float32(limits.budget_usd), np.inf, value)
    least = value.min(axis=1)
    first = np.argmax(value <= (least * np.float32(1 + ALIKE))[:, None], axis=1)
    return np.where(np.isfinite(least), times.sizes[first], 0), least, fastest, cheapest


def _value(seconds: Array, cost: Array, limits: Limits) -> Array:
    """What is minimised; infinite where the deadline is not kept."""
    if limits.objective == "nearest":
        return limit_excess(seconds, cost, limits)
    value = cost if limits.objective == "cost" else seconds
    if math.isinf(limits.deadline_seconds):
        return value
    return np.where(seconds > np.float32(limits.deadline_seconds), np.inf, value)


def limit_excess(seconds: Array, cost: Array, limits: Limits) -> Array:
    """By what factor the worst of the limits is missed."""
    found = np.zeros_like(seconds)
    for what, limit in ((seconds, limits.deadline_seconds), (cost, limits.budget_usd)):
        if math.isfinite(limit):
            found = np.maximum(found, what / limit)
    return np.where(np.isfinite(seconds), found, np.inf)


def buckets_at(group: OfferGroup, places: npt.ArrayLike) -> Mapping[ResourceClass, TokenBucket]:
    """What is advertised of the machines at these places."""
    where = np.asarray(places, dtype=np.int64)
    return {thing: each.select(where) for thing, each in group.machines.buckets.items()}


def machine_usd_per_hour(group: OfferGroup) -> Array:
    """The price of a node of each machine by the hour, without its volumes."""
    machines = group.machines
    if group.demand.volumes is None:
        return machines.usd_per_hour
    return np.asarray(machines.usd_per_hour + machines.link_usd_per_hour)
