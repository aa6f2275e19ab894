"""Run a command here and watch every node of a cluster whole, from before its start to its end.

Samples are written as they arrive, so what there is stays if this process is killed: ``nodes.csv``
and ``node_devices.csv`` become Parquet files at the end. A node that is lost keeps its samples, and
the others continue.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import numpy as np

from tonnage.base import core
from tonnage.base.stats.samples import FloatArray
from tonnage.cluster import time_limits
from tonnage.cluster.protocol import Heartbeat
from tonnage.cluster.ray_adapter import Cluster
from tonnage.cluster.running_step import RunningStep
from tonnage.cluster.worker_pool import WorkerPool
from tonnage.measure.observe.launch import FORWARDED, CommandNotStarted, refuse_missing
from tonnage.measure.observe.nodes.node_series import Curve, Levels, NodeSeries
from tonnage.measure.observe.nodes.node_watcher import WATCH, MachineSample, Watch, WatchTask
from tonnage.measure.observe.series import DEVICES, Series, Value

NODES = (
    "seconds",
    "node",
    "busy_seconds",
    "waiting_seconds",
    "stolen_seconds",
    "busiest_core",
    "memory_bytes",
    "received_bytes",
    "sent_bytes",
)
"""Seconds are since 1970, by this machine's clock; the others are as in `MachineSample`."""
NODE_DEVICES = ("seconds", "node", *DEVICES[1:])


@dataclass(frozen=True)
class ClusterRun:
    """What was seen of a command, from ``begin`` to ``end`` in seconds since 1970."""

    nodes: list[NodeSeries]
    begin: float
    end: float
    exit_code: int
    own_cpu_seconds: float
    notes: list[str]


def run_on_cluster(
    cluster: Cluster,
    command: Sequence[str],
    out: Path,
    *,
    interval_seconds: float,
    nodes: int | None = None,
    patience_seconds: float = time_limits.PATIENCE_SECONDS,
    to_stderr: bool = False,
    task: WatchTask | None = None,
) -> ClusterRun:
    """Run the command and watch the nodes; ``to_stderr`` is for its standard output.

    Signals are passed on to the command, unless a terminal sends them to both.

    Raises:
        CommandNotStarted: There is no such program, or it is not executable.
        UsageError: The cluster has fewer nodes than were requested.
        RunError: No node could be watched.
    """
    refuse_missing(command)
    machines = cluster.machines
    if nodes is not None and nodes > len(machines):
        raise core.UsageError(
            f"{nodes} nodes were requested, but the cluster has only {len(machines)}; add nodes, "
            "or request fewer",
            setting="nodes",
        )
    with WorkerPool(cluster, machines[:nodes], patience_seconds, WatchTask.TITLE) as pool:
        watch = _ClusterWatch(pool, out, task or WatchTask(), interval_seconds)
        try:
            watch.begin()
            with _running(command, to_stderr) as process:
                while process.ended is None:
                    watch.poll()
                watch.end()
        finally:
            watch.close()
        begin, end = (watch.unix_seconds(moment) for moment in (process.began, process.ended))
        return ClusterRun(
            watch.nodes(begin, end),
            begin,
            end,
            process.exit_code,
            watch.own_cpu_seconds,
            watch.notes,
        )


class _ClusterWatch:
    def __init__(
        self, pool: WorkerPool, out: Path, task: WatchTask, interval_seconds: float
    ) -> None:
        self._pool = pool
        self._unix_epoch = time.time() - time.monotonic()
        pool.ready(lambda _: task)
        pool.compare_clocks()
        watch = Watch(interval_seconds)
        self._running = RunningStep(pool, WATCH, {node: watch for node in pool.nodes})
        self._latest: dict[str, MachineSample] = {}
        self._samples = Series(out, "nodes", NODES)
        self._devices = Series(out, "node_devices", NODE_DEVICES)

    def unix_seconds(self, moment: float) -> float:
        """The wall clock's time at this moment of the monotonic clock."""
        return self._unix_epoch + moment

    def begin(self) -> None:
        """Wait until every node that is left has its first sample."""
        while {worker.node for worker in self._running.remaining} - self._latest.keys():
            self.poll()
        if not self._latest:
            raise core.RunError(f"no node could be watched: {'; '.join(self._lost_nodes)}")

    def poll(self) -> None:
        """Take samples that are here, or those of the next moment."""
        if self._running.remaining:
            self._running.poll(self._take)
        else:
            time.sleep(time_limits.STOP_POLL_SECONDS)
        self._samples.flush()
        self._devices.flush()

    def end(self) -> None:
        """Have every node take its last sample, and take it."""
        for worker in self._running.remaining:
            self._pool.halt(worker.node)
        while self._running.remaining:
            self.poll()

    def close(self) -> None:
        self._samples.close()
        self._devices.close()

    def nodes(self, begin: float, end: float) -> list[NodeSeries]:
        """What each node with two samples did while the command ran."""
        devices = _split(self._devices.columns, "node")
        return [
            _node_series(
                self._latest[node], columns, _split(devices.get(node, {}), "device"), begin, end
            )
            for node, columns in sorted(_split(self._samples.columns, "node").items())
            if len(columns["seconds"]) > 1
        ]

    @property
    def own_cpu_seconds(self) -> float:
        """What watching cost, on all nodes."""
        return sum(result.cpu_seconds for result in self._running.results.values())

    @property
    def notes(self) -> list[str]:
        return [f"not watched to the end: {lost}" for lost in self._lost_nodes]

    @property
    def _lost_nodes(self) -> list[str]:
        """The nodes that were lost, with their reasons."""
        workers = [worker for worker in self._pool.workers.values() if worker.lost is not None]
        failed = {
            node: result.reason
            for node, result in self._running.results.items()
            if result.failure is not None
        }
        lost = failed | {worker.node: worker.lost or "" for worker in workers}
        return [f"{node} {' '.join(why.split())}" for node, why in sorted(lost.items())]

    def _take(self, node: str, heartbeat: Heartbeat) -> None:
        clock = self._pool.workers[node].clock
        assert clock is not None
        for sample in heartbeat.news:
            self._latest[node] = sample
            seconds = self.unix_seconds(clock.to_local(sample.seconds))
            self._samples.append(seconds, node, *(getattr(sample, name) for name in NODES[2:]))
            for name, disk in sample.disks.items():
                columns = (getattr(disk, column) for column in NODE_DEVICES[3:])
                self._devices.append(seconds, node, name, *columns)


class _Process:
    """The command, and when it began and ended, on the monotonic clock."""

    def __init__(self, command: Sequence[str], to_stderr: bool) -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        self.began = time.monotonic()
        try:
            self._process = subprocess.Popen(
                list(command), stdout=sys.stderr.fileno() if to_stderr else None
            )
        except OSError as why:
            raise CommandNotStarted(f"cannot run {command[0]}: {why.strerror}", 126) from why
        self.ended: float | None = None
        threading.Thread(target=self._wait, daemon=True).start()

    @property
    def exit_code(self) -> int:
        """As a shell has it: 128 plus the number of the signal that ended it."""
        code: int = self._process.returncode
        return code if code >= 0 else 128 - code

    def send_signal(self, number: int) -> None:
        self._process.send_signal(number)

    def _wait(self) -> None:
        self._process.wait()
        self.ended = time.monotonic()


@contextmanager
def _running(command: Sequence[str], to_stderr: bool) -> Iterator[_Process]:
    """Run the command, and pass signals on to it, unless a terminal sends them to both."""
    handlers = {number: signal.getsignal(number) for number in FORWARDED}
    received: list[int] = []
    process: _Process | None = None

    def forward(number: int, _: FrameType | None) -> None:
        if process is None:
            received.append(number)
        elif number not in (signal.SIGINT, signal.SIGQUIT) or not _is_in_foreground():
            process.send_signal(number)

    for number, handler in handlers.items():
        if handler != signal.SIG_IGN:  # As nohup has it.
            signal.signal(number, forward)
    try:
        process = _Process(command, to_stderr)
        for early in received:
            process.send_signal(early)
        yield process
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def _is_in_foreground() -> bool:
    """Whether what is typed at a terminal reaches this process, and so the command."""
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):
            return os.tcgetpgrp(stream.fileno()) == os.getpgrp()
    return False


def _split(columns: Mapping[str, Sequence[Value]], by: str) -> dict[str, dict[str, list[Value]]]:
    """The rows of a table apart, by their values of a column."""
    tables: dict[str, dict[str, list[Value]]] = {}
    for row in zip(*columns.values(), strict=True):
        named = dict(zip(columns, row, strict=True))
        table = tables.setdefault(str(named[by]), {name: [] for name in columns})
        for name, value in named.items():
            table[name].append(value)
    return tables


def _node_series(
    latest: MachineSample,
    columns: Mapping[str, Sequence[Value]],
    devices: Mapping[str, Mapping[str, Sequence[Value]]],
    begin: float,
    end: float,
) -> NodeSeries:
    def curve(table: Mapping[str, Sequence[Value]], name: str) -> Curve:
        total = np.array(table[name], dtype=float)
        return Curve(_at_ends(table["seconds"], begin, end), total)

    seconds = _at_ends(columns["seconds"], begin, end)
    shares = np.array(columns["busiest_core"], dtype=float)
    busiest = np.cumsum(shares * np.diff(seconds, prepend=seconds[0]))
    return NodeSeries(
        name=str(columns["node"][0]),
        cores=latest.cores,
        cpu={name: curve(columns, f"{name}_seconds") for name in ("busy", "waiting", "stolen")},
        busiest_core=Curve(seconds, busiest),
        disks={
            name: {column: curve(table, column) for column in DEVICES[2:]}
            for name, table in devices.items()
        },
        network={way: [curve(columns, f"{way}_bytes")] for way in ("received", "sent")},
        memory=Levels(seconds, np.array(columns["memory_bytes"], dtype=float)),
        link_bytes_per_second=latest.link_bytes_per_second,
    )


def _at_ends(seconds: Sequence[Value], begin: float, end: float) -> FloatArray:
    """The samples' moments, with those around the command's time moved to its ends.

    The command does nothing before its start or after its end: what the last sample before the
    start and the first after the end enclose is its own, and no share of it is to be cut off.
    """
    moved = np.array(seconds, dtype=float)
    before, after = np.flatnonzero(moved <= begin), np.flatnonzero(moved >= end)
    if before.size:
        moved[before] = np.minimum(moved[before] + begin - moved[before[-1]], begin)
    if after.size:
        moved[after] += end - moved[after[0]]
    return moved
