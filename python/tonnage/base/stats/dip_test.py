"""The dip: how far a sample is from having one mode (Hartigan and Hartigan 1985).

It is the largest distance between the empirical distribution function and the nearest one of a
single mode, convex before it and concave after. Their algorithm narrows the modal interval between
the greatest convex minorant and the least concave majorant until nothing wider is left.
"""

from __future__ import annotations

import numpy as np

from tonnage.base.stats.samples import FloatArray, Floats, checked


def dip(values: Floats) -> float:
    """The dip of the sample, from ``1 / (2 n)`` to 1/4; no unit, whatever the values' scale.

    Args:
        values: Shape ``(n,)``, in any order; ties are allowed.

    Raises:
        ValueError: The values are none or not finite.
    """
    array = checked(values)
    places, counts = np.unique(array, return_counts=True)
    upper = np.cumsum(counts) / array.size
    lower = upper - counts / array.size
    first, last, widest = 0, places.size - 1, 1 / array.size
    while first < last:
        part = slice(first, last + 1)
        x, low, high = places[part], lower[part], upper[part]
        below, above = _hull(x, low), _hull(-x[::-1], -high[::-1])
        above = x.size - 1 - above[::-1]
        minorant = np.interp(x, x[below], low[below])
        majorant = np.interp(x, x[above], high[above])
        gaps_below, gaps_above = (majorant - minorant)[below], (majorant - minorant)[above]
        if gaps_below.max() >= gaps_above.max():
            left = int(below[np.argmax(gaps_below)])
            right = int(above[np.searchsorted(above, left, side="left")])
        else:
            right = int(above[np.argmax(gaps_above)])
            left = int(below[np.searchsorted(below, right, side="right") - 1])
        if max(gaps_below.max(), gaps_above.max()) <= widest:
            break
        # Outside of the new modal interval the distances count; the mode itself may be an atom.
        outside = [high[:left] - minorant[:left], majorant[right + 1 :] - low[right + 1 :]]
        widest = max(widest, *(float(each.max()) for each in outside if each.size), 0.0)
        if left == 0 and right == x.size - 1:
            break
        first, last = first + left, first + right
    return widest / 2


def _hull(x: FloatArray, y: FloatArray) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Indices of the points that the greatest convex minorant touches; ``x`` increases."""
    xs, ys = x.tolist(), y.tolist()
    touched: list[int] = []
    for here in range(len(xs)):
        while len(touched) > 1:
            before, last = touched[-2], touched[-1]
            if (ys[last] - ys[before]) * (xs[here] - xs[last]) < (ys[here] - ys[last]) * (
                xs[last] - xs[before]
            ):
                break
            touched.pop()
        touched.append(here)
    return np.asarray(touched, dtype=np.int64)
