"""Sums and extremes of rows, and rows themselves."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from tonnage.api.aggregates.base import Aggregate, Array, Values, array_of, flat, sort_rows


class Sum(Aggregate):
    """The sum of rows: a number, or an array of the shape of a row. Of no rows it is 0."""

    def __init__(self) -> None:
        self._sum: Any = 0

    def empty(self) -> Sum:
        """No rows."""
        return Sum()

    def add(self, values: Values) -> None:
        """Adds rows, short floating-point numbers as long ones."""
        rows = array_of(values)
        kind = np.float64 if rows.dtype.kind == "f" else None
        self._sum = self._sum + rows.sum(axis=0, dtype=kind)

    def merge(self, other: Sum) -> None:
        """Adds the other's sum."""
        self._sum = self._sum + other._sum

    @property
    def value(self) -> Any:
        """The sum."""
        return self._sum


class Min(Aggregate):
    """The smallest of rows, number by number; ``None`` of no rows, NaN if one is."""

    _of: Any = np.minimum

    def __init__(self) -> None:
        self._found: Any = None

    def empty(self) -> Self:
        """No rows."""
        return type(self)()

    def add(self, values: Values) -> None:
        """Looks at rows."""
        if len(rows := array_of(values)):
            self._take(self._of.reduce(rows, axis=0))

    def merge(self, other: Self) -> None:
        """Looks at what the other has."""
        if other._found is not None:
            self._take(other._found)

    def _take(self, found: Any) -> None:
        self._found = found if self._found is None else self._of(self._found, found)

    @property
    def value(self) -> Any:
        """A number, or an array of the shape of a row."""
        return self._found


class Max(Min):
    """The largest of rows, number by number; ``None`` of no rows, NaN if one is."""

    _of = np.maximum


class Concatenation(Aggregate):
    """All rows, in the order of their values: that in which they come is nobody's."""

    def __init__(self) -> None:
        self._parts: list[Array] = []

    def empty(self) -> Self:
        """No rows."""
        return type(self)()

    def add(self, values: Values) -> None:
        """Keeps a copy of rows."""
        if len(rows := array_of(values)):
            self._parts.append(np.array(rows))

    def merge(self, other: Self) -> None:
        """Takes the other's rows."""
        self._parts += other._parts

    @property
    def value(self) -> Array:
        """The rows: by their first number or field, equal ones by the next."""
        return sort_rows(np.concatenate(self._parts)) if self._parts else np.empty(0)


class Top(Concatenation):
    """The largest rows, in falling order: by their first number or field, equal ones by the next.

    So ``np.column_stack([seconds, number])`` tells which row was how slow. A row whose first is NaN
    is none.

    Args:
        k: How many.
    """

    def __init__(self, k: int) -> None:
        super().__init__()
        if k < 1:
            raise ValueError(f"Top({k}): one row at least")
        self._k = k

    def empty(self) -> Self:
        """No rows."""
        return type(self)(self._k)

    def add(self, values: Values) -> None:
        """Keeps the largest."""
        super().add(self._largest(array_of(values)))
        self._trim()

    def merge(self, other: Self) -> None:
        """Keeps the largest of both."""
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
            there = ~np.isnan(first)
            rows, first = rows[there], first[there]
        if len(rows) > self._k:
            # Only rows that are among them, or equal the last of them so far, are sorted.
            place = len(rows) - self._k
            rows = rows[first >= np.partition(first, place)[place]]
        return sort_rows(rows)[-self._k :]
