"""Multimodality by Hartigan's dip test: whether a sample has several modes, where, and how large.

A median between two modes is a value that hardly occurs, so check this before quoting one.

A sample is called multimodal if two tests agree. First, its dip exceeds that of uniform samples in
all but ``level`` of cases: of all unimodal distributions the uniform dips most (Hartigan and
Hartigan 1985). Second, it exceeds the dips of surrogates: series with the same periodogram and
random phases (Theiler et al. 1992). Surrogates have one mode and the sample's autocorrelation; a
slowly wandering series lingers at some values and dips without having modes. A series that changed
its level once, for good, counts as having two modes.

The modes are the humps of a Gaussian kernel density (`density`), separated by valleys.

**The dip** is the largest distance between the empirical distribution function and the nearest one
with a single mode, convex before it and concave after. Hartigan and Hartigan's algorithm narrows
the modal interval between the greatest convex minorant and the least concave majorant until the
distance no longer grows.
"""

import itertools
import math
from dataclasses import dataclass

import numpy as np

from tonnage.base.stats.density import bandwidth, kernel_density
from tonnage.base.stats.samples import FloatArray, Floats, as_sample

LEVEL = 0.01
LEAST = 20  # Minimum number of values
MOST = 2_048  # Longer series are thinned to this many samples
SURROGATES = 199
SURROGATE_LEVEL = 0.01
VALLEY = 0.8  # A valley is no higher than this share of the lower hump next to it
MIN_SHARE = 0.05  # A hump with a smaller share of the values does not count as a mode

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
"""``sqrt(n)`` times the dip that uniform samples of n exceed with each probability in `TAILS`.

Simulated with 300,000 samples for each n up to 640, 150,000 above (NumPy's PCG64, seed 19850301).
"""


@dataclass(frozen=True)
class Mode:
    value: float
    share: float


@dataclass(frozen=True)
class Modality:
    """The modes of a sample, and the confidence that there is more than one."""

    dip: float
    false_alarm: float  # The share of uniform samples, or of surrogates if larger, that dip as much
    modes: tuple[Mode, ...]  # In order of value; a single one if the sample is not multimodal

    @property
    def multimodal(self) -> bool:
        return len(self.modes) > 1


def dip(values: Floats) -> float:
    """The dip of the sample, from ``1 / (2 n)`` to 1/4; no unit. Order does not matter."""
    array = as_sample(values)
    places, counts = np.unique(array, return_counts=True)
    upper = np.cumsum(counts) / array.size
    lower = upper - counts / array.size
    first, last, widest = 0, places.size - 1, 1 / array.size
    while first < last:
        part = slice(first, last + 1)
        x, low, high = places[part], lower[part], upper[part]
        below, above = _hull(x, low), _hull(-x[::-1], -high[::-1])
        above = x.size - 1 - above[::-1]
        minorant = np.interp(x, x[below], low[below])
        majorant = np.interp(x, x[above], high[above])
        gaps_below, gaps_above = (majorant - minorant)[below], (majorant - minorant)[above]
        if gaps_below.max() >= gaps_above.max():
            left = int(below[np.argmax(gaps_below)])
            right = int(above[np.searchsorted(above, left, side="left")])
        else:
            right = int(above[np.argmax(gaps_above)])
            left = int(below[np.searchsorted(below, right, side="right") - 1])
        if max(gaps_below.max(), gaps_above.max()) <= widest:
            break
        # Outside of the new modal interval the distances count; the mode itself may be an atom.
        outside = [high[:left] - minorant[:left], majorant[right + 1 :] - low[right + 1 :]]
        widest = max(widest, *(float(each.max()) for each in outside if each.size), 0.0)
        if left == 0 and right == x.size - 1:
            break
        first, last = first + left, first + right
    return widest / 2


def modality(values: Floats, *, level: float = LEVEL, seed: int = 0) -> Modality:
    """The modes of the sample; a single one, its median, unless the tests find more.

    If ``values`` form a series, they are in order and evenly spaced. Divide ``level`` by the number
    of samples that are tested.
    """
    array = as_sample(values, least=LEAST)
    array = array[:: -(-array.size // MOST)]
    found = dip(array)
    false_alarm = dip_false_alarm(found, array.size)
    modes: tuple[Mode, ...] = ()
    if false_alarm <= level:
        modes = modes_of(array)
        if len(modes) > 1:
            among_surrogates = surrogates_false_alarm(array, found, seed)
            false_alarm = max(false_alarm, among_surrogates)
            if among_surrogates > SURROGATE_LEVEL:
                modes = ()
    if len(modes) < 2:
        modes = (Mode(float(np.median(array)), 1.0),)
    return Modality(found, false_alarm, modes)


def dip_false_alarm(found: float, size: int) -> float:
    """The probability that ``size`` independent uniform values dip by ``found`` or more.

    Interpolated in the table of simulated quantiles, over ``sqrt(n) dip`` and ``1 / sqrt(n)``.
    Probabilities below the table, 0.0001, follow the tail ``exp(-c n dip^2)``; above 0.5 the result
    is 1.
    """
    if size < min(TABLE):
        raise ValueError(f"needs at least {min(TABLE)} values, but got {size}")
    roots = [-1 / math.sqrt(each) for each in TABLE]
    # Beyond the largest size the quantiles no longer change.
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
    """The share of surrogates that dip by ``found`` or more.

    ``(1 + exceeding) / (1 + surrogates)``, so at least 0.005.
    """
    generator = np.random.default_rng(seed)
    transformed = np.fft.rfft(array - array.mean())
    exceeding = 0
    for _ in range(SURROGATES):
        phases = np.exp(2j * np.pi * generator.random(transformed.size))
        exceeding += dip(np.fft.irfft(np.abs(transformed) * phases, array.size)) >= found
    return (1 + exceeding) / (1 + SURROGATES)


def modes_of(values: Floats) -> tuple[Mode, ...]:
    """The humps of the kernel density that valleys separate, significant or not."""
    array = as_sample(values, least=2)
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
        elif min(shares) < MIN_SHARE:
            peaks.pop(int(np.argmin(shares)))
        else:
            break
    shares = _shares(array, places[_valleys(heights, peaks)])
    return tuple(
        Mode(float(places[peak]), share) for peak, share in zip(peaks, shares, strict=True)
    )


def _resolution(array: FloatArray) -> float:
    # The distance of neighbours: rounded values form a comb, and its teeth are not modes.
    gaps = np.diff(np.unique(array))
    return float(np.median(gaps)) if gaps.size > 1 else 0.0


def _valleys(heights: FloatArray, peaks: list[int]) -> list[int]:
    return [left + int(np.argmin(heights[left:right])) for left, right in itertools.pairwise(peaks)]


def _shares(array: FloatArray, borders: FloatArray) -> list[float]:
    counts = np.bincount(np.searchsorted(borders, array), minlength=borders.size + 1)
    shares: list[float] = (counts / array.size).tolist()
    return shares


def _hull(x: FloatArray, y: FloatArray) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Indices of the points that the greatest convex minorant touches; ``x`` increases."""
    xs, ys = x.tolist(), y.tolist()
    touched: list[int] = []
    for here in range(len(xs)):
        while len(touched) > 1:
            before, last = touched[-2], touched[-1]
            if (ys[last] - ys[before]) * (xs[here] - xs[last]) < (ys[here] - ys[last]) * (
                xs[last] - xs[before]
            ):
                break
            touched.pop()
        touched.append(here)
    return np.asarray(touched, dtype=np.int64)
