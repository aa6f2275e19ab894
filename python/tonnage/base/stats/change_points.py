"""Change points: where the level of any of several series steps, and how many such places.

`changes` finds the cuts that minimise the squares within segments plus a penalty for each cut,
exactly, by PELT (Killick, Fearnhead and Eckley 2012, Optimal detection of changepoints with a
linear computational cost). Each series counts in units of its own noise. That is taken from
differences of neighbours, which a step hardly touches, and allows for autocorrelation, without
which slow noise looks like steps: for AR(1) noise the ratio of squared differences two apart and
one apart is 1 + r (Chakar, Lebarbier, Lévy-Leduc and Robin 2017, A robust approach for estimating
change-points in the mean of an AR(1) process).

A drift is no step: it comes out as a staircase.
"""

from __future__ import annotations

import math

import numpy as np

from tonnage.base.stats.distributions import normal_quantile
from tonnage.base.stats.samples import FloatArray

MOST_CORRELATED = 0.75
"""Noise that is slower than this cannot be told from steps."""
MOST_KEPT, LEAST_KEPT = 0.9, 0.5
"""Of squared differences such a share is kept, the smallest: steps are among the others."""
TOUCHED = 12
"""So many differences may have a step in them, where that leaves `LEAST_KEPT`."""
CAUTION = 2.0
"""The penalty as a multiple of BIC's: noise is estimated, and its tails are not normal."""

SURE = 1e-9
"""Noise that is a smaller share of what a series moves is none."""


def changes(
    series: FloatArray,
    *,
    least: int = 5,
    floor: float = 0.0,
    blurred: int = 0,
    penalty: float | None = None,
) -> list[int]:
    """Indices at which a new level begins, in order; empty if there is one level only.

    Args:
        series: Shape ``(n, d)``, evenly spaced.
        least: Values in a segment, at least.
        floor: Noise that each series is taken to have at least, in its own unit. A series without
            noise, like one that is mostly zero, needs it.
        blurred: Values on each side of a cut that count for neither: where each value is a mean
            over some time, a step within that time makes a value of its own.
        penalty: What a cut must save; if it is not given, BIC's ``(d + 1) log n`` times `CAUTION`.

    Raises:
        ValueError: Not two dimensions, not finite, or a length, floor or penalty below its least.
    """
    values = _checked(series)
    if least < 1 + 2 * blurred or min(floor, blurred, penalty or 0) < 0:
        raise ValueError("give segments of one value or more that counts, and nothing negative")
    count, width = values.shape
    if count < 2 * least or not width:
        return []
    # Of a series that never moves nothing is to be learnt; one that moves without noise is sure.
    moving = values[:, np.ptp(values, axis=0) > 0]
    if not moving.shape[1]:
        return []
    noise = [max(long_run_deviation(column), floor) for column in moving.T]
    scale = np.maximum(noise, SURE * np.ptp(moving, axis=0))
    if penalty is None:
        penalty = CAUTION * (moving.shape[1] + 1) * math.log(count)
    return _pelt(moving / scale, least, blurred, penalty)


def long_run_deviation(values: FloatArray) -> float:
    """How far noise puts a mean off, times the root of how many values it is of; steps left aside.

    For independent noise its standard deviation; for AR(1) noise ``sqrt((1 + r) / (1 - r))`` times
    that. Zero where nearly all neighbours are equal, or there are fewer than four values.
    """
    if values.size < 4:
        return 0.0
    one = _square(values[1:] - values[:-1])
    two = _square(values[2:] - values[:-2])
    if one == 0:
        return 0.0
    r = min(max(two / one - 1, 0.0), MOST_CORRELATED)
    return math.sqrt(one / (2 * (1 - r)) * (1 + r) / (1 - r))


def _square(differences: FloatArray) -> float:
    """Their mean square, as normal ones have it whose smallest squares are these."""
    count = differences.size
    share = min(max(1 - TOUCHED / count, LEAST_KEPT), MOST_KEPT)
    kept = np.sort(differences**2)[: max(round(share * count), 1)]
    edge = normal_quantile((1 + share) / 2)
    density = math.exp(-(edge**2) / 2) / math.sqrt(2 * math.pi)
    return float(kept.mean()) / (1 - 2 * edge * density / share)


def _pelt(values: FloatArray, least: int, blurred: int, penalty: float) -> list[int]:
    count = values.shape[0]
    centred = values - values.mean(axis=0)
    sums = np.vstack([np.zeros(values.shape[1]), np.cumsum(centred, axis=0)])
    squares = np.concatenate([[0.0], np.cumsum((centred**2).sum(axis=1))])

    best = np.full(count + 1, np.inf)
    best[0] = -penalty
    last = np.zeros(count + 1, dtype=int)
    # A cut that is beaten at one moment stays beaten, but only where the one that beats it may
    # already be a cut: `least` later.
    out_from = np.full(count + 1, count + 1)
    cuts = np.array([0])
    for end in range(least, count + 1):
        cuts = cuts[out_from[cuts] > end]
        first = np.where(cuts > 0, cuts + blurred, 0)
        until = end - blurred if end < count else end
        within = squares[until] - squares[first]
        within -= ((sums[until] - sums[first]) ** 2).sum(axis=1) / (until - first)
        costs = best[cuts] + within
        chosen = int(np.argmin(costs))
        best[end], last[end] = costs[chosen] + penalty, cuts[chosen]
        beaten = cuts[costs > best[end]]
        out_from[beaten] = np.minimum(out_from[beaten], end + least)
        newest = end + 1 - least
        if newest >= least:
            cuts = np.append(cuts, newest)
    found = []
    end = int(last[count])
    while end > 0:
        found.append(end)
        end = int(last[end])
    return found[::-1]


def _checked(series: FloatArray) -> FloatArray:
    values = np.asarray(series, dtype=float)
    if values.ndim != 2 or not np.all(np.isfinite(values)):
        raise ValueError("give finite values of shape (n, d)")
    return values
