"""The cheapest plan that surely keeps a deadline: at the median and in 95 % of sampled clusters.

A machine's cheapest number of nodes that keeps it at the median costs no more than one that surely
does, so machines are tried in the order of that cost until it exceeds the best. Of a machine's
numbers, those that are late at the median or cost as much as the best so far are left out; others
are sampled in few clusters first, which excludes those that are late in too many already.
"""

import dataclasses
import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tonnage.base.records.job import Job
from tonnage.base.records.plan import Candidate
from tonnage.plan.candidates import Choice, candidates
from tonnage.plan.capacity_samples import CapacitySamples
from tonnage.plan.cost_model import Array
from tonnage.plan.layouts import OfferGroup
from tonnage.plan.monte_carlo import sampled_seconds
from tonnage.plan.search import (
    SEARCH_ERROR,
    Limits,
    SearchResult,
    median_outcomes,
    node_numbers,
    search_all,
)

SURE = 0.95
FEW_CLUSTERS = 50


def cheapest_sure(
    job: Job,
    size: int,
    groups: Sequence[OfferGroup],
    results: Sequence[SearchResult],
    samples: CapacitySamples,
    limits: Limits,
) -> Candidate | None:
    """The cheapest sure candidate; none without a deadline. ``results`` are those by ``limits``."""
    if math.isinf(limits.deadline_seconds):
        return None
    by_cost = dataclasses.replace(limits, objective="cost")
    if limits.objective != "cost":
        results = search_all(groups, size, samples, by_cost)
    bounds = [
        (float(each.value[place]) * (1 - SEARCH_ERROR), Choice(group, place, 1))
        for group, each in zip(groups, results, strict=True)
        for place in np.flatnonzero(each.nodes).tolist()
    ]
    best, best_usd = None, math.inf
    for bound, choice in sorted(bounds, key=lambda pair: pair[0]):
        if bound >= best_usd:
            break
        nodes, usd = _sure_numbers(choice, size, samples, by_cost, best_usd)
        if len(nodes):
            at = np.argmax(usd <= usd.min() * (1 + SEARCH_ERROR))
            best, best_usd = dataclasses.replace(choice, nodes=int(nodes[at])), float(usd[at])
    return candidates(job, size, [best], samples, by_cost)[0] if best else None


def _sure_numbers(
    choice: Choice, size: int, samples: CapacitySamples, limits: Limits, below_usd: float
) -> tuple[npt.NDArray[np.int64], Array]:
    """The numbers of nodes that are sure and cost less than this, and their costs."""
    group, place = choice.group, choice.place
    nodes = node_numbers(group, place, limits)
    seconds, usd = median_outcomes(group, place, nodes, size, samples, limits)
    within = (seconds <= limits.longest_seconds) & (usd <= limits.most_usd)
    possible = within & (usd < below_usd * (1 - SEARCH_ERROR))
    nodes, usd = nodes[possible], usd[possible]
    most_late = (1 - SURE) * samples.clusters.count
    for clusters in (FEW_CLUSTERS, None):
        if not len(nodes):
            break
        drawn = sampled_seconds(group, [place] * len(nodes), nodes, size, samples, clusters)
        kept = np.sum(drawn > limits.deadline_seconds, axis=0) <= most_late * (1 + SEARCH_ERROR)
        nodes, usd = nodes[kept], usd[kept]
    return nodes, usd
