"""Find where a job's demands change, from the rates of its counters; pure.

1. A beginning and an end that move nothing are cut off: starting up and cleaning up.
2. In the rest, the logarithms of the rates, smoothed by medians of three, are cut where their
   levels change (`stats.change_points`).
3. Neighbours that differ by less than `ALIKE` in every rate are merged, and so are those that
   differ only in speed: demands belong to the job, speed to the machine. Stretches are compared by
   their medians, so that oddities at their ends, as when a job first inspects its input, do not
   matter.
"""

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
"""The rates that distinguish phases; each with the rate per second that counts as nothing."""
MIN_POINTS = 8
"""The fewest points of a phase; a shorter one is part of its neighbour."""
MAX_PHASES = 8
"""The most phases of a run, which limits how short one is: faster changes, as in a JVM or while a
pipeline fills, are part of how a phase works."""
FINER = 4
"""Cuts are searched for phases this many times shorter; then short ones join a neighbour."""
STILL = 0.001
"""A beginning, or an end, that moves at most this share of all bytes moves nothing."""
ALIKE = math.log(1.5)
"""Logarithmic levels that differ by less are alike."""


def find_cuts(rates: FloatArray) -> list[int]:
    """The indexes at which another phase begins; ``rates`` has the shape ``(n, len(FLOORS))``."""
    begin, end = _moving(rates)
    within = np.log1p(np.maximum(rates[begin:end], 0) / floors())
    shortest = within.shape[0] / MAX_PHASES
    least = max(MIN_POINTS, int(shortest / FINER))
    steps = change_points(_smooth(within), least=least, floor=ALIKE / 2, blurred=1)
    inner = [begin + step for step in steps]
    while inner:
        stretches = list(pairwise([begin, *inner, end]))
        levels = [np.median(rates[low:high], axis=0) for low, high in stretches]
        distances = [_distance(one, two) for one, two in pairwise(levels)]
        nearest = int(np.argmin(distances))
        if distances[nearest] >= ALIKE:
            lengths = [high - low for low, high in stretches]
            short = int(np.argmin(lengths))
            if lengths[short] >= shortest:
                break
            sides = [cut for cut in (short - 1, short) if 0 <= cut < len(inner)]
            nearest = min(sides, key=lambda cut: distances[cut])
        del inner[nearest]
    return [cut for cut in (begin, *inner, end) if 0 < cut < rates.shape[0]]


def bytes_moved(amounts: FloatArray) -> FloatArray:
    """The bytes moved in any direction; the last axis of ``amounts`` is ordered as `FLOORS`."""
    by_name = dict(zip(FLOORS, np.moveaxis(amounts, -1, 0), strict=True))
    network = np.maximum(by_name["network_received_bytes"], by_name["network_sent_bytes"])
    total: FloatArray = by_name["read_bytes"] + by_name["written_bytes"] + network
    return total


def _moving(rates: FloatArray) -> tuple[int, int]:
    """The range in which nearly all bytes move; everything if almost nothing does."""
    count = rates.shape[0]
    so_far = np.cumsum(bytes_moved(rates))
    if so_far[-1] < FLOORS["read_bytes"] * count:
        return 0, count
    begin = int(np.searchsorted(so_far, STILL * so_far[-1]))
    end = int(np.searchsorted(so_far, (1 - STILL) * so_far[-1])) + 1
    if end - begin < MIN_POINTS:
        return 0, count
    return begin if begin >= MIN_POINTS else 0, end if count - end >= MIN_POINTS else count


def floors() -> FloatArray:
    return np.array([*FLOORS.values()])


def _distance(one: FloatArray, two: FloatArray) -> float:
    """The largest logarithmic step of any rate, ignoring a common factor of all active rates."""
    steps = np.abs(np.log1p(one / floors()) - np.log1p(two / floors()))
    largest = float(steps.max())
    active = (one > floors()) & (two > floors())
    if active.sum() >= 2 and not steps[~active].max(initial=0.0) >= ALIKE:
        factors = np.log(one[active] / two[active])
        return min(largest, float(np.ptp(factors)))
    return largest


def _smooth(values: FloatArray) -> FloatArray:
    """Running medians of three: they remove single spikes and keep steps in place."""
    if values.shape[0] < 3:
        return values
    padded = np.vstack([values[:1], values, values[-1:]])
    smooth: FloatArray = np.median(np.stack([padded[:-2], padded[1:-1], padded[2:]]), axis=0)
    return smooth
