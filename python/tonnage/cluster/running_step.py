"""A step under way on some nodes: their heartbeats, and which of them hang.

A node that waits for a hung peer makes no progress either, and the network gives the peer up within
patience. So for steps whose nodes wait for each other a hang is declared only when no node has made
progress for twice patience; the node that stopped first is blamed, and the others get as long
again. Ray takes its time to notice that a machine is gone, but its peers see at once that their
connections are broken: a silent node that peers accuse is not waited for.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Generic, Protocol, TypeVar

from tonnage.cluster import clock_sync, config
from tonnage.cluster.failures import Failure
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
        self._idle_patience = pool.patience_seconds if idle_patience is None else idle_patience
        self._accused: set[str] = set()
        self._patient_until = 0.0  # Until then nobody else is blamed.
        self.results: dict[str, StepResult[R]] = {}
        self.left: list[WorkerHandle] = []
        """The workers that have not ended."""
        number = pool.next_number()
        for node in sorted(requests):
            worker = pool.workers.get(node)
            if worker is None or worker.lost is not None:
                reason = "is not in the cluster" if worker is None else worker.lost
                self.results[node] = StepResult(failure=Failure.LOST, reason=reason or "")
                continue
            worker.begin(step, number, requests[node], starts_at)
            self.left.append(worker)
        for worker in self.left:
            worker.poll()

    def poll(self, on_heartbeat: OnHeartbeat = lambda *_: None) -> None:
        """Takes the heartbeats that are there, as soon as there is one, or none for a while."""
        until = self._pool.take_heartbeats(self.left, on_heartbeat, kill=self._kills)
        self._judge(until)
        for worker in list(self.left):
            result: StepResult[R]
            if worker.lost is not None:
                result = StepResult(failure=Failure.LOST, reason=worker.lost, error=worker.error)
            elif worker.heartbeat and worker.heartbeat.result:
                result = worker.heartbeat.result
                self._accused.update(self._accuses(result))
            else:
                continue
            self.results[worker.node] = result
            self.left.remove(worker)
        self._release_barrier()

    @property
    def _kills(self) -> bool:
        """Whether a hung worker is killed; one that works by itself is stopped, and cleans up."""
        return self._step.idle is not Idle.ALONE

    def _judge(self, now: float) -> None:
        """Gives up workers that do not answer or hang, as of the last time that all were heard."""
        idle: list[tuple[float, WorkerHandle]] = []
        for worker in self.left:
            if worker.lost is not None:
                continue
            patience = self._pool.patience_seconds
            if worker.node in self._accused:
                patience = min(patience, config.ACCUSED_SECONDS)
            silent_seconds = now - worker.heard_at
            heartbeat = worker.heartbeat
            if silent_seconds > patience + config.HEARTBEAT_SECONDS:  # It may wait for news.
                self._give_up(worker, f"hangs: it did not answer for {patience:g} s")
                self._patient_until = now + config.IDLE_PATIENCES * self._idle_patience
            elif heartbeat is None or heartbeat.result or self._step.idle is Idle.ALLOWED:
                continue
            elif self._step.idle is Idle.TOGETHER:
                idle.append((heartbeat.idle_seconds + silent_seconds, worker))
            elif heartbeat.idle_seconds > self._idle_patience:
                reason = f"hangs: it moved nothing for {heartbeat.idle_seconds:.0f} s"
                self._give_up(worker, reason)
        longest = config.IDLE_PATIENCES * self._idle_patience
        if idle and now > self._patient_until and min(seconds for seconds, _ in idle) > longest:
            seconds, worker = max(idle, key=lambda each: each[0])
            self._give_up(worker, f"hangs: it moved nothing for {seconds:.0f} s")
            self._patient_until = now + longest

    def _give_up(self, worker: WorkerHandle, reason: str) -> None:
        self._pool.lose(worker.node, reason, kill=self._kills)

    def _release_barrier(self) -> None:
        waits = {worker: worker.at_barrier for worker in self.left}
        if not waits or not all(waits.values()):
            return
        values = {worker.node: wait.value for worker, wait in waits.items() if wait}
        clocks = [worker.clock for worker in waits if worker.clock]
        at = clock_sync.common_start(clocks) + config.BARRIER_HEARTBEAT_SECONDS
        for worker, wait in waits.items():
            assert worker.clock is not None and wait is not None
            worker.send(ReleaseBarrier(wait.number, worker.clock.to_remote(at), values))
            worker.released = wait.number
