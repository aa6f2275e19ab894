"""A cluster over time: each instance's median, and outliers, multimodal and cyclic instances.

The order matters. Cycles are removed first, since a sinusoid lingers at its crests and troughs and
so has two modes. An instance with several modes is not an outlier just because its median lies in
the lower one: it is judged by the mode nearest to the cluster's median, and its own median does not
count towards that. False alarm levels hold for the cluster as a whole: each instance is tested at
the level over the number of tests. So a cluster with nothing to find has a finding in some 3 % of
cases, 1 % for each kind.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tonnage.base.stats.autocorrelation import autocorrelation, effective_size
from tonnage.base.stats.dispersion import coefficient_of_variation
from tonnage.base.stats.multimodality import LEAST as MIN_FOR_MODES
from tonnage.base.stats.multimodality import Modality, Mode, modality
from tonnage.base.stats.outliers import (
    PERCENTILES,
    Better,
    Outlier,
    best_to_worst,
    outliers,
    over_instances,
)
from tonnage.base.stats.periodicity import LEAST as MIN_FOR_CYCLES
from tonnage.base.stats.periodicity import Cycle, strongest_cycle, without_cycle
from tonnage.base.stats.quantiles import QuantileEstimate, quantile_estimate
from tonnage.base.stats.samples import FloatArray, Series, checked_series

LEVEL = 0.01


@dataclass(frozen=True)
class InstanceFindings:
    name: str
    median: QuantileEstimate  # With an interval by order statistics of the effective size
    autocorrelation: float  # At lag 1
    variation: float | None
    """Coefficient of variation over time; None if the mean is zero, or for a single sample."""
    modality: Modality | None  # Without the cycle; None: too few samples
    cycle: Cycle | None  # Only a significant one; too few samples show none


@dataclass(frozen=True)
class ClusterFindings:
    instances: tuple[InstanceFindings, ...]  # From best to worst, by median
    percentiles: tuple[QuantileEstimate, ...]  # Over instances, of their medians
    variation: float | None
    """Coefficient of variation of the instances' medians; None for one instance, or a mean of 0."""
    outliers: tuple[Outlier, ...]  # Worse and better instances, farthest first
    cycle: Cycle | None
    """Of the cluster as a whole: the median over instances, each relative to its own median."""
    level: float

    @property
    def multimodal(self) -> tuple[InstanceFindings, ...]:
        return tuple(each for each in self.instances if each.modality and each.modality.multimodal)

    @property
    def cyclic(self) -> tuple[InstanceFindings, ...]:
        return tuple(each for each in self.instances if each.cycle)


def analyse_cluster(
    series: Mapping[str, Series],
    *,
    better: Better = "higher",
    shares: Sequence[float] = PERCENTILES,
    confidence: float = 0.95,
    level: float = LEVEL,
    seed: int = 0,
) -> ClusterFindings:
    """Analyse the samples of a cluster's instances: one unit, not negative, one clock.

    ``level`` is the false alarm level of each kind of finding, for the cluster as a whole.
    `ValueError`: no instances, invalid samples, or most instances did nothing.
    """
    if not series:
        raise ValueError("no instances")
    arrays = {name: checked_series(each.seconds, each.values) for name, each in series.items()}
    # One test for each instance, and for cycles one more for the cluster.
    each_level = level / len(series)
    found = {
        name: _instance(name, *each, confidence, each_level, level / (len(series) + 1), seed)
        for name, each in arrays.items()
    }
    medians = {name: each.median.value for name, each in found.items()}
    return ClusterFindings(
        instances=tuple(found[name] for name in best_to_worst(medians, better)),
        percentiles=over_instances(medians, shares, confidence),
        variation=_variation(np.asarray(list(medians.values()))),
        outliers=outliers(_judged(found), better, level=level, seed=seed),
        cycle=_cycle(*_relative_median(arrays), level / (len(series) + 1)),
        level=level,
    )


def _instance(
    name: str,
    seconds: FloatArray,
    values: FloatArray,
    confidence: float,
    level: float,
    cycle_level: float,
    seed: int,
) -> InstanceFindings:
    several = values.size > 1
    cycle = _cycle(seconds, values, cycle_level)
    left = without_cycle(seconds, values, cycle) if cycle else values
    effective = effective_size(values) if several else 1.0
    enough = values.size >= MIN_FOR_MODES
    return InstanceFindings(
        name=name,
        median=quantile_estimate(values, 0.5, confidence, effective),
        autocorrelation=autocorrelation(values) if several else 0.0,
        variation=_variation(values),
        modality=modality(left, level=level, seed=seed) if enough else None,
        cycle=cycle,
    )


def _cycle(seconds: FloatArray, values: FloatArray, level: float) -> Cycle | None:
    if values.size < MIN_FOR_CYCLES:
        return None
    found = strongest_cycle(seconds, values)
    return found if found.false_alarm <= level else None


def _variation(values: FloatArray) -> float | None:
    return coefficient_of_variation(values) if values.size > 1 and values.mean() else None


def _judged(found: Mapping[str, InstanceFindings]) -> dict[str, float]:
    """The value by which each instance is judged: its median, or the mode nearest the others."""
    modes: dict[str, tuple[Mode, ...]] = {
        name: each.modality.modes
        for name, each in found.items()
        if each.modality and each.modality.multimodal
    }
    medians = {name: each.median.value for name, each in found.items()}
    usual = [value for name, value in medians.items() if name not in modes]
    middle = float(np.median(usual or list(medians.values())))
    return {
        # A density extends a little beyond the values: below zero, for an idle instance.
        name: min((max(mode.value, 0.0) for mode in modes[name]), key=lambda at: abs(at - middle))
        if name in modes
        else value
        for name, value in medians.items()
    }


def _relative_median(
    arrays: Mapping[str, tuple[FloatArray, FloatArray]],
) -> tuple[FloatArray, FloatArray]:
    """The cluster's series: in each bin of time, the median of instances relative to their own."""
    steps = [
        float(np.median(np.diff(seconds))) for seconds, _ in arrays.values() if seconds.size > 1
    ]
    step = max(steps, default=1.0)
    began = min(float(seconds[0]) for seconds, _ in arrays.values())
    ended = max(float(seconds[-1]) for seconds, _ in arrays.values())
    bins = int((ended - began) / step + 0.5) + 1
    rows = []
    for seconds, values in arrays.values():
        middle = float(np.median(values))
        if middle <= 0:
            continue
        places = np.floor((seconds - began) / step + 0.5).astype(np.int64)
        counts = np.bincount(places, minlength=bins)
        sums = np.bincount(places, values / middle, bins)
        rows.append(np.where(counts > 0, sums / np.maximum(counts, 1), np.nan))
    if not rows:
        return np.zeros(0), np.zeros(0)
    table = np.stack(rows)
    held = ~np.isnan(table).all(axis=0)
    moments = np.asarray(began + step * np.flatnonzero(held), dtype=np.float64)
    medians = np.asarray(np.nanmedian(table[:, held], axis=0), dtype=np.float64)
    return moments, medians
