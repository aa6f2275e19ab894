"""A histogram of each column, with quantiles (`tonnage.api.aggregates.Hdr`)."""

from collections.abc import Sequence
from typing import Any

from tonnage.api.aggregates import Distribution, Hdr
from tonnage.run.formats import Rows, blocks_of_points
from tonnage.run.reduce.reduction import Reduction


class Histograms(Reduction[list[Hdr]]):
    """A histogram of each column, by default of all, with a relative precision of quantiles."""

    def __init__(self, precision: float = 0.01, columns: Sequence[str] | None = None) -> None:
        self._precision, self._columns = precision, columns

    def begin(self, known: Any) -> list[Hdr]:
        """Empty: the number of columns is not known yet."""
        return []

    def local(self, rows: Rows, into: list[Hdr]) -> list[Hdr]:
        """Add values; those that are not finite count as missing."""
        for _, points in blocks_of_points(rows, self._columns):
            into = into or [Hdr(self._precision) for _ in points.T]
            for one, values in zip(into, points.T, strict=True):
                one.add(values)
        return into

    def merge(self, one: list[Hdr], other: list[Hdr]) -> list[Hdr]:
        if not one or not other:
            return one or other
        for here, more in zip(one, other, strict=True):
            here.merge(more)
        return one

    def finish(self, whole: list[Hdr], known: Any) -> list[Distribution]:
        return [each.value for each in whole]
