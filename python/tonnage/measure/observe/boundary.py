"""What was counted around a cut, shared out between the phases before and after it; pure.

A step lies somewhere within a few samples, and at 1 GB/s a sample of 0.1 s is 100 MB. What a phase
demands of one resource for each unit of another stays the same while its speed goes up and down, so
what was counted is taken as so much work of the first phase and so much of the second, each with
its own demands: the non-negative least squares of all counters.

Stages overlap: the first phase may still write while the second reads already. Where the phases
read (or write) in transfers of different sizes, sizes alone tell how much of either was whose: what
comes before some point is the first's, what comes after the second's, and where sizes fit neither,
just at that point, both have a part. Transfers at a phase's end may be shorter than all before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tonnage.base.stats.samples import FloatArray
from tonnage.measure.observe.phase_detection import ALIKE, FLOORS, floors

REACH = 3
"""So many points on each side of a cut are shared out: fewer than half of what a phase has."""
PAIRS = (("read_bytes", "reads"), ("written_bytes", "writes"))


@dataclass(frozen=True)
class Boundary:
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


def find_boundary(
    before: int, cut: int, after: int, grid: FloatArray, counters: FloatArray
) -> Boundary:
    """The border at a cut.

    Args:
        before: The cut before, or the beginning.
        cut: The point at which the second phase begins.
        after: The cut after, or the end.
        grid: Moments, evenly spaced; points are its places.
        counters: Cumulative, by moment and in the order of `FLOORS`.
    """
    rates = np.diff(counters, axis=0) / (grid[1] - grid[0])
    low, high = cut - REACH, cut + REACH
    first = np.median(rates[before:low], axis=0)
    second = np.median(rates[high:after], axis=0)
    moved = counters[high] - counters[low]
    names = list(FLOORS)
    share, shares = _shares(names, moved, first, second)
    for pair in PAIRS:
        rows = [names.index(name) for name in pair]
        if _differ_in_size(first[rows], second[rows], floors()[rows]):
            each = np.diff(counters[low : high + 1, rows], axis=0)
            sizes = first[rows[0]] / first[rows[1]], second[rows[0]] / second[rows[1]]
            shares |= dict(zip(pair, _by_size(each, *sizes), strict=True))
    return Boundary(float(grid[low]), float(grid[high]), share, shares)


def _shares(
    names: Sequence[str], moved: FloatArray, first: FloatArray, second: FloatArray
) -> tuple[float, dict[str, float]]:
    """The first phase's share of the time, and of each counter, by these counters alone."""
    scale = np.maximum(np.maximum(first, second), [FLOORS[name] for name in names])
    demands = np.column_stack([first, second]) / scale[:, None]
    # Seconds' worth of each phase, at its own pace, that together moved this.
    one, two = nonnegative_least_squares(demands, moved / scale)
    share = float(one / (one + two)) if one + two > 0 else 0.5
    mine, theirs = first * one, second * two
    return share, {
        name: float(mine[place] / (mine[place] + theirs[place]))
        if mine[place] + theirs[place] > 0
        else share
        for place, name in enumerate(names)
    }


def nonnegative_least_squares(columns: FloatArray, wanted: FloatArray) -> FloatArray:
    """The least squares of two columns, neither with a weight below 0.

    If the free solution has one, the best has a weight of 0: the squares are convex.
    """
    free, *_ = np.linalg.lstsq(columns, wanted, rcond=None)
    if np.all(free >= 0):
        return np.asarray(free)
    alone = np.maximum(columns.T @ wanted, 0) / np.maximum((columns**2).sum(axis=0), 1e-300)
    either = np.diag(alone)
    left = ((columns @ either - wanted[:, None]) ** 2).sum(axis=0)
    return np.asarray(either[:, np.argmin(left)])


def _by_size(amounts: FloatArray, first: float, second: float) -> FloatArray:
    """The first phase's share of the bytes and of the operations, by their sizes.

    Args:
        amounts: Bytes and operations of each point, shape ``(n, 2)``.
        first: Bytes of an operation of the first phase.
        second: Of the second.
    """
    moved, operations = np.maximum(amounts, 1e-9).T
    off_first, off_second = (
        moved * np.log(moved / operations / each) ** 2 for each in (first, second)
    )
    # Of each place of the border what does not fit before it and after it.
    unfit = [off_first[:k].sum() + off_second[k:].sum() for k in range(len(moved) + 1)]
    border = int(np.argmin(unfit))
    mine = np.zeros_like(amounts)
    mine[:border] = amounts[:border]
    for mixed in {max(border - 1, 0), min(border, len(moved) - 1)}:
        count = (second * operations[mixed] - moved[mixed]) / (second - first)
        count = np.clip(count, 0, operations[mixed])
        mine[mixed] = min(count * first, moved[mixed]), count
    whole = amounts.sum(axis=0)
    return np.asarray(mine.sum(axis=0) / np.maximum(whole, 1e-9))


def _differ_in_size(first: FloatArray, second: FloatArray, least: FloatArray) -> bool:
    """Whether transfers of two phases, each bytes and operations, are of different sizes."""
    if not (np.all(first > least) and np.all(second > least)):
        return False
    return bool(abs(np.log(first[0] / first[1]) - np.log(second[0] / second[1])) >= ALIKE)
