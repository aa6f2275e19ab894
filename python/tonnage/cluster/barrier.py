"""Where an agent's work waits for that of others; see `tonnage.cluster.peers`.

What it says there goes to the driver with all else that the agent tells. When all that are left
wait, the driver tells each of them what all said, and the moment at which they go on.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from tonnage.cluster.peers import BarrierResult

LOOK_SECONDS = 0.1
"""So long a stop may go unnoticed."""


class BarrierWait(NamedTuple):
    """Somebody waits for the others."""

    number: int
    """Which meeting it is; all have the same ones."""
    says: Any


class WorkerBarrier:
    """What an agent's work is given as its peers.

    Args:
        node: The machine's name.
        on_wait: Called when the work begins to wait.
        wait_until: Sleeps until the clock says so; raises if the agent is told to stop.
    """

    def __init__(
        self, node: str, on_wait: Callable[[], None], wait_until: Callable[[float], None]
    ) -> None:
        self._node, self._on_wait, self._wait_until = node, on_wait, wait_until
        self._number = 0
        self._met: BarrierResult | None = None
        self._goes = threading.Event()
        self.waits: BarrierWait | None = None
        """What there is to tell the driver."""

    @property
    def node(self) -> str:
        """The machine's name."""
        return self._node

    def meet(self, says: Any) -> BarrierResult:
        """Waits for all others."""
        self._number += 1
        self._goes.clear()
        self.waits = BarrierWait(self._number, says)
        self._on_wait()
        while not self._goes.wait(LOOK_SECONDS):
            self._wait_until(0.0)  # It may be told to stop.
        assert self._met is not None
        self._wait_until(self._met.at)
        return self._met

    def go(self, number: int, at: float, said: Mapping[str, Any]) -> None:
        """Has all go on that wait there: the driver may say so more than once."""
        if self.waits and self.waits.number == number:
            self._met, self.waits = BarrierResult(said, at), None
            self._goes.set()
