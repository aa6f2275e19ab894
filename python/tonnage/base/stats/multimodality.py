"""Modes: whether a sample has more than one, where they are, and how much lies in each.

A median between two modes is a value that hardly occurs, so look here before quoting one.

Two things must hold before a sample is called multimodal. Its `dip` must be larger than that of the
uniform distribution, of all with one mode the one that dips most (Hartigan and Hartigan 1985), in
all but ``level`` of samples. And it must be larger than the dips of surrogates: series with the
same periodogram and random phases (Theiler et al. 1992), which have one mode and the sample's own
autocorrelation; what wanders slowly lingers here and there and dips without having modes. A series
that changed its level once, for good, has two modes as well: that is said of what was seen.

The modes themselves are the humps of a Gaussian kernel density (`density`) that a valley parts.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np

from tonnage.base.stats.density import bandwidth, kernel_density
from tonnage.base.stats.dip_test import dip
from tonnage.base.stats.samples import FloatArray, Floats, checked

LEVEL = 0.01
LEAST = 20
"""Values below which nothing is said of modes."""
MOST = 2_048
"""Of a longer series, every so manyth sample is looked at."""
SURROGATES = 199
SURROGATE_LEVEL = 0.01
VALLEY = 0.8
"""A valley is no higher than this share of the lower hump beside it."""
LEAST_SHARE = 0.05
"""A hump with a smaller share of the values is no mode."""

TAILS = (0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001, 0.0005, 0.0002, 0.0001)
# fmt: off
TABLE: dict[int, tuple[float, ...]] = {
    10: (0.309, 0.376, 0.413, 0.442, 0.477, 0.505, 0.528, 0.553, 0.571, 0.586, 0.606, 0.621),
    20: (0.328, 0.395, 0.435, 0.470, 0.511, 0.540, 0.565, 0.597, 0.620, 0.642, 0.668, 0.685),
    40: (0.342, 0.411, 0.454, 0.491, 0.534, 0.565, 0.594, 0.630, 0.654, 0.677, 0.706, 0.727),
    80: (0.352, 0.424, 0.468, 0.507, 0.553, 0.585, 0.616, 0.654, 0.682, 0.707, 0.739, 0.754),
    160: (0.360, 0.433, 0.479, 0.519, 0.567, 0.600, 0.632, 0.672, 0.696, 0.724, 0.758, 0.777),
    320: (0.365, 0.439, 0.485, 0.526, 0.575, 0.608, 0.640, 0.682, 0.709, 0.735, 0.774, 0.794),
    640: (0.369, 0.444, 0.490, 0.532, 0.583, 0.616, 0.647, 0.685, 0.715, 0.745, 0.781, 0.804),
    1280: (0.372, 0.448, 0.494, 0.537, 0.586, 0.621, 0.655, 0.695, 0.723, 0.753, 0.789, 0.819),
    2560: (0.374, 0.450, 0.497, 0.538, 0.589, 0.626, 0.659, 0.700, 0.733, 0.757, 0.789, 0.820),
}
# fmt: on
"""``sqrt(n)`` times the dip that uniform samples of n exceed with each probability of `TAILS`.

From 300,000 samples of each n up to 640, 150,000 above (NumPy's PCG64, seed 19850301).
"""


@dataclass(frozen=True)
class Mode:
    """A place where values gather."""

    value: float
    share: float


@dataclass(frozen=True)
class Modality:
    """How many modes a sample has, and how surely more than one."""

    dip: float
    false_alarm: float
    """The share of uniform samples, or of surrogates if it is larger, that dip as much."""
    modes: tuple[Mode, ...]
    """In order of value; a single one if the sample is not multimodal."""

    @property
    def multimodal(self) -> bool:
        """Whether it has more than one mode."""
        return len(self.modes) > 1


def modality(values: Floats, *, level: float = LEVEL, seed: int = 0) -> Modality:
    """The modes of the sample; one, its median, unless there are surely more.

    Args:
        values: Shape ``(n,)``, at least 20; in order of time, evenly spaced, if they have one.
        level: Of false alarms against the uniform distribution; divide it by the number of samples
            that are looked at.
        seed: Of the surrogates.

    Raises:
        ValueError: Fewer than 20 values, or not finite.
    """
    array = checked(values, least=LEAST)
    array = array[:: -(-array.size // MOST)]
    found = dip(array)
    false_alarm = dip_false_alarm(found, array.size)
    modes: tuple[Mode, ...] = ()
    if false_alarm <= level:
        modes = modes_of(array)
        if len(modes) > 1:
            beaten = surrogates_false_alarm(array, found, seed)
            false_alarm = max(false_alarm, beaten)
            if beaten > SURROGATE_LEVEL:
                modes = ()
    if len(modes) < 2:
        modes = (Mode(float(np.median(array)), 1.0),)
    return Modality(found, false_alarm, modes)


def dip_false_alarm(found: float, size: int) -> float:
    """The probability that ``size`` independent uniform values dip by ``found`` or more.

    Interpolated in a table of simulated quantiles, over ``sqrt(n) dip`` and ``1 / sqrt(n)``; beyond
    it, where the probability is below 0.0001, as the tail ``exp(-c n dip^2)``; one above 0.5.

    Raises:
        ValueError: Fewer than ten values.
    """
    if size < min(TABLE):
        raise ValueError(f"the table begins at {min(TABLE)} values, not {size}")
    roots = [-1 / math.sqrt(each) for each in TABLE]
    # Beyond the largest the quantiles no longer move.
    limits = [
        float(np.interp(-1 / math.sqrt(size), roots, [line[column] for line in TABLE.values()]))
        for column in range(len(TAILS))
    ]
    squares, logarithms = np.square(limits), np.log(TAILS)
    square = size * found**2
    if square < squares[0]:
        return 1.0
    if square <= squares[-1]:
        return float(np.exp(np.interp(square, squares, logarithms)))
    slope = (logarithms[-1] - logarithms[-4]) / (squares[-1] - squares[-4])
    return float(np.exp(logarithms[-1] + slope * (square - squares[-1])))


def surrogates_false_alarm(array: FloatArray, found: float, seed: int = 0) -> float:
    """The share of surrogates of the same periodogram that dip by ``found`` or more.

    ``(1 + exceeding) / (1 + surrogates)``, 0.005 at least; of how far they exceed nothing is said.
    """
    generator = np.random.default_rng(seed)
    transformed = np.fft.rfft(array - array.mean())
    exceeding = 0
    for _ in range(SURROGATES):
        phases = np.exp(2j * np.pi * generator.random(transformed.size))
        exceeding += dip(np.fft.irfft(np.abs(transformed) * phases, array.size)) >= found
    return (1 + exceeding) / (1 + SURROGATES)


def modes_of(values: Floats) -> tuple[Mode, ...]:
    """The humps of the kernel density that valleys part, whether or not they are significant.

    Raises:
        ValueError: Fewer than two values, not finite, or all equal.
    """
    array = checked(values, least=2)
    width = max(bandwidth(array), _resolution(array))
    places = np.linspace(array.min() - 3 * width, array.max() + 3 * width, 512)
    heights = kernel_density(array, places, width)
    inner = heights[1:-1]
    peaks = (1 + np.flatnonzero((inner > heights[:-2]) & (inner >= heights[2:]))).tolist()
    while len(peaks) > 1:
        valleys = _valleys(heights, peaks)
        shares = _shares(array, places[valleys])
        depths = [
            heights[valley] / min(heights[left], heights[right])
            for valley, left, right in zip(valleys, peaks, peaks[1:], strict=False)
        ]
        shallowest = int(np.argmax(depths))
        if depths[shallowest] > VALLEY:
            pair = peaks[shallowest : shallowest + 2]
            peaks.remove(min(pair, key=lambda peak: float(heights[peak])))
        elif min(shares) < LEAST_SHARE:
            peaks.pop(int(np.argmin(shares)))
        else:
            break
    shares = _shares(array, places[_valleys(heights, peaks)])
    return tuple(
        Mode(float(places[peak]), share) for peak, share in zip(peaks, shares, strict=True)
    )


def _resolution(array: FloatArray) -> float:
    """How far apart neighbours are: rounded values are a comb, and its teeth are no modes."""
    gaps = np.diff(np.unique(array))
    return float(np.median(gaps)) if gaps.size > 1 else 0.0


def _valleys(heights: FloatArray, peaks: list[int]) -> list[int]:
    return [left + int(np.argmin(heights[left:right])) for left, right in itertools.pairwise(peaks)]


def _shares(array: FloatArray, borders: FloatArray) -> list[float]:
    counts = np.bincount(np.searchsorted(borders, array), minlength=borders.size + 1)
    shares: list[float] = (counts / array.size).tolist()
    return shares
