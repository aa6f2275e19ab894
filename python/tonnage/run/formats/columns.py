"""Rows of any format as numbers: as points, or one column."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tonnage.run.formats.format import Rows

BLOCK_BYTES = 1 << 20
"""Rows converted at once: they stay in the processor's cache."""


class ColumnError(ValueError):
    """Rows do not have the columns that were asked for."""


def blocks_of_points(
    rows: Rows, columns: Sequence[str] | None = None
) -> Iterator[tuple[int, np.ndarray[Any, Any]]]:
    """The blocks of `as_points`: the number of each block's first row, and its points."""
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
        rows: As `ChunkFormat.decode` gives them.
        columns: The names of the columns to use; by default all.

    Raises:
        ColumnError: A column is missing, or does not hold numbers.
    """
    if isinstance(rows, np.ndarray) and rows.dtype.names is None:
        if columns is not None:
            raise ColumnError(
                "the rows' columns have no names; omit columns, or specify the rows' type with "
                "names, like x:f8,y:f8"
            )
        points = rows.reshape(len(rows), math.prod(rows.shape[1:]))
        return points if points.dtype == np.float64 else points.astype(np.float64)
    names = columns or names_of(rows)
    points = np.empty((len(rows), len(names)))
    for place, name in enumerate(names):
        column = column_of(rows, name)
        if column.dtype.kind not in "biuf":
            raise ColumnError(f"column {name} is not numeric; select numeric columns")
        points[:, place] = column
    return points


def names_of(rows: Rows) -> Sequence[str]:
    names: Sequence[str] = rows.dtype.names if isinstance(rows, np.ndarray) else rows.schema.names
    return names


def column_of(rows: Rows, name: str) -> np.ndarray[Any, Any]:
    """The column of this name; `ColumnError` if there is none."""
    if name not in names_of(rows):
        raise ColumnError(f"there is no column {name}; the columns are {', '.join(names_of(rows))}")
    if isinstance(rows, np.ndarray):
        return rows[name]
    found: np.ndarray[Any, Any] = rows.column(name).to_numpy(zero_copy_only=False)
    return found
