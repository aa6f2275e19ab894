"""Where a job's demands change: cuts of the rates of its counters; pure.

1. A beginning and an end that move nothing are cut off: a start, a clearing away.
2. Of the rest, the logarithms of the rates, smoothed by medians of three, are cut where their
   levels step (`statistics.changes`).
3. Neighbours that differ by less than `ALIKE` in every rate are one, and so are those that differ
   by speed alone: the demands are the job's, the speed is the machine's. A stretch is compared by
   its medians: what is odd at its ends, like a job that looks at its input before it begins, is not
   how it works.
"""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np

from tonnage.base.stats.change_points import change_points
from tonnage.base.stats.samples import FloatArray

FLOORS = {
    "cpu_seconds": 0.05,
    "read_bytes": 2e6,
    "written_bytes": 2e6,
    "reads": 50.0,
    "writes": 50.0,
    "network_received_bytes": 1e6,
    "network_sent_bytes": 1e6,
    "loopback_bytes": 1e6,
}
"""The rates that tell phases apart, and for each how much a second is as good as nothing."""
LEAST_POINTS = 8
"""A phase has so many, or it is a part of its neighbour."""
MOST_PHASES = 8
"""And so large a part of the run: what comes and goes faster, as in a JVM, is how a phase works. So
is the filling of a pipeline, before which nothing is written."""
FINER = 4
"""Cuts are found where a phase would be so much shorter; then short ones join a neighbour."""
STILL = 0.001
"""A beginning, or an end, that moves this share of all bytes moves nothing."""
ALIKE = math.log(1.5)
"""Levels of logarithms that differ by less are alike."""


def find_cuts(rates: FloatArray) -> list[int]:
    """Points at which another phase begins.

    Args:
        rates: Shape ``(n, len(FLOORS))``, evenly spaced.
    """
    begin, end = _moving(rates)
    within = np.log1p(np.maximum(rates[begin:end], 0) / floors())
    shortest = within.shape[0] / MOST_PHASES
    least = max(LEAST_POINTS, int(shortest / FINER))
    steps = change_points(_smooth(within), least=least, floor=ALIKE / 2, blurred=1)
    found = [begin + step for step in steps]
    while found:
        stretches = list(pairwise([begin, *found, end]))
        levels = [np.median(rates[low:high], axis=0) for low, high in stretches]
        apart = [_distance(one, two) for one, two in pairwise(levels)]
        nearest = int(np.argmin(apart))
        if apart[nearest] >= ALIKE:
            lengths = [high - low for low, high in stretches]
            short = int(np.argmin(lengths))
            if lengths[short] >= shortest:
                break
            sides = [cut for cut in (short - 1, short) if 0 <= cut < len(found)]
            nearest = min(sides, key=lambda cut: apart[cut])
        del found[nearest]
    return [cut for cut in (begin, *found, end) if 0 < cut < rates.shape[0]]


def bytes_moved(amounts: FloatArray) -> FloatArray:
    """Bytes, whichever way: along the last axis amounts are in the order of `FLOORS`."""
    by_name = dict(zip(FLOORS, np.moveaxis(amounts, -1, 0), strict=True))
    network = np.maximum(by_name["network_received_bytes"], by_name["network_sent_bytes"])
    together: FloatArray = by_name["read_bytes"] + by_name["written_bytes"] + network
    return together


def _moving(rates: FloatArray) -> tuple[int, int]:
    """The points between which nearly all is moved; all of them if next to nothing is."""
    count = rates.shape[0]
    so_far = np.cumsum(bytes_moved(rates))
    if so_far[-1] < FLOORS["read_bytes"] * count:
        return 0, count
    begin = int(np.searchsorted(so_far, STILL * so_far[-1]))
    end = int(np.searchsorted(so_far, (1 - STILL) * so_far[-1])) + 1
    if end - begin < LEAST_POINTS:
        return 0, count
    return begin if begin >= LEAST_POINTS else 0, end if count - end >= LEAST_POINTS else count


def floors() -> FloatArray:
    """As an array, in the order of the rates."""
    return np.array([*FLOORS.values()])


def _distance(one: FloatArray, two: FloatArray) -> float:
    """The largest step of any rate, in logarithms; without a step of all by the same factor."""
    steps = np.abs(np.log1p(one / floors()) - np.log1p(two / floors()))
    largest = float(steps.max())
    active = (one > floors()) & (two > floors())
    if active.sum() >= 2 and not steps[~active].max(initial=0.0) >= ALIKE:
        factors = np.log(one[active] / two[active])
        return min(largest, float(np.ptp(factors)))
    return largest


def _smooth(values: FloatArray) -> FloatArray:
    """Running medians of three: a single spike is gone, a step stays where it is."""
    if values.shape[0] < 3:
        return values
    padded = np.vstack([values[:1], values, values[-1:]])
    smooth: FloatArray = np.median(np.stack([padded[:-2], padded[1:-1], padded[2:]]), axis=0)
    return smooth
