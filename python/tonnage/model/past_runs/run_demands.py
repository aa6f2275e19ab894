"""What a run took, as shares of what its cores took: told demands in place of likely ones.

A job of an event log, or of what sar sampled, has demands by phase for each byte of its input. Here
they are added up, and compared as on the reference cluster (`REFERENCE`): how long its disks and
its network would take, and what does not shrink with it, relative to its cores.
"""

from typing import NamedTuple

from tonnage.base.records.job import Job, Resource
from tonnage.base.records.past_run import RunDemands
from tonnage.model.past_runs.clusters import REFERENCE

DISK: tuple[Resource, ...] = ("local read", "local write", "volume read", "volume write")
NETWORK: tuple[Resource, ...] = ("network", "object get", "object put")
CORES: tuple[Resource, ...] = ("cpu",)


class DemandShares(NamedTuple):
    """Relative to the time of the reference cluster's cores."""

    disk: float
    network: float
    serial: float


def run_demands(job: Job) -> RunDemands | None:
    """Of the observed run of a job; ``None`` if it has none, or took no time of cores."""
    size = job.seen_bytes
    if not size:
        return None

    def amount(resources: tuple[Resource, ...]) -> float:
        return size * sum(
            each.per_byte
            for phase in job.phases
            for each in phase.demands
            if each.resource in resources
        )

    cores = amount(CORES) * (job.core_speed or 1.0)
    if not cores:
        return None
    return RunDemands(
        core_seconds=cores,
        disk_bytes=round(amount(DISK)),
        network_bytes=round(amount(NETWORK)),
        serial_seconds=sum(each.fixed_seconds + each.warm_up_seconds for each in job.phases),
    )


def demand_shares(demands: RunDemands) -> DemandShares:
    nodes = float(REFERENCE.nodes[0])
    cores = demands.core_seconds / (nodes * float(REFERENCE.cores[0]))
    disk = demands.disk_bytes / (nodes * float(REFERENCE.disk_bytes_per_second[0]))
    network = demands.network_bytes / (nodes * float(REFERENCE.network_bytes_per_second[0]))
    return DemandShares(disk / cores, network / cores, demands.serial_seconds / cores)
