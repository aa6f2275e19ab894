"""Network bandwidth by cluster size: measured points interpolated, a power law beyond them.

Between points the share of two nodes' bandwidth is interpolated linearly in the logarithm of the
number of nodes. Beyond the last it follows ``share = c N^-b``, fitted by least squares to the
logarithms of the points from the largest share on; b is at least 0. Extrapolations carry a warning,
and random clusters draw exponents with the error of b.
"""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tonnage.base.records.profile import NetworkScaling
from tonnage.base.stats.distributions import student_quantile

Floats = npt.NDArray[np.float64]
CONFIDENCE = 0.9
UNKNOWN_ERROR = 0.1
"""Assumed error of an exponent from two points: a factor of 1.2 for eight times as many nodes."""


@dataclass(frozen=True)
class ScalingCurve:
    points: tuple[tuple[int, float], ...]
    source: str
    exponent: float  # ``b`` of the power law beyond the last point; 0 if bandwidth did not fall
    error: float | None
    """The exponent's standard error; ``None`` with fewer than three falling points."""
    freedom: int  # Degrees of freedom of that error

    @property
    def exponent_interval(self) -> tuple[float, float] | None:
        """The middle 90 %; ``None`` where it cannot be estimated."""
        if self.error is None:
            return None
        reach = student_quantile((1 + CONFIDENCE) / 2, self.freedom) * self.error
        return self.exponent - reach, self.exponent + reach

    @property
    def assumption(self) -> str:
        """What is assumed of a network that was not measured in larger clusters."""
        if self.exponent or any(share < 1 for _, share in self.points):
            return f"slow down in larger clusters as published in {self.source}"
        return f"keep its rate in larger clusters: {self.source}"

    @property
    def largest(self) -> int:
        return self.points[-1][0]

    def share(self, nodes: npt.NDArray[np.int64]) -> Floats:
        """The share of two nodes' bandwidth that each node has in clusters of these sizes."""
        sizes, shares = (np.array(each, dtype=float) for each in zip(*self.points, strict=True))
        asked = np.maximum(np.asarray(nodes, dtype=float), 1)
        joined = np.interp(np.log(asked), np.log(sizes), shares)
        beyond = shares[-1] * (asked / sizes[-1]) ** -self.exponent
        return np.asarray(np.where(asked > sizes[-1], beyond, joined))

    def shares(self, nodes: npt.NDArray[np.int64], off: Floats) -> Floats:
        """The same in several clusters, each with an exponent off by ``off`` standard errors.

        ``nodes`` has shape ``(n,)``, ``off`` (standard normal) has shape ``(clusters,)``.
        """
        beyond = np.maximum(np.asarray(nodes, dtype=float) / self.largest, 1)
        error = UNKNOWN_ERROR if self.error is None else self.error
        return np.asarray(self.share(nodes) * beyond ** -(error * off[:, None]))

    def warning(self, nodes: int) -> str | None:
        if nodes <= self.largest:
            return None
        said = f"the network of {nodes} nodes is extrapolated from at most {self.largest} nodes"
        known = f"error not estimable, {UNKNOWN_ERROR} is assumed"
        if self.exponent_interval:
            known = "{:.2f} to {:.2f}".format(*self.exponent_interval)
        return f"{said}, as nodes^-{self.exponent:.2f} ({known})"


def scaling_curve(scaling: NetworkScaling) -> ScalingCurve:
    points = sorted(scaling.points)
    if not points or points[0][0] < 1 or any(share <= 0 for _, share in points):
        raise ValueError(
            "each point of a network scaling needs at least one node and a positive share"
        )
    falling = points[max(range(len(points)), key=lambda place: points[place][1]) :]
    exponent, error = _fit(falling)
    # In this order, so that a negative zero, which notes would print, is one no longer.
    exponent = max(0.0, exponent)
    return ScalingCurve(tuple(points), scaling.source, exponent, error, max(len(falling) - 2, 0))


def _fit(points: list[tuple[int, float]]) -> tuple[float, float | None]:
    """The exponent of ``share = c N^-b`` and its standard error."""
    if len(points) < 2:
        return 0.0, None
    x, y = (np.log(np.array(each, dtype=float)) for each in zip(*points, strict=True))
    slope, intercept = np.polyfit(x, y, 1)
    if len(points) < 3:
        return -float(slope), None
    left = y - slope * x - intercept
    error = math.sqrt(float(left @ left) / (len(points) - 2) / float(np.sum((x - x.mean()) ** 2)))
    return -float(slope), error
