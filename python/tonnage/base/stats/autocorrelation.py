"""Autocorrelation: how many independent values a series is worth.

`effective_size` sums the autocorrelations by Geyer's initial monotone sequence (1992, section 3.3).
The lag-1 autocorrelation alone, ``n (1 - r) / (1 + r)``, would only be right for AR(1). The sum
also captures slow correlation under fast noise: a disk that alternates between two states. The
result never exceeds the number of values.
"""

import numpy as np

from tonnage.base.stats.samples import FloatArray, Floats, as_sample


def autocorrelations(values: Floats) -> FloatArray:
    """The autocorrelation at lags 0, 1, ... n - 1, shape ``(n,)``.

    ``r_k = sum (x_t - m)(x_{t+k} - m) / sum (x_t - m)^2`` (Box and Jenkins, eq. 2.1.11). Values
    must be evenly spaced. If all are equal, the result is 1, then zeros.
    """
    array = as_sample(values)
    centred = array - np.mean(array)
    # Padded to twice the length with zeros: the transform is circular, the sum is not.
    transformed = np.fft.rfft(centred, 2 * array.size)
    sums = np.fft.irfft(np.abs(transformed) ** 2, 2 * array.size)[: array.size]
    if np.ptp(array) == 0 or sums[0] <= 0:
        sums[0], sums[1:] = 1, 0
    correlations: FloatArray = sums / sums[0]
    return correlations


def autocorrelation(values: Floats, lag: int = 1) -> float:
    """The autocorrelation at ``lag``; see `autocorrelations`."""
    if lag < 0:
        raise ValueError("the lag must not be negative")
    return float(autocorrelations(as_sample(values, least=lag + 1))[lag])


def integrated_time(values: Floats) -> float:
    """Samples for each independent one: ``1 + 2 * (r_1 + r_2 + ...)``, at least 1.

    The sum ends where two neighbouring autocorrelations add up to less than zero; sums of pairs
    are capped so that they never rise (Geyer 1992).
    """
    correlations = autocorrelations(as_sample(values, least=2))
    pairs = correlations[: correlations.size // 2 * 2].reshape(-1, 2).sum(axis=1)
    ended = np.flatnonzero(pairs <= 0)
    positive = pairs[: ended[0]] if ended.size else pairs
    return max(1.0, float(2 * np.minimum.accumulate(positive).sum() - 1))


def effective_size(values: Floats) -> float:
    """Independent values that a stationary series is worth: ``n / integrated_time``."""
    array = as_sample(values, least=2)
    return max(1.0, array.size / integrated_time(array))
