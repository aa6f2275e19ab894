"""The measured capacity of each node of a cluster: disks, both ways, network link, object store.

Reading and writing may share a device (as on real disks) or not (as under the limits of a control
group). The mixed rate decides: if both at once are nearly as fast as each alone, they do not share.
Otherwise, of R bytes read and W written, the smaller amount moves at the mixed rate in both
directions, and the rest alone (as in `tonnage.model.two_pass`)::

    seconds = min(R, W) / B_mixed + (R - W) / B_read     or, if more is written, (W - R) / B_write

The network rate is that of an all-to-all shuffle of as many nodes of one type, as in profiles
(`tonnage.model.profiles`). Between unlike nodes, where the slowest would limit all, each node's
rate alone with all others counts. Of an object store, the fastest setting (size of chunks, number
of concurrent requests) of each node counts.
"""

import statistics
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from tonnage.base.records import ClusterMeasurement, Trial
from tonnage.base.records.cluster_measurement import NodeRates
from tonnage.base.records.network_rounds import NET

APART = 0.9
"""If both at once reach this share of each alone, reading and writing do not share the device."""
READ, WRITE, BOTH = "ro", "wo", "rw"  # The trials that measure a sort's disks
ALIKE = 0.05  # Disks whose rates differ by less than this share get the same amount of work
GET, PUT = "get", "put"  # Operations of an object store


@dataclass(frozen=True)
class NodeCapacity:
    """A node's measured rates, in bytes a second; ``None``: not measured."""

    read: float | None = None
    write: float | None = None
    mixed: float | None = None  # Each way, while reading and writing at once
    send: float | None = None
    receive: float | None = None
    get: float | None = None
    put: float | None = None  # ``get`` and ``put``: from and to an object store

    @property
    def slowest_disk_rate(self) -> float | None:
        return min((each for each in (self.read, self.write, self.mixed) if each), default=None)

    @property
    def is_shared(self) -> bool:
        if self.mixed is None:
            return False
        return not self.read or not self.write or self.mixed < APART * min(self.read, self.write)

    def mixed_seconds(self, read: float, written: float) -> float:
        """Seconds to read and write this many bytes on disks that both directions share."""
        assert self.mixed is not None
        mixed = min(read, written)
        alone = (read - mixed) / (self.read or self.mixed)
        return mixed / self.mixed + alone + (written - mixed) / (self.write or self.mixed)


@dataclass(frozen=True)
class ClusterCapacity:
    nodes: dict[str, NodeCapacity] = field(default_factory=dict)
    measurements: tuple[str, ...] = ()


def cluster_capacity(
    clusters: Iterable[ClusterMeasurement], nodes: Collection[str]
) -> ClusterCapacity:
    """The measured capacity of ``nodes``, which are as many as the network rate is for.

    The last network measurement of each node counts; of disks and object stores all trials do.
    """
    trials: dict[str, dict[tuple[object, ...], list[float]]] = {}
    network: dict[str, NodeRates] = {}
    measurement_ids: dict[str, None] = {}
    for cluster in clusters:
        if cluster.kind == NET:
            found = {each.node: each for each in _network(cluster, nodes)}
            network |= found
            measurement_ids |= dict.fromkeys([cluster.id] if found else [])
            continue
        for row in cluster.nodes:
            for trial in row.measurement.trials if row.ok and row.measurement else ():
                if (key := _trial_key(trial)) and trial.bytes_per_second > 0:
                    of_node = trials.setdefault(row.node, {})
                    of_node.setdefault(key, []).append(trial.bytes_per_second)
                    measurement_ids[cluster.id] = None
    return ClusterCapacity(
        nodes={
            node: _node_capacity(trials.get(node, {}), network.get(node))
            for node in sorted({*trials, *network} & {*nodes})
        },
        measurements=tuple(measurement_ids),
    )


def work_shares(nodes: Mapping[str, NodeCapacity]) -> dict[str, float]:
    """Each node's share of a sort, by its slowest disk rate; nodes without a rate are omitted.

    Similar nodes get the same share: one more partition, given by chance, would make all wait.
    """
    found: dict[str, float] = {}
    of_group = 0.0
    rates = {node: rate for node, each in nodes.items() if (rate := each.slowest_disk_rate)}
    for node in sorted(rates, key=lambda node: (-rates[node], node)):
        if rates[node] < (1 - ALIKE) * of_group or not of_group:
            of_group = rates[node]
        found[node] = of_group
    return found


def _node_capacity(
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


def _trial_key(trial: Trial) -> tuple[object, ...] | None:
    """A trial's operation and setting; ``None`` if a sort does nothing of that kind."""
    if trial.name in (READ, WRITE, BOTH):
        return (trial.name,)
    reading, step = trial.reading, trial.step
    if reading and step and reading.operation in (GET, PUT):
        return reading.operation, step.operation, reading.block_bytes, step.outstanding
    return None


def _network(cluster: ClusterMeasurement, nodes: Collection[str]) -> Sequence[NodeRates]:
    alike = len(cluster.types) < 2
    wanted = [
        each
        for each in cluster.sizes
        if each.nodes == len(nodes) and {*nodes} <= {node.node for node in each.per_node}
    ]
    if wanted and (alike or not cluster.links):
        return max(wanted, key=lambda each: each.slowest_bytes_per_second).per_node
    return cluster.links
