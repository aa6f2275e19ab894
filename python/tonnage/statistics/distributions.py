"""The distributions that intervals are read from: SciPy's special functions, typed.

Only this file imports SciPy, and only ``scipy.special``: ``scipy.stats`` takes a second to load.
"""

from __future__ import annotations

from scipy import special


def binomial_at_most(successes: int, trials: int, share: float) -> float:
    """P(B <= successes) of ``trials`` tries that each succeed with probability ``share``."""
    if successes < 0:
        return 0.0
    return float(special.bdtr(min(successes, trials), trials, share))


def normal_quantile(share: float) -> float:
    """The standard normal's quantile."""
    return float(special.ndtri(share))
