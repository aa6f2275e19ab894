"""A common moment on all nodes, whose monotonic clocks have nothing in common.

Each node's clock is read some times, and the fastest answer counts: the clock stood so when half of
its time was over, give or take the other half (Cristian 1989). That half is the clock's error,
which is reported with every skew.
"""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from tonnage.cluster import time_limits


@dataclass(frozen=True)
class Clock:
    """A node's clock relative to this one, with the error of that."""

    ahead_seconds: float
    error_seconds: float

    def to_remote(self, moment: float) -> float:
        """What the node's clock shows at a moment of this one."""
        return moment + self.ahead_seconds

    def to_local(self, moment: float) -> float:
        """What this clock shows at a moment of the node's."""
        return moment - self.ahead_seconds


def compare_clock(
    read_remote: Callable[[], float], read_own: Callable[[], float] = time.monotonic
) -> Clock:
    readings = []
    for _ in range(time_limits.CLOCK_READINGS):
        before = read_own()
        shown = read_remote()
        took = read_own() - before
        readings.append(Clock(shown - (before + took / 2), took / 2))
    return min(readings, key=lambda reading: reading.error_seconds)


def common_start(clocks: Iterable[Clock], read_own: Callable[[], float] = time.monotonic) -> float:
    """A moment of this clock that every node can know before it comes."""
    errors = sum(clock.error_seconds for clock in clocks)
    return read_own() + time_limits.START_LEAD_SECONDS + 4 * errors
