"""The nodes of a simulated cluster: the capacities of their disks, network and cores.

Capacities are those of a plan for the offer (`plan.demand`): a distribution for each resource, the
network scaled to clusters of this size. From a distribution of nodes, each node's rate is drawn: a
mode, then log-normally. From a distribution of slowest nodes, all nodes get its median. The factor
that all nodes of a cluster share is at its median; the interval of a plan includes it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tonnage.base import core
from tonnage.base.records.durability import Durability
from tonnage.base.records.profile import CapacityDistribution
from tonnage.model.jobs.mapreduce import sort_job
from tonnage.model.profiles.repository import OfferCapacity, ProfileIndex
from tonnage.plan.demand import (
    AdvertisedResource,
    DemandPart,
    DemandTerm,
    LayoutDemand,
    ResourceClass,
    layout_demand,
)
from tonnage.run.sort.local import Layout
from tonnage.run.two_pass.sizing import NodeResources

Array = npt.NDArray[np.float64]


class SimulationError(Exception):
    """The sort cannot be simulated, or fails; the message is one line."""


@dataclass(frozen=True)
class Machine:
    memory_bytes: int  # For the sort
    cores: int
    devices: int = 1  # For scratch, and for output
    connections: int = 1
    layout: Layout = dataclasses.field(default_factory=Layout)

    @property
    def resources(self) -> NodeResources:
        devices = 1, self.devices, self.devices
        return NodeResources(self.layout, self.memory_bytes, self.connections, devices)


@dataclass(frozen=True)
class Disks:
    """Seconds for each byte read and written, by node; shape ``(nodes,)``."""

    read: Array
    write: Array
    apart: bool
    """Whether both times add up; otherwise each was measured while the other way was used, too."""


@dataclass(frozen=True)
class SimulatedCluster:
    """The capacities of each node, in bytes a second; infinite where nothing limits."""

    disks: Disks
    network: Array  # Each way
    partition: Array  # All cores of a node, partitioning records
    sort: Array  # All cores of a node, sorting them

    @property
    def nodes(self) -> int:
        return len(self.network)

    def with_slow_nodes(self, count: int, factor: float, seed: int) -> SimulatedCluster:
        if count > self.nodes:
            raise core.UsageError(
                f"must be at most the cluster's {self.nodes} nodes", setting="slow"
            )
        some = np.random.default_rng([seed, *b"slow"]).choice(self.nodes, count, replace=False)
        rates = np.ones(self.nodes)
        rates[some] = factor
        disks = Disks(self.disks.read / rates, self.disks.write / rates, self.disks.apart)
        return SimulatedCluster(
            disks, self.network * rates, self.partition * rates, self.sort * rates
        )


def sort_demand(
    capacity: OfferCapacity,
    profiles: ProfileIndex,
    figures: Mapping[AdvertisedResource, float],
    durability: Durability,
) -> LayoutDemand:
    """The demands of a sort on local disks, with the capacities of these machines.

    ``figures`` are the advertised rates and the number of cores. `SimulationError`: the
    capacity of a resource is unknown.
    """
    demand = layout_demand(
        sort_job(durability),
        "local",
        own_disks=True,
        volumes=None,
        laws=capacity,
        shares=profiles.shares,
        network="scaled",
    )
    if demand.unknown_classes:
        raise SimulationError(
            f"its {' and its '.join(demand.unknown_classes)} were not measured; use a profile "
            "that contains them"
        )
    for name in sorted(demand.advertised_resources):
        if name not in figures:
            raise SimulationError(
                f"its {name} was neither measured nor advertised; use a profile that contains it"
            )
    return demand


def draw_cluster(
    demand: LayoutDemand, nodes: int, figures: Mapping[AdvertisedResource, float], seed: int
) -> SimulatedCluster:
    """Draw a cluster; ``figures`` are those of `sort_demand`."""
    first, second = ({term.resource_class: term for term in phase.terms} for phase in demand.phases)

    def rates(part: DemandPart) -> Array:
        each = draw_rates(part.capacity, nodes, seed)
        if part.curve:
            each = each * part.curve.share(np.array([nodes]))
        return each * figures[part.advertised] if part.advertised else each

    def term_rates(terms: Mapping[ResourceClass, DemandTerm], name: ResourceClass) -> Array:
        if name not in terms:
            return np.full(nodes, np.inf)
        (part,) = terms[name].parts
        return rates(part)

    ways = {part.resource: 1 / rates(part) for part in first["local disks"].parts}
    both = ways.get("local both")
    if both is not None:
        disks = Disks(both, both, apart=False)
    else:
        disks = Disks(ways["local read"], ways["local write"], apart=True)
    return SimulatedCluster(
        disks, term_rates(first, "network"), term_rates(first, "cpu"), term_rates(second, "cpu")
    )


def draw_rates(law: CapacityDistribution, nodes: int, seed: int) -> Array:
    usual = max(law.modes, key=lambda mode: mode.instances)
    if law.of_fleet:
        return np.full(nodes, float(usual.median))
    generator = np.random.default_rng([seed, *law.resource.encode()])
    seen = np.array([mode.instances for mode in law.modes], dtype=float)
    which = generator.choice(len(law.modes), nodes, p=seen / seen.sum())
    medians, spreads = np.array([(mode.median, mode.spread) for mode in law.modes]).T
    off = spreads[which] * generator.standard_normal(nodes)
    return np.asarray(medians[which] * np.exp(off))


def bound_seconds(
    cluster: SimulatedCluster, data_bytes: int, durability: Durability = "none"
) -> float:
    """The lower bound of any sort: each pass takes the slowest resource of any node.

    The model's two passes (Themis on EC2, equations 1, 3 and 8), node by node.
    """
    share, copies = data_bytes / cluster.nodes, 2 if durability == "replicated" else 1
    disks, outside = cluster.disks, 1 - 1 / cluster.nodes

    def disk(written: int) -> Array:
        if disks.apart:
            return share * (disks.read + written * disks.write)
        return np.asarray(share * written * disks.write)

    first = [disk(1), share * outside / cluster.network, share / cluster.partition]
    second = [disk(copies), share / cluster.sort]
    if copies > 1:
        second.append(share / cluster.network)
    return sum(max(float(term.max()) for term in terms) for terms in (first, second))
