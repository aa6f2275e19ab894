"""Which run of a job to make next, so that the choice afterwards is a good one."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tonnage.model.past_runs.next_run import next_runs
from tonnage.plan.past_runs.planner import PricedCluster, PricedTimes

CONSIDERED = 100
"""So many of the cheapest clusters are tried; the knowledge of others is worth less."""
LISTED = 5
LONGER = 2.0
"""A run is not proposed that would take so many times the longest that finished, or more."""


@dataclass(frozen=True)
class ProposedRun:
    cluster: PricedCluster
    gain: float
    """By which share the cluster chosen afterwards is expected to be cheaper."""
    usd: float
    """What the run is expected to cost."""
    seconds: float


def propose_runs(
    priced: PricedTimes, longest_seconds: float, deadline: float | None
) -> Sequence[ProposedRun]:
    """The runs that are worth most, best first; none if none tells anything.

    Args:
        priced: The clusters.
        longest_seconds: Of the job's finished runs.
        deadline: In seconds, if the job has one.
    """
    order = np.argsort(np.log(priced.usd).mean(axis=0), kind="stable")
    order = order[priced.times.seconds[order] < LONGER * longest_seconds][:CONSIDERED]
    if not len(order):
        return []
    times = priced.times.at(order)
    found = next_runs(times, priced.usd_per_second[order], deadline)
    return [
        ProposedRun(
            cluster=priced.clusters[int(order[each.place])],
            gain=each.gain,
            usd=each.usd,
            seconds=float(times.seconds[each.place]),
        )
        for each in found[:LISTED]
        if each.gain > 0
    ]
