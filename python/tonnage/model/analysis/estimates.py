"""Medians with intervals, of what may be put together: one value an instance, or one a trial.

With several instances the unit is the instance: its value is the median of its own trials, and how
surely it is known plays no part. With a single one the unit is the trial; many trials, one after
another for days, are correlated, and count as so many as they are worth. Samples within a trial are
never the unit of either.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from tonnage.base.records.analysis import Estimate
from tonnage.base.stats.autocorrelation import effective_size
from tonnage.base.stats.quantiles import QuantileEstimate, quantile_estimate
from tonnage.model.analysis.grouping import Sample, by_instance

CONFIDENCE = 0.95
LEAST_CORRELATED = 20
"""Fewer trials do not show whether they are correlated."""
INSTANCES, TRIALS, IN_TIME = "instances", "trials", "samples"


def as_estimate(found: QuantileEstimate, over: str) -> Estimate:
    """A quantile as it is kept."""
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
    """The values of each instance that has any."""
    found = {
        name: [each for each in map(value, of) if each is not None]
        for name, of in by_instance(samples).items()
    }
    return {name: values for name, values in found.items() if values}


def median_estimate(
    values: Mapping[str, Sequence[float]], confidence: float = CONFIDENCE
) -> Estimate | None:
    """The median over instances, or over the trials of a single one; None of nothing."""
    if not values:
        return None
    units, over = units_of(values)
    worth = None
    if over == TRIALS and len(units) >= LEAST_CORRELATED:
        worth = effective_size(units)
    return as_estimate(quantile_estimate(units, 0.5, confidence, worth), over)


def units_of(values: Mapping[str, Sequence[float]]) -> tuple[list[float], str]:
    """What is counted, and what it is called."""
    if len(values) > 1:
        return list(medians_of(values).values()), INSTANCES
    return [float(value) for each in values.values() for value in each], TRIALS


def medians_of(values: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """Each instance's median."""
    return {name: float(np.median(each)) for name, each in values.items()}
