"""Rows of any format as numbers: as points, or a column of them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tonnage.run.formats.format import Rows

BLOCK_BYTES = 1 << 20
"""Of rows that are made numbers at once: they stay in the cache, and take no memory."""


def blocks_of_points(
    rows: Rows, columns: Sequence[str] | None = None
) -> Iterator[tuple[int, np.ndarray[Any, Any]]]:
    """Rows as points, as `as_points` makes them, some at a time, unless they are points already.

    Args:
        rows: As `Format.rows` gives them.
        columns: Names of those that count; all by default.

    Yields:
        The number of the first row, and the points from there on.

    Raises:
        ValueError: A column is not there, or holds no numbers.
    """
    if isinstance(rows, np.ndarray) and rows.dtype == np.float64:
        step = max(len(rows), 1)
    elif isinstance(rows, np.ndarray) and rows.dtype.names is None:
        step = max(BLOCK_BYTES // (8 * math.prod(rows.shape[1:])), 1)
    else:
        step = max(BLOCK_BYTES // (8 * len(columns or names_of(rows))), 1)
    for first in range(0, len(rows), step):
        yield first, as_points(rows[first : first + step], columns)


def as_points(rows: Rows, columns: Sequence[str] | None = None) -> np.ndarray[Any, Any]:
    """Rows as points: an array of 64-bit floating-point numbers, (rows, columns).

    Args:
        rows: As `Format.rows` gives them.
        columns: Names of those that count; all by default.

    Raises:
        ValueError: A column is not there, or holds no numbers.
    """
    if isinstance(rows, np.ndarray) and rows.dtype.names is None:
        if columns is not None:
            raise ValueError(
                "columns have no names here: leave --columns out, or give --dtype with names, like "
                "x:f8,y:f8"
            )
        points = rows.reshape(len(rows), math.prod(rows.shape[1:]))
        return points if points.dtype == np.float64 else points.astype(np.float64)
    names = columns or names_of(rows)
    found = np.empty((len(rows), len(names)))
    for place, name in enumerate(names):
        column = column_of(rows, name)
        if column.dtype.kind not in "biuf":
            raise ValueError(f"column {name} holds no numbers: say which count with --columns")
        found[:, place] = column
    return found


def names_of(rows: Rows) -> Sequence[str]:
    """The names of columns."""
    names: Sequence[str] = rows.dtype.names if isinstance(rows, np.ndarray) else rows.schema.names
    return names


def column_of(rows: Rows, name: str) -> np.ndarray[Any, Any]:
    """A column that has a name.

    Raises:
        ValueError: There is none.
    """
    if name not in names_of(rows):
        raise ValueError(f"there is no column {name}: there are {', '.join(names_of(rows))}")
    if isinstance(rows, np.ndarray):
        return rows[name]
    found: np.ndarray[Any, Any] = rows.column(name).to_numpy(zero_copy_only=False)
    return found
