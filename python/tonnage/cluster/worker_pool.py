"""The driver's side of a job's workers: it places them, checks their versions, has them do steps
together (`running_step`), and ends them.

A step is done when every node that was asked has ended or is lost: its process or its machine died,
it does not answer, or it hangs. A worker is lost for good; its node can get a new one (`restart`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

from tonnage.base import core
from tonnage.cluster import clock_sync, protocol, time_limits, version_check
from tonnage.cluster.failure_kinds import Failure
from tonnage.cluster.ray_adapter import Call, Cluster, Machine, WorkerLost, installed_here
from tonnage.cluster.running_step import Accuses, OnHeartbeat, RunningStep
from tonnage.cluster.step_worker import StepWorker, WorkerSpec
from tonnage.cluster.version_check import InstalledVersion
from tonnage.cluster.worker_handle import WorkerHandle

Q = TypeVar("Q")
R = TypeVar("R")


class WorkerPool:
    """The workers; a context manager, after which none of them is at work.

    Args:
        patience_seconds: How long a worker may be silent; see also `protocol.Idle`.
        title: What their processes are called.
        on_wait: Called periodically while it waits for workers.
    """

    def __init__(
        self,
        cluster: Cluster,
        machines: Sequence[Machine],
        patience_seconds: float,
        title: str = "StepWorker",
        on_wait: Callable[[], None] = lambda: None,
    ) -> None:
        self._cluster, self._title, self.on_wait = cluster, title, on_wait
        self.patience_seconds = patience_seconds
        self.workers = {machine.name: WorkerHandle(machine) for machine in machines}
        self._number = 0

    def __enter__(self) -> WorkerPool:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    @property
    def nodes(self) -> list[str]:
        """The nodes whose workers are not lost, in order."""
        return sorted(worker.node for worker in self._present)

    @property
    def labels(self) -> dict[str, dict[str, str]]:
        return {node: dict(worker.machine.labels) for node, worker in self.workers.items()}

    def place_workers(self) -> None:
        """Starts a process on each machine; loses those with another version of Tonnage."""
        here, versions = installed_here(), {}
        for worker in self._present:
            worker.remote = self._cluster.place_actor(worker.machine, self._title)
            versions[worker.node] = worker.remote.installed_version()
        for worker, answer in self._replies(versions):
            there = InstalledVersion(*answer)
            worker.host = there.host
            if lacking := version_check.difference(here, there):
                self.lose(worker.node, lacking)

    def start(self, spec: Callable[[str], WorkerSpec]) -> None:
        """Has a worker in each process that is there, for its node's part in the job."""
        self._start(self._present, spec)

    def ready(self, spec: Callable[[str], WorkerSpec]) -> None:
        self.place_workers()
        self.start(spec)

    def restart(self, nodes: Iterable[str], spec: Callable[[str], WorkerSpec]) -> list[str]:
        """Replaces the lost workers of these nodes; returns the nodes where that succeeded."""
        workers = [WorkerHandle(self.workers[node].machine) for node in nodes]
        self.workers |= {worker.node: worker for worker in workers}
        self._start(workers, spec)
        return [worker.node for worker in workers if worker.lost is None]

    def compare_clocks(self) -> None:
        """Reads the clock of every worker; those that do not answer are lost."""
        for worker in self._present:

            def read(worker: WorkerHandle = worker) -> float:
                call = worker.send(protocol.ReadClock())
                shown: float = protocol.decode_reply(
                    self._cluster.answer(call, time_limits.REPLY_SECONDS), protocol.ReadClock()
                )
                return shown

            try:
                worker.clock = clock_sync.compare_clock(read)
            except TimeoutError:
                self.lose(worker.node, f"did not answer within {time_limits.REPLY_SECONDS:g} s")
            except WorkerLost as why:
                self.lose(worker.node, str(why), error=why.error)

    def reserve_addresses(self, nodes: Sequence[str]) -> dict[str, str]:
        """A free address on each of these nodes; those that do not answer are lost."""
        present = {*self.nodes}.intersection(nodes)
        return self.ask(
            {node: protocol.ReservePort(self.workers[node].machine.address) for node in present}
        )

    def ask(
        self,
        messages: Mapping[str, protocol.Message],
        bytes_: int = 0,
        attached: Mapping[str, bytes] | None = None,
    ) -> dict[str, Any]:
        """The replies of these nodes while no step is under way; those without one are lost.

        ``bytes_`` is about how many a message or a reply carries; ``attached`` are objects to send.
        """
        calls = {
            node: self.workers[node].send(message, (attached or {}).get(node))
            for node, message in messages.items()
        }
        return {
            worker.node: protocol.decode_reply(answer, messages[worker.node])
            for worker, answer in self._replies(calls, bytes_)
        }

    def transfer(self, senders: Mapping[str, str], attempt: int, bytes_: int) -> None:
        """Has nodes take other nodes' objects, which go from node to node, not by this process.

        If one of two is lost the other is not: it took nothing, or sent in vain. ``senders`` has
        the sender for each taker; ``bytes_`` is about how many go to a node.
        """
        calls = {
            node: self.workers[node].send(
                protocol.StoreObject(attempt),
                self.workers[sender].send(protocol.FetchObject(attempt)),
            )
            for node, sender in senders.items()
        }
        failed: dict[str, str] = {}
        for _ in self._replies(calls, bytes_, failed.__setitem__):
            pass
        # Senders first: a taker waits for one that hangs, until that is ended.
        for nodes in ([senders[node] for node in failed], [*failed]):
            self.ask({node: protocol.Ping() for node in nodes})
        for node, why in failed.items():
            if {node, senders[node]} <= {*self.nodes}:
                self.lose(senders[node], f"did not send its reduction object: {why}")

    def run_step(
        self,
        step: protocol.Step[Q, R],
        requests: Mapping[str, Q],
        on_heartbeat: OnHeartbeat = lambda *_: None,
        accuses: Accuses = lambda _: (),
        idle_patience: float | None = None,
    ) -> dict[str, protocol.StepResult[R]]:
        """Run a step on these nodes; gives how it ended on each.

        ``on_heartbeat`` gets how far a node is, and its news; ``accuses`` names the nodes that a
        result accuses; ``idle_patience``: with nodes without progress, by default the pool's.
        """
        running = RunningStep(self, step, requests, accuses=accuses, idle_patience=idle_patience)
        while running.remaining:
            running.poll(on_heartbeat)
        return running.results

    def notify(self, node: str, notice: Any) -> None:
        worker = self.workers[node]
        worker.send(protocol.Notify(worker.number, notice))

    def lose(self, node: str, reason: str, *, error: str | None = None, kill: bool = True) -> None:
        """Gives up a node's worker; it is killed, or told to stop and killed at the end."""
        worker = self.workers[node]
        if worker.lost is not None:
            return
        worker.lost, worker.error = reason, error
        if worker.remote is None:
            return
        if kill:
            worker.is_killed = True
            worker.remote.kill()
        else:
            worker.send(protocol.Stop())

    def stop(self) -> None:
        """Has all end what they do; after it they only clean up."""
        for worker in self._present:
            if worker.remote:
                worker.send(protocol.Stop())

    def halt(self, node: str) -> None:
        """Has a node end its step early; it is there for others afterwards."""
        worker = self.workers[node]
        if worker.lost is None and worker.remote:
            worker.send(protocol.Halt(worker.number))

    def end(self) -> None:
        """Has all workers end and clean up, and kills their processes."""
        there = [each for each in self.workers.values() if each.remote and not each.is_killed]
        with suppress(KeyboardInterrupt):  # A second one kills at once.
            for worker in there:
                worker.send(protocol.Stop())
            deadline = time.monotonic() + time_limits.SHUTDOWN_SECONDS
            busy = [worker for worker in there if worker.is_busy]
            while busy and time.monotonic() < deadline:
                self.take_heartbeats(busy)
                busy = [worker for worker in busy if worker.is_busy and not worker.is_killed]
            closing = [worker.send(protocol.Close()) for worker in there if not worker.is_killed]
            self._cluster.wait(closing, time_limits.CLOSE_SECONDS, len(closing))
        for worker in there:
            if worker.remote:
                worker.remote.kill()

    def next_number(self) -> int:
        self._number += 1
        return self._number

    def take_heartbeats(
        self,
        workers: Sequence[WorkerHandle],
        on_heartbeat: OnHeartbeat = lambda *_: None,
        *,
        kill: bool = True,
    ) -> float:
        """Take these workers' heartbeats as soon as one arrives, or none after a while.

        Returns the time until which it waited. To process heartbeats takes time, too, and a worker
        that answers during that time is not silent.
        """
        for worker in workers:
            if not worker.is_killed:
                worker.poll()  # If the last answer got lost on the way.
        calls = [worker.call for worker in workers if worker.call is not None]
        answered = {*self._cluster.wait(calls, time_limits.HEARTBEAT_SECONDS)}
        until = time.monotonic()
        for worker in workers:
            if worker.call is None or worker.call not in answered:
                continue
            call, worker.call = worker.call, None
            try:
                heartbeat = worker.take(self._cluster.answer(call, time_limits.REPLY_SECONDS))
            except TimeoutError:
                time.sleep(time_limits.RETRY_PAUSE_SECONDS)
                continue
            except (WorkerLost, protocol.ProtocolError) as why:
                worker.is_busy = False
                error = why.error if isinstance(why, WorkerLost) else None
                self.lose(worker.node, str(why), error=error, kill=kill)
                continue
            worker.heard_at = until
            if heartbeat is not None:
                on_heartbeat(worker.node, heartbeat)
            if worker.is_busy and not worker.is_killed:
                worker.poll()
        self.on_wait()
        return until

    @property
    def _present(self) -> list[WorkerHandle]:
        return [worker for worker in self.workers.values() if worker.lost is None]

    def _start(self, workers: Sequence[WorkerHandle], spec: Callable[[str], WorkerSpec]) -> None:
        starts = {}
        for worker in workers:
            remote = worker.remote or self._cluster.place_actor(worker.machine, self._title)
            worker.remote = remote
            starts[worker.node] = remote.start(partial(StepWorker, spec(worker.node), worker.node))
        for _ in self._replies(starts):
            pass

    def _replies(
        self,
        calls: Mapping[str, Call],
        bytes_: int = 0,
        on_lost: Callable[[str, str], None] | None = None,
    ) -> Iterator[tuple[WorkerHandle, Any]]:
        """The replies as they come; nodes without one are lost, or ``on_lost`` decides."""

        def mark_lost(node: str, reason: str, error: str | None = None) -> None:
            if on_lost is None:
                self.lose(node, reason, error=error)
            else:
                on_lost(node, reason)

        longer = bytes_ / time_limits.SLOWEST_BYTES_PER_SECOND
        seconds = max(time_limits.WORKER_START_SECONDS, self.patience_seconds) + longer
        deadline = time.monotonic() + seconds
        left = dict(calls)
        while left and time.monotonic() < deadline:
            done = self._cluster.wait(list(left.values()), time_limits.HEARTBEAT_SECONDS)
            for node in [node for node, call in left.items() if call in done]:
                within = time_limits.REPLY_SECONDS + longer
                try:
                    yield self.workers[node], self._cluster.answer(left.pop(node), within)
                except TimeoutError:
                    mark_lost(node, f"did not answer within {within:.0f} s")
                except WorkerLost as why:
                    mark_lost(node, str(why), why.error)
            self.on_wait()
        for node in left:
            mark_lost(node, f"was not ready within {seconds:.0f} s")


def first_failure(
    results: Mapping[str, protocol.StepResult[R]], *failures: Failure
) -> tuple[str, protocol.StepResult[R]] | None:
    """The first node that failed in one of these ways."""
    failed = [node for node in sorted(results) if results[node].failure in failures]
    return (failed[0], results[failed[0]]) if failed else None


def raise_refusal(results: Mapping[str, protocol.StepResult[R]]) -> None:
    if first := first_failure(results, Failure.REFUSED):
        node, result = first
        raise core.UsageError(f"{node}: {result.reason}", setting=result.setting)
