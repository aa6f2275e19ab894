"""The Pareto front over all machines, layouts and numbers of nodes: cheaper or faster, not neither.

Exact, and quick since most machines are left out at once: none of a machine's points can be on
the front if some point is both faster than the machine ever is and cheaper than it ever is (the
bound of branch and bound). Those that are left are computed for every number of nodes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tonnage.artifacts.plan import Tradeoff
from tonnage.plan.evaluate import Array, usd, work
from tonnage.plan.options import Group
from tonnage.plan.rates import Rates
from tonnage.plan.search import Found, Limits, figures_of, machine_usd

ALIKE = 1e-5
"""Bounds are in single precision."""


def front(
    groups: Sequence[Group], found: Sequence[Found], size: int, rates: Rates, limits: Limits
) -> list[Tradeoff]:
    """The front, fastest first; of the points that keep the limits."""
    bounds = [
        (float(each.fastest_seconds[place]), float(each.cheapest_usd[place]), group, int(place))
        for group, each in zip(groups, found, strict=True)
        for place in np.flatnonzero(each.nodes)
    ]
    seconds, cost = np.empty(0), np.empty(0)
    points: list[tuple[Group, int, int]] = []
    # The cheapest and the fastest come first: what they give leaves out the most.
    bounds.sort(key=lambda bound: bound[0] * bound[1])
    for fastest, cheapest, group, place in bounds:
        if np.any((seconds < fastest * (1 - ALIKE)) & (cost < cheapest * (1 - ALIKE))):
            continue
        least = max(group.least_nodes[place], limits.least_nodes)
        nodes = np.arange(least, limits.most_nodes + 1)
        took, cost_here = _points(group, place, nodes, size, rates, limits)
        kept = np.flatnonzero((took <= limits.deadline_seconds) & (cost_here <= limits.budget_usd))
        seconds = np.concatenate([seconds, took[kept]])
        cost = np.concatenate([cost, cost_here[kept]])
        points += [(group, place, int(nodes[at])) for at in kept]
        left = _undominated(seconds, cost)
        seconds, cost, points = seconds[left], cost[left], [points[at] for at in left]
    return [
        Tradeoff(
            offer=group.machines[place].offer.type,
            layout=group.shape.layout,
            placement=group.machines[place].placement,
            nodes=nodes,
            seconds=float(took),
            cost_usd=float(paid),
        )
        for (group, place, nodes), took, paid in zip(points, seconds, cost, strict=True)
    ]


def _points(
    group: Group, place: int, nodes: Array, size: int, rates: Rates, limits: Limits
) -> tuple[Array, Array]:
    """Seconds and dollars for these numbers of nodes."""
    fleet = nodes.astype(np.float64)
    machine = [group.machines[place]]
    spent = work(
        group.shape,
        size,
        lambda law: rates.middle_of(law, nodes),
        fleet,
        figures_of(machine),
    )
    spent = np.broadcast_to(spent, fleet.shape)
    volumes = group.shape.volumes
    cost = usd(
        spent,
        fleet,
        machine_usd(group, machine),
        volumes.usd_per_hour(fleet) if volumes else 0.0,
        group.request_usd,
        group.catalog.billing,
        limits.charged,
    )
    return spent / fleet, cost


def _undominated(seconds: Array, cost: Array) -> Array:
    """The places of points that none is as fast and as cheap as, in the order of time."""
    order = np.lexsort((cost, seconds))
    before = np.concatenate([[math.inf], np.minimum.accumulate(cost[order])[:-1]])
    # To nine digits: what is cheaper by less is so by rounding.
    return np.asarray(order[cost[order] < before * (1 - 1e-9)])
