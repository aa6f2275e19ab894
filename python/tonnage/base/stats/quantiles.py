"""Quantiles with intervals that assume no distribution: two of the sample's own order statistics.

Of n independent values the number below the true quantile of ``share`` p is binomial(n, p), so
``[x(l), x(u)]`` holds it with probability ``P(l <= B <= u - 1)`` at least, whatever continuous
distribution they come from (David and Nagaraja, Order Statistics, 3rd ed., section 7.1; Le Boudec,
Performance Evaluation, theorem 2.1). Ranks are taken so that each side errs by at most half of
``1 - confidence``. Where not even the extremes do, the interval is not estimable.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tonnage.base.stats.distributions import binomial_at_most, normal_quantile
from tonnage.base.stats.samples import Floats, Interval, checked, checked_share


@dataclass(frozen=True)
class Ranks:
    """Order statistics, counted from one, that enclose a quantile."""

    low: int
    high: int
    confidence: float
    """What the two enclose it with: at least what was asked for."""


@dataclass(frozen=True)
class QuantileEstimate:
    """A sample's quantile."""

    share: float
    value: float
    interval: Interval | None
    """None: not estimable from so few values."""
    size: int
    effective_size: int
    """Independent values that the sample is worth; its size, if not told otherwise."""
    missing: int
    """Independent values still lacking before there can be an interval; zero if there is one."""


def quantile(values: Floats, share: float) -> float:
    """The sample's quantile, linear between order statistics (Hyndman and Fan's type 7).

    Args:
        values: Shape ``(n,)``.
        share: From 0, the smallest, to 1, the largest.

    Raises:
        ValueError: The values are none or not finite, or the share is outside.
    """
    if not 0 <= share <= 1:
        raise ValueError(f"share must lie between 0 and 1, not {share}")
    return float(np.quantile(checked(values), share))


def needed_size(share: float, confidence: float = 0.95) -> int:
    """Independent values needed before the quantile has an interval: 6 for a median at 95 %.

    The least n with ``max(p, 1 - p) ** n <= (1 - confidence) / 2``: the quantile lies outside of
    all n values, on the side where that is likelier, no more often than one side may err.

    Raises:
        ValueError: Share or confidence is not between 0 and 1.
    """
    checked_share(share)
    error = (1 - checked_share(confidence, "confidence")) / 2
    likelier = max(share, 1 - share)
    size = max(1, math.ceil(math.log(error) / math.log(likelier)) - 1)
    while likelier**size > error:
        size += 1
    return size


def ranks(size: int, share: float, confidence: float = 0.95) -> Ranks | None:
    """Which of ``size`` independent values enclose the quantile; None if not even all do.

    Raises:
        ValueError: Share or confidence is not between 0 and 1.
    """
    if size < needed_size(share, confidence):
        return None
    error = (1 - confidence) / 2
    # Near the normal approximation; then exactly, which is a step or two.
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

    Args:
        values: Shape ``(n,)``; independent, or ``effective_size`` says how many they are worth.
        share: Which quantile; 0.5 is the median.
        confidence: Of the interval, at least.
        effective_size: Of autocorrelated values; see `autocorrelation`. With m of them the ranks
            are those of m values, as shares ``rank / (m + 1)`` of the whole sample. An
            approximation, on the safe side for medians.

    Raises:
        ValueError: The values are none or not finite, a share is not between 0 and 1, or the
            effective size is not finite.
    """
    array = checked(values)
    size = array.size
    if effective_size is not None:
        if not math.isfinite(effective_size):
            raise ValueError("the effective size is not finite")
        size = min(size, max(1, math.floor(effective_size)))
    found = ranks(size, share, confidence)
    interval = None
    if found:
        # Places from zero; with as many as there are, those of the ranks themselves.
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
