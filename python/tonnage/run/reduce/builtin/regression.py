"""Linear regression of one column on the others, by least squares."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tonnage.base import core
from tonnage.run.reduce.builtin.scatter import Array, Scatter, ScatterSums


@dataclass(frozen=True)
class LinearFit:
    """A linear regression.

    Attributes:
        coefficients: Of each column but the target.
        explained: The share of the target's variance that it explains (R squared).
    """

    rows: int
    coefficients: Array
    intercept: float
    explained: float


class Regression(Scatter):
    """A linear regression.

    Args:
        target: The number of the column to explain, from 0, or negative from the end.
        columns: The names of the columns to use; by default all.
    """

    def __init__(self, target: int = -1, columns: Sequence[str] | None = None) -> None:
        super().__init__(columns)
        self._target = target

    def finish(self, whole: ScatterSums | None, known: Any) -> LinearFit:
        """Solve the normal equations of deviations from the mean, of two rows at least."""
        if whole is None or whole["rows"] < 2:
            raise core.UsageError("regression needs at least two rows")
        columns = len(whole["mean"])
        if not -columns <= self._target < columns or columns < 2:
            raise core.UsageError(
                f"there is no column {self._target} to predict; rows have only {columns} "
                "columns, numbered from 0",
                setting="target",
            )
        target = self._target % columns
        others = [each for each in range(columns) if each != target]
        scatter = whole["scatter"]
        solution, *_ = np.linalg.lstsq(
            scatter[np.ix_(others, others)], scatter[others, target], None
        )
        total = scatter[target, target]
        residual = total - solution @ scatter[others, target]
        return LinearFit(
            whole["rows"],
            solution.astype(np.float64),
            float(whole["mean"][target] - solution @ whole["mean"][others]),
            float(1 - residual / total) if total > 0 else 0.0,
        )
