"""Autocorrelation: how many independent values a series is worth.

`effective_size` adds up the autocorrelations, by Geyer's initial monotone sequence (1992,
section 3.3). The lag-1 autocorrelation alone, ``n (1 - r) / (1 + r)``, would be right of AR(1); the
sum also sees what comes back slowly under fast noise: a disk that alternates between two moods. It
is never more than the number of values.
"""

from __future__ import annotations

import numpy as np

from tonnage.base.stats.samples import FloatArray, Floats, checked


def autocorrelations(values: Floats) -> FloatArray:
    """The autocorrelation at lags 0, 1, ... n - 1, shape ``(n,)``.

    ``r_k = sum (x_t - m)(x_{t+k} - m) / sum (x_t - m)^2`` (Box and Jenkins, eq. 2.1.11). Values
    that are all equal have none: 1, then zeros. Values must be evenly spaced.

    Raises:
        ValueError: The values are none or not finite.
    """
    array = checked(values)
    centred = array - np.mean(array)
    # Twice as long with zeros: the transform is circular, the sum is not.
    transformed = np.fft.rfft(centred, 2 * array.size)
    sums = np.fft.irfft(np.abs(transformed) ** 2, 2 * array.size)[: array.size]
    if np.ptp(array) == 0 or sums[0] <= 0:
        sums[0], sums[1:] = 1, 0
    correlations: FloatArray = sums / sums[0]
    return correlations


def autocorrelation(values: Floats, lag: int = 1) -> float:
    """The autocorrelation at ``lag``; see `autocorrelations`.

    Raises:
        ValueError: The values are not finite, or not more than the lag; or the lag is negative.
    """
    if lag < 0:
        raise ValueError("a lag is not negative")
    return float(autocorrelations(checked(values, least=lag + 1))[lag])


def integrated_time(values: Floats) -> float:
    """Samples that pass for each independent one: ``1 + 2 * (r_1 + r_2 + ...)``, at least 1.

    The sum ends where two neighbouring autocorrelations add up to less than zero, and its pairs are
    made to fall (Geyer 1992).

    Raises:
        ValueError: Fewer than two values, or not finite.
    """
    correlations = autocorrelations(checked(values, least=2))
    pairs = correlations[: correlations.size // 2 * 2].reshape(-1, 2).sum(axis=1)
    ended = np.flatnonzero(pairs <= 0)
    positive = pairs[: ended[0]] if ended.size else pairs
    return max(1.0, float(2 * np.minimum.accumulate(positive).sum() - 1))


def effective_size(values: Floats) -> float:
    """Independent values that any stationary series is worth: ``n / integrated_time``.

    Raises:
        ValueError: Fewer than two values, or not finite.
    """
    array = checked(values, least=2)
    return max(1.0, array.size / integrated_time(array))
