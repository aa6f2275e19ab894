"""A barrier across the nodes of a cluster: each says something, and all continue at one moment.

What a node says goes to the driver with its heartbeat. When all nodes wait, the driver sends each
what all said and the moment at which to continue. A node that is lost is not waited for.
"""

import threading
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

from tonnage.cluster import time_limits
from tonnage.cluster.protocol import BarrierValue, BarrierWait


class BarrierResult(NamedTuple):
    """What all nodes said, and when they continued."""

    values: Mapping[str, Any]
    """By node, in the order of their names, on every node alike."""
    at: float
    """When all continued, on this node's monotonic clock."""


class Barrier(Protocol):
    """Where a node waits for the others of its cluster."""

    @property
    def node(self) -> str: ...

    def wait(self, value: BarrierValue) -> BarrierResult:
        """Waits for all nodes that have not ended."""
        ...


class WorkerBarrier:
    """The barrier on a node.

    ``on_wait`` is called when the node begins to wait; ``wait_until`` sleeps until a moment of the
    clock, and raises if the worker has to stop.
    """

    def __init__(
        self, node: str, on_wait: Callable[[], None], wait_until: Callable[[float], None]
    ) -> None:
        self._node, self._on_wait, self._wait_until = node, on_wait, wait_until
        self._number = 0
        self._result: BarrierResult | None = None
        self._released = threading.Event()
        self.waiting: BarrierWait | None = None
        """What the driver is to hear."""

    @property
    def node(self) -> str:
        return self._node

    def wait(self, value: BarrierValue) -> BarrierResult:
        self._number += 1
        self._released.clear()
        self.waiting = BarrierWait(self._number, value)
        self._on_wait()
        while not self._released.wait(time_limits.STOP_POLL_SECONDS):
            self._wait_until(0.0)  # It raises if the worker has to stop.
        assert self._result is not None
        self._wait_until(self._result.at)
        return self._result

    def release(self, number: int, at: float, values: Mapping[str, BarrierValue]) -> None:
        """Has the node continue if it waits there; the driver may say so more than once."""
        if self.waiting and self.waiting.number == number:
            self._result, self.waiting = BarrierResult(values, at), None
            self._released.set()
