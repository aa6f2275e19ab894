"""What an aggregate is, and the values that it takes."""

import math
from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Values = Any
"""A NumPy array whose first axis is rows, an Arrow column, or a number."""
Array = npt.NDArray[Any]
ARROW = (pa.Array, pa.ChunkedArray)


class Aggregate(ABC):
    """Something that values are added to, and that merges with others of its kind."""

    @abstractmethod
    def empty(self) -> Self:
        """An empty aggregate with the same settings."""

    @abstractmethod
    def add(self, values: Values) -> None:
        """Add values of rows; keeps no view of them.

        Raises:
            ValueError: They cannot be aggregated.
        """

    @abstractmethod
    def merge(self, other: Self) -> None:
        """Add what was added to another one, which is not used afterwards."""

    @property
    @abstractmethod
    def value(self) -> Any:
        """The aggregated value."""


def array_of(values: Values) -> Array:
    """Values as an array of rows; a number is one row."""
    if isinstance(values, ARROW):
        values = values.to_numpy(zero_copy_only=False)
    return np.atleast_1d(np.asarray(values))


def present(values: Values) -> Array:
    """Values as an array of rows without nulls, with which integers would become floats."""
    return array_of(values.drop_null() if isinstance(values, ARROW) else values)


def sort_rows(rows: Array) -> Array:
    """Rows sorted by their first column, equal ones by the next."""
    if rows.dtype.names or rows.ndim == 1:
        return np.sort(rows)
    return rows[np.lexsort(flat(rows).T[::-1])]


def flat(rows: Array) -> Array:
    """Rows as (rows, numbers)."""
    return rows.reshape(len(rows), math.prod(rows.shape[1:]))
