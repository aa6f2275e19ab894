"""Types that all estimators share: checked samples, series and intervals."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
Floats = Sequence[float] | FloatArray  # One-dimensional: a sequence or an array of shape ``(n,)``


@dataclass(frozen=True)
class Interval:
    low_value: float
    high_value: float
    confidence: float


@dataclass(frozen=True)
class Series:
    """The values of one instance over time: ``values[i]`` at ``seconds[i]``, which increase."""

    seconds: Floats
    values: Floats


def as_sample(values: Floats, least: int = 1) -> FloatArray:
    """The values as an array of shape ``(n,)``; at least ``least``, all finite."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1:
        raise ValueError(f"values must be one-dimensional, but are {array.ndim}-dimensional")
    if array.size < least:
        raise ValueError(f"needs at least {least} values, but got {array.size}")
    if not np.isfinite(array).all():
        raise ValueError("a value is not finite")
    return array


def checked_series(
    seconds: Floats, values: Floats, least: int = 1
) -> tuple[FloatArray, FloatArray]:
    """The moments, which increase, and the values as arrays of shape ``(n,)``."""
    moments, array = as_sample(seconds, least), as_sample(values, least)
    if moments.size != array.size:
        raise ValueError(f"expected {array.size} times, one for each value, but got {moments.size}")
    if (np.diff(moments) <= 0).any():
        raise ValueError("the times must increase")
    return moments, array


def checked_share(share: float, name: str = "share") -> float:
    if not 0 < share < 1:
        raise ValueError(f"{name} must be between 0 and 1, but is {share}")
    return share
