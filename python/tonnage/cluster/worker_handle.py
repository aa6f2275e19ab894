"""A node's worker, as the driver knows it: what it was asked last, and what it said to that."""

import time
from typing import Any

from tonnage.cluster import protocol, time_limits
from tonnage.cluster.clock_sync import Clock
from tonnage.cluster.protocol import BarrierWait, Begin, Heartbeat, Message, Poll, Step
from tonnage.cluster.ray_adapter import Call, Machine, RemoteWorker, WorkerLost


class WorkerHandle:
    """A node's worker, as the driver knows it."""

    def __init__(self, machine: Machine) -> None:
        self.machine, self.node = machine, machine.name
        self.remote: RemoteWorker | None = None
        self.host: str | None = None
        """What the machine calls itself."""
        self.clock: Clock | None = None
        self.lost: str | None = None
        """Why it is not asked any more."""
        self.error: str | None = None
        """What else is known of that."""
        self.is_killed = False
        self.call: Call | None = None
        """The poll that is not answered yet."""
        self.heard_at = 0.0
        """When it last answered, or was polled after that."""
        self.heartbeat: Heartbeat | None = None
        """Its last one of the step under way."""
        self.is_busy = False
        """Whether it does a step whose result has not come."""
        self.released = 0
        """The last barrier that it was let through."""
        self._known = 0
        self._step: Step[Any, Any] | None = None
        self._begin: Begin | None = None
        self._attempts = 0

    @property
    def number(self) -> int:
        return self._begin.number if self._begin else -1

    @property
    def at_barrier(self) -> BarrierWait | None:
        """Where it waits, if nobody has let it through yet."""
        wait = self.heartbeat.barrier if self.heartbeat else None
        return wait if wait and wait.number > self.released else None

    def send(self, message: Message, attached: Call | bytes | None = None) -> Call:
        assert self.remote is not None
        return self.remote.send(protocol.encode(message), attached)

    def begin(
        self, step: Step[Any, Any], number: int, request: Any, starts_at: float | None
    ) -> None:
        if starts_at is not None:
            assert self.clock is not None
            starts_at = self.clock.to_remote(starts_at)
        self._step, self._begin = step, Begin(number, step.name, request, starts_at)
        self._attempts, self._known, self.heartbeat, self.is_busy = 0, 0, None, True
        self.send(self._begin)

    def poll(self) -> None:
        """Asks how far it is, unless it was asked already."""
        if self.call is None:
            waits = time_limits.BARRIER_HEARTBEAT_SECONDS if self.at_barrier else None
            seconds = time_limits.HEARTBEAT_SECONDS if waits is None else waits
            self.call = self.send(Poll(self._known, seconds))
            self.heard_at = time.monotonic()

    def take(self, data: bytes) -> Heartbeat | None:
        """Take its answer to a poll; gives its heartbeat, if it is of the step under way.

        `ProtocolError` if it cannot be understood, `WorkerLost` if it never begins the step.
        """
        assert self._step is not None and self._begin is not None
        heartbeat = protocol.decode_heartbeat(data, self._step, self._begin.number)
        if heartbeat.number == self._begin.number:
            self.heartbeat, self.is_busy = heartbeat, heartbeat.result is None
            self._known += len(heartbeat.news)
            return heartbeat
        self._attempts += 1
        if self._attempts > time_limits.STEP_ATTEMPTS:
            raise WorkerLost("did not start the requested step")
        self.send(self._begin)  # It got lost on the way.
        return None
