"""Quantiles with intervals that assume no distribution: two of the sample's own order statistics.

Of n independent values the number below the true quantile of ``share`` p is binomial(n, p), so
``[x(l), x(u)]`` holds it with probability ``P(l <= B <= u - 1)`` at least, whatever continuous
distribution they come from (David and Nagaraja, Order Statistics, 3rd ed., section 7.1; Le Boudec,
Performance Evaluation, theorem 2.1). Ranks are chosen so that each side errs by at most half of
``1 - confidence``. If even the extremes err more, the interval is not estimable.
"""

import math
from dataclasses import dataclass

import numpy as np

from tonnage.base.stats.distributions import binomial_at_most, normal_quantile
from tonnage.base.stats.samples import Floats, Interval, as_sample, checked_share


@dataclass(frozen=True)
class Ranks:
    """Order statistics, counted from one, that enclose a quantile."""

    low: int
    high: int
    confidence: float  # Of the two: at least the requested one


@dataclass(frozen=True)
class QuantileEstimate:
    share: float
    value: float
    interval: Interval | None  # None: not estimable from so few values
    size: int
    effective_size: int  # Independent values that the sample is worth; its size, unless given
    missing: int  # Independent values still missing for an interval; zero if there is one


def quantile(values: Floats, share: float) -> float:
    """The sample's quantile, linear between order statistics (Hyndman and Fan's type 7)."""
    if not 0 <= share <= 1:
        raise ValueError(f"share must be between 0 and 1, but is {share}")
    return float(np.quantile(as_sample(values), share))


def needed_size(share: float, confidence: float = 0.95) -> int:
    """Independent values needed before the quantile has an interval: 6 for a median at 95 %.

    The least n with ``max(p, 1 - p) ** n <= (1 - confidence) / 2``: the quantile lies outside of
    all n values, on the likelier side, no more often than one side may err.
    """
    checked_share(share)
    error = (1 - checked_share(confidence, "confidence")) / 2
    likelier = max(share, 1 - share)
    size = max(1, math.ceil(math.log(error) / math.log(likelier)) - 1)
    while likelier**size > error:
        size += 1
    return size


def ranks(size: int, share: float, confidence: float = 0.95) -> Ranks | None:
    """Which of ``size`` independent values enclose the quantile; None if not even all do."""
    if size < needed_size(share, confidence):
        return None
    error = (1 - confidence) / 2
    # Start near the normal approximation, then correct exactly in a step or two.
    reach = -normal_quantile(error) * math.sqrt(size * share * (1 - share))
    low = min(max(1, math.floor(size * share - reach)), size)
    while low > 1 and binomial_at_most(low - 1, size, share) > error:
        low -= 1
    while binomial_at_most(low, size, share) <= error:
        low += 1
    high = min(max(1, math.ceil(size * share + reach)), size)
    while high < size and 1 - binomial_at_most(high - 1, size, share) > error:
        high += 1
    while high > 1 and 1 - binomial_at_most(high - 2, size, share) <= error:
        high -= 1
    covered = binomial_at_most(high - 1, size, share) - binomial_at_most(low - 1, size, share)
    return Ranks(low, high, covered)


def quantile_estimate(
    values: Floats,
    share: float = 0.5,
    confidence: float = 0.95,
    effective_size: float | None = None,
) -> QuantileEstimate:
    """The sample's quantile, and the order statistics that enclose the true one.

    Autocorrelated values are worth m = ``effective_size`` independent ones (see `autocorrelation`):
    the ranks are those of m values, as shares ``rank / (m + 1)`` of the sample, conservatively.
    """
    array = as_sample(values)
    size = array.size
    if effective_size is not None:
        if not math.isfinite(effective_size):
            raise ValueError("the effective size is not finite")
        size = min(size, max(1, math.floor(effective_size)))
    found = ranks(size, share, confidence)
    interval = None
    if found:
        # Positions from zero; if the effective size is the size, these are the ranks themselves.
        stretch = (array.size + 1) / (size + 1)
        places = [rank * stretch - 1 for rank in (found.low, found.high)]
        low, high = np.interp(places, np.arange(array.size), np.sort(array)).tolist()
        interval = Interval(low, high, found.confidence)
    return QuantileEstimate(
        share=share,
        value=float(np.quantile(array, share)),
        interval=interval,
        size=array.size,
        effective_size=size,
        missing=max(0, needed_size(share, confidence) - size),
    )
