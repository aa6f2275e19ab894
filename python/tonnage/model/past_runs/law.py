"""How long a job takes on a cluster, by its demands: the law whose parameters runs tell.

    seconds = scale x [ work x growth x cliff x heap + serial + coordination + start ]

    work          (cores^p + disk^p + network^p)^(1/p): what each resource takes of the reference's
                  work, shrinking with the cluster's own; p between adding up and the longest alone
    growth        (vCPUs)^g: work that grows with the cluster, such as more and smaller tasks
    cliff         1 + R where the cluster's memory is less than the working set, and read again
    heap          1 + r where memory for each vCPU is little: collecting garbage, spilling
    serial        on one core, so only faster cores shorten it
    coordination  grows with vCPUs: driving tasks, connecting all with all
    start         the same everywhere

Both steps are logistic in the logarithm of memory. A larger input needs more of everything: work
and serial time by ``size^a``, coordination by ``size^b``, and the working set in proportion. What
matters, and in which order, is known from runs of others: memory first, then what does not shrink,
then the speed of cores.
"""

from dataclasses import dataclass, fields, replace

import numpy as np
import numpy.typing as npt

from tonnage.model.past_runs.clusters import REFERENCE, Clusters, Floats

STEEPEST = 50.0
START_POWER = 0.5
"""By which power of its size a job's start grows, between no growth and its full share."""


@dataclass(frozen=True)
class Demands:
    """Draws of a job's parameters: of each array the first axis are draws.

    Shares are of the work of cores on the reference cluster, and factors are 0 where there is no
    such step; ``family_speeds`` has a column for each family of types, as logarithms.
    """

    core_speed_power: Floats
    family_speeds: Floats
    disk: Floats
    network: Floats
    overlap: Floats
    growth: Floats
    serial: Floats
    coordination: Floats
    start: Floats
    working_set_log_gib: Floats
    cliff_width: Floats
    cliff_factor: Floats
    heap_log_gib: Floats
    heap_width: Floats
    heap_factor: Floats
    size_power: Floats
    coordination_power: Floats
    store: Floats

    def __len__(self) -> int:
        return len(self.overlap)

    def at(self, places: npt.ArrayLike) -> "Demands":
        where = np.asarray(places, dtype=np.int64)
        return Demands(*(getattr(self, each.name)[where] for each in fields(self)))

    def of_scale(self, log_scale: float) -> "Demands":
        """Of a job that is larger by this logarithm than those of the prior: coordination and the
        start are then smaller shares of it."""
        coordination = np.exp((self.coordination_power - 1) * log_scale)
        return replace(
            self,
            coordination=self.coordination * coordination,
            start=self.start * np.exp((START_POWER - 1) * log_scale),
        )


def log_times(
    demands: Demands,
    clusters: Clusters,
    log_sizes: Floats | float = 0.0,
    log_work: Floats | float = 0.0,
) -> Floats:
    """Logarithms of seconds, but for the scale: draws times clusters.

    Args:
        demands: The draws.
        clusters: The clusters.
        log_sizes: Logarithms of input sizes, relative to the job's own; by cluster, or by draw and
            cluster.
        log_work: The same of work that other parameters than the size cause.
    """
    its, reference = clusters, REFERENCE
    speed = np.log(its.cores / its.vcpus) * _column(demands.core_speed_power)
    speed = np.exp(speed + demands.family_speeds[:, its.families])
    all_vcpus = its.nodes * its.vcpus / (reference.nodes * reference.vcpus)
    cores = 1 / (all_vcpus * speed)
    disk = _column(demands.disk) * _of(
        reference.disk_bytes_per_second, its, "disk_bytes_per_second"
    )
    sent = (1 - 1 / its.nodes) / (1 - 1 / reference.nodes)
    network = _column(demands.network) * sent + _column(demands.store)
    network *= _of(reference.network_bytes_per_second, its, "network_bytes_per_second")
    work = _longest([cores, disk, network], _column(demands.overlap))
    work *= all_vcpus ** _column(demands.growth)
    work *= 1 + _column(demands.cliff_factor) * _beyond_memory(demands, its, log_sizes)
    work *= 1 + _column(demands.heap_factor) * _beyond_heap(demands, its)
    grown = np.exp(_column(demands.size_power) * log_sizes + log_work)
    coordinated = np.exp(_column(demands.coordination_power) * log_sizes)
    result: Floats = np.log(
        grown * (work + _column(demands.serial) / speed)
        + coordinated * _column(demands.coordination) * all_vcpus
        + _column(demands.start)
    )
    return result


def lacks_memory(demands: Demands, clusters: Clusters, log_sizes: Floats | float = 0.0) -> Floats:
    """How surely each job has too little memory on each cluster, from 0 to 1: draws times clusters.

    A job without a step needs none.
    """
    of_all = (_column(demands.cliff_factor) > 0) * _beyond_memory(demands, clusters, log_sizes)
    of_each = (_column(demands.heap_factor) > 0) * _beyond_heap(demands, clusters)
    lacking: Floats = np.maximum(of_all, of_each)
    return lacking


def _of(rate: Floats, clusters: Clusters, name: str) -> Floats:
    """The reference's rate as a multiple of the clusters'."""
    multiple: Floats = REFERENCE.nodes * rate / (clusters.nodes * getattr(clusters, name))
    return multiple


def _longest(parts: list[Floats], overlap: Floats) -> Floats:
    """The p-norm: with p = 1 the sum, with large p the longest."""
    logs = np.log(np.maximum(np.stack(np.broadcast_arrays(*parts)), 1e-300))
    most = logs.max(axis=0)
    total: Floats = np.exp(most) * np.exp(overlap * (logs - most)).sum(axis=0) ** (1 / overlap)
    return total


def _beyond_memory(demands: Demands, clusters: Clusters, log_sizes: Floats | float) -> Floats:
    """From 0, where the working set fits into the cluster's memory, to 1."""
    needed = _column(demands.working_set_log_gib) + log_sizes
    missing = needed - np.log(clusters.nodes * clusters.memory_gib)
    return _step(missing / _column(demands.cliff_width))


def _beyond_heap(demands: Demands, clusters: Clusters) -> Floats:
    """From 0, where there is memory enough for each vCPU, to 1."""
    missing = _column(demands.heap_log_gib) - np.log(clusters.memory_gib / clusters.vcpus)
    return _step(missing / _column(demands.heap_width))


def _step(x: Floats) -> Floats:
    step: Floats = 1 / (1 + np.exp(-np.clip(x, -STEEPEST, STEEPEST)))
    return step


def _column(values: Floats) -> Floats:
    """Values of draws, to be combined with those of clusters."""
    return values[:, None]
