"""A step under way on some nodes: their heartbeats, results and barriers."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Generic, Protocol, TypeVar

from tonnage.cluster import clock_sync, time_limits
from tonnage.cluster.failure_detection import FailureDetector
from tonnage.cluster.failure_kinds import Failure
from tonnage.cluster.protocol import Heartbeat, Idle, ReleaseBarrier, Step, StepResult
from tonnage.cluster.worker_handle import WorkerHandle

R = TypeVar("R")

OnHeartbeat = Callable[[str, Heartbeat], None]
Accuses = Callable[[StepResult[Any]], Collection[str]]
"""Names the nodes that a node which has ended could not exchange data with."""


class Workers(Protocol):
    """What a step needs of a `worker_pool.WorkerPool`."""

    workers: dict[str, WorkerHandle]
    patience_seconds: float

    def next_number(self) -> int: ...

    def take_heartbeats(
        self, workers: Sequence[WorkerHandle], on_heartbeat: OnHeartbeat, *, kill: bool
    ) -> float: ...

    def lose(self, node: str, reason: str, *, kill: bool) -> None: ...


class RunningStep(Generic[R]):
    """The step; `poll` it until no node is `left`.

    Args:
        starts_at: When all start, on this node's clock; at once by default.
        accuses: The nodes that a result accuses.
        idle_patience: Patience with nodes without progress, in seconds; by default the pool's.
    """

    def __init__(
        self,
        pool: Workers,
        step: Step[Any, R],
        requests: Mapping[str, Any],
        starts_at: float | None = None,
        accuses: Accuses = lambda _: (),
        idle_patience: float | None = None,
    ) -> None:
        self._pool, self._step, self._accuses = pool, step, accuses
        idle_seconds = pool.patience_seconds if idle_patience is None else idle_patience
        self._hangs = FailureDetector(step.idle, pool.patience_seconds, idle_seconds)
        self.results: dict[str, StepResult[R]] = {}
        self.remaining: list[WorkerHandle] = []
        """The workers that have not ended."""
        number = pool.next_number()
        for node in sorted(requests):
            worker = pool.workers.get(node)
            if worker is None or worker.lost is not None:
                reason = "is not in the cluster" if worker is None else worker.lost
                self.results[node] = StepResult(failure=Failure.LOST, reason=reason or "")
                continue
            worker.begin(step, number, requests[node], starts_at)
            self.remaining.append(worker)
        for worker in self.remaining:
            worker.poll()

    def poll(self, on_heartbeat: OnHeartbeat = lambda *_: None) -> None:
        """Takes the heartbeats that are there, as soon as there is one, or none for a while."""
        until = self._pool.take_heartbeats(self.remaining, on_heartbeat, kill=self._kills)
        there = [worker for worker in self.remaining if worker.lost is None]
        for worker, reason in self._hangs.hung(there, until):
            self._pool.lose(worker.node, reason, kill=self._kills)
        for worker in list(self.remaining):
            result: StepResult[R]
            if worker.lost is not None:
                result = StepResult(failure=Failure.LOST, reason=worker.lost, error=worker.error)
            elif worker.heartbeat and worker.heartbeat.result:
                result = worker.heartbeat.result
                self._hangs.accused.update(self._accuses(result))
            else:
                continue
            self.results[worker.node] = result
            self.remaining.remove(worker)
        self._release_barrier()

    @property
    def _kills(self) -> bool:
        """Whether a hung worker is killed; one that works by itself is stopped, and cleans up."""
        return self._step.idle is not Idle.ALONE

    def _release_barrier(self) -> None:
        waits = {worker: worker.at_barrier for worker in self.remaining}
        if not waits or not all(waits.values()):
            return
        values = {worker.node: wait.value for worker, wait in waits.items() if wait}
        clocks = [worker.clock for worker in waits if worker.clock]
        at = clock_sync.common_start(clocks) + time_limits.BARRIER_HEARTBEAT_SECONDS
        for worker, wait in waits.items():
            assert worker.clock is not None and wait is not None
            worker.send(ReleaseBarrier(wait.number, worker.clock.to_remote(at), values))
            worker.released = wait.number
