"""Many instances side by side: their order, lines of percentiles, and bad apples.

Each instance gives one value, its own median; percentiles of instances are never pooled. Which
do not belong is judged on logarithms, since rates are positive and differ by factors:
``z = (log x - median) / scale`` with a robust scale (`spread`), so that bad apples do not hide
themselves. How sure: the share of fleets, drawn from one normal distribution and of the same size,
in which the farthest of *all* instances lies that far out (single-step max-T, Westfall and Young
1993), so looking at many instances costs no false alarms, and the few values of a small fleet are
allowed for. An instance that is surely different but by little is not worth a name: `LEAST_SHARE`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np

from tonnage.base.stats.dispersion import MAD_TO_DEVIATION, robust_scale
from tonnage.base.stats.quantiles import QuantileEstimate, quantile, quantile_estimate
from tonnage.base.stats.samples import FloatArray, Floats, checked

Better = Literal["higher", "lower"]

LEVEL = 0.01
"""Fleets without any outlier in which one is called so."""
LEAST_SHARE = 0.1
"""Closer than this share to the fleet's median, nobody is an outlier."""
LEAST_INSTANCES = 5
"""Fewer do not show what is usual."""
FLEETS = 9_999
PERCENTILES = (0.1, 0.25, 0.5, 0.75, 0.9)


@dataclass(frozen=True)
class Outlier:
    """An instance that does not belong to the others."""

    name: str
    value: float
    ratio: float
    """Its value over the fleet's median: 0.6 is 40 % less."""
    distance: float
    """Robust standard deviations of the logarithm from the median; infinite for a zero."""
    false_alarm: float
    """Fleets without outliers in which some instance lies this far out; at least 0.0001."""
    worse: bool
    """A bad apple; else it is better than the others."""


@dataclass(frozen=True)
class PercentileLines:
    """Each instance's own percentiles, instances from best to worst by their medians."""

    names: tuple[str, ...]
    shares: tuple[float, ...]
    values: tuple[tuple[float, ...], ...]
    """``values[i][j]`` is the percentile ``shares[i]`` of instance ``names[j]``."""


def best_to_worst(values: Mapping[str, float], better: Better = "higher") -> tuple[str, ...]:
    """The instances in order; of equals, by name.

    Raises:
        ValueError: There are none, or a value is not finite.
    """
    checked(list(values.values()))
    sign = -1 if better == "higher" else 1
    return tuple(sorted(values, key=lambda name: (sign * values[name], name)))


def over_instances(
    values: Mapping[str, float], shares: Sequence[float] = PERCENTILES, confidence: float = 0.95
) -> tuple[QuantileEstimate, ...]:
    """Percentiles over instances, one value each, with intervals for the fleet they come from.

    Raises:
        ValueError: There are none, a value is not finite, or a share is not between 0 and 1.
    """
    each = list(values.values())
    return tuple(quantile_estimate(each, share, confidence) for share in shares)


def percentile_lines(
    samples: Mapping[str, Floats],
    shares: Sequence[float] = PERCENTILES,
    better: Better = "higher",
) -> PercentileLines:
    """Each instance's own percentiles, instances from best to worst.

    Raises:
        ValueError: There are no instances, or one has no values or some that are not finite.
    """
    names = best_to_worst({name: quantile(of, 0.5) for name, of in samples.items()}, better)
    lines = tuple(tuple(quantile(samples[name], share) for name in names) for share in shares)
    return PercentileLines(names, tuple(shares), lines)


def outliers(
    values: Mapping[str, float],
    better: Better = "higher",
    *,
    level: float = LEVEL,
    least_share: float = LEAST_SHARE,
    seed: int = 0,
) -> tuple[Outlier, ...]:
    """The instances that do not belong, farthest first; none in a fleet smaller than five.

    Args:
        values: One for each instance, none negative; a zero (it did nothing) is infinitely far out.
        better: Which direction is the good one.
        level: Of false alarms, for the fleet as a whole.
        least_share: What differs from the median by less is left out, however sure.
        seed: Of the fleets that are drawn for comparison.

    Raises:
        ValueError: There are no instances, or a value is negative or not finite; or the median is
            zero, when most did nothing.
    """
    names, array = list(values), checked(list(values.values()))
    if (array < 0).any():
        raise ValueError("a value is negative: it has no logarithm")
    middle = float(np.median(array))
    if middle == 0:
        raise ValueError("most instances did nothing: there is nothing to compare with")
    if array.size < LEAST_INSTANCES:
        return ()
    moved = array > 0
    logarithms = np.full(array.size, -np.inf)
    logarithms[moved] = np.log(array[moved] / middle)
    scale = robust_scale(logarithms[moved]).value
    drawn = _farthest(array.size, seed)
    found = []
    for name, value, logarithm in zip(names, array.tolist(), logarithms.tolist(), strict=True):
        if abs(value / middle - 1) < least_share:
            continue
        distance = logarithm / scale if scale else math.copysign(math.inf, logarithm)
        farther = drawn.size - int(np.searchsorted(drawn, abs(distance), side="left"))
        false_alarm = (1 + farther) / (1 + drawn.size)
        if false_alarm <= level:
            worse = (logarithm < 0) == (better == "higher")
            found.append(Outlier(name, value, value / middle, distance, false_alarm, worse))
    return tuple(sorted(found, key=lambda each: (-abs(each.distance), each.name)))


@lru_cache(maxsize=16)
def _farthest(size: int, seed: int) -> FloatArray:
    """The farthest robust distance in each of many normal fleets, ascending: ``(FLEETS,)``."""
    generator = np.random.default_rng([seed, size])
    farthest = np.empty(FLEETS)
    rows = max(1, 4_000_000 // size)
    for start in range(0, FLEETS, rows):
        fleets = generator.standard_normal((min(rows, FLEETS - start), size))
        away = np.abs(fleets - np.median(fleets, axis=1, keepdims=True))
        scales = MAD_TO_DEVIATION * np.median(away, axis=1)
        farthest[start : start + len(fleets)] = away.max(axis=1) / scales
    farthest.sort()
    return farthest
