"""The Pareto front of time and cost over all machines, layouts and numbers of nodes.

Exact, and fast since most machines are skipped at once: those for which some point is both faster
than the machine ever is and cheaper than it ever is (the bound of branch and bound), and those that
take as long as a cheaper one. The rest are computed for every number of nodes.
"""

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tonnage.base.records.plan import Tradeoff
from tonnage.plan.capacity_samples import CapacitySamples
from tonnage.plan.cost_model import Array
from tonnage.plan.layouts import OfferGroup
from tonnage.plan.search import (
    SEARCH_ERROR,
    Limits,
    SearchResult,
    machine_usd_per_hour,
    median_outcomes,
    node_numbers,
)


def pareto_front(
    groups: Sequence[OfferGroup],
    results: Sequence[SearchResult],
    size: int,
    samples: CapacitySamples,
    limits: Limits,
) -> list[Tradeoff]:
    """The front of the points that keep the limits, fastest first."""
    if not any(each.nodes.any() for each in results):
        return []
    which = np.concatenate([np.full(len(each.nodes), at) for at, each in enumerate(results)])
    places = np.concatenate([np.arange(len(each.nodes)) for each in results])
    possible = np.concatenate(
        [(each.nodes > 0) & _cheapest(group) for group, each in zip(groups, results, strict=True)]
    )
    which, places = which[possible], places[possible]
    fastest = np.concatenate([each.fastest_seconds for each in results])[possible]
    cheapest = np.concatenate([each.cheapest_usd for each in results])[possible]
    remaining = np.ones(len(which), dtype=bool)
    # Columns: seconds, dollars, machine, nodes. Machines likely to exclude others come first.
    points = np.empty((0, 4))
    order = np.argsort(fastest.astype(float) * cheapest)
    for at in [int(np.argmin(cheapest)), int(np.argmin(fastest)), *order.tolist()]:
        if not remaining[at]:
            continue
        remaining[at] = False
        group, place = groups[which[at]], int(places[at])
        nodes = node_numbers(group, place, limits)
        seconds, dollars = median_outcomes(group, place, nodes, size, samples, limits)
        kept = (seconds <= limits.longest_seconds) & (dollars <= limits.most_usd)
        here = np.column_stack([seconds, dollars, np.full(len(nodes), at), nodes])[kept]
        points = _undominated(np.concatenate([points, here]))
        remaining &= ~_dominated(points, fastest, cheapest)
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
    """The cheapest of the machines that take as long and store as much."""
    _, alike = group.distinct_machines
    columns = alike, group.min_nodes, group.most_nodes
    order = np.lexsort((machine_usd_per_hour(group), *columns))
    pairs = np.column_stack(columns)[order]
    first = np.ones(len(order), dtype=bool)
    first[1:] = np.any(pairs[1:] != pairs[:-1], axis=1)
    found = np.zeros(len(order), dtype=bool)
    found[order[first]] = True
    return found


def _undominated(points: Array) -> Array:
    """The points that no other is as fast and as cheap as, by time."""
    ordered = points[np.lexsort((points[:, 1], points[:, 0]))]
    before = np.concatenate([[math.inf], np.minimum.accumulate(ordered[:, 1])[:-1]])
    # To nine digits: a smaller difference is rounding.
    return np.asarray(ordered[ordered[:, 1] < before * (1 - 1e-9)])


def _dominated(front: Array, fastest: Array, cheapest: Array) -> Array:
    """Which machines some point of the front is both faster and cheaper than."""
    if not len(front):
        return np.zeros(len(fastest), dtype=bool)
    at = np.searchsorted(front[:, 0], fastest * (1 - SEARCH_ERROR)) - 1
    return np.asarray((at >= 0) & (front[at, 1] < cheapest * (1 - SEARCH_ERROR)))
