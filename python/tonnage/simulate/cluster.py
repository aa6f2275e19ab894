"""The nodes of a simulated fleet: what each one's disks, network and cores carry.

Capacities are those that a plan has for the offer (`plan.shapes`): a law for each resource, the
network scaled by its fall in clusters of this size. Where a law is of nodes, each node's rate is
drawn from it: a mode, then log-normally. Where it is of a fleet's slowest node already, all nodes
have its median. What all nodes of a fleet have in common is at its middle: a slower day makes all
resources slower alike, and `plan` has the interval of that.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tonnage.base.records.profile import CapacityDistribution
from tonnage.model.jobs.mapreduce import Durability, sort_job
from tonnage.model.profiles.repository import OfferCapacity, ProfileIndex
from tonnage.plan.demand import DemandPart, DemandTerm, LayoutDemand, ResourceClass, layout_demand
from tonnage.run.sort.local import Layout
from tonnage.run.two_pass.sizing import Devices

Array = npt.NDArray[np.float64]


class SimulationError(Exception):
    """What cannot be simulated; says why in one line."""


@dataclass(frozen=True)
class Machine:
    """A node as the driver of a sort sees it."""

    memory_bytes: int
    """For the sort."""
    cores: int
    devices: int = 1
    """For scratch, and for output."""
    connections: int = 1
    """To each other node."""
    layout: Layout = dataclasses.field(default_factory=Layout)

    @property
    def memory(self) -> tuple[Layout, int, Devices, int]:
        """What `run.division` divides a node's memory by."""
        devices = Devices(1, self.devices, self.devices)
        return self.layout, self.memory_bytes, devices, self.connections


@dataclass(frozen=True)
class Disks:
    """Seconds for a byte read, and for one written, of each node; shape ``(nodes,)``."""

    read: Array
    write: Array
    apart: bool
    """Whether both times add up; else each was measured while the other way was used, too."""


@dataclass(frozen=True)
class SimulatedCluster:
    """What each node carries; rates in bytes a second, infinite where nothing limits."""

    disks: Disks
    network: Array
    """Each way."""
    partition: Array
    """All cores of a node, dividing records."""
    sort: Array
    """All cores of a node, sorting them."""

    @property
    def nodes(self) -> int:
        """How many."""
        return len(self.network)

    def slowed(self, count: int, factor: float, seed: int) -> SimulatedCluster:
        """The same with ``count`` nodes, drawn, that carry ``factor`` of what they would."""
        if count > self.nodes:
            raise SimulationError(f"--slow {count}: the fleet has {self.nodes} nodes")
        some = np.random.default_rng([seed, *b"slow"]).choice(self.nodes, count, replace=False)
        rates = np.ones(self.nodes)
        rates[some] = factor
        disks = Disks(self.disks.read / rates, self.disks.write / rates, self.disks.apart)
        return SimulatedCluster(
            disks, self.network * rates, self.partition * rates, self.sort * rates
        )


def sort_demand(
    laws: OfferCapacity,
    known: ProfileIndex,
    figures: Mapping[ResourceClass, float],
    durability: Durability,
) -> LayoutDemand:
    """A sort on machines' own disks, with what is known of these machines.

    Args:
        laws: What was measured of them.
        known: Shares that other offers reached of what was advertised.
        figures: What is advertised of their network, and how many cores they have.
        durability: ``none`` or ``replicated``.

    Raises:
        SimulationError: Nothing is known of a resource that the sort needs.
    """
    found = layout_demand(
        sort_job(durability),
        "local",
        own_disks=True,
        volumes=None,
        laws=laws,
        shares=known.shares,
        network="scaled",
    )
    if found.unknown_classes:
        raise SimulationError(
            f"what its {' and its '.join(found.unknown_classes)} carry was not measured: give --profile"
        )
    for thing in sorted(found.advertised_classes):
        if thing not in figures:
            raise SimulationError(f"its {thing} was not measured, and no figure is advertised")
    return found


def draw_cluster(
    found: LayoutDemand, nodes: int, figures: Mapping[ResourceClass, float], seed: int
) -> SimulatedCluster:
    """So many nodes, drawn.

    Args:
        found: As `shape_of` gives it.
        nodes: How many.
        figures: As there.
        seed: Of the draw; the same one gives the same rates.
    """
    first, second = ({term.resource_class: term for term in phase.terms} for phase in found.phases)

    def rates(part: DemandPart, thing: ResourceClass) -> Array:
        each = draw_rates(part.capacity, nodes, seed)
        if part.curve:
            each = each * part.curve.share(np.array([nodes]))
        return each * figures[thing] if part.advertised else each

    def only(terms: Mapping[ResourceClass, DemandTerm], thing: ResourceClass) -> Array:
        if thing not in terms:
            return np.full(nodes, np.inf)
        (part,) = terms[thing].parts
        return rates(part, thing)

    ways = {part.resource: 1 / rates(part, "local disks") for part in first["local disks"].parts}
    both = ways.get("local both")
    if both is not None:
        disks = Disks(both, both, apart=False)
    else:
        disks = Disks(ways["local read"], ways["local write"], apart=True)
    return SimulatedCluster(disks, only(first, "network"), only(first, "cpu"), only(second, "cpu"))


def draw_rates(law: CapacityDistribution, nodes: int, seed: int) -> Array:
    """The rate of each node."""
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
    fleet: SimulatedCluster, data_bytes: int, durability: Durability = "none"
) -> float:
    """What no sort can be faster than: each node with its share, of each pass the slowest thing.

    The model's two passes (Themis on EC2, equations 1, 3 and 8), node by node.
    """
    share, copies = data_bytes / fleet.nodes, 2 if durability == "replicated" else 1
    disks, outside = fleet.disks, 1 - 1 / fleet.nodes

    def disk(written: int) -> Array:
        if disks.apart:
            return share * (disks.read + written * disks.write)
        return np.asarray(share * written * disks.write)

    first = [disk(1), share * outside / fleet.network, share / fleet.partition]
    second = [disk(copies), share / fleet.sort]
    if copies > 1:
        second.append(share / fleet.network)
    return sum(max(float(term.max()) for term in terms) for terms in (first, second))
