"""The Pareto front over all machines, layouts and numbers of nodes: cheaper or faster, not neither.

Exact, and quick since most machines are left out at once: none of a machine's points can be on
the front if some point is both faster than the machine ever is and cheaper than it ever is (the
bound of branch and bound); nor if one that takes as long costs less. Those that are left are
computed for every number of nodes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tonnage.base.records.plan import Tradeoff
from tonnage.plan.capacity_samples import CapacitySamples, MedianCapacity
from tonnage.plan.cost_model import Array, cost_usd, job_work
from tonnage.plan.layouts import OfferGroup
from tonnage.plan.search import Limits, SearchResult, buckets_at, machine_usd_per_hour

ALIKE = 1e-5
"""Bounds are in single precision."""


def pareto_front(
    groups: Sequence[OfferGroup],
    found: Sequence[SearchResult],
    size: int,
    rates: CapacitySamples,
    limits: Limits,
) -> list[Tradeoff]:
    """The front, fastest first; of the points that keep the limits."""
    if not any(each.nodes.any() for each in found):
        return []
    which = np.concatenate([np.full(len(each.nodes), at) for at, each in enumerate(found)])
    places = np.concatenate([np.arange(len(each.nodes)) for each in found])
    possible = np.concatenate(
        [(each.nodes > 0) & _cheapest(group) for group, each in zip(groups, found, strict=True)]
    )
    which, places = which[possible], places[possible]
    fastest = np.concatenate([each.fastest_seconds for each in found])[possible]
    cheapest = np.concatenate([each.cheapest_usd for each in found])[possible]
    left = np.ones(len(which), dtype=bool)
    # Columns: seconds, dollars, machine, nodes. What is left out the most by comes first.
    points = np.empty((0, 4))
    order = np.argsort(fastest.astype(float) * cheapest)
    for at in [int(np.argmin(cheapest)), int(np.argmin(fastest)), *order.tolist()]:
        if not left[at]:
            continue
        left[at] = False
        group, place = groups[which[at]], int(places[at])
        nodes = np.arange(max(group.min_nodes[place], limits.min_nodes), limits.max_nodes + 1)
        seconds, dollars = _points(group, place, nodes, size, rates, limits)
        kept = (seconds <= limits.deadline_seconds) & (dollars <= limits.budget_usd)
        here = np.column_stack([seconds, dollars, np.full(len(nodes), at), nodes])[kept]
        points = _undominated(np.concatenate([points, here]))
        left &= ~_dominated(points, fastest, cheapest)
    return [
        Tradeoff(
            offer=group.machines[place].offer.type,
            layout=group.demand.layout,
            placement=group.machines[place].placement,
            nodes=int(nodes),
            seconds=float(took),
            cost_usd=float(paid),
        )
        for took, paid, at, nodes in points
        for group, place in [(groups[which[int(at)]], int(places[int(at)]))]
    ]


def _cheapest(group: OfferGroup) -> npt.NDArray[np.bool_]:
    """The machines that no other one of the group takes as long as, holds as much as, for less."""
    _, alike = group.distinct_machines
    order = np.lexsort((machine_usd_per_hour(group), group.min_nodes, alike))
    pairs = np.column_stack([alike, group.min_nodes])[order]
    first = np.ones(len(order), dtype=bool)
    first[1:] = np.any(pairs[1:] != pairs[:-1], axis=1)
    found = np.zeros(len(order), dtype=bool)
    found[order[first]] = True
    return found


def _points(
    group: OfferGroup, place: int, nodes: Array, size: int, rates: CapacitySamples, limits: Limits
) -> tuple[Array, Array]:
    """Seconds and dollars for these numbers of nodes."""
    fleet = nodes.astype(np.float64)
    spent = job_work(
        group.demand,
        size,
        MedianCapacity(rates, nodes),
        fleet,
        buckets_at(group, [place]),
    )
    spent = np.broadcast_to(spent, fleet.shape)
    volumes = group.demand.volumes
    cost = cost_usd(
        spent,
        fleet,
        machine_usd_per_hour(group)[[place]],
        volumes.usd_per_hour(fleet) if volumes else 0.0,
        group.outside_usd,
        group.catalog.billing,
        limits.billing_unit,
    )
    return spent / fleet, cost


def _undominated(points: Array) -> Array:
    """Those that none is as fast and as cheap as, in the order of time."""
    ordered = points[np.lexsort((points[:, 1], points[:, 0]))]
    before = np.concatenate([[math.inf], np.minimum.accumulate(ordered[:, 1])[:-1]])
    # To nine digits: what is cheaper by less is so by rounding.
    return np.asarray(ordered[ordered[:, 1] < before * (1 - 1e-9)])


def _dominated(front: Array, fastest: Array, cheapest: Array) -> Array:
    """Which bounds some point of the front is within: the cheapest of those as fast is as cheap."""
    if not len(front):
        return np.zeros(len(fastest), dtype=bool)
    at = np.searchsorted(front[:, 0], fastest * (1 - ALIKE)) - 1
    return np.asarray((at >= 0) & (front[at, 1] < cheapest * (1 - ALIKE)))
