"""Sums, minima and maxima of rows, and the rows themselves."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from tonnage.api.aggregates.base import Aggregate, Array, Values, array_of, flat, present, sort_rows

_SUMMED_AS: dict[str, Any] = {"f": np.float64, "b": np.int64}
"""The type of sums, by the kind of the rows' type."""


def _exact_sum(rows: Array) -> Any:
    """The sum of integers as Python's, which do not overflow."""
    extremes = [abs(int(each)) for each in (rows.min(initial=0), rows.max(initial=0))]
    fits = max(extremes) * len(rows) < 1 << 63
    total = rows.sum(axis=0, dtype=np.int64) if fits else rows.astype(object).sum(axis=0)
    return total.astype(object) if isinstance(total, np.ndarray) else int(total)


class Sum(Aggregate):
    """The sum of rows: a number, or an array of a row's shape; 0 without rows.

    Nulls are skipped. Integers are exact: sums beyond 64 bits are Python's integers.
    """

    def __init__(self) -> None:
        self._sum: Any = 0

    def empty(self) -> Sum:
        return Sum()

    def add(self, values: Values) -> None:
        """Add rows, floats with 64 bits."""
        rows = present(values)
        if rows.dtype.kind in "iu":
            self._sum = self._sum + _exact_sum(rows)
        else:
            self._sum = self._sum + rows.sum(axis=0, dtype=_SUMMED_AS.get(rows.dtype.kind))

    def merge(self, other: Sum) -> None:
        self._sum = self._sum + other._sum

    @property
    def value(self) -> Any:
        if not isinstance(self._sum, np.ndarray) or self._sum.dtype != object:
            return self._sum
        try:
            return self._sum.astype(np.int64)
        except OverflowError:
            return self._sum


class Min(Aggregate):
    """The smallest value of each column; nulls are skipped.

    ``None`` without rows, NaN if one is.
    """

    _choose: Any = np.minimum

    def __init__(self) -> None:
        self._value: Any = None

    def empty(self) -> Self:
        return type(self)()

    def add(self, values: Values) -> None:
        if len(rows := present(values)):
            self._update(self._choose.reduce(rows, axis=0))

    def merge(self, other: Self) -> None:
        if other._value is not None:
            self._update(other._value)

    def _update(self, value: Any) -> None:
        self._value = value if self._value is None else self._choose(self._value, value)

    @property
    def value(self) -> Any:
        """A number, or an array of a row's shape."""
        return self._value


class Max(Min):
    """The largest value of each column; nulls are skipped.

    ``None`` without rows, NaN if one is.
    """

    _choose = np.maximum


class Concatenation(Aggregate):
    """All rows, sorted, since their order of arrival is arbitrary."""

    def __init__(self) -> None:
        self._parts: list[Array] = []

    def empty(self) -> Self:
        return type(self)()

    def add(self, values: Values) -> None:
        """Keep a copy of rows."""
        if len(rows := array_of(values)):
            self._parts.append(np.array(rows))

    def merge(self, other: Self) -> None:
        self._parts += other._parts

    @property
    def value(self) -> Array:
        """The rows by their first column, equal ones by the next."""
        return sort_rows(np.concatenate(self._parts)) if self._parts else np.empty(0)


class Top(Concatenation):
    """The ``k`` largest rows in falling order: by their first column, equal ones by the next.

    So ``np.column_stack([seconds, number])`` gives the numbers of the slowest rows;
    ``np.rec.fromarrays([seconds, number])`` also keeps integers beyond 2**53 exact. Nulls, and rows
    that start with NaN, are ignored.
    """

    def __init__(self, k: int) -> None:
        super().__init__()
        if k < 1:
            raise ValueError(f"Top({k}): k must be at least 1")
        self._k = k

    def empty(self) -> Self:
        return type(self)(self._k)

    def add(self, values: Values) -> None:
        """Keep the largest."""
        super().add(self._largest(present(values)))
        self._trim()

    def merge(self, other: Self) -> None:
        """Keep the largest of both."""
        super().merge(other)
        self._trim()

    @property
    def value(self) -> Array:
        """The rows, the largest first."""
        return super().value[::-1]

    def _trim(self) -> None:
        if self._parts:
            self._parts = [self._largest(np.concatenate(self._parts))]

    def _largest(self, rows: Array) -> Array:
        first = rows[rows.dtype.names[0]] if rows.dtype.names else flat(rows)[:, 0]
        if first.dtype.kind == "f":
            is_number = ~np.isnan(first)
            rows, first = rows[is_number], first[is_number]
        if len(rows) > self._k:
            # Sorts only rows that are among the largest, or equal the last of them.
            place = len(rows) - self._k
            rows = rows[first >= np.partition(first, place)[place]]
        return sort_rows(rows)[-self._k :]
