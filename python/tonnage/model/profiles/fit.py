"""Fit the distribution of nodes' rates from a few nodes, in one cluster or several.

Nodes are split into two modes if that explains the rates better than one, by the Bayesian
information criterion (Schwarz 1978) of log-normal modes with a common spread. So a mode with a
single node has a spread, too. Differences of clusters beyond the chance of their nodes are the
clusters' own spread.
"""

import math
from collections.abc import Sequence

import numpy as np

from tonnage.base.records.profile import CapacityDistribution, Evidence, Mode
from tonnage.base.stats.samples import FloatArray
from tonnage.model.capacity import MIN_SPREAD, UNKNOWN_SPREAD

SPLIT_PARAMETERS = 2  # A second mode adds its location and its share
MIN_FACTOR = 1.2  # Modes whose medians are closer than this are merged: a plan would not differ
MIN_GAP = 3.0  # Spreads between two modes, at least; otherwise a tail would count as a mode


def fit_distribution(
    resource: str, clusters: Sequence[Sequence[float]], *, evidence: Evidence, source: str
) -> CapacityDistribution:
    """Fit a resource's distribution to the rates (B/s) of each cluster's nodes."""
    if not clusters or not all(clusters):
        raise ValueError(f"{resource}: needs at least one cluster, with at least one node in each")
    rates = np.array([rate for cluster in clusters for rate in cluster])
    if not np.all((rates > 0) & np.isfinite(rates)):
        raise ValueError(f"{resource}: rates must be positive")
    logs = [np.log(np.asarray(cluster, dtype=float)) for cluster in clusters]
    # Subtract the clusters' levels first, by medians: a few slow nodes must not move them.
    levels = np.array([np.median(each) for each in logs])
    centre = float(np.mean(levels))
    apart = np.sort(
        np.concatenate([each - level for each, level in zip(logs, levels, strict=True)])
    )
    kinds = _kinds(apart)
    freedom = len(apart) - len(kinds) - len(clusters) + 1
    within = sum(float(np.sum((kind - kind.mean()) ** 2)) for kind in kinds)
    spread = math.sqrt(within / freedom) if freedom > 0 else UNKNOWN_SPREAD
    return CapacityDistribution(
        resource=resource,
        modes=[
            Mode(
                median=math.exp(centre + float(kind.mean())),
                spread=max(spread, MIN_SPREAD),
                instances=len(kind),
            )
            for kind in kinds
        ],
        fleet_spread=_cluster_spread(logs, levels, spread),
        fleets=len(clusters),
        evidence=evidence,
        source=source,
        spread_source=f"{len(rates)} nodes of {len(clusters)} clusters",
    )


def _kinds(values: FloatArray) -> list[FloatArray]:
    """Sorted values split into the fast and the slow mode; or all of them, if there is one mode."""
    count = len(values)
    best, place = _criterion([values]), 0
    for split in _separate(values):
        found = _criterion([values[:split], values[split:]]) + SPLIT_PARAMETERS * math.log(count)
        if found < best:
            best, place = found, split
    return [values[place:], values[:place]] if place else [values]


def _separate(values: FloatArray) -> list[int]:
    """How many of the sorted values are slow, where that leaves two modes far enough apart."""
    slow = np.arange(1, len(values))
    fast = len(values) - slow
    below, squares = np.cumsum(values)[:-1], float(np.sum(values**2))
    above = float(np.sum(values)) - below
    within = np.maximum(squares - below**2 / slow - above**2 / fast, 0.0)
    apart = above / fast - below / slow >= math.log(MIN_FACTOR)
    gaps = np.diff(values) >= MIN_GAP * np.sqrt(within / len(values))
    found: list[int] = slow[apart & gaps].tolist()
    return found


def _criterion(kinds: Sequence[FloatArray]) -> float:
    """``-2 log likelihood`` of modes with one spread and their own shares, up to a constant."""
    count = sum(len(kind) for kind in kinds)
    within = sum(float(np.sum((kind - kind.mean()) ** 2)) for kind in kinds)
    # With a smaller spread, two nearly equal rates would be two modes.
    variance = max(within / count, MIN_SPREAD**2)
    mixed = sum(len(kind) * math.log(len(kind) / count) for kind in kinds)
    return count * math.log(variance) + within / variance - 2 * mixed


def _cluster_spread(logs: Sequence[FloatArray], levels: FloatArray, spread: float) -> float:
    """The standard deviation of the clusters' levels, less the part due to their nodes."""
    if len(levels) < 2:
        return 0.0
    # A median's variance is pi / 2 times a mean's.
    chance = math.pi / 2 * spread**2 * float(np.mean([1 / len(each) for each in logs]))
    return math.sqrt(max(float(np.var(levels, ddof=1)) - chance, 0.0))
