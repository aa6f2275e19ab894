"""The driver of a cluster measurement: every node measures, until each has ended or is given up.

A node that does not answer for as long as patience lasts, or makes no progress for so long, is
given up; one whose process or machine dies is known at once. What it had done by then is kept, its
row says why it is missing, and the others continue.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from tonnage.base import core
from tonnage.base.records import ClusterMeasurement, ClusterNode, Trial
from tonnage.base.records.environment import HOST, MACHINE_TYPE, PROVIDER
from tonnage.base.records.find_measurements import TRIALS
from tonnage.cluster import clock_sync, time_limits
from tonnage.cluster.progress import NodeStatus
from tonnage.cluster.protocol import Heartbeat, Step, StepResult
from tonnage.cluster.ray_adapter import Cluster
from tonnage.cluster.running_step import RunningStep
from tonnage.cluster.worker_handle import WorkerHandle
from tonnage.cluster.worker_pool import WorkerPool
from tonnage.measure.cluster.measure_worker import (
    MEASURE,
    FileWritten,
    Measure,
    MeasureTask,
    RoundResult,
    Work,
)
from tonnage.measure.cluster.store import ClusterMeasurementDir, open_measurement_dir


@dataclass(frozen=True)
class MeasurementRequest:
    """What a cluster is to measure.

    Attributes:
        settings: What is the same for all nodes, and recorded.
        nodes: How many; None for all there are.
        patience_seconds: How long a node may be silent, or make no progress.
        one_at_a_time: Whether nodes measure one after another.
        pause_seconds: How long a node that is well makes no progress, since it waits for its time.
        only: Which nodes; None for any.
        late_seconds: A node that starts so much later than the others did not measure with them.
        in_step: Whether nodes do each trial with others, so that all do it again if one has not.
    """

    kind: str
    work: Callable[[str], Work]
    settings: Mapping[str, Any]
    command: list[str]
    labels: Mapping[str, str]
    nodes: int | None
    patience_seconds: float
    one_at_a_time: bool = False
    pause_seconds: float = 0.0
    only: Collection[str] | None = None
    late_seconds: float = time_limits.LATE_START_SECONDS
    in_step: bool = False
    step: Step[Measure, None] = MEASURE
    task: type[MeasureTask] = MeasureTask


class TrialDone(NamedTuple):
    node: str
    trial: Trial


OnStatus = Callable[[Sequence[NodeStatus]], None]
MeasurementEvents = Generator[TrialDone | ClusterNode | ClusterMeasurement, None, None]
"""Each trial and each node when it is done, and at last the cluster's measurement."""


class MeasuringNode:
    """A node of a measurement, from its start to its row."""

    def __init__(self, worker: WorkerHandle) -> None:
        self.worker, self.node = worker, worker.node
        self.trials = 0
        self.results: dict[int, RoundResult] = {}
        """Of the parts that it took in what several do at once, by their numbers."""
        self.together = 0
        """How many nodes started at once."""
        self.late_seconds: float | None = None
        self.lacks: str | None = None
        """Why it has not all that was asked for, although it ended well."""
        self.row: ClusterNode | None = None

    @property
    def status(self) -> NodeStatus:
        heartbeat, why = self.worker.heartbeat, None
        state = "measuring" if heartbeat else "ready" if self.worker.clock else "starting"
        if self.row:
            state, why = ("done" if self.row.ok else "lost"), self.row.why
        done_bytes = heartbeat.done_bytes if heartbeat else 0
        waits = heartbeat is not None and (heartbeat.barrier is not None or not done_bytes)
        return NodeStatus(self.node, state, self.trials, done_bytes, why, waits)


def measure_cluster(
    cluster: Cluster, out: Path, request: MeasurementRequest, on_status: OnStatus
) -> MeasurementEvents:
    """Has the nodes of a cluster measure; gives what happens.

    Args:
        out: Where nodes' files are kept; what an earlier command left there is resumed.
        on_status: Called periodically with how far all nodes are.

    Raises:
        UsageError: There are fewer nodes than asked for, or ``out`` holds something else.
        KeyboardInterrupt: Ctrl-C; nodes have been told to stop, and what they measured is kept.
    """
    with measurement_run(cluster, out, request, on_status) as run:
        yield from run.ready()
        groups = [[each] for each in run.remaining] if request.one_at_a_time else [run.remaining]
        for group in groups:
            yield from run.measure([each for each in group if each.row is None])
        yield run.close_measurement()


@contextmanager
def measurement_run(
    cluster: Cluster, out: Path, request: MeasurementRequest, on_status: OnStatus
) -> Iterator[MeasurementRun]:
    """A run on the nodes that are left to measure; none of them is at work afterwards."""
    machines = [
        each for each in cluster.machines if request.only is None or each.name in request.only
    ]
    with open_measurement_dir(
        out,
        request.kind,
        request.settings,
        [machine.name for machine in machines],
        command=request.command,
        labels=request.labels,
        one_at_a_time=request.one_at_a_time,
    ) as store:
        rows = store.rows
        done = {node for node, row in rows.items() if row.ok}
        if request.in_step and not done >= {machine.name for machine in machines}:
            done = set()
        left = [each for each in machines if each.name not in done]
        if request.nodes is not None:
            count = len(done) + len(left)
            if count < request.nodes:
                raise core.UsageError(
                    f"{request.nodes} nodes were requested, but the cluster has only {count}; "
                    "add nodes, or request fewer",
                    setting="nodes",
                )
            left = left[: max(request.nodes - len(done), 0)]
        store.begin()
        begun = {node: row.host for node, row in rows.items() if row.measurement and row.host}
        with WorkerPool(cluster, left, request.patience_seconds, request.task.TITLE) as pool:
            yield MeasurementRun(pool, store, request, begun, on_status)


def unique_host(node: str, hosts: Mapping[str, str], begun: Mapping[str, str]) -> str:
    """Return a unique name for a node's machine, under which it is compared with others.

    Its host's name, with the node's name if another machine's host has the same one. Once the node
    has begun, the name stays the same, whichever nodes a later command finds.

    Args:
        hosts: What hosts are called now, by node.
        begun: What machines were called that earlier commands began on, by node.
    """
    host = hosts[node]
    apart = f"{host}/{node}"
    if begun.get(node) in (host, apart):
        return begun[node]
    others = [name for named in (hosts, begun) for each, name in named.items() if each != node]
    return apart if host in {name.partition("/")[0] for name in others} else host


class MeasurementRun:
    """One command's run on the nodes that are left to measure."""

    def __init__(
        self,
        pool: WorkerPool,
        store: ClusterMeasurementDir,
        request: MeasurementRequest,
        begun: Mapping[str, str],
        on_status: OnStatus,
    ) -> None:
        self.pool, self._store, self._request = pool, store, request
        self._begun, self._on_status = begun, on_status
        self.nodes = [MeasuringNode(worker) for worker in pool.workers.values()]
        self._running: RunningStep[None] | None = None
        pool.on_wait = self._show

    @property
    def remaining(self) -> list[MeasuringNode]:
        return [each for each in self.nodes if each.row is None]

    def ready(self) -> Iterator[ClusterNode]:
        """Has a worker on each node that has what it needs."""
        self.pool.place_workers()
        yield from self._close_lost()
        hosts = {each.node: each.worker.host for each in self.remaining if each.worker.host}
        tasks = {each.node: self._task(each, hosts) for each in self.remaining}
        self.pool.start(lambda node: tasks[node])
        yield from self._close_lost()
        self.pool.compare_clocks()
        yield from self._close_lost()

    def measure(self, group: Sequence[MeasuringNode]) -> Iterator[TrialDone | ClusterNode]:
        """Has these nodes start at one moment; gives what happens until each has its row."""
        self.begin(group)
        while any(each.row is None for each in group):
            yield from self.events()

    def begin(self, group: Sequence[MeasuringNode]) -> None:
        at = clock_sync.common_start(each.worker.clock for each in group if each.worker.clock)
        for each in group:
            each.together = len(group)
        self._running = RunningStep(
            self.pool,
            self._request.step,
            {each.node: Measure() for each in group},
            starts_at=at,
            idle_patience=self._request.patience_seconds + self._request.pause_seconds,
        )

    def events(self) -> Iterator[TrialDone | ClusterNode]:
        """What happens next on nodes that measure, if something does within a moment."""
        assert self._running is not None
        heartbeats: list[tuple[str, Heartbeat]] = []
        self._running.poll(lambda node, heartbeat: heartbeats.append((node, heartbeat)))
        nodes = {each.node: each for each in self.nodes}
        for node, heartbeat in heartbeats:
            yield from self._take_news(nodes[node], heartbeat)
        for node, result in self._running.results.items():
            if nodes[node].row is None:
                yield self._close_ended(nodes[node], result)

    def trials(self, node: MeasuringNode) -> list[Trial]:
        return self._store.trials(node.node)

    def close_measurement(self) -> ClusterMeasurement:
        """Writes the cluster's measurement, with nodes of earlier commands."""
        return self._store.close()

    def close(
        self, node: MeasuringNode, why: str | None, result: StepResult[None] | None = None
    ) -> ClusterNode:
        """Writes a node's result, or why it failed; then the node is to stop."""
        worker = node.worker
        if why is not None:
            why = " ".join(why.split())
            self.pool.lose(node.node, why, kill=False)
        labels = {**worker.machine.labels, **self._request.labels}
        row = ClusterNode(
            node=node.node,
            host=worker.host,
            provider=labels.get(PROVIDER),
            machine_type=labels.get(MACHINE_TYPE),
            labels=labels,
            ok=why is None,
            why=why,
            error=result.error if result else worker.error,
            faulty=why is not None and why != node.lacks,
            together=node.together,
            skew_seconds=node.late_seconds,
            clock_error_seconds=worker.clock.error_seconds if worker.clock else None,
            seconds=result.seconds if result and result.seconds else None,
        )
        node.row = self._store.write_row(row)
        self._show()
        return node.row

    def _close_lost(self) -> Iterator[ClusterNode]:
        for each in self.remaining:
            if each.worker.lost is not None:
                yield self.close(each, each.worker.lost)

    def _close_ended(self, node: MeasuringNode, result: StepResult[None]) -> ClusterNode:
        if result.failure is not None:
            reason = f"{result.setting}: {result.reason}" if result.setting else result.reason
            return self.close(node, reason, result)
        late = (node.worker.heartbeat.late_seconds if node.worker.heartbeat else None) or 0.0
        if node.together > 1 and late > self._request.late_seconds:
            return self.close(node, f"started {late:.1f} s later than the other nodes", result)
        return self.close(node, node.lacks, result)

    def _task(self, node: MeasuringNode, hosts: Mapping[str, str]) -> MeasureTask:
        labels = {**node.worker.machine.labels, **self._request.labels}
        if (host := unique_host(node.node, hosts, self._begun)) != node.worker.host:
            labels[HOST] = host
        files = self._store.files(node.node)
        node.trials = sum(Path(name).match(TRIALS) for name in files)
        return self._request.task(
            work=self._request.work(node.node),
            command=self._request.command,
            labels=labels,
            files=files,
            kept_in=str(self._store.directory(node.node)),
            in_step=self._request.in_step,
        )

    def _take_news(self, node: MeasuringNode, heartbeat: Heartbeat) -> Iterator[TrialDone]:
        if node.late_seconds is None:
            node.late_seconds = heartbeat.late_seconds
        files = {
            each.name: each.content for each in heartbeat.news if isinstance(each, FileWritten)
        }
        self._store.take(node.node, files)
        for each in heartbeat.news:
            if isinstance(each, RoundResult):
                node.results[each.number] = each
        for name in sorted(name for name in files if Path(name).match(TRIALS)):
            node.trials += 1
            yield TrialDone(node.node, self._store.trial(node.node, name))

    def _show(self) -> None:
        self._on_status([each.status for each in self.nodes])
