"""A histogram of each column, and quantiles by it: `tonnage.api.aggregates.Hdr` of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tonnage.api.aggregates import Distribution, Hdr
from tonnage.run.formats import Rows, blocks_of_points
from tonnage.run.reduce.reduction import Reduction


class Histograms(Reduction[list[Hdr]]):
    """A histogram of each column.

    Args:
        precision: How far a quantile may be off, as a share of itself.
        columns: Names of those that count, where they have names; by default all.
    """

    def __init__(self, precision: float = 0.01, columns: Sequence[str] | None = None) -> None:
        self._precision, self._columns = precision, columns

    def begin(self, known: Any) -> list[Hdr]:
        """No value yet, nor any columns."""
        return []

    def local(self, rows: Rows, into: list[Hdr]) -> list[Hdr]:
        """Adds values; what is no number counts as missing."""
        for _, points in blocks_of_points(rows, self._columns):
            into = into or [Hdr(self._precision) for _ in points.T]
            for one, values in zip(into, points.T, strict=True):
                one.add(values)
        return into

    def merge(self, one: list[Hdr], other: list[Hdr]) -> list[Hdr]:
        """Adds them up."""
        if not one or not other:
            return one or other
        for here, more in zip(one, other, strict=True):
            here.merge(more)
        return one

    def finish(self, whole: list[Hdr], known: Any) -> list[Distribution]:
        """How each column is spread."""
        return [each.value for each in whole]
