"""Repetitions: how precise what was measured is, and how often it must still be measured.

A sample is one whole run: what is within a run is correlated, and more of it makes no new run.

A median takes ``n (d / r)^2`` samples to be known to within the share r, where n samples had an
interval by order statistics (`quantiles`) whose farther end is the share d away: a quantile's error
falls with ``sqrt(n)`` (David and Nagaraja, theorem 10.3). CONFIRM (Maricq et al., OSDI 2018) asks
the same by drawing subsets, which can say no more than the number there is. From few samples it is
rough: ask again.

To look after each run and stop when it is good enough makes the interval look narrower than it is:
what stops is more often a lucky streak. The wanted share is reached less often than `confidence`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tonnage.base.stats.quantiles import needed_size, quantile_estimate
from tonnage.base.stats.samples import Floats, Interval, checked, checked_share

MOST = 1_000_000
"""More repetitions than this are not counted out."""


@dataclass(frozen=True)
class Precision:
    """How precise a median is, against how precise it should be."""

    value: float
    interval: Interval | None
    """None: not estimable from so few samples."""
    reached_share: float | None
    """The farther end's distance from the value, as a share of the value; None as above."""
    wanted_share: float
    size: int
    needed: int | None
    """Samples in all, as far as these can tell; None: more than a million."""

    @property
    def good_enough(self) -> bool:
        """Whether the interval lies within the wanted share of the value."""
        return self.reached_share is not None and self.reached_share <= self.wanted_share

    @property
    def still_needed(self) -> int | None:
        """Samples that are still to be taken: zero when good enough, else at least one."""
        if self.good_enough:
            return 0
        return None if self.needed is None else max(1, self.needed - self.size)


def precision(samples: Floats, share: float, confidence: float = 0.95) -> Precision:
    """How precise the samples' median is, and how many would make it precise to ``share``.

    Args:
        samples: Shape ``(n,)``, one for each independent run.
        share: Wanted: both ends of the interval within this share of the median; 0.05 is 5 %.
        confidence: Of the interval, by order statistics.

    Raises:
        ValueError: No samples, not finite; their median is zero; a share not between 0 and 1.
    """
    array = checked(samples)
    checked_share(share)
    checked_share(confidence, "confidence")
    value = float(np.median(array))
    if value == 0:
        raise ValueError("the median is zero: precision relative to it says nothing")
    interval = quantile_estimate(array, 0.5, confidence).interval
    reached = None
    if interval:
        reached = max(value - interval.low_value, interval.high_value - value) / abs(value)
    needed = _needed(array.size, reached, share, confidence)
    countable = needed if needed <= MOST else None
    return Precision(value, interval, reached, share, array.size, countable)


def _needed(size: int, reached: float | None, share: float, confidence: float) -> int:
    least = needed_size(0.5, confidence)
    # Of fewer, nothing is known but that they are too few.
    return least if reached is None else max(least, math.ceil(size * (reached / share) ** 2))
