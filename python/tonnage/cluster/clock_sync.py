"""A common moment: when each machine's own clock says what this one's says then.

Machines' monotonic clocks have nothing in common, and their dates may be off. So each clock is
asked some times, and the answer that took least time is taken: the machine's clock stood so when
half of that time was over, give or take the other half (Cristian 1989). What is left of that is
the clock's error, and stands beside every skew.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

LOOKS = 8
LEAD_SECONDS = 0.25
"""From telling to beginning, beside what telling takes."""


@dataclass(frozen=True)
class Clock:
    """A machine's clock: what it shows more than ours, within an error."""

    ahead_seconds: float
    error_seconds: float

    def at(self, moment: float) -> float:
        """What it shows at our moment."""
        return moment + self.ahead_seconds

    def ours(self, shown: float) -> float:
        """Our moment when it showed this."""
        return shown - self.ahead_seconds


def read(show: Callable[[], float], own: Callable[[], float] = time.monotonic) -> Clock:
    """Compares a machine's clock with ours.

    Args:
        show: Asks it.
        own: Ours.
    """
    looks = []
    for _ in range(LOOKS):
        asked = own()
        shown = show()
        took = own() - asked
        looks.append(Clock(shown - (asked + took / 2), took / 2))
    return min(looks, key=lambda look: look.error_seconds)


def moment(clocks: Iterable[Clock], own: Callable[[], float] = time.monotonic) -> float:
    """When all can have been told, on our clock."""
    return own() + LEAD_SECONDS + 4 * sum(clock.error_seconds for clock in clocks)
