"""The distributions that intervals are read from: SciPy's special functions, typed.

Only this file imports SciPy, and only ``scipy.special``: ``scipy.stats`` takes a second to load.
"""

from __future__ import annotations

import numpy as np
from scipy import special

from tonnage.statistics.samples import FloatArray


def binomial_at_most(successes: int, trials: int, share: float) -> float:
    """P(B <= successes) of ``trials`` tries that each succeed with probability ``share``."""
    if successes < 0:
        return 0.0
    return float(special.bdtr(min(successes, trials), trials, share))


def normal_quantile(share: float) -> float:
    """The standard normal's quantile."""
    return float(special.ndtri(share))


def student_quantile(share: float, freedom: float) -> float:
    """The quantile of Student's t with ``freedom`` degrees of freedom."""
    return float(special.stdtrit(freedom, share))


def normal_quantiles(shares: FloatArray) -> FloatArray:
    """The standard normal's quantiles."""
    return np.asarray(special.ndtri(shares), dtype=np.float64)


def gamma_quantiles(shape: float, shares: FloatArray) -> FloatArray:
    """The quantiles of the gamma distribution of this shape and scale 1."""
    return np.asarray(special.gammaincinv(shape, shares), dtype=np.float64)
