"""Sums, minima and maxima of rows, and the rows themselves."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from tonnage.api.aggregates.base import Aggregate, Array, Values, array_of, flat, sort_rows


class Sum(Aggregate):
    """The sum of rows: a number, or an array of a row's shape; 0 without rows."""

    def __init__(self) -> None:
        self._sum: Any = 0

    def empty(self) -> Sum:
        return Sum()

    def add(self, values: Values) -> None:
        """Add rows, floats with 64 bits."""
        rows = array_of(values)
        kind = np.float64 if rows.dtype.kind == "f" else None
        self._sum = self._sum + rows.sum(axis=0, dtype=kind)

    def merge(self, other: Sum) -> None:
        self._sum = self._sum + other._sum

    @property
    def value(self) -> Any:
        return self._sum


class Min(Aggregate):
    """The smallest value of each column; ``None`` without rows, NaN if one is."""

    _choose: Any = np.minimum

    def __init__(self) -> None:
        self._value: Any = None

    def empty(self) -> Self:
        return type(self)()

    def add(self, values: Values) -> None:
        if len(rows := array_of(values)):
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
    """The largest value of each column; ``None`` without rows, NaN if one is."""

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

    So ``np.column_stack([seconds, number])`` gives the numbers of the slowest rows. Rows that start
    with NaN are ignored.
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
        super().add(self._largest(array_of(values)))
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
