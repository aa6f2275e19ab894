"""What a combination is, and values as it takes them."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Values = Any
"""Those of rows: a NumPy array whose first axis is rows, a column of Arrow's, or a number."""
Array = npt.NDArray[Any]
ARROW = (pa.Array, pa.ChunkedArray)


class Aggregate(ABC):
    """Something that values are added to, and that merges with others of its kind."""

    @abstractmethod
    def empty(self) -> Self:
        """One of the same kind to which nothing was added."""

    @abstractmethod
    def add(self, values: Values) -> None:
        """Adds values of rows; keeps no view of them.

        Raises:
            ValueError: They are not of this kind.
        """

    @abstractmethod
    def merge(self, other: Self) -> None:
        """Adds what was added to another one, which nobody uses any more."""

    @property
    @abstractmethod
    def value(self) -> Any:
        """What all comes to."""


def array_of(values: Values) -> Array:
    """Values as an array of rows, of which a number alone is one."""
    if isinstance(values, ARROW):
        values = values.to_numpy(zero_copy_only=False)
    return np.atleast_1d(np.asarray(values))


def sort_rows(rows: Array) -> Array:
    """Rows sorted by their first number or field, equal ones by the next."""
    if rows.dtype.names or rows.ndim == 1:
        return np.sort(rows)
    return rows[np.lexsort(flat(rows).T[::-1])]


def flat(rows: Array) -> Array:
    """Rows of numbers side by side."""
    return rows.reshape(len(rows), math.prod(rows.shape[1:]))
