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
    which = [
        (group, place)
        for group, each in zip(groups, found, strict=True)
        for place in np.flatnonzero(each.nodes).tolist()
    ]
    if not which:
        return []
    fastest, cheapest = (
        np.concatenate([bound[each.nodes > 0] for bound, each in zip(bounds, found, strict=True)])
        for bounds in (
            [each.fastest_seconds for each in found],
            [each.cheapest_usd for each in found],
        )
    )
    left = np.ones(len(which), dtype=bool)
    # Columns: seconds, dollars, machine, nodes. What is left out the most by comes first.
    points = np.empty((0, 4))
    order = np.argsort(fastest.astype(float) * cheapest)
    for at in [int(np.argmin(cheapest)), int(np.argmin(fastest)), *order.tolist()]:
        if not left[at]:
            continue
        left[at] = False
        group, place = which[at]
        nodes = np.arange(max(group.least_nodes[place], limits.least_nodes), limits.most_nodes + 1)
        seconds, dollars = _points(group, place, nodes, size, rates, limits)
        kept = (seconds <= limits.deadline_seconds) & (dollars <= limits.budget_usd)
        here = np.column_stack([seconds, dollars, np.full(len(nodes), at), nodes])[kept]
        points = _undominated(np.concatenate([points, here]))
        left &= ~_dominated(points, fastest, cheapest)
    return [
        Tradeoff(
            offer=group.machines[place].offer.type,
            layout=group.shape.layout,
            placement=group.machines[place].placement,
            nodes=int(nodes),
            seconds=float(took),
            cost_usd=float(paid),
        )
        for took, paid, at, nodes in points
        for group, place in [which[int(at)]]
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
