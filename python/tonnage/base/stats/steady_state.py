"""Steady state: where warm-up ends, by the slope within a sliding window.

The first level window begins the steady state. A window is level if its fitted line rises or falls
by no more than a share of the window's mean. This is the rule of fio's ``steadystate=*_slope`` and
of SNIA's Performance Test Specification (best linear fit within the window). A level window within
a slow ramp of steps deceives it, and a cycle longer than the window delays it. Each result states
its window and tolerance.
"""

from dataclasses import dataclass

import numpy as np

from tonnage.base.stats.samples import Floats, checked_series


@dataclass(frozen=True)
class Steady:
    begins: int | None  # Index of the first steady sample; None: it did not become steady
    begins_seconds: float | None
    rule: str  # With its window and tolerance
    slope_per_second: float | None  # Of the line fitted to the level window
    excursion_share: float | None
    """The absolute change of that line over the window, as a share of the mean."""


def steady_by_slope(
    seconds: Floats, values: Floats, window_seconds: float, tolerance_share: float = 0.1
) -> Steady:
    """The first window whose fitted line rises or falls by no more than ``tolerance_share``.

    That is a share of the window's mean; SNIA's is 0.1. Windows of fewer than three samples are
    skipped, gaps are allowed.
    """
    moments, array = checked_series(seconds, values)
    if not (window_seconds > 0 and tolerance_share > 0):
        raise ValueError("window and tolerance must be positive")
    rule = f"slope within {tolerance_share:g} of the mean over a window of {window_seconds:g} s"
    # A window that ends less than one step after the last sample is complete.
    slack = float(np.median(np.diff(moments))) if array.size > 1 else 0.0
    for start, began in enumerate(moments):
        if began + window_seconds > moments[-1] + slack * 1.001:
            break
        end = int(np.searchsorted(moments, began + window_seconds, side="left"))
        if end - start < 3:
            continue
        slope, excursion = _line(moments[start:end], array[start:end], window_seconds)
        if excursion <= tolerance_share:
            return Steady(start, float(began), rule, slope, excursion)
    return Steady(None, None, rule, None, None)


def _line(moments: Floats, values: Floats, extent: float) -> tuple[float, float]:
    """The least-squares slope, and its change over ``extent`` relative to the mean."""
    away = np.asarray(moments) - np.mean(moments)
    middle = float(np.mean(values))
    slope = float(np.dot(away, np.asarray(values) - middle) / np.dot(away, away))
    risen = abs(slope) * extent
    return slope, risen / abs(middle) if middle else (float("inf") if risen else 0.0)
