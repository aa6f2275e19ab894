"""Apportion the counters around a cut between the phases before and after it; pure.

A step lies somewhere within a few samples, and at 1 GB/s a sample of 0.1 s is 100 MB. While a
phase's speed varies, its demand for one resource per unit of another stays the same. So the
counters are modelled as an amount of work of each phase, each with its own demands: the
non-negative least squares over all counters.

Stages overlap: the first phase may still write while the second already reads. Where the phases
read (or write) in transfers of different sizes, the sizes alone decide: before some point the bytes
are the first phase's, after it the second's, and a sample that fits neither, just at that point, is
split. Transfers at the end of a phase may be shorter than the others.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tonnage.base.stats.samples import FloatArray
from tonnage.measure.observe.phase_detection import ALIKE, FLOORS, floors

REACH = 3
"""Points on each side of a cut that are apportioned: fewer than half of the shortest phase."""
PAIRS = (("read_bytes", "reads"), ("written_bytes", "writes"))


@dataclass(frozen=True)
class Boundary:
    """The transition from one phase to the next, from ``begin`` to ``end`` in seconds."""

    begin: float
    end: float
    share: float
    """The first phase's share of this time, and of counters that are not in ``shares``."""
    shares: dict[str, float]
    """The first phase's share of each counter's increase in this time."""

    @property
    def moment(self) -> float:
        """The end of the first phase, as if the second had begun right then."""
        return self.begin + self.share * (self.end - self.begin)


def find_boundary(
    before: int, cut: int, after: int, grid: FloatArray, counters: FloatArray
) -> Boundary:
    """Apportion the counters at ``cut``, whose neighbours are the cuts ``before`` and ``after``.

    Cuts are indexes into ``grid``, which is evenly spaced in time; ``counters`` are cumulative, by
    time and in the order of `FLOORS`.
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
            amounts = np.diff(counters[low : high + 1, rows], axis=0)
            sizes = first[rows[0]] / first[rows[1]], second[rows[0]] / second[rows[1]]
            shares |= dict(zip(pair, _by_size(amounts, *sizes), strict=True))
    return Boundary(float(grid[low]), float(grid[high]), share, shares)


def _shares(
    names: Sequence[str], moved: FloatArray, first: FloatArray, second: FloatArray
) -> tuple[float, dict[str, float]]:
    """The first phase's share of the time and of each counter, from demands alone."""
    scale = np.maximum(np.maximum(first, second), [FLOORS[name] for name in names])
    demands = np.column_stack([first, second]) / scale[:, None]
    # Seconds of each phase at its own speed that together moved this.
    one, two = nonnegative_least_squares(demands, moved / scale)
    share = float(one / (one + two)) if one + two > 0 else 0.5
    first_moved, second_moved = first * one, second * two
    return share, {
        name: float(first_moved[place] / (first_moved[place] + second_moved[place]))
        if first_moved[place] + second_moved[place] > 0
        else share
        for place, name in enumerate(names)
    }


def nonnegative_least_squares(columns: FloatArray, target: FloatArray) -> FloatArray:
    """Fit ``wanted`` by two columns with non-negative weights.

    The squares are convex: if the unconstrained solution has a negative weight, that weight is 0.
    """
    free, *_ = np.linalg.lstsq(columns, target, rcond=None)
    if np.all(free >= 0):
        return np.asarray(free)
    single = np.maximum(columns.T @ target, 0) / np.maximum((columns**2).sum(axis=0), 1e-300)
    candidates = np.diag(single)
    residuals = ((columns @ candidates - target[:, None]) ** 2).sum(axis=0)
    return np.asarray(candidates[:, np.argmin(residuals)])


def _by_size(amounts: FloatArray, first: float, second: float) -> FloatArray:
    """The first phase's share of ``amounts`` (bytes, operations: ``(n, 2)``), by transfer size."""
    moved, operations = np.maximum(amounts, 1e-9).T
    off_first, off_second = (
        moved * np.log(moved / operations / size) ** 2 for size in (first, second)
    )
    # The misfit for each place of the boundary.
    misfit = [off_first[:k].sum() + off_second[k:].sum() for k in range(len(moved) + 1)]
    place = int(np.argmin(misfit))
    first_part = np.zeros_like(amounts)
    first_part[:place] = amounts[:place]
    for mixed in {max(place - 1, 0), min(place, len(moved) - 1)}:
        count = (second * operations[mixed] - moved[mixed]) / (second - first)
        count = np.clip(count, 0, operations[mixed])
        first_part[mixed] = min(count * first, moved[mixed]), count
    total = amounts.sum(axis=0)
    return np.asarray(first_part.sum(axis=0) / np.maximum(total, 1e-9))


def _differ_in_size(first: FloatArray, second: FloatArray, least: FloatArray) -> bool:
    """Whether two phases, each with bytes and operations, differ in the size of transfers."""
    if not (np.all(first > least) and np.all(second > least)):
        return False
    return bool(abs(np.log(first[0] / first[1]) - np.log(second[0] / second[1])) >= ALIKE)
