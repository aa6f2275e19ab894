"""Which clusters to consider for a job of which only past runs are known.

What the job takes of cores, memory, disks and network is not known apart, so a machine is
considered if no other of its size gives more of all of them for a dollar, or if the job ran on it.
Numbers of nodes are a factor apart, and their vCPUs together are no further from those of the runs
than a factor: beyond that, runs say nothing.
"""

import math
from collections.abc import Collection, Sequence

import numpy as np

from tonnage.catalog import Offer
from tonnage.model.past_runs.clusters import Clusters
from tonnage.plan.past_runs.run_machines import Machines as RunMachines
from tonnage.plan.resources.machines import Machine

STEP = math.sqrt(2)
FARTHEST = 4.0
"""How many times more or fewer vCPUs than the runs had."""
MOST_MACHINES = 200
ALIKE = 1.01
"""Machines that give so little more count as equal."""


def worthwhile(
    machines: Sequence[Machine], known: RunMachines, seen: Collection[tuple[str, str]] = ()
) -> list[Machine]:
    """Machines that no other of their size beats in all they give for a dollar.

    ``seen`` are providers and types that are kept in any case.
    """
    usable = [each for each in machines if each.offer.memory_bytes and each.offer.vcpus]
    if not usable:
        return []
    given = known.clusters((each.offer, 1) for each in usable)
    usd = np.array([each.usd_per_hour + each.address_usd_per_hour for each in usable])
    per_dollar = _per_machine(given) / usd
    sizes = np.floor(np.log2(given.vcpus))
    order = np.argsort(-per_dollar[0], kind="stable")
    kept = [at for at in order.tolist() if not _is_beaten(per_dollar, sizes, at)][:MOST_MACHINES]
    kept += [
        at
        for at, each in enumerate(usable)
        if at not in kept and (each.offer.provider, each.offer.type) in seen
    ]
    return [usable[at] for at in kept]


def node_numbers(offer: Offer, seen_vcpus: tuple[float, float], most: int) -> list[int]:
    """Numbers of nodes of a machine, by the fewest and most vCPUs that runs had together."""
    vcpus = offer.vcpus or 1.0
    low = max(seen_vcpus[0] / FARTHEST / vcpus, 1.0)
    high = min(seen_vcpus[1] * FARTHEST / vcpus, most)
    if high < 1:
        return []
    steps = int(math.log(max(high / low, 1.0)) / math.log(STEP)) + 1
    return sorted({min(round(low * STEP**each), most) for each in range(steps)})


def _per_machine(clusters: Clusters) -> np.ndarray:
    return np.array(
        [
            clusters.cores,
            clusters.memory_bytes,
            clusters.disk_bytes_per_second,
            clusters.network_bytes_per_second,
        ]
    )


def _is_beaten(given: np.ndarray, sizes: np.ndarray, at: int) -> bool:
    mine = given[:, [at]]
    better = (given >= mine).all(axis=0) & (given > mine * ALIKE).any(axis=0)
    return bool((better & (sizes == sizes[at])).any())
