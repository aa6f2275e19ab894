"""Decide which workers of a step are lost: silent too long, or hung.

A worker whose process or machine Ray reports as dead is lost at once: `ray_adapter.WorkerLost`.

A node that waits for a hung peer makes no progress either, and the network gives the peer up within
patience. So for steps whose nodes wait for each other a hang is declared only when no node has made
progress for twice patience; the node that stopped first is blamed, and the others get as long
again. Ray takes its time to notice that a machine is gone, but its peers see at once that their
connections are broken: a silent node that peers accuse is not waited for.
"""

from collections.abc import Iterable, Iterator

from tonnage.cluster import time_limits
from tonnage.cluster.protocol import Idle
from tonnage.cluster.worker_handle import WorkerHandle


class FailureDetector:
    """Judges the workers of one step.

    Args:
        idle: Whether a worker of this step may make no progress.
        patience_seconds: How long a worker may be silent.
        idle_patience_seconds: How long it may make no progress.
    """

    def __init__(self, idle: Idle, patience_seconds: float, idle_patience_seconds: float) -> None:
        self._idle, self._patience = idle, patience_seconds
        self._idle_patience = idle_patience_seconds
        self._longest_idle = time_limits.IDLE_PATIENCES * idle_patience_seconds
        self._patient_until = 0.0  # Until then nobody else is blamed.
        self.accused: set[str] = set()
        """Nodes that their peers could not exchange data with."""

    def hung(
        self, workers: Iterable[WorkerHandle], now: float
    ) -> Iterator[tuple[WorkerHandle, str]]:
        """Each worker to give up, with the reason; ``now`` is when all were last heard."""
        idle: list[tuple[float, WorkerHandle]] = []
        for worker in workers:
            patience = self._patience
            if worker.node in self.accused:
                patience = min(patience, time_limits.ACCUSED_SECONDS)
            silent_seconds = now - worker.heard_at
            heartbeat = worker.heartbeat
            if silent_seconds > patience + time_limits.HEARTBEAT_SECONDS:  # It may wait for news.
                yield worker, f"hung: no answer for {patience:g} s"
                self._patient_until = now + self._longest_idle
            elif heartbeat is None or heartbeat.result or self._idle is Idle.ALLOWED:
                continue
            elif self._idle is Idle.TOGETHER:
                idle.append((heartbeat.idle_seconds + silent_seconds, worker))
            elif heartbeat.idle_seconds > self._idle_patience:
                yield worker, f"hung: no progress for {heartbeat.idle_seconds:.0f} s"
        if not idle or now <= self._patient_until:
            return
        if min(seconds for seconds, _ in idle) > self._longest_idle:
            seconds, worker = max(idle, key=lambda each: each[0])
            yield worker, f"hung: no progress for {seconds:.0f} s"
            self._patient_until = now + self._longest_idle
