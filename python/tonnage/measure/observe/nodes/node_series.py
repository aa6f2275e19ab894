"""What each node of a run did over time, on one axis: counters as curves, whatever sampled them.

Nodes are sampled at moments of their own, so each counter is a curve that is linear between its
samples; where there are none, as while a machine restarts, it stays as it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from tonnage.base.stats.samples import FloatArray
from tonnage.measure.observe.series import DEVICES, SERIES

MAX_POINTS = 2000
"""Longer runs are resampled to this many points, as in `phases`."""


class Rate(NamedTuple):
    """A mean rate over the interval that ends at this moment."""

    end: float
    seconds: float
    per_second: float


@dataclass(frozen=True)
class Curve:
    """A cumulative counter."""

    seconds: FloatArray
    total: FloatArray

    def at(self, moments: FloatArray) -> FloatArray:
        return np.interp(moments, self.seconds, self.total)


@dataclass(frozen=True)
class Levels:
    """What is in use, like memory: each level holds since the one before."""

    seconds: FloatArray
    levels: FloatArray

    def at(self, moments: FloatArray) -> FloatArray:
        places = np.searchsorted(self.seconds, moments)
        return np.asarray(self.levels[np.minimum(places, len(self.levels) - 1)])


@dataclass(frozen=True)
class NodeSeries:
    """A node over time; seconds are of one clock for all nodes of a run."""

    name: str
    cores: int
    cpu: Mapping[str, Curve]
    """Core seconds: ``busy``, ``waiting`` for a disk, ``stolen`` by the hypervisor."""
    busiest_core: Curve | None = None
    """Seconds that the busiest core of each interval was busy; None if cores are not apart."""
    disks: Mapping[str, Mapping[str, Curve]] = field(default_factory=dict)
    """Whole disks, by name: columns of `DEVICES`, as far as they are known."""
    network: Mapping[str, Sequence[Curve]] = field(default_factory=dict)
    """By direction (``received``, ``sent``): each network card's bytes."""
    memory: Levels | None = None
    link_bytes_per_second: float | None = None

    @property
    def begin(self) -> float:
        return float(self.cpu["busy"].seconds[0])

    @property
    def end(self) -> float:
        return float(self.cpu["busy"].seconds[-1])

    @property
    def interval_seconds(self) -> float:
        return float(np.median(np.diff(self.cpu["busy"].seconds)))

    @property
    def samples(self) -> int:
        return len(self.cpu["busy"].seconds)


@dataclass(frozen=True)
class AlignedNode:
    """A node at the moments of its run, from 0: tables with the columns of a command's."""

    node: NodeSeries
    series: dict[str, list[float]]
    devices: dict[str, list[float | str]]


def curve(rates: Iterable[Rate]) -> Curve:
    """A counter from rates; an interval that overlaps the one before counts only its rest."""
    moments: list[float] = []
    totals: list[float] = []
    for rate in sorted(rates):
        begin = rate.end - rate.seconds
        if not moments:
            moments, totals = [begin], [0.0]
        elif begin > moments[-1]:
            moments.append(begin)
            totals.append(totals[-1])
        seconds = rate.end - moments[-1]
        if seconds > 0:
            totals.append(totals[-1] + rate.per_second * seconds)
            moments.append(rate.end)
    return Curve(np.array(moments), np.array(totals))


def align(nodes: Sequence[NodeSeries], begin: float, end: float) -> list[AlignedNode]:
    """All nodes at the same moments from ``begin`` to ``end``, as far apart as their samples."""
    interval = max(node.interval_seconds for node in nodes)
    count = int(min(max(round((end - begin) / interval), 1), MAX_POINTS))
    moments = np.linspace(begin, end, count + 1)
    return [_align(node, moments) for node in nodes]


def _align(node: NodeSeries, moments: FloatArray) -> AlignedNode:
    zeros = np.zeros_like(moments)
    seconds = moments - moments[0]

    def since_begin(*curves: Curve | None) -> FloatArray:
        totals = sum((each.at(moments) for each in curves if each), zeros)
        return np.asarray(totals - totals[0])

    def of_disks(column: str) -> FloatArray:
        return since_begin(*(disk.get(column) for disk in node.disks.values()))

    cpu = {name: since_begin(each) for name, each in node.cpu.items()}
    busiest = np.diff(since_begin(node.busiest_core), prepend=0.0)
    columns = {
        "seconds": seconds,
        "cpu_seconds": cpu["busy"],
        **{name: of_disks(name) for name in ("read_bytes", "written_bytes", "reads", "writes")},
        **{
            f"network_{way}_bytes": since_begin(*node.network.get(way, ()))
            for way in ("received", "sent")
        },
        "memory_bytes": node.memory.at(moments) if node.memory else zeros,
        "busiest_core": busiest / np.diff(seconds, prepend=seconds[0] - 1.0),
        "host_busy_seconds": cpu["busy"],
        "host_iowait_seconds": cpu["waiting"],
        "host_steal_seconds": cpu["stolen"],
        "host_idle_seconds": np.maximum(node.cores * seconds - sum(cpu.values(), zeros), 0.0),
    }
    devices: dict[str, list[float | str]] = {name: [] for name in DEVICES}
    for name, disk in node.disks.items():
        devices["seconds"] += seconds.tolist()
        devices["device"] += [name] * len(seconds)
        for column in DEVICES[2:]:
            devices[column] += since_begin(disk.get(column)).tolist()
    series = {name: np.asarray(columns.get(name, zeros)).tolist() for name in SERIES}
    return AlignedNode(node, series, devices)
