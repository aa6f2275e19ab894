"""Sample size: how precise a median is, and how many repetitions are still needed.

A sample is one whole run: values within a run are correlated, and more of them are no new run.

A median needs ``n (d / r)^2`` samples to be known to within the share r, where n samples had an
interval by order statistics (`quantiles`) whose farther end is the share d away: a quantile's error
falls with ``sqrt(n)`` (David and Nagaraja, theorem 10.3). CONFIRM (Maricq et al., OSDI 2018)
answers the same question by drawing subsets, so never beyond the number of samples it has. From few
samples the estimate is rough: repeat it.

Checking after each run and stopping once the precision suffices makes intervals look narrower than
they are, since lucky streaks stop more often. They hold less often than `confidence`.
"""

import math
from dataclasses import dataclass

import numpy as np

from tonnage.base.stats.quantiles import needed_size, quantile_estimate
from tonnage.base.stats.samples import Floats, Interval, as_sample, checked_share

MOST = 1_000_000  # Larger numbers are reported as unknown


@dataclass(frozen=True)
class Precision:
    value: float
    interval: Interval | None  # None: not estimable from so few samples
    reached_share: float | None
    """The farther end's distance from the value, as a share of the value; None as above."""
    wanted_share: float
    size: int
    needed: int | None  # Estimated total number of samples; None: more than a million

    @property
    def is_sufficient(self) -> bool:
        """Whether the interval lies within the target share of the value."""
        return self.reached_share is not None and self.reached_share <= self.wanted_share

    @property
    def still_needed(self) -> int | None:
        """Samples still to be taken: zero when sufficient, otherwise at least one."""
        if self.is_sufficient:
            return 0
        return None if self.needed is None else max(1, self.needed - self.size)


def precision(samples: Floats, share: float, confidence: float = 0.95) -> Precision:
    """The precision of independent runs' median, and how many make it precise to ``share``."""
    array = as_sample(samples)
    checked_share(share)
    checked_share(confidence, "confidence")
    value = float(np.median(array))
    if value == 0:
        raise ValueError("the median is zero, so the relative precision is undefined")
    interval = quantile_estimate(array, 0.5, confidence).interval
    reached = None
    if interval:
        reached = max(value - interval.low_value, interval.high_value - value) / abs(value)
    needed = _needed(array.size, reached, share, confidence)
    countable = needed if needed <= MOST else None
    return Precision(value, interval, reached, share, array.size, countable)


def _needed(size: int, reached: float | None, share: float, confidence: float) -> int:
    least = needed_size(0.5, confidence)
    # Fewer than the minimum have no interval to extrapolate from.
    return least if reached is None else max(least, math.ceil(size * (reached / share) ** 2))
