"""Change points: where the level of any of several series steps.

`change_points` finds the cuts that minimise the squares within segments plus a penalty for each
cut, exactly, by PELT (Killick, Fearnhead and Eckley 2012, Optimal detection of changepoints with a
linear computational cost). Each series is scaled by its own noise. The noise is estimated from
differences of neighbours, which a step hardly affects, and allows for autocorrelation: without
that, slow noise looks like steps. For AR(1) noise the ratio of squared differences two apart and
one apart is 1 + r (Chakar, Lebarbier, Lévy-Leduc and Robin 2017, A robust approach for estimating
change-points in the mean of an AR(1) process).

A drift is reported as a staircase of steps.
"""

import math

import numpy as np

from tonnage.base.stats.distributions import normal_quantile
from tonnage.base.stats.samples import FloatArray

MAX_CORRELATED = 0.75  # Noise that is slower than this cannot be distinguished from steps
MAX_KEPT, MIN_KEPT = 0.9, 0.5
"""The share of squared differences that is kept, smallest first: steps are among the others."""
TOUCHED = 12  # This many differences may contain a step, as long as `MIN_KEPT` of them remain
CAUTION = 2.0
"""The penalty as a multiple of BIC's: noise is estimated, and its tails are not normal."""

NEGLIGIBLE = 1e-9  # Noise below this share of a series' range counts as none


def change_points(
    series: FloatArray,
    *,
    least: int = 5,
    floor: float = 0.0,
    blurred: int = 0,
    penalty: float | None = None,
) -> list[int]:
    """Indices at which a new level begins, in order; empty if there is one level only.

    ``series`` has shape ``(n, d)``, evenly spaced; a segment has ``least`` values or more.
    ``floor`` is the minimum noise of each series, in its own unit; one without noise needs it.
    ``blurred`` values on each side of a cut count for neither segment: where values are means over
    some time, a step produces an intermediate one.
    ``penalty`` is what a cut must save; by default BIC's ``(d + 1) log n`` times `CAUTION`.
    """
    values = _finite_matrix(series)
    for name, value in (("floor", floor), ("blurred", blurred), ("penalty", penalty or 0)):
        if value < 0:
            raise ValueError(f"{name} is {value}; use at least 0")
    if least < 1 + 2 * blurred:
        raise ValueError(f"least is {least}; use at least 1 + 2 * blurred")
    count, width = values.shape
    if count < 2 * least or not width:
        return []
    # A constant series has no information; one that moves without noise gets a tiny scale.
    moving = values[:, np.ptp(values, axis=0) > 0]
    if not moving.shape[1]:
        return []
    noise = [max(long_run_deviation(column), floor) for column in moving.T]
    scale = np.maximum(noise, NEGLIGIBLE * np.ptp(moving, axis=0))
    if penalty is None:
        penalty = CAUTION * (moving.shape[1] + 1) * math.log(count)
    return _pelt(moving / scale, least, blurred, penalty)


def long_run_deviation(values: FloatArray) -> float:
    """The long-run standard deviation of the noise, ignoring steps.

    For independent noise this is its standard deviation, for AR(1) noise
    ``sqrt((1 + r) / (1 - r))`` times that. Zero where nearly all neighbours are equal, or with
    fewer than four values.
    """
    if values.size < 4:
        return 0.0
    one = _trimmed_square(values[1:] - values[:-1])
    two = _trimmed_square(values[2:] - values[:-2])
    if one == 0:
        return 0.0
    r = min(max(two / one - 1, 0.0), MAX_CORRELATED)
    return math.sqrt(one / (2 * (1 - r)) * (1 + r) / (1 - r))


def _trimmed_square(differences: FloatArray) -> float:
    """Mean square from the smallest squares, rescaled as for a trimmed normal distribution."""
    count = differences.size
    share = min(max(1 - TOUCHED / count, MIN_KEPT), MAX_KEPT)
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
    # A candidate that is beaten at one moment stays beaten, but only from `least` later on, where
    # the candidate that beats it may itself be a cut.
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


def _finite_matrix(series: FloatArray) -> FloatArray:
    values = np.asarray(series, dtype=float)
    if values.ndim != 2 or not np.all(np.isfinite(values)):
        raise ValueError("values must be finite and of shape (n, d)")
    return values
