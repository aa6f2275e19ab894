"""Merge histograms of several sources, and read percentiles from the sum.

Percentiles cannot be averaged: the slowest hundredth of all operations may lie on one node alone.
Bins are (upper edge, count), the non-empty ones of an HDR histogram. Sources with the same
configuration share edges, so merging is exact; otherwise the union of the edges is kept.
"""

import math
from collections.abc import Iterable, Sequence

Bins = Sequence[tuple[float, int]]


def merge_histograms(several: Iterable[Bins]) -> list[tuple[float, int]]:
    counts: dict[float, int] = {}
    for bins in several:
        for edge, count in bins:
            counts[edge] = counts.get(edge, 0) + count
    return sorted(counts.items())


def percentile(bins: Bins, share: float) -> float:
    """The upper edge of the bin that holds the quantile ``share``; bins must be ascending."""
    if not 0 <= share <= 1:
        raise ValueError(f"share must be between 0 and 1, but is {share}")
    total = sum(count for _, count in bins)
    if not total:
        raise ValueError("no values")
    # 0.99 of 100 must be the 99th, although 0.99 has no exact binary form.
    rank = max(1, math.ceil(share * total - 1e-9 * total))
    for edge, count in bins:
        rank -= count
        if rank <= 0:
            return edge
    raise AssertionError("ranks end with the total")
