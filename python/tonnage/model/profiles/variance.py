"""Split the variation of rates into nodes, times and residuals, and fit their distribution.

Measurements within an hour form a snapshot. A node's rate in a snapshot is the median of its
trials. Snapshots with common nodes are of one cluster, where

    log rate = node + time + residual

by Tukey's median polish (Exploratory Data Analysis, 1977, chapter 11), so that a few slow nodes do
not affect times, and a slow day does not affect nodes. The distribution is fitted to the node
effects (`tonnage.model.profiles.fit`), one for each node however often it was measured. The
variation of time effects, less the part due to residuals, adds to the spread of clusters. Residuals
add to the spread of nodes, since a job meets each node in one such state.

If each node was measured alone, at its own time, nodes and times cannot be separated: all variation
is attributed to nodes, which makes the slowest of many slower.
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from msgspec import structs

from tonnage.base import formatting
from tonnage.base.records.profile import CapacityDistribution
from tonnage.model.profiles.fit import fit_distribution
from tonnage.model.profiles.rates import NodeRate

TOGETHER_SECONDS = 3600.0
SWEEPS = 10  # The polish converges long before

Snapshot = dict[str, float]  # The logarithm of each node's rate


@dataclass(frozen=True)
class Decomposition:
    nodes: dict[str, float]
    times: list[float]
    residuals: list[float]
    seen: int  # Number of rates in all snapshots

    @property
    def freedom(self) -> int:
        return self.seen - len(self.nodes) - len(self.times) + 1


def fit_over_times(
    resource: str, rates: Sequence[NodeRate], *, source: str
) -> CapacityDistribution:
    """Fit the distribution of nodes that were measured at one time or at several."""
    clusters = [_median_polish(snapshots) for snapshots in _clusters(_snapshots(rates))]
    alone = [each for each in clusters if len(each.nodes) == 1]
    groups = [list(each.nodes.values()) for each in clusters if len(each.nodes) > 1]
    if alone:
        groups.append([node for each in alone for node in each.nodes.values()])
    found = fit_distribution(
        resource,
        [[math.exp(node) for node in group] for group in groups],
        evidence="measured",
        source=source,
    )
    residual = _residual_spread(clusters)
    times = sum(len(each.times) for each in clusters)
    nodes = sum(len(each.nodes) for each in clusters)
    # A node's effect is a median over its snapshots, so it includes part of the residuals.
    kept = 1 - nodes / sum(each.seen for each in clusters)
    seen = f"{formatting.several(nodes, 'node')} at {formatting.several(times, 'time')}"
    assumed = "; the spread of nodes is assumed" if nodes == 1 else ""
    unknown = "; the variation over time is unknown" if times == 1 else ""
    return structs.replace(
        found,
        modes=[
            structs.replace(mode, spread=math.hypot(mode.spread, residual * math.sqrt(kept)))
            for mode in found.modes
        ],
        fleet_spread=math.hypot(found.fleet_spread, _time_spread(clusters, residual)),
        fleets=times,
        spread_source=f"{seen}{assumed}{unknown}",
    )


def _snapshots(rates: Sequence[NodeRate]) -> list[Snapshot]:
    snapshots: list[dict[str, list[float]]] = []
    began = -math.inf
    for each in sorted(rates, key=lambda rate: rate.moment):
        if each.moment - began > TOGETHER_SECONDS:
            began = each.moment
            snapshots.append({})
        snapshots[-1].setdefault(each.node, []).append(math.log(each.value))
    return [{node: statistics.median(several) for node, several in x.items()} for x in snapshots]


def _clusters(snapshots: Sequence[Snapshot]) -> list[list[Snapshot]]:
    """Snapshots grouped by common nodes, directly or through others."""
    clusters: list[list[Snapshot]] = []
    for snapshot in snapshots:
        same = [each for each in clusters if any(snapshot.keys() & other.keys() for other in each)]
        clusters = [each for each in clusters if each not in same]
        clusters.append([other for each in same for other in each] + [snapshot])
    return clusters


def _median_polish(snapshots: Sequence[Snapshot]) -> Decomposition:
    nodes = dict.fromkeys((node for snapshot in snapshots for node in snapshot), 0.0)
    times = [0.0] * len(snapshots)
    for _ in range(SWEEPS):
        nodes = {
            node: statistics.median(
                snapshot[node] - time
                for snapshot, time in zip(snapshots, times, strict=True)
                if node in snapshot
            )
            for node in nodes
        }
        times = [
            statistics.median(snapshot[node] - nodes[node] for node in snapshot)
            for snapshot in snapshots
        ]
    centre = statistics.fmean(times)
    residuals = [
        snapshot[node] - nodes[node] - time
        for snapshot, time in zip(snapshots, times, strict=True)
        for node in snapshot
    ]
    return Decomposition(
        nodes={node: value + centre for node, value in nodes.items()},
        times=[time - centre for time in times],
        residuals=residuals,
        seen=len(residuals),
    )


def _residual_spread(clusters: Sequence[Decomposition]) -> float:
    """The standard deviation of residuals; 0 without degrees of freedom."""
    freedom = sum(each.freedom for each in clusters)
    squares = sum(residual**2 for each in clusters for residual in each.residuals)
    return math.sqrt(squares / freedom) if freedom > 0 else 0.0


def _time_spread(clusters: Sequence[Decomposition], residual: float) -> float:
    """The standard deviation of time effects, less the part due to residuals."""
    freedom = sum(len(each.times) - 1 for each in clusters)
    if not freedom:
        return 0.0
    squares = sum(time**2 for each in clusters for time in each.times)
    # A median's variance is pi / 2 times a mean's.
    chance = math.pi / 2 * residual**2 * statistics.fmean(1 / len(each.nodes) for each in clusters)
    return math.sqrt(max(squares / freedom - chance, 0.0))
