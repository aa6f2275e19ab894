"""Dispersion: the coefficient of variation, and robust scales.

The median absolute deviation (MAD) times 1.4826 is the standard deviation of normal values
(Rousseeuw and Croux 1993). It is zero when more than half of the values are equal, as in rounded
measurements. Then the mean absolute deviation times ``sqrt(pi / 2)`` replaces it (Iglewicz and
Hoaglin 1993, section 3.3). The robust scale is zero only if all values are equal.
"""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from tonnage.base.stats.distributions import normal_quantile
from tonnage.base.stats.samples import Floats, as_sample

MAD_TO_DEVIATION = 1 / normal_quantile(0.75)
MEAN_ABSOLUTE_TO_DEVIATION = math.sqrt(math.pi / 2)


@dataclass(frozen=True)
class Scale:
    """A robust standard deviation, and which rule gave it."""

    value: float
    rule: Literal["median absolute deviation", "mean absolute deviation", "all equal"]


def coefficient_of_variation(values: Floats) -> float:
    """Sample standard deviation (n - 1) over the absolute mean; no unit."""
    array = as_sample(values, least=2)
    mean = float(np.mean(array))
    if mean == 0:
        raise ValueError("the mean is zero, so the relative spread is undefined")
    return float(np.std(array, ddof=1)) / abs(mean)


def median_absolute_deviation(values: Floats) -> float:
    """The median distance from the median, not scaled to a standard deviation."""
    array = as_sample(values)
    return float(np.median(np.abs(array - np.median(array))))


def robust_scale(values: Floats) -> Scale:
    """The standard deviation of normal values with this MAD; see above where the MAD is zero."""
    array = as_sample(values)
    middle = median_absolute_deviation(array)
    if middle > 0:
        return Scale(MAD_TO_DEVIATION * middle, "median absolute deviation")
    mean = float(np.mean(np.abs(array - np.median(array))))
    if mean > 0:
        return Scale(MEAN_ABSOLUTE_TO_DEVIATION * mean, "mean absolute deviation")
    return Scale(0.0, "all equal")
