"""The distributions behind intervals and draws.

Plans draw normal and gamma quantiles by the hundred thousand, and importing SciPy takes longer than
a plan, so both are computed here: the normal's by Wichura's algorithm AS 241 (Applied Statistics
37, 1988), the gamma's by Newton's method on its power series (NIST Digital Library of Mathematical
Functions, 8.11.4). Tests compare both with SciPy's. The others are SciPy's special functions, since
``scipy.stats`` takes a second to import.
"""

import math
from statistics import NormalDist

import numpy as np

from tonnage.base.stats.samples import FloatArray

# AS 241, PPND16: numerator and denominator, highest power first. Near the middle in terms of
# 0.180625 - q^2; in the tails of r = sqrt(-log(tail)), less 1.6 up to 5 and less 5 beyond.
# fmt: off
MIDDLE = (
    np.array([
        2509.0809287301226727, 33430.575583588128105, 67265.770927008700853,
        45921.953931549871457, 13731.693765509461125, 1971.5909503065514427,
        133.14166789178437745, 3.387132872796366608,
    ]),
    np.array([
        5226.495278852854561, 28729.085735721942674, 39307.89580009271061,
        21213.794301586595867, 5394.1960214247511077, 687.1870074920579083,
        42.313330701600911252, 1.0,
    ]),
)
TAIL = (
    np.array([
        7.7454501427834140764e-4, 0.0227238449892691845833, 0.24178072517745061177,
        1.27045825245236838258, 3.64784832476320460504, 5.7694972214606914055,
        4.6303378461565452959, 1.42343711074968357734,
    ]),
    np.array([
        1.05075007164441684324e-9, 5.475938084995344946e-4, 0.0151986665636164571966,
        0.14810397642748007459, 0.68976733498510000455, 1.6763848301838038494,
        2.05319162663775882187, 1.0,
    ]),
)
FAR_TAIL = (
    np.array([
        2.01033439929228813265e-7, 2.71155556874348757815e-5, 0.0012426609473880784386,
        0.026532189526576123093, 0.29656057182850489123, 1.7848265399172913358,
        5.4637849111641143699, 6.6579046435011037772,
    ]),
    np.array([
        2.04426310338993978564e-15, 1.4215117583164458887e-7, 1.8463183175100546818e-5,
        7.868691311456132591e-4, 0.0148753612908506148525, 0.13692988092273580531,
        0.59983220655588793769, 1.0,
    ]),
)
# fmt: on
MAX_STEPS, NEAR = 60, 1e-7


def binomial_at_most(successes: int, trials: int, share: float) -> float:
    """P(B <= successes) for ``trials`` attempts that each succeed with probability ``share``."""
    from scipy import special

    if successes < 0:
        return 0.0
    return float(special.bdtr(min(successes, trials), trials, share))


def student_quantile(share: float, freedom: float) -> float:
    from scipy import special

    return float(special.stdtrit(freedom, share))


def normal_quantile(share: float) -> float:
    return NormalDist().inv_cdf(share)


def normal_quantiles(shares: FloatArray) -> FloatArray:
    """The standard normal's quantiles; infinite at 0 and 1."""
    shares = np.asarray(shares, dtype=np.float64)
    off = shares - 0.5
    found = off * _ratio(MIDDLE, 0.180625 - off * off)
    outer = np.abs(off) > 0.425
    if outer.any():
        with np.errstate(divide="ignore", invalid="ignore"):
            far = np.sqrt(-np.log(np.minimum(shares[outer], 1 - shares[outer])))
            tail = np.where(far <= 5, _ratio(TAIL, far - 1.6), _ratio(FAR_TAIL, far - 5))
        found[outer] = np.copysign(np.where(np.isinf(far), np.inf, tail), off[outer])
    return found


def gamma_quantiles(shape: float, shares: FloatArray) -> FloatArray:
    """Quantiles of the gamma distribution of this shape and scale 1.

    Newton's method starts from Wilson and Hilferty's cube (1931).
    """
    log_gamma = math.lgamma(shape)
    start = 1 - 1 / (9 * shape) + normal_quantiles(shares) / (3 * math.sqrt(shape))
    # In the far lower tail, where the cube fails, the first term of the series suffices.
    least = np.exp((np.log(shares) + log_gamma + math.log(shape)) / shape)
    found = np.maximum(shape * np.maximum(start, 0.0) ** 3, least)
    for _ in range(MAX_STEPS):
        density = np.exp((shape - 1) * np.log(found) - found - log_gamma)
        step = (density * found * _series(shape, found) - shares) / density
        # At most down to a tenth: the quantile stays positive.
        found = np.maximum(found - step, found / 10)
        if np.all(np.abs(step) <= NEAR * found):
            break
    return found


def _series(shape: float, at: FloatArray) -> FloatArray:
    # The sum of x^n / (a (a + 1) ... (a + n)).
    term = np.full_like(at, 1 / shape)
    total = term.copy()
    above = shape
    while np.any(term > 1e-16 * total):
        above += 1
        term = term * at / above
        total += term
    return total


def _ratio(polynomials: tuple[FloatArray, FloatArray], at: FloatArray) -> FloatArray:
    above, below = polynomials
    return _polynomial(above, at) / _polynomial(below, at)


def _polynomial(coefficients: FloatArray, at: FloatArray) -> FloatArray:
    # As NumPy's polyval, but without a new array for each coefficient.
    found = np.full_like(at, coefficients[0])
    for each in coefficients[1:]:
        found *= at
        found += each
    return found
