"""What each node of a fleet was measured to carry: disks, both ways, its link, an object store.

Reading and writing may share a device or not (of a real disk they mostly do; limits of a control
group are apart). Which it is the mix tells: if both at once are nearly as fast as each alone, they
are apart. Else of R bytes read and W written so many as go both ways do so at the mix's rate, and
the rest alone (as in `tonnage.model.two_pass`)::

    seconds = min(R, W) / B_both + (R - W) / B_read      or, if more is written, (W - R) / B_write

Of the network that counts which a shuffle of as many nodes had, as profiles take it
(`tonnage.model.profiles`): all to all between nodes of one type; of unlike ones, where the slowest
would set the pace of all, what each had alone with all others. Of an object store that manner
counts (size of chunks, requests at once) in which a node got, or put, most.
"""

from __future__ import annotations

import statistics
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from tonnage.base.records import ClusterMeasurement, Trial
from tonnage.base.records.cluster_measurement import NodeRates
from tonnage.base.records.network_rounds import NET

APART = 0.9
"""Where both at once reach this share of each alone, reading and writing do not share."""
READ, WRITE, BOTH = "ro", "wo", "rw"
"""The trials that tell what a sort's disks carry."""
ALIKE = 0.05
"""Disks whose rates differ by less than this share differ by chance: they get as much."""
GET, PUT = "get", "put"
"""Operations of an object store."""


@dataclass(frozen=True)
class NodeCapacity:
    """What a node carries, in bytes a second; ``None``: not measured."""

    read: float | None = None
    write: float | None = None
    mixed: float | None = None
    """Each way, while both are used."""
    send: float | None = None
    receive: float | None = None
    get: float | None = None
    put: float | None = None
    """From, and to, an object store."""

    @property
    def slowest_disk_rate(self) -> float | None:
        """Of reading, writing and both at once."""
        return min((each for each in (self.read, self.write, self.mixed) if each), default=None)

    @property
    def is_shared(self) -> bool:
        """Whether reading and writing share the disks."""
        if self.mixed is None:
            return False
        return not self.read or not self.write or self.mixed < APART * min(self.read, self.write)

    def mixed_seconds(self, read: float, written: float) -> float:
        """What so many bytes read and written take of disks that both ways share."""
        assert self.mixed is not None
        mixed = min(read, written)
        alone = (read - mixed) / (self.read or self.mixed)
        return mixed / self.mixed + alone + (written - mixed) / (self.write or self.mixed)


@dataclass(frozen=True)
class ClusterCapacity:
    """What each node carries, by its name, and the measurements that say so."""

    nodes: dict[str, NodeCapacity] = field(default_factory=dict)
    measurements: tuple[str, ...] = ()


def cluster_capacity(
    fleets: Iterable[ClusterMeasurement], nodes: Collection[str]
) -> ClusterCapacity:
    """What nodes were measured to carry.

    Args:
        fleets: Measurements of disks, of the network between machines and of an object store; of
            several of the network the last one of each node counts, of the others all trials.
        nodes: Who takes part: a network is that of so many.
    """
    trials: dict[str, dict[tuple[object, ...], list[float]]] = {}
    network: dict[str, NodeRates] = {}
    cited: dict[str, None] = {}
    for fleet in fleets:
        if fleet.kind == NET:
            found = {each.node: each for each in _network(fleet, nodes)}
            network |= found
            cited |= dict.fromkeys([fleet.id] if found else [])
            continue
        for row in fleet.nodes:
            for trial in row.measurement.trials if row.ok and row.measurement else ():
                if (manner := _manner(trial)) and trial.bytes_per_second > 0:
                    of_node = trials.setdefault(row.node, {})
                    of_node.setdefault(manner, []).append(trial.bytes_per_second)
                    cited[fleet.id] = None
    return ClusterCapacity(
        nodes={
            node: _carried(trials.get(node, {}), network.get(node))
            for node in sorted({*trials, *network} & {*nodes})
        },
        measurements=tuple(cited),
    )


def work_shares(nodes: Mapping[str, NodeCapacity]) -> dict[str, float]:
    """How much of a sort each node is to have, by its disks' slowest rate; without who has none.

    Nodes that are alike get as much: a partition more for a rate that came out better by chance
    would have all wait for that node.
    """
    found: dict[str, float] = {}
    of_group = 0.0
    rates = {node: rate for node, each in nodes.items() if (rate := each.slowest_disk_rate)}
    for node in sorted(rates, key=lambda node: (-rates[node], node)):
        if rates[node] < (1 - ALIKE) * of_group or not of_group:
            of_group = rates[node]
        found[node] = of_group
    return found


def _carried(
    trials: Mapping[tuple[object, ...], Sequence[float]], network: NodeRates | None
) -> NodeCapacity:
    best: dict[object, float] = {}
    for (name, *_), rates in trials.items():
        best[name] = max(best.get(name, 0.0), statistics.median(rates))
    return NodeCapacity(
        read=best.get(READ),
        write=best.get(WRITE),
        mixed=best.get(BOTH),
        send=network.send_bytes_per_second if network else None,
        receive=network.receive_bytes_per_second if network else None,
        get=best.get(GET),
        put=best.get(PUT),
    )


def _manner(trial: Trial) -> tuple[object, ...] | None:
    """What a trial tells of, and in which manner; ``None`` if a sort does nothing of the kind."""
    if trial.name in (READ, WRITE, BOTH):
        return (trial.name,)
    reading, step = trial.reading, trial.step
    if reading and step and reading.operation in (GET, PUT):
        return reading.operation, step.operation, reading.block_bytes, step.outstanding
    return None


def _network(fleet: ClusterMeasurement, nodes: Collection[str]) -> Sequence[NodeRates]:
    alike = len(fleet.types) < 2
    wanted = [
        each
        for each in fleet.sizes
        if each.nodes == len(nodes) and {*nodes} <= {node.node for node in each.per_node}
    ]
    if wanted and (alike or not fleet.links):
        return max(wanted, key=lambda each: each.slowest_bytes_per_second).per_node
    return fleet.links
