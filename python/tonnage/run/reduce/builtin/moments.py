"""How columns vary together: principal components, and linear regression, of one reduction.

The object of a worker is how many rows there were, their mean, and the sum of the outer products of
their differences from it. Chunks are added by the update of Chan, Golub and LeVeque (1983), which
loses no digits where the mean is large beside the spread, as sums of squares would: MATE-EC2's two
rounds for PCA, the mean and then the covariance, are one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

import numpy as np
import numpy.typing as npt

from tonnage.base import core
from tonnage.run.formats import Rows, blocks_of_points
from tonnage.run.formats.columns import BLOCK_BYTES
from tonnage.run.reduce.reduction import Reduction

Array = npt.NDArray[np.float64]


class MomentSums(TypedDict):
    """What rows come to."""

    rows: int
    mean: Array
    """(columns,)."""
    scatter: Array
    """(columns, columns)."""


class Moments(Reduction[MomentSums | None]):
    """Rows, mean and scatter.

    Args:
        columns: Names of those that count, where they have names; by default all.
    """

    def __init__(self, columns: Sequence[str] | None = None) -> None:
        self.columns = columns

    def begin(self, known: Any) -> MomentSums | None:
        """No row yet, nor any columns."""
        return None

    def local(self, rows: Rows, into: MomentSums | None) -> MomentSums | None:
        """Adds rows.

        Raises:
            ValueError: A row is not finite.
        """
        for first, points in blocks_of_points(rows, self.columns):
            into = self.merge(into, self._of(points, first))
        return into

    def _of(self, points: Array, begin: int) -> MomentSums:
        """What points come to, of which the first has this number."""
        with np.errstate(over="ignore", invalid="ignore"):  # It is told below.
            mean = points.mean(axis=0)
        if not np.isfinite(mean).all():
            for bad in np.flatnonzero(~np.isfinite(points).all(axis=1))[:1]:
                at = points[bad].tolist()
                raise ValueError(f"row {begin + bad} of these is not finite: {at}")
            raise ValueError("sums of these rows are larger than 64-bit numbers are: scale columns")
        scatter = np.zeros((len(mean), len(mean)))
        step = max(BLOCK_BYTES // (points.itemsize * len(mean)), 1)
        with np.errstate(over="ignore", invalid="ignore"):  # It is told below.
            for first in range(0, len(points), step):
                apart = points[first : first + step] - mean
                scatter += apart.T @ apart
        return _finite({"rows": len(points), "mean": mean, "scatter": scatter})

    def merge(self, one: MomentSums | None, other: MomentSums | None) -> MomentSums | None:
        """Adds them up."""
        if one is None or other is None:
            return one or other
        with np.errstate(over="ignore", invalid="ignore"):
            rows, apart = one["rows"] + other["rows"], other["mean"] - one["mean"]
            weight = one["rows"] * other["rows"] / rows
            return _finite(
                {
                    "rows": rows,
                    "mean": one["mean"] + apart * (other["rows"] / rows),
                    "scatter": one["scatter"] + other["scatter"] + weight * np.outer(apart, apart),
                }
            )


def _finite(sums: MomentSums) -> MomentSums:
    """Sums that are numbers.

    Raises:
        ValueError: They are none any more.
    """
    if not np.isfinite(sums["scatter"]).all():
        raise ValueError(
            "squares of these rows' differences are larger than 64-bit numbers are: scale columns, "
            "like to between 0 and 1"
        )
    return sums


@dataclass(frozen=True)
class PrincipalComponents:
    """Principal components.

    Attributes:
        rows: How many.
        mean: (columns,).
        components: (components, columns), the one of the largest variance first, each of length 1,
            its largest part positive.
        variances: Of rows along each, over ``rows - 1``.
        share: Of all variance.
    """

    rows: int
    mean: Array
    components: Array
    variances: Array
    share: Array


class PCA(Moments):
    """Principal components: eigenvectors of the covariance.

    Args:
        components: How many.
        columns: Names of those that count, where they have names; by default all.
    """

    def __init__(self, components: int, columns: Sequence[str] | None = None) -> None:
        super().__init__(columns)
        self._components = components

    def finish(self, whole: MomentSums | None, known: Any) -> PrincipalComponents:
        """Eigenvectors.

        Raises:
            UsageError: There are fewer columns, or fewer than two rows.
        """
        if whole is None or whole["rows"] < 2:
            raise core.UsageError("PCA: two rows at least have a variance")
        columns = len(whole["mean"])
        if self._components > columns:
            raise core.UsageError(f"--components {self._components}: rows have {columns} columns")
        variances, vectors = np.linalg.eigh(whole["scatter"] / (whole["rows"] - 1))
        order = np.argsort(variances)[::-1][: self._components]
        found = vectors[:, order].T
        largest = np.abs(found).argmax(axis=1)
        found = found * np.sign(found[np.arange(len(found)), largest])[:, None]
        total = variances.sum()
        return PrincipalComponents(
            whole["rows"],
            whole["mean"],
            found,
            variances[order],
            variances[order] / total if total > 0 else np.zeros(len(order)),
        )


@dataclass(frozen=True)
class LinearFit:
    """A linear regression by least squares.

    Attributes:
        rows: How many.
        coefficients: Of each column but the one that is explained.
        intercept: What is added.
        explained: The share of the variance that it explains (R squared).
    """

    rows: int
    coefficients: Array
    intercept: float
    explained: float


class Regression(Moments):
    """Linear regression of one column on the others, by least squares.

    Args:
        target: The place of the column that is explained, from 0; negative from the end.
        columns: Names of those that count, where they have names; by default all.
    """

    def __init__(self, target: int = -1, columns: Sequence[str] | None = None) -> None:
        super().__init__(columns)
        self._target = target

    def finish(self, whole: MomentSums | None, known: Any) -> LinearFit:
        """Solves the normal equations of rows less their mean.

        Raises:
            UsageError: There is no such column, or fewer than two rows.
        """
        if whole is None or whole["rows"] < 2:
            raise core.UsageError("regression: two rows at least have a variance")
        columns = len(whole["mean"])
        if not -columns <= self._target < columns or columns < 2:
            raise core.UsageError(f"--target {self._target}: rows have {columns} columns")
        target = self._target % columns
        others = [each for each in range(columns) if each != target]
        scatter = whole["scatter"]
        found, *_ = np.linalg.lstsq(scatter[np.ix_(others, others)], scatter[others, target], None)
        spread = scatter[target, target]
        left = spread - found @ scatter[others, target]
        return LinearFit(
            whole["rows"],
            found.astype(np.float64),
            float(whole["mean"][target] - found @ whole["mean"][others]),
            float(1 - left / spread) if spread > 0 else 0.0,
        )
