"""Capacities as distributions, never numbers, from the trials of named measurements.

A trial's rate is one draw. The next trial's rate is predicted by Student's t on the logarithms of
the measured rates (rates are positive and vary by factors): with k trials of mean m and standard
deviation s, ``log rate ~ m + s * sqrt(1 + 1/k) * t(k - 1)``, the textbook prediction interval for
one more draw from the same normal population.

A job that lasts longer than a trial averages over more of the machine's variation. It may still run
entirely in a slow period, so the model takes no credit for averaging.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tonnage.base.records import Measurement, Trial

Draws = npt.NDArray[np.float64]

MIN_SPREAD = 0.01  # Minimum spread of rates: clocks and samples are no finer
UNKNOWN_SPREAD = 0.25  # Assumed standard deviation of the logarithm where there is only one trial


@dataclass(frozen=True)
class Capacity:
    """The capacity of one resource, in units per second (or its inverse)."""

    samples: tuple[float, ...]
    measurements: tuple[str, ...]

    @property
    def median(self) -> float:
        return float(np.median(self.samples))

    def draw(self, generator: np.random.Generator, count: int) -> Draws:
        """Predictive draws of the next rate, shape ``(count,)``."""
        logarithms = np.log(np.asarray(self.samples))
        known = len(logarithms)
        if known < 2:
            # One trial has no spread; assume that of a shared virtual disk.
            alone: Draws = np.exp(logarithms[0] + UNKNOWN_SPREAD * generator.standard_normal(count))
            return alone
        spread = max(float(np.std(logarithms, ddof=1)), MIN_SPREAD)
        # The median as centre: one trial disturbed by a neighbour must not move it.
        centre = float(np.median(logarithms))
        variates = generator.standard_t(known - 1, count)
        draws: Draws = np.exp(centre + spread * math.sqrt(1 + 1 / known) * variates)
        return draws

    def interval(self, confidence: float) -> tuple[float, float]:
        draws = self.draw(np.random.default_rng(0), 20_000)
        low, high = np.quantile(draws, [(1 - confidence) / 2, (1 + confidence) / 2])
        return float(low), float(high)


def throughput(measurements: Sequence[Measurement], name: str) -> Capacity:
    """Bytes per second of the trials called ``name``; `LookupError` if there are none."""
    return _collect(measurements, name, lambda trial: trial.bytes_per_second)


def cpu_per_byte(measurements: Sequence[Measurement], name: str) -> Capacity:
    """CPU seconds a byte of the trials called ``name``; `LookupError` if there are none."""
    return _collect(measurements, name, lambda trial: trial.cpu_seconds_per_byte)


def _collect(
    measurements: Sequence[Measurement], name: str, figure: Callable[[Trial], float]
) -> Capacity:
    found = [
        (figure(trial), measurement.id)
        for measurement in measurements
        for trial in measurement.trials
        if trial.name == name and figure(trial) > 0
    ]
    if not found:
        raise LookupError(f"no measurement contains a trial {name} with non-zero bytes")
    ids = tuple(dict.fromkeys(identity for _, identity in found))
    return Capacity(samples=tuple(value for value, _ in found), measurements=ids)
