"""A short look at all nodes of a cluster: all disks at once, then the network between those left.

Each part is a cluster measurement with a directory of its own, and is resumed as such. A node whose
disks could not be measured has no part in the network's: it would hold up the others.
"""

from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

from tonnage.base.records import ClusterMeasurement
from tonnage.base.records.network_rounds import NET
from tonnage.cluster.ray_adapter import Cluster
from tonnage.measure.cluster.driver import (
    MeasurementEvents,
    MeasurementRequest,
    OnStatus,
    measure_cluster,
)
from tonnage.measure.net import cluster as net
from tonnage.measure.trial.session import locked_parent_dir

DISK = "disk"
"""The directory of this part; the other one's is the network's kind."""


def screen_cluster(
    cluster: Cluster,
    out: Path,
    disks: MeasurementRequest,
    network: net.ClusterNetSettings,
    on_status: OnStatus,
) -> MeasurementEvents:
    """Run `measure_cluster` for both: the disks' measurement ends first, then the network's.

    With fewer than two nodes left the network is not measured.
    """
    with locked_parent_dir(out, (DISK, NET)):
        events = measure_cluster(cluster, out / DISK, disks, on_status)
        left: Iterable[str] = ()
        with closing(events):
            for event in events:
                if isinstance(event, ClusterMeasurement):
                    left = {row.node for row in event.nodes if row.ok}
                yield event
        there = {machine.name for machine in cluster.machines if machine.name in left}
        if len(there) < 2:
            return
        events = net.measure_cluster_net(
            cluster,
            out / NET,
            network,
            on_status,
            command=disks.command,
            labels=disks.labels,
            nodes=None,
            patience_seconds=disks.patience_seconds,
            only=there,
        )
        with closing(events):
            yield from events
