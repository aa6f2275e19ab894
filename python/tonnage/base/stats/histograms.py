"""Histograms of several sources as one: counts of a bin add up, percentiles are of the sum.

A percentile of percentiles is nobody's: the slowest hundredth of all operations may lie on one node
alone. Bins are (upper edge, count), as an HDR histogram gives those that are not empty; sources
that were made alike have the same edges, so nothing is lost. Of sources with other edges the union
is kept, as exact as each was.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

Bins = Sequence[tuple[float, int]]


def merged(several: Iterable[Bins]) -> list[tuple[float, int]]:
    """All values of several histograms in one, its edges ascending."""
    counts: dict[float, int] = {}
    for bins in several:
        for edge, count in bins:
            counts[edge] = counts.get(edge, 0) + count
    return sorted(counts.items())


def percentile(bins: Bins, share: float) -> float:
    """The edge of the bin that holds the value below or at which this share of all lies.

    Args:
        bins: Ascending.
        share: From 0, the first value, to 1, the last.

    Raises:
        ValueError: There are no values, or the share is outside.
    """
    if not 0 <= share <= 1:
        raise ValueError(f"share must lie between 0 and 1, not {share}")
    total = sum(count for _, count in bins)
    if not total:
        raise ValueError("no values")
    # So that 0.99 of 100 is the 99th, whatever 0.99 is in binary.
    rank = max(1, math.ceil(share * total - 1e-9 * total))
    for edge, count in bins:
        rank -= count
        if rank <= 0:
            return edge
    raise AssertionError("ranks end with the total")
