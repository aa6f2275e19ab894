"""Compare instances: their order, their percentiles, and outliers.

Each instance contributes one value, its own median; samples of several instances are never pooled.
Outliers are judged on logarithms, since rates are positive and differ by factors:
``z = (log x - median) / scale`` with a robust scale (`dispersion`), which outliers do not inflate.
The false alarm probability is the share of clusters of the same size, drawn from one normal
distribution, in which the farthest of *all* instances lies that far out (single-step max-T,
Westfall and Young 1993). It holds for any number of instances, and for small clusters. Instances
closer to the median than `MIN_SHARE` are not reported, however significant.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np

from tonnage.base.stats.dispersion import MAD_TO_DEVIATION, robust_scale
from tonnage.base.stats.quantiles import QuantileEstimate, quantile, quantile_estimate
from tonnage.base.stats.samples import FloatArray, Floats, as_sample

Better = Literal["higher", "lower"]

LEVEL = 0.01  # Share of clusters without any outlier in which one is reported
MIN_SHARE = 0.1  # No instance closer than this share to the cluster's median is an outlier
MIN_INSTANCES = 5  # Fewer do not show what is usual
CLUSTERS = 9_999
PERCENTILES = (0.1, 0.25, 0.5, 0.75, 0.9)


@dataclass(frozen=True)
class Outlier:
    name: str
    value: float
    ratio: float  # Its value over the cluster's median: 0.6 is 40 % less
    distance: float
    """Robust standard deviations of the logarithm from the median; infinite for a zero."""
    false_alarm: float
    """Share of clusters without outliers in which some instance lies this far out; >= 0.0001."""
    worse: bool  # Worse than the others; otherwise better


@dataclass(frozen=True)
class PercentileLines:
    """Each instance's own percentiles, instances from best to worst by their medians."""

    names: tuple[str, ...]
    shares: tuple[float, ...]
    values: tuple[tuple[float, ...], ...]
    """``values[i][j]`` is the percentile ``shares[i]`` of instance ``names[j]``."""


def best_to_worst(values: Mapping[str, float], better: Better = "higher") -> tuple[str, ...]:
    """The instances in order; ties by name."""
    as_sample(list(values.values()))
    sign = -1 if better == "higher" else 1
    return tuple(sorted(values, key=lambda name: (sign * values[name], name)))


def over_instances(
    values: Mapping[str, float], shares: Sequence[float] = PERCENTILES, confidence: float = 0.95
) -> tuple[QuantileEstimate, ...]:
    each = list(values.values())
    return tuple(quantile_estimate(each, share, confidence) for share in shares)


def percentile_lines(
    samples: Mapping[str, Floats], shares: Sequence[float] = PERCENTILES, better: Better = "higher"
) -> PercentileLines:
    names = best_to_worst({name: quantile(of, 0.5) for name, of in samples.items()}, better)
    lines = tuple(tuple(quantile(samples[name], share) for name in names) for share in shares)
    return PercentileLines(names, tuple(shares), lines)


def outliers(
    values: Mapping[str, float],
    better: Better = "higher",
    *,
    level: float = LEVEL,
    least_share: float = MIN_SHARE,
    seed: int = 0,
) -> tuple[Outlier, ...]:
    """The outliers, farthest first; none in a cluster of fewer than five.

    A zero is infinitely far out; instances closer to the median than ``least_share`` do not count.
    `ValueError`: a value is negative or not finite, or the median is zero.
    """
    names, array = list(values), as_sample(list(values.values()))
    if (array < 0).any():
        raise ValueError("a value is negative, so it has no logarithm")
    middle = float(np.median(array))
    if middle == 0:
        raise ValueError(
            "most instances have zero throughput, so there is no median to compare with"
        )
    if array.size < MIN_INSTANCES:
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
    """The farthest robust distance in each of many normal clusters, ascending: ``(CLUSTERS,)``."""
    generator = np.random.default_rng([seed, size])
    farthest = np.empty(CLUSTERS)
    rows = max(1, 4_000_000 // size)
    for start in range(0, CLUSTERS, rows):
        clusters = generator.standard_normal((min(rows, CLUSTERS - start), size))
        away = np.abs(clusters - np.median(clusters, axis=1, keepdims=True))
        scales = MAD_TO_DEVIATION * np.median(away, axis=1)
        farthest[start : start + len(clusters)] = away.max(axis=1) / scales
    farthest.sort()
    return farthest
