"""What a run took, as shares of what its cores took: stated demands in place of likely ones.

A job of an event log, or of what sar sampled, has demands by phase for each byte of its input. Here
they are added up, and compared as on the reference cluster (`REFERENCE`): how long its disks and
its network would take, and what does not shrink with it, relative to its cores.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tonnage.base.records.job import Job, Resource
from tonnage.base.records.past_run import PastRun, RunDemands
from tonnage.model.jobs.application import is_of_spark
from tonnage.model.past_runs.clusters import REFERENCE

DISK: tuple[Resource, ...] = ("local read", "local write", "volume read", "volume write")
NETWORK: tuple[Resource, ...] = ("network",)
STORE: tuple[Resource, ...] = ("object get", "object put")
CORES: tuple[Resource, ...] = ("cpu",)
SAME_RUN = 0.2
"""A run is one of the table's if it took as long, but for such a share: tables count its start."""


@dataclass(frozen=True)
class DemandShares:
    """Relative to the time of the reference cluster's cores; ``None`` is unknown."""

    disk: float | None
    network: float | None
    store: float | None
    serial: float | None


def run_that_took(seconds: float, runs: Sequence[PastRun]) -> PastRun | None:
    """The finished run that took about so long; ``None`` if none did."""
    near = [
        run
        for run in runs
        if run.outcome == "ok" and math.isclose(run.seconds, seconds, rel_tol=SAME_RUN)
    ]
    return min(near, key=lambda run: abs(run.seconds - seconds), default=None)


def run_demands(job: Job, run: PastRun) -> RunDemands | None:
    """Of the run that a job was observed in; ``None`` if it took no time of cores."""
    size = job.seen_bytes or 0
    # An event log reports all of these, so what it does not have is 0.
    is_whole = is_of_spark(job)

    def amount(resources: tuple[Resource, ...]) -> float:
        return size * sum(
            each.per_byte
            for phase in job.phases
            for each in phase.demands
            if each.resource in resources
        )

    def count(resources: tuple[Resource, ...]) -> int | None:
        found = round(amount(resources))
        return found if found or is_whole else None

    cores = amount(CORES)
    if not cores:
        return None
    serial = sum(each.fixed_seconds + each.warm_up_seconds for each in job.phases)
    return RunDemands(
        provider=run.provider,
        machine_type=run.machine_type,
        core_seconds=cores,
        disk_bytes=count(DISK),
        network_bytes=count(NETWORK),
        object_bytes=count(STORE),
        serial_seconds=serial if is_whole else None,
        memory_per_vcpu=job.least_memory_per_vcpu,
    )


def demand_shares(demands: RunDemands, core_speed: float) -> DemandShares:
    """On the reference cluster, if a vCPU of the run's machines does so much of its own."""
    nodes = float(REFERENCE.nodes[0])
    cores = demands.core_seconds * core_speed / (nodes * float(REFERENCE.cores[0]))

    def share(count: int | None, rate: float) -> float | None:
        return None if count is None else count / (nodes * rate) / cores

    network = float(REFERENCE.network_bytes_per_second[0])
    serial = demands.serial_seconds
    return DemandShares(
        disk=share(demands.disk_bytes, float(REFERENCE.disk_bytes_per_second[0])),
        network=share(demands.network_bytes, network),
        store=share(demands.object_bytes, network),
        serial=None if serial is None else serial * core_speed / cores,
    )
