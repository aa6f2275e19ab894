"""The mean and the scatter matrix of rows in one round: the core of PCA and linear regression.

A worker's object is the number of rows, their mean, and the sum of the outer products of their
deviations from it. Objects are merged by the update of Chan, Golub and LeVeque (1983), which loses
no digits where the mean is large compared with the deviations, as sums of squares would. So the two
rounds of MATE-EC2's PCA, the mean and then the covariance, are one.
"""

from collections.abc import Sequence
from typing import Any, TypedDict

import numpy as np
import numpy.typing as npt

from tonnage.run.formats import Rows, blocks_of_points
from tonnage.run.formats.columns import BLOCK_BYTES
from tonnage.run.reduce.reduction import Reduction

Array = npt.NDArray[np.float64]


class ScatterSums(TypedDict):
    rows: int
    mean: Array
    """(columns,)."""
    scatter: Array
    """(columns, columns)."""


class Scatter(Reduction[ScatterSums | None]):
    """The mean and the scatter matrix of some columns, by default of all."""

    def __init__(self, columns: Sequence[str] | None = None) -> None:
        self.columns = columns

    def begin(self, known: Any) -> ScatterSums | None:
        """No row: the number of columns is not known yet."""
        return None

    def local(self, rows: Rows, into: ScatterSums | None) -> ScatterSums | None:
        """Add rows; `ValueError` if a row is not finite."""
        for first, points in blocks_of_points(rows, self.columns):
            into = self.merge(into, _sums_of(points, first))
        return into

    def merge(self, one: ScatterSums | None, other: ScatterSums | None) -> ScatterSums | None:
        if one is None or other is None:
            return one or other
        with np.errstate(over="ignore", invalid="ignore"):  # `_finite` tells.
            rows, apart = one["rows"] + other["rows"], other["mean"] - one["mean"]
            weight = one["rows"] * other["rows"] / rows
            return _finite(
                {
                    "rows": rows,
                    "mean": one["mean"] + apart * (other["rows"] / rows),
                    "scatter": one["scatter"] + other["scatter"] + weight * np.outer(apart, apart),
                }
            )


def _sums_of(points: Array, first: int) -> ScatterSums:
    """The sums of points, of which the first is row ``first`` of the chunk."""
    with np.errstate(over="ignore", invalid="ignore"):  # Told below.
        mean = points.mean(axis=0)
    if not np.isfinite(mean).all():
        for bad in np.flatnonzero(~np.isfinite(points).all(axis=1))[:1]:
            raise ValueError(
                f"row {first + bad} of this chunk is not finite: {points[bad].tolist()}"
            )
        raise ValueError("sums overflow 64-bit floats; scale the columns")
    scatter = np.zeros((len(mean), len(mean)))
    step = max(BLOCK_BYTES // (points.itemsize * len(mean)), 1)
    with np.errstate(over="ignore", invalid="ignore"):  # `_finite` tells.
        for begin in range(0, len(points), step):
            apart = points[begin : begin + step] - mean
            scatter += apart.T @ apart
    return _finite({"rows": len(points), "mean": mean, "scatter": scatter})


def _finite(sums: ScatterSums) -> ScatterSums:
    if not np.isfinite(sums["scatter"]).all():
        raise ValueError(
            "squared deviations overflow 64-bit floats; scale the columns, for example to "
            "between 0 and 1"
        )
    return sums
