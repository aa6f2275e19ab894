"""From the rates of a few nodes, in one fleet or several, the law of all such nodes.

Two kinds of node are told apart where that explains the rates better than one kind does, by the
Bayesian information criterion (Schwarz 1978) of log-normal kinds with a spread in common. A kind of
which one node was seen has a spread too, then. What fleets differ by beyond what their nodes would
by chance is the fleet's own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tonnage.base.records.profile import CapacityDistribution, Evidence, Mode
from tonnage.base.stats.samples import FloatArray
from tonnage.model.capacity import LEAST_SPREAD, UNKNOWN_SPREAD

SPLIT_PARAMETERS = 2
"""A second kind adds where it is and how many belong to it."""
LEAST_FACTOR = 1.2
"""Kinds whose medians are nearer than this are one: it would make no difference to a plan."""
LEAST_GAP = 3.0
"""Between two kinds lies a gap of so many spreads, else a tail would be taken for a kind."""


def fit_distribution(
    resource: str, fleets: Sequence[Sequence[float]], *, evidence: Evidence, source: str
) -> CapacityDistribution:
    """The law.

    Args:
        resource: As a job's demands name it.
        fleets: Of each fleet its nodes' rates, in bytes a second.
        evidence: How far to believe them.
        source: The measurements' names.

    Raises:
        ValueError: No fleet, one without a node, or a rate that is not positive and finite.
    """
    if not fleets or not all(fleets):
        raise ValueError(f"{resource}: a law comes from a fleet at least, and each has a node")
    rates = np.array([rate for fleet in fleets for rate in fleet])
    if not np.all((rates > 0) & np.isfinite(rates)):
        raise ValueError(f"{resource}: rates are positive")
    logs = [np.log(np.asarray(fleet, dtype=float)) for fleet in fleets]
    # Fleets' own levels are taken out first, by medians: a few slow nodes must not move them.
    levels = np.array([np.median(each) for each in logs])
    centre = float(np.mean(levels))
    apart = np.sort(
        np.concatenate([each - level for each, level in zip(logs, levels, strict=True)])
    )
    kinds = _kinds(apart)
    freedom = len(apart) - len(kinds) - len(fleets) + 1
    within = sum(float(np.sum((kind - kind.mean()) ** 2)) for kind in kinds)
    spread = math.sqrt(within / freedom) if freedom > 0 else UNKNOWN_SPREAD
    return CapacityDistribution(
        resource=resource,
        modes=[
            Mode(
                median=math.exp(centre + float(kind.mean())),
                spread=max(spread, LEAST_SPREAD),
                instances=len(kind),
            )
            for kind in kinds
        ],
        fleet_spread=_of_fleets(logs, levels, spread),
        fleets=len(fleets),
        evidence=evidence,
        source=source,
        spread_source=f"{len(rates)} nodes of {len(fleets)} fleets",
    )


def _kinds(values: FloatArray) -> list[FloatArray]:
    """The fast and the slow ones of sorted values; or all, if they are of a kind."""
    count = len(values)
    best, place = _criterion([values]), 0
    for split in range(1, count):
        slow, fast = values[:split], values[split:]
        if fast.mean() - slow.mean() < math.log(LEAST_FACTOR):
            continue
        within = float(np.sum((slow - slow.mean()) ** 2) + np.sum((fast - fast.mean()) ** 2))
        if fast[0] - slow[-1] < LEAST_GAP * math.sqrt(within / count):
            continue
        found = _criterion([slow, fast]) + SPLIT_PARAMETERS * math.log(count)
        if found < best:
            best, place = found, split
    return [values[place:], values[:place]] if place else [values]


def _criterion(kinds: Sequence[FloatArray]) -> float:
    """``-2 log likelihood`` of kinds with one spread and their own shares, but for constants."""
    count = sum(len(kind) for kind in kinds)
    within = sum(float(np.sum((kind - kind.mean()) ** 2)) for kind in kinds)
    # No spread is believed to be smaller, or two rates that are nearly alike would be two kinds.
    variance = max(within / count, LEAST_SPREAD**2)
    mixed = sum(len(kind) * math.log(len(kind) / count) for kind in kinds)
    return count * math.log(variance) + within / variance - 2 * mixed


def _of_fleets(logs: Sequence[FloatArray], levels: FloatArray, spread: float) -> float:
    """The standard deviation of fleets' levels, without what their nodes bring about by chance."""
    if len(levels) < 2:
        return 0.0
    # A median's variance is pi / 2 times a mean's.
    chance = math.pi / 2 * spread**2 * float(np.mean([1 / len(each) for each in logs]))
    return math.sqrt(max(float(np.var(levels, ddof=1)) - chance, 0.0))
