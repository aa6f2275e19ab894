"""Bootstrap intervals of any statistic: of independent values, or of a series in moving blocks.

Percentile intervals (Efron and Tibshirani, An Introduction to the Bootstrap, section 13.3). For a
series, blocks of neighbours are drawn whole, so what is correlated within a block stays so (Künsch
1989). Blocks are as long as is best for an AR(1) series of the same lag-1 autocorrelation r
(Politis and White 2004, corrected 2009): ``(3/2)^(1/3) * (2 r / (1 - r^2))^(2/3) * n^(1/3)``.

When there are several runs, give one value for each: a whole run is the one unit that is safe.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tonnage.statistics.autocorrelation import autocorrelation
from tonnage.statistics.samples import (
    FloatArray,
    Floats,
    Interval,
    checked,
    checked_share,
)

Statistic = Callable[[FloatArray], FloatArray]
"""From resamples of shape ``(resamples, n)`` to their statistics, shape ``(resamples,)``."""

AT_ONCE = 4_000_000
"""Values resampled in one go: memory is bounded whatever the series' length."""


def median(resamples: FloatArray) -> FloatArray:
    """The median of each row."""
    medians: FloatArray = np.median(resamples, axis=-1)
    return medians


def mean(resamples: FloatArray) -> FloatArray:
    """The mean of each row."""
    means: FloatArray = np.mean(resamples, axis=-1)
    return means


def block_length(values: Floats) -> int:
    """The length of blocks for a series, from 1 to a third of it.

    Raises:
        ValueError: Fewer than two values, or not finite.
    """
    array = checked(values, least=2)
    r = min(abs(autocorrelation(array)), 0.99)
    best = 1.5 ** (1 / 3) * (2 * r / (1 - r * r)) ** (2 / 3) * array.size ** (1 / 3)
    return int(np.clip(round(best), 1, max(1, array.size // 3)))


def bootstrap(
    values: Floats,
    statistic: Statistic = median,
    confidence: float = 0.95,
    *,
    block: int = 1,
    resamples: int = 2_000,
    seed: int = 0,
) -> Interval:
    """The middle share ``confidence`` of the statistic over resamples of the values.

    Few values make it too narrow: below some twenty, prefer order statistics (`quantiles`).

    Args:
        values: Shape ``(n,)``; in order of time if ``block`` is more than one.
        statistic: Of each row of resamples.
        confidence: Of the interval, nearly.
        block: Neighbours drawn together: 1 for independent values, `block_length` for a series.
        resamples: How many.
        seed: Of the draws.

    Raises:
        ValueError: Fewer than two values, not finite; or a block or number that cannot be.
    """
    array = checked(values, least=2)
    checked_share(confidence, "confidence")
    if not 1 <= block <= array.size or resamples < 1:
        raise ValueError(f"blocks of {block} from {array.size} values, {resamples} times")
    generator = np.random.default_rng(seed)
    blocks = -(-array.size // block)
    rows = max(1, AT_ONCE // array.size)
    found = []
    for done in range(0, resamples, rows):
        starts = generator.integers(
            0, array.size - block + 1, size=(min(rows, resamples - done), blocks, 1)
        )
        picked = (starts + np.arange(block)).reshape(len(starts), -1)[:, : array.size]
        found.append(statistic(array[picked]))
    tail = (1 - confidence) / 2
    low, high = np.quantile(np.concatenate(found), [tail, 1 - tail])
    return Interval(float(low), float(high), confidence)
