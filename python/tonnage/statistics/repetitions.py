"""Repetitions: how precise what was measured is, and how often it must still be measured.

A sample is one whole run: what is within a run is correlated, and more of it makes no new run.

* **Mean**: ``n = (t s / (r x))^2`` with t Student's for n - 1 (Jain, The Art of Computer Systems
  Performance Analysis, section 13.9, which takes the normal's).
* **Median**: ``n (d / r)^2`` where n samples had an interval by order statistics (`quantiles`)
  whose farther end is the share d away: a quantile's error falls with ``sqrt(n)`` (David and
  Nagaraja, theorem 10.3). CONFIRM (Maricq et al., OSDI 2018) asks the same by drawing subsets,
  which can say no more than the number there is. From few samples it is rough: ask again.

To look after each run and stop when it is good enough makes the interval look narrower than it is:
what stops is more often a lucky streak. The wanted share is reached less often than `confidence`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from tonnage.statistics.distributions import student_quantile
from tonnage.statistics.quantiles import needed_size, quantile_estimate
from tonnage.statistics.samples import (
    FloatArray,
    Floats,
    Interval,
    checked,
    checked_share,
)

Centre = Literal["median", "mean"]

MOST = 1_000_000
"""More repetitions than this are not counted out."""


@dataclass(frozen=True)
class Precision:
    """How precise a median or mean is, against how precise it should be."""

    centre: Centre
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


def precision(
    samples: Floats, share: float, confidence: float = 0.95, centre: Centre = "median"
) -> Precision:
    """How precise the samples' centre is, and how many would make it precise to ``share``.

    Args:
        samples: Shape ``(n,)``, one for each independent run.
        share: Wanted: both ends of the interval within this share of the centre; 0.05 is 5 %.
        confidence: Of the interval.
        centre: Median, by order statistics; or mean, by Student's t, which wants normal samples or
            many.

    Raises:
        ValueError: No samples, not finite; their centre is zero; a share not between 0 and 1.
    """
    array = checked(samples)
    checked_share(share)
    checked_share(confidence, "confidence")
    value = float(np.median(array) if centre == "median" else np.mean(array))
    if value == 0:
        raise ValueError("the centre is zero: precision relative to it says nothing")
    if centre == "median":
        interval = quantile_estimate(array, 0.5, confidence).interval
    else:
        interval = _interval_of_mean(array, confidence)
    reached = None
    if interval:
        reached = max(value - interval.low_value, interval.high_value - value) / abs(value)
    if centre == "median":
        needed = _needed_for_median(array.size, reached, share, confidence)
    else:
        needed = _needed_for_mean(array, share, confidence)
    countable = needed if needed <= MOST else None
    return Precision(centre, value, interval, reached, share, array.size, countable)


def _interval_of_mean(array: FloatArray, confidence: float) -> Interval | None:
    if array.size < 2:
        return None
    reach = student_quantile((1 + confidence) / 2, array.size - 1)
    half = reach * float(np.std(array, ddof=1)) / math.sqrt(array.size)
    middle = float(np.mean(array))
    return Interval(middle - half, middle + half, confidence)


def _needed_for_mean(array: FloatArray, share: float, confidence: float) -> int:
    if array.size < 2:
        return 2
    relative = float(np.std(array, ddof=1)) / abs(float(np.mean(array))) / share

    def enough(size: int) -> bool:
        reach = student_quantile((1 + confidence) / 2, size - 1)
        return reach * relative <= math.sqrt(size)

    return _least(2, enough)


def _needed_for_median(size: int, reached: float | None, share: float, confidence: float) -> int:
    least = needed_size(0.5, confidence)
    # Of fewer, nothing is known but that they are too few.
    return least if reached is None else max(least, math.ceil(size * (reached / share) ** 2))


def _least(least: int, enough: Callable[[int], bool]) -> int:
    """The least size that is enough, found by doubling, then by halving; or one beyond `MOST`."""
    if enough(least):
        return least
    short, long = least, 2 * least
    while not enough(long):
        if long > MOST:
            return long
        short, long = long, 2 * long
    while long - short > 1:
        middle = (short + long) // 2
        short, long = (short, middle) if enough(middle) else (middle, long)
    return long
