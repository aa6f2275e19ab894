"""Densities: Gaussian kernels and histograms, over the values or over their logarithms.

The bandwidth is Silverman's rule of thumb, ``0.9 min(s, IQR / 1.34) n^(-1/5)`` (Density Estimation,
1986, eq. 3.31); bins are Freedman and Diaconis' ``2 IQR n^(-1/3)`` wide (1981). Both state what was
used. The rule of thumb assumes one hump and oversmooths several: see `multimodality` for those.
"""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from tonnage.base.stats.samples import FloatArray, Floats, as_sample

Axis = Literal["linear", "logarithmic"]

MAX_BINS = 512  # One outlier must not produce a million bins
REACH = 3.0  # Bandwidths by which a density extends beyond the outermost values


@dataclass(frozen=True)
class Density:
    """A density: shares per unit of the values, or per unit of their natural logarithm."""

    values: tuple[float, ...]
    densities: tuple[float, ...]
    bandwidth: float  # In the unit of the values, or of their logarithm
    axis: Axis
    rule: str


@dataclass(frozen=True)
class Histogram:
    """Counts between edges: bin i holds ``edges[i] <= value < edges[i + 1]``, the last both."""

    edges: tuple[float, ...]
    counts: tuple[int, ...]
    axis: Axis
    rule: str


def bandwidth(values: Floats) -> float:
    """Silverman's rule of thumb, in the values' unit; the deviation alone where the IQR is zero."""
    array = as_sample(values, least=2)
    if np.ptp(array) == 0:
        raise ValueError("all values are equal, so they have no density")
    deviation = float(np.std(array, ddof=1))
    low, high = np.quantile(array, [0.25, 0.75])
    spread = min(deviation, float(high - low) / 1.34) or deviation
    return 0.9 * spread * math.pow(array.size, -0.2)


def kernel_density(array: FloatArray, points: FloatArray, width: float) -> FloatArray:
    """The Gaussian kernel density of ``array`` (n,) at ``points`` (m,): ``mean N(point; x, h)``."""
    densities = np.empty_like(points)
    for start in range(0, points.size, 32):
        away = (points[start : start + 32, None] - array) / width
        densities[start : start + 32] = np.exp(-0.5 * away * away).mean(axis=1)
    scaled: FloatArray = densities / (width * math.sqrt(2 * math.pi))
    return scaled


def density(values: Floats, axis: Axis = "linear", points: int = 256) -> Density:
    """The Gaussian kernel density at ``points`` evenly spaced places on the axis."""
    array = _on_axis(values, axis, least=2)
    width = bandwidth(array)
    places = np.linspace(array.min() - REACH * width, array.max() + REACH * width, points)
    found = kernel_density(array, places, width)
    return Density(
        values=tuple((np.exp(places) if axis == "logarithmic" else places).tolist()),
        densities=tuple(found.tolist()),
        bandwidth=width,
        axis=axis,
        rule="Gaussian kernels, Silverman's 0.9 min(s, IQR / 1.34) n^(-1/5)",
    )


def histogram(values: Floats, axis: Axis = "linear", bins: int | None = None) -> Histogram:
    """Counts in bins of equal width on the axis.

    Without ``bins``, the width is Freedman and Diaconis'. Where the IQR is zero, the number is
    Sturges', ``ceil(log2 n) + 1``. There are never more than 512.
    """
    array = _on_axis(values, axis)
    rule = "number of bins given"
    if bins is None:
        bins, rule = _bins(array)
    counts, edges = np.histogram(array, bins)
    shown = np.exp(edges) if axis == "logarithmic" else edges
    return Histogram(tuple(shown.tolist()), tuple(counts.tolist()), axis, rule)


def _bins(array: FloatArray) -> tuple[int, str]:
    low, high = np.quantile(array, [0.25, 0.75])
    width = 2 * float(high - low) / array.size ** (1 / 3)
    extent = float(np.ptp(array))
    if extent == 0:
        return 1, "one bin: all values are equal"
    if width <= 0:
        return math.ceil(math.log2(array.size)) + 1, "Sturges: the IQR is zero"
    wanted = extent / width
    if wanted > MAX_BINS:
        return MAX_BINS, f"{MAX_BINS} bins, the maximum: Freedman and Diaconis' rule gives more"
    return max(1, math.ceil(wanted)), "Freedman and Diaconis"


def _on_axis(values: Floats, axis: Axis, least: int = 1) -> FloatArray:
    array = as_sample(values, least)
    if axis == "linear":
        return array
    if (array <= 0).any():
        raise ValueError("a value is not positive, so it has no logarithm")
    logarithms: FloatArray = np.log(array)
    return logarithms
