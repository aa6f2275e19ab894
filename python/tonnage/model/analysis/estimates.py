"""Medians with intervals, over instances or over trials.

With several instances the unit is the instance: its value is the median of its own trials,
whatever its error. With a single instance the unit is the trial. Long series of trials are
correlated, so they count with their effective size. Samples within a trial are never a unit.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from tonnage.base.records.analysis import Estimate
from tonnage.base.stats.autocorrelation import effective_size
from tonnage.base.stats.quantiles import QuantileEstimate, quantile_estimate
from tonnage.model.analysis.grouping import Sample, by_instance

CONFIDENCE = 0.95
MIN_CORRELATED = 20  # Minimum number of trials for an estimate of their correlation
INSTANCES, TRIALS, IN_TIME = "instances", "trials", "samples"


def as_estimate(found: QuantileEstimate, over: str) -> Estimate:
    interval = found.interval
    return Estimate(
        share=found.share,
        value=found.value,
        low=interval.low_value if interval else None,
        high=interval.high_value if interval else None,
        confidence=interval.confidence if interval else None,
        size=found.size,
        effective_size=found.effective_size,
        over=over,
        lacking=found.missing,
    )


def values_of(
    samples: Iterable[Sample], value: Callable[[Sample], float | None]
) -> dict[str, list[float]]:
    """The values by instance, without instances that have none."""
    found = {
        name: [each for each in map(value, of) if each is not None]
        for name, of in by_instance(samples).items()
    }
    return {name: values for name, values in found.items() if values}


def median_estimate(
    values: Mapping[str, Sequence[float]], confidence: float = CONFIDENCE
) -> Estimate | None:
    """The median over instances, or over the trials of a single one; None without values."""
    if not values:
        return None
    units, over = units_of(values)
    worth = None
    if over == TRIALS and len(units) >= MIN_CORRELATED:
        worth = effective_size(units)
    return as_estimate(quantile_estimate(units, 0.5, confidence, worth), over)


def units_of(values: Mapping[str, Sequence[float]]) -> tuple[list[float], str]:
    """The units' values, and the name of the unit."""
    if len(values) > 1:
        return list(medians_of(values).values()), INSTANCES
    return [float(value) for each in values.values() for value in each], TRIALS


def medians_of(values: Mapping[str, Sequence[float]]) -> dict[str, float]:
    return {name: float(np.median(each)) for name, each in values.items()}
