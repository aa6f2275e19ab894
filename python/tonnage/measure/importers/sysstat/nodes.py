"""Turn files of sar, sadf and iostat into the nodes of one run, each over time.

A node is a host by the files' own account; a file that names none is called as the file. Several
files may be of one node, as of different tools. Devices that stand on others, and partitions, do
not count (`device_names`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tonnage.base import formatting
from tonnage.base.system.device_names import UnclearDevices, network_cards, whole_disks
from tonnage.measure.importers.metric import UnreadableFile, one_line
from tonnage.measure.importers.sysstat.samples import (
    ALL_CORES,
    LONGEST_SECONDS,
    CpuSample,
    DiskSample,
    HostSamples,
    InterfaceSample,
    MemorySample,
    Moment,
    Tool,
)
from tonnage.measure.observe.nodes.node_series import Curve, Levels, NodeSeries, Rate, curve

_CLEAR_USE = 0.05
"""An interface's used share tells its speed where it is so large that its digits do not matter."""
_MOST_CORES = 100_000
_BEST_TOOLS: dict[str, tuple[Tool, ...]] = {
    "cpu": ("sar", "mpstat", "iostat"),
    "memory": ("sar", "mpstat", "iostat"),
    "interfaces": ("sar", "mpstat", "iostat"),
    "disks": ("iostat", "sar", "mpstat"),
}
"""iostat tells reads from writes."""


class HostFile(NamedTuple):
    path: Path
    samples: HostSamples


@dataclass(frozen=True)
class ImportedNodes:
    nodes: list[NodeSeries]
    notes: list[str]


def to_nodes(files: Sequence[HostFile]) -> ImportedNodes:
    """The nodes of these files, by name; `UnreadableFile` names a file that does not fit."""
    by_host: dict[str, list[HostFile]] = defaultdict(list)
    for file in files:
        by_host[one_line(file.samples.host or file.path.name.partition(".")[0])].append(file)
    notes = _notes_on_clocks(files)
    nodes = []
    for name, of_host in sorted(by_host.items()):
        try:
            nodes.append(_node(name, _merge(name, of_host)))
        except UnreadableFile as why:
            raise why if why.file else why.in_file(_names(of_host)) from None
        notes += _notes(nodes[-1], of_host)
    return ImportedNodes(nodes, notes)


def _merge(name: str, files: Sequence[HostFile]) -> HostSamples:
    """One host's samples; of statistics that two tools have, those of the better one count.

    `UnreadableFile` for two files of one tool at the same time: they may be of two machines.
    """
    cores = [file.samples.cores for file in files if file.samples.cores]
    merged = HostSamples(host=name, cores=max(cores, default=None))
    merged.restarts = sorted({moment for file in files for moment in file.samples.restarts})
    for kind, tools in _BEST_TOOLS.items():
        having = [file for file in files if getattr(file.samples, kind)]
        best = min((tools.index(file.samples.tool) for file in having), default=0)
        chosen = [file for file in having if file.samples.tool == tools[best]]
        _refuse_overlap(name, kind, chosen)
        for file in chosen:
            getattr(merged, kind).extend(getattr(file.samples, kind))
    return merged


def _refuse_overlap(name: str, kind: str, files: Sequence[HostFile]) -> None:
    spans = []
    for file in files:
        times = [
            each.moment.seconds
            for each in getattr(file.samples, kind)
            if each.moment.seconds is not None
        ]
        if times:
            spans.append((min(times), max(times), file.path))
    for (_, end, one), (begin, _, other) in pairwise(sorted(spans)):
        if begin < end:
            raise UnreadableFile(
                f"other times than in {one_line(str(other))}, as both have {kind} of the host "
                f"{name}; leave one out, or if they are two machines, correct a name in one file",
                file=one_line(str(one)),
            )


def _node(name: str, host: HostSamples) -> NodeSeries:
    all_cores = [each for each in host.cpu if each.core == ALL_CORES]
    single = {each.core for each in host.cpu} - {ALL_CORES}
    if not all_cores:
        raise UnreadableFile("statistics of all cores (sar -u, sadf -- -u, iostat without -d)")
    if not host.cores and not single:
        raise UnreadableFile("the number of cores (sadf -d FILE -- -P ALL, or sadf -j)")
    cores = host.cores or len(single)
    if cores > _MOST_CORES:
        raise UnreadableFile(f"at most {_MOST_CORES:,} cores")
    cards = sorted(network_cards(each.interface for each in host.interfaces))
    return NodeSeries(
        name=name,
        cores=cores,
        cpu={
            kind: _curve((each.moment, getattr(each, kind) * cores) for each in all_cores)
            for kind in ("busy", "waiting", "stolen")
        },
        busiest_core=_busiest_core(host.cpu) if single else None,
        disks=_disks(host.disks),
        network={
            way: [
                _curve(
                    (each.moment, getattr(each, way))
                    for each in host.interfaces
                    if each.interface == card
                )
                for card in cards
            ]
            for way in ("received", "sent")
        },
        memory=_memory(host.memory),
        link_bytes_per_second=_link_speed(
            [each for each in host.interfaces if each.interface in cards]
        ),
    )


def _busiest_core(samples: Sequence[CpuSample]) -> Curve:
    busiest: dict[Moment, float] = {}
    for each in samples:
        if each.core != ALL_CORES:
            busiest[each.moment] = max(each.busy, busiest.get(each.moment, 0.0))
    return _curve(busiest.items())


def _disks(samples: Sequence[DiskSample]) -> dict[str, dict[str, Curve]]:
    try:
        names = whole_disks(each.disk for each in samples)
    except UnclearDevices as why:
        raise UnreadableFile(
            f"names of disks, since {one_line(str(why))} may stand on each other (sar -p)"
        ) from None
    return {name: _disk([each for each in samples if each.disk == name]) for name in sorted(names)}


def _disk(samples: Sequence[DiskSample]) -> dict[str, Curve]:
    curves = {}
    for direction, past, operations in (
        ("read", "read_bytes", "reads"),
        ("write", "written_bytes", "writes"),
    ):
        stated = [
            (each.moment, each.transfers[direction])
            for each in samples
            if direction in each.transfers
        ]
        counted = [
            (moment, transfer.operations_per_second)
            for moment, transfer in stated
            if transfer.operations_per_second is not None
        ]
        if stated:
            curves[past] = _curve((moment, each.bytes_per_second) for moment, each in stated)
        if counted:
            curves[operations] = _curve(counted)
    busy = [(each.moment, each.busy) for each in samples if each.busy is not None]
    return curves | ({"busy_seconds": _curve(busy)} if busy else {})


def _memory(samples: Sequence[MemorySample]) -> Levels | None:
    levels = sorted(
        (each.moment.seconds, each.used_bytes)
        for each in samples
        if each.moment.seconds is not None
    )
    return Levels(*(np.array(column) for column in zip(*levels, strict=True))) if levels else None


def _link_speed(links: Sequence[InterfaceSample]) -> float | None:
    """The speed of all cards, from what they used of it; None if no sample tells."""
    speeds: dict[str, tuple[float, float]] = {}
    for each in links:
        if each.used and _CLEAR_USE <= each.used < 1:
            found = each.used, max(each.received, each.sent) / each.used
            speeds[each.interface] = max(speeds.get(each.interface, found), found)
    return sum(speed for _, speed in speeds.values()) or None


def _curve(rates: Iterable[tuple[Moment, float]]) -> Curve:
    """A counter; a sample without an interval is iostat's first, since the machine's start."""
    known = [
        Rate(moment.seconds, moment.interval_seconds, rate)
        for moment, rate in rates
        if moment.seconds is not None and moment.interval_seconds
    ]
    if not known:
        raise UnreadableFile("two samples or more, with their times (iostat -t)")
    if max(known).end - min(known).end > LONGEST_SECONDS:
        raise UnreadableFile("samples of one run, at most a month from first to last")
    return curve(known)


def _notes_on_clocks(files: Sequence[HostFile]) -> list[str]:
    clocks: dict[str, str] = {}
    for file in files:
        clocks.setdefault(file.samples.clock, one_line(file.path.name))
    if len(clocks) < 2:
        return []
    return [
        f"{clocks['local time']} has local times, {clocks['UTC']} has UTC: they are compared as if "
        "the machines' time zone were UTC"
    ]


def _notes(node: NodeSeries, files: Sequence[HostFile]) -> list[str]:
    restarts = sum(
        node.begin < moment < node.end for file in files for moment in file.samples.restarts
    )
    cut = [file.path.name for file in files if file.samples.is_cut]
    lacking = [
        what
        for what, known in (
            ("disks", node.disks),
            ("network interfaces", node.network["received"]),
            ("memory", node.memory),
        )
        if not known
    ]
    notes = []
    if restarts:
        notes.append(
            f"{node.name} restarted {formatting.several(restarts, 'time')}: what it did until its "
            "next sample is not known"
        )
    if cut:
        notes.append(f"{one_line(', '.join(cut))} ends within a line, which is left out")
    if lacking:
        listed = " and ".join(lacking)
        notes.append(f"{node.name} has no statistics of {listed}, so they count as unused")
    return notes


def _names(files: Sequence[HostFile]) -> str:
    return ", ".join(one_line(str(file.path)) for file in files)
