"""What was counted around a cut, shared out between the phases before and after it; pure.

A step lies somewhere within a few samples, and at 1 GB/s a sample of 0.1 s is 100 MB. What a phase
demands of one resource for each unit of another stays the same while its speed goes up and down, so
what was counted is taken as so much work of the first phase and so much of the second, each with
its own demands: the non-negative least squares of all counters.

Stages overlap: the first phase may still write while the second reads already. Where the phases
read (or write) in transfers of different sizes, bytes and operations alone tell how much of either
was whose.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls

from tonnage.measure.observe.cuts import ALIKE, FLOORS, floors
from tonnage.statistics.samples import FloatArray

REACH = 2
"""So many points on each side of a cut are shared out."""
PAIRS = (("read_bytes", "reads"), ("written_bytes", "writes"))


@dataclass(frozen=True)
class Border:
    """From ``begin`` to ``end``, in seconds, one phase gives way to the next."""

    begin: float
    end: float
    share: float
    """Of this time, the first phase's; of counters that are not in ``shares`` too."""
    shares: dict[str, float]
    """Of what was counted meanwhile, the first phase's."""

    @property
    def moment(self) -> float:
        """As if the first had ended at once when the second began."""
        return self.begin + self.share * (self.end - self.begin)


def border(before: int, cut: int, after: int, grid: FloatArray, counters: FloatArray) -> Border:
    """The border at a cut.

    Args:
        before: The cut before, or the beginning.
        cut: The point at which the second phase begins.
        after: The cut after, or the end.
        grid: Moments, evenly spaced; points are its places.
        counters: Cumulative, by moment and in the order of `FLOORS`.
    """
    rates = np.diff(counters, axis=0) / (grid[1] - grid[0])
    low, high = max(cut - REACH, (before + cut) // 2), min(cut + REACH, (cut + after + 1) // 2)
    first = np.median(rates[before:low], axis=0)
    second = np.median(rates[high:after], axis=0)
    moved = counters[high] - counters[low]
    everything = np.arange(len(FLOORS))
    one, two = _work(moved, first, second, everything)
    share = one / (one + two) if one + two > 0 else 0.5
    shares = {}
    names = list(FLOORS)
    for place, name in enumerate(names):
        mine, theirs = first[place] * one, second[place] * two
        shares[name] = float(mine / (mine + theirs)) if mine + theirs > 0 else share
    for pair in PAIRS:
        rows = np.array([names.index(name) for name in pair])
        if not _differ_in_size(first[rows], second[rows], floors()[rows]):
            continue
        one, two = _work(moved, first, second, rows)
        for place, name in zip(rows, pair, strict=True):
            mine, theirs = first[place] * one, second[place] * two
            if mine + theirs > 0:
                shares[name] = float(mine / (mine + theirs))
    return Border(float(grid[low]), float(grid[high]), share, shares)


def _work(
    moved: FloatArray, first: FloatArray, second: FloatArray, rows: FloatArray
) -> tuple[float, float]:
    """Seconds' worth of each phase, at its own pace, that together moved this."""
    scale = np.maximum(np.maximum(first, second), floors())[rows]
    demands = np.column_stack([first[rows] / scale, second[rows] / scale])
    (one, two), _ = nnls(demands, np.maximum(moved[rows], 0) / scale)
    return float(one), float(two)


def _differ_in_size(first: FloatArray, second: FloatArray, least: FloatArray) -> bool:
    """Whether transfers of two phases, each bytes and operations, are of different sizes."""
    if not (np.all(first > least) and np.all(second > least)):
        return False
    return bool(abs(np.log(first[0] / first[1]) - np.log(second[0] / second[1])) >= ALIKE)
