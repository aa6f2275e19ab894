"""Principal components: the eigenvectors of the covariance matrix."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tonnage.base import core
from tonnage.run.reduce.builtin.scatter import Array, Scatter, ScatterSums


@dataclass(frozen=True)
class PrincipalComponents:
    """Principal components.

    Attributes:
        rows: Their number.
        mean: (columns,).
        components: (components, columns): by falling variance, each of length 1, its largest part
            positive.
        variances: Of the rows along each, with the divisor ``rows - 1``.
        share: Each one's share of the total variance.
    """

    rows: int
    mean: Array
    components: Array
    variances: Array
    share: Array


class PCA(Scatter):
    """The first principal components of some columns, by default of all."""

    def __init__(self, components: int, columns: Sequence[str] | None = None) -> None:
        super().__init__(columns)
        self._components = components

    def finish(self, whole: ScatterSums | None, known: Any) -> PrincipalComponents:
        """Compute the eigenvectors; `UsageError` if there are too few columns or rows."""
        if whole is None or whole["rows"] < 2:
            raise core.UsageError("PCA needs at least two rows")
        columns = len(whole["mean"])
        if self._components > columns:
            raise core.UsageError(
                f"{self._components} components requested, but rows have only {columns} columns",
                setting="components",
            )
        variances, vectors = np.linalg.eigh(whole["scatter"] / (whole["rows"] - 1))
        order = np.argsort(variances)[::-1][: self._components]
        components = vectors[:, order].T
        largest = np.abs(components).argmax(axis=1)
        components = components * np.sign(components[np.arange(len(components)), largest])[:, None]
        total = variances.sum()
        return PrincipalComponents(
            whole["rows"],
            whole["mean"],
            components,
            variances[order],
            variances[order] / total if total > 0 else np.zeros(len(order)),
        )
