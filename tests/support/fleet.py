"""A made-up fleet with known faults, for an analysis to find: 45 instances, ten minutes."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tonnage.model.statistics.samples import Series

INSTANCES = 45
SECONDS = 600
LEVEL = 100.0
SPREAD = 0.05
"""Between healthy instances, as a share."""
NOISE = 0.06
"""Within an instance, from second to second, as a share."""
CORRELATION = 0.45
SLOW, SLOWER = 0.6, 1 / 30
LOW_MODE, DWELL_SECONDS = 0.55, 20.0
PERIOD_SECONDS, AMPLITUDE = 150.0, 0.15


@dataclass(frozen=True)
class Fleet:
    """What every instance gave, in MB/s, and what is wrong with which."""

    series: Mapping[str, Series]
    slow: str
    slower: str
    bimodal: str
    cyclic: str


def fleet(seed: int, *, healthy: bool = False) -> Fleet:
    """A fleet; the same seed gives the same one. A healthy one has no faults, whatever it says."""
    generator = np.random.default_rng(seed)
    names = [f"node-{number:02}" for number in range(INSTANCES)]
    slow, slower, bimodal, cyclic = generator.permutation(names)[:4].tolist()
    seconds = np.arange(float(SECONDS))
    series = {}
    for name in names:
        level = LEVEL * (1 + SPREAD * generator.standard_normal())
        course = 1 + NOISE * ar1(generator, SECONDS, CORRELATION)
        moods = telegraph(generator, SECONDS, DWELL_SECONDS)
        phase = 2 * math.pi * generator.random()
        if not healthy:
            if name in (slow, slower):
                # Relative to what is usual, not to what this one would have been.
                level = LEVEL * (SLOW if name == slow else SLOWER)
            elif name == bimodal:
                course = course * np.where(moods, LOW_MODE, 1)
            elif name == cyclic:
                course = course + AMPLITUDE * np.sin(2 * np.pi * seconds / PERIOD_SECONDS + phase)
        series[name] = Series(seconds, level * course)
    return Fleet(series, slow, slower, bimodal, cyclic)


def ar1(generator: np.random.Generator, size: int, correlation: float) -> npt.NDArray[np.float64]:
    """Standard normal values, each correlated with the one before it; shape ``(size,)``."""
    drawn = generator.standard_normal(size)
    values = np.empty(size)
    values[0] = drawn[0]
    fresh = math.sqrt(1 - correlation**2)
    for place in range(1, size):
        values[place] = correlation * values[place - 1] + fresh * drawn[place]
    return values


def telegraph(generator: np.random.Generator, size: int, dwell: float) -> npt.NDArray[np.bool_]:
    """Turns true and false at random, ``dwell`` samples apart on average; shape ``(size,)``."""
    turns = np.cumsum(generator.random(size) < 1 / dwell)
    truths: npt.NDArray[np.bool_] = (turns + generator.integers(2)) % 2 == 1
    return truths
