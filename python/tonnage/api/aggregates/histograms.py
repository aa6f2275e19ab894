"""Histograms with given bins, or with bins of a relative width."""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tonnage.api.aggregates.base import Aggregate, Array, Values, array_of
from tonnage.base import core

SHARES = (0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99)
"""Quantiles in records."""
BLOCK = 1 << 16
"""Values counted at once: temporary arrays stay in the processor's cache."""
LARGEST = math.log(sys.float_info.max)


class Histogram(Aggregate):
    """Counts of values in bins, as `numpy.histogram` defines them.

    A bin includes its lower edge, and the last one both. Values outside are not counted; ``-inf``
    and ``inf`` are valid edges.

    Args:
        edges: Of bins, rising: one more than there are bins.
    """

    def __init__(self, edges: Sequence[float] | Array) -> None:
        self._edges = np.array(edges, np.float64)
        if self._edges.ndim != 1 or len(self._edges) < 2 or not (np.diff(self._edges) > 0).all():
            raise ValueError(
                "Histogram: there must be at least two edges, each above the previous one"
            )
        self._counts = np.zeros(len(self._edges) - 1, np.int64)

    def empty(self) -> Histogram:
        return Histogram(self._edges)

    def add(self, values: Values) -> None:
        """Count values of any shape."""
        numbers = np.ravel(array_of(values))
        apart = numbers.strides[0]
        if numbers.dtype == np.float64 and apart > 0 and not apart % 8 and numbers.flags.aligned:
            core.count_in_bins(self._edges, numbers, self._counts)
            return
        for begin in range(0, len(numbers), BLOCK):
            block = np.array(numbers[begin : begin + BLOCK], np.float64)
            core.count_in_bins(self._edges, block, self._counts)

    def merge(self, other: Histogram) -> None:
        self._counts += other._counts

    @property
    def value(self) -> npt.NDArray[np.int64]:
        """The number of values in each bin."""
        return self._counts


@dataclass(frozen=True)
class Distribution:
    """How values are distributed.

    Attributes:
        rows: The number of values, of which ``missing`` are not finite.
        minimum: The smallest.
        maximum: The largest.
        total: The sum.
        bins: The lower and upper edge and the count of each bin.
    """

    rows: int
    missing: int
    minimum: float
    maximum: float
    total: float
    bins: list[tuple[float, float, int]]

    def quantile(self, share: float) -> float:
        """A quantile, with the histogram's relative precision."""
        wanted, before = share * (self.rows - self.missing - 1), 0
        for low, high, count in self.bins:
            before += count
            if before > wanted:
                middle = low * (2 / (1 + low / high)) if high else 0.0
                return float(min(max(middle, self.minimum), self.maximum))
        return self.maximum

    def to_json(self) -> dict[str, Any]:
        """The summary for records, with some quantiles."""
        return {
            "rows": self.rows,
            "missing": self.missing,
            "least": self.minimum,
            "most": self.maximum,
            "mean": self.total / (self.rows - self.missing) if self.bins else None,
            "quantiles": {f"{share:g}": self.quantile(share) for share in SHARES if self.bins},
        }


class Hdr(Aggregate):
    """A histogram of high dynamic range: the width of bins is relative to their values.

    So quantiles have a relative error of at most ``precision``, and all such histograms have the
    same bins. With ``a`` the precision, ``v`` is in bin ``ceil(log(v) / log((1 + a) / (1 - a)))``
    (DDSketch, Masson, Rim and Lee, VLDB 2019, section 2). Negative values have bins by their
    absolute value on the other side, and 0 has a bin of its own.
    """

    def __init__(self, precision: float = 0.01) -> None:
        if not 0 < precision < 1:
            raise ValueError(f"Hdr({precision}): the precision must be between 0 and 1")
        self._precision = precision
        self._bins: Counter[tuple[int, int]] = Counter()
        """Counts by sign and bin."""
        self._rows = self._missing = 0
        self._least, self._most, self._total = math.inf, -math.inf, 0.0

    def empty(self) -> Hdr:
        return Hdr(self._precision)

    def add(self, values: Values) -> None:
        """Count values of any shape; those that are not finite count as missing."""
        every = array_of(values).ravel()
        for first in range(0, len(every), BLOCK):
            self._add(every[first : first + BLOCK].astype(np.float64, copy=False))

    def _add(self, values: Array) -> None:
        finite = values[np.isfinite(values)]
        size = np.abs(finite)
        with np.errstate(divide="ignore"):
            place = np.ceil(np.log(size) / self._width)
        places = np.where(size > 0, place, 0).astype(np.int64)
        signs = np.sign(finite).astype(np.int64)
        for sign in (-1, 0, 1):
            bins, counts = np.unique(places[signs == sign], return_counts=True)
            for at, count in zip(bins.tolist(), counts.tolist(), strict=True):
                self._bins[sign, at] += count
        self._rows += len(values)
        self._missing += len(values) - len(finite)
        self._least = min(self._least, float(finite.min(initial=np.inf)))
        self._most = max(self._most, float(finite.max(initial=-np.inf)))
        self._total += float(finite.sum())

    def merge(self, other: Hdr) -> None:
        self._bins.update(other._bins)
        self._rows += other._rows
        self._missing += other._missing
        self._least, self._most = min(self._least, other._least), max(self._most, other._most)
        self._total += other._total

    @property
    def value(self) -> Distribution:
        bins = sorted((*self._span(*place), count) for place, count in self._bins.items())
        return Distribution(self._rows, self._missing, self._least, self._most, self._total, bins)

    @property
    def _width(self) -> float:
        return math.log((1 + self._precision) / (1 - self._precision))

    def _span(self, sign: int, place: int) -> tuple[float, float]:
        if sign == 0:
            return 0.0, 0.0
        ends = (self._power(place - 1), self._power(place))
        return ends if sign > 0 else (-ends[1], -ends[0])

    def _power(self, place: int) -> float:
        """The upper edge of a bin, at most the largest float."""
        exponent = place * self._width
        return math.exp(exponent) if exponent < LARGEST else sys.float_info.max
