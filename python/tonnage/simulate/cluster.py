"""The nodes of a simulated cluster: what a byte of input takes of each one's resources.

Demands and capacities are those of a plan (`plan.demand`): a distribution for each resource, the
network scaled to clusters of this size. From a distribution of nodes, each node's rate is drawn: a
mode, then log-normally. From a distribution of slowest nodes, all nodes get its median. The factor
that all nodes of a cluster share is at its median; the interval of a plan includes it.

A plan adds up what a phase takes of each resource, and the slowest resource is the phase's time.
Here each byte has a place: the node that reads it, the link that it leaves and the one that it
arrives on, the disks of its owner, the node that copies it.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tonnage.base import core
from tonnage.base.records.job import OUTSIDE_PHASES, Demand, Job, JobPhase
from tonnage.base.records.profile import CapacityDistribution
from tonnage.model.jobs.mapreduce import COPY
from tonnage.model.token_bucket import TokenBucket
from tonnage.plan.demand import (
    RESOURCE_CLASSES,
    AdvertisedResource,
    DemandPart,
    DemandTerm,
    LayoutDemand,
    PhaseDemand,
    move_to_volumes,
)
from tonnage.simulate.flow import Array

LINK_IN, LINK_OUT = "link in", "link out"
ATTACHED, OPERATIONS = "attached volumes", "volume operations"
REMOTE = (LINK_IN, LINK_OUT)
"""What a node keeps for itself does not use these."""
ROUNDING = 1e-9
Buckets = Mapping[AdvertisedResource, TokenBucket]


class SimulationError(Exception):
    """The job cannot be simulated, or fails; the message is one line."""


@dataclass(frozen=True)
class PassLoads:
    """Seconds of each node's resources for each byte of the job's input, at baseline rates.

    The shape of arrays is ``(resources, nodes)``.
    """

    own: Array  # Of the node that reads the byte in pass one, or owns it in pass two
    sent: Array  # Of the node that sends it to another
    arrived: Array  # Of its owner in pass one; in pass two of the node with the copy
    store: float = 0.0  # Of the object store, which all nodes share

    def at(self, nodes: npt.NDArray[np.int64], factor: float) -> PassLoads:
        """The loads if some nodes are slower by a factor."""
        rates = np.ones(self.own.shape[1])
        rates[nodes] = factor
        return PassLoads(self.own / rates, self.sent / rates, self.arrived / rates, self.store)


@dataclass(frozen=True)
class SimulatedCluster:
    """The passes of a job on nodes, and the bursts of their resources."""

    resources: tuple[str, ...]
    pass_one: PassLoads
    pass_two: PassLoads
    third_pass: PassLoads
    """What a byte takes in pass two besides, if its partition does not fit in memory."""
    first_read: Array
    """Seconds that pass two reads a byte of a first partition before it can write."""
    copying: PassLoads | None = None
    """What copying the output takes after pass two; ``None`` if it needs no pass of its own."""
    burst: Array | None = None
    """Rates while there is credit, relative to the baseline; shape ``(resources, nodes)``."""
    credit: Array | None = None
    """Seconds of the baseline that a full credit adds."""
    fixed_seconds: tuple[float, float] = (0.0, 0.0)
    """Of each pass, however many nodes there are."""
    outside_seconds: float = 0.0
    """Before and after the passes."""

    @property
    def nodes(self) -> int:
        return int(self.pass_one.own.shape[1])

    @property
    def remote(self) -> npt.NDArray[np.bool_]:
        """The resources that do not carry what a node keeps for itself."""
        return np.array([name in REMOTE for name in self.resources])

    def row(self, resource: str) -> int:
        return self.resources.index(resource)

    def with_slow_nodes(self, count: int, factor: float, seed: int) -> SimulatedCluster:
        if count > self.nodes:
            raise core.UsageError(
                f"must be at most the cluster's {self.nodes} nodes", setting="slow"
            )
        some = np.random.default_rng([seed, *b"slow"]).choice(self.nodes, count, replace=False)
        first_read = self.first_read.copy()
        first_read[some] /= factor
        return dataclasses.replace(
            self,
            pass_one=self.pass_one.at(some, factor),
            pass_two=self.pass_two.at(some, factor),
            third_pass=self.third_pass.at(some, factor),
            copying=self.copying and self.copying.at(some, factor),
            first_read=first_read,
        )


def draw_cluster(
    job: Job,
    demand: LayoutDemand,
    buckets: Buckets,
    nodes: int,
    seed: int,
    block_bytes: float = math.inf,
) -> SimulatedCluster:
    """Draw a cluster for a job of two passes; ``buckets`` are the machine's advertised rates.

    ``block_bytes`` are read of volumes in one operation in pass two, as scattered as pass one left
    them.

    `SimulationError`: the capacity of a resource is unknown.
    """
    if demand.unknown_classes:
        raise SimulationError(
            f"its {' and its '.join(demand.unknown_classes)} were not measured; use a profile "
            "that contains them"
        )
    for name in sorted(demand.advertised_resources):
        if name not in buckets or np.isnan(buckets[name].baseline):
            raise SimulationError(
                f"its {name} was neither measured nor advertised; use a profile that contains it"
            )
    return _Drawing(job, demand, buckets, nodes, seed, block_bytes).cluster()


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


def bound_seconds(cluster: SimulatedCluster, data_bytes: int) -> float:
    """The lower bound of any such job: each pass takes the slowest resource of any node.

    The model's two passes (Themis on EC2, equations 1, 3 and 8), node by node, each with all of the
    credit.
    """
    share = data_bytes / cluster.nodes
    outside = (1 - 1 / cluster.nodes) * cluster.remote[:, None] + ~cluster.remote[:, None]
    shuffled = cluster.pass_one.sent * outside + cluster.pass_one.arrived * outside
    loads = [(cluster.pass_one.own + shuffled, cluster.pass_one.store)]
    for loaded in filter(None, (cluster.pass_two, cluster.copying)):
        copied = loaded.sent + loaded.arrived if cluster.nodes > 1 else 0.0
        loads.append((loaded.own + copied, loaded.store))
    total = sum(cluster.fixed_seconds) + cluster.outside_seconds
    for load, store in loads:
        seconds = share * load
        if cluster.burst is not None and cluster.credit is not None:
            seconds = np.maximum(seconds / cluster.burst, seconds - cluster.credit)
        total += max(float(seconds.max(initial=0.0)), data_bytes * store)
    return total


class _Loads:
    """The loads of one pass, as they are collected."""

    def __init__(self, nodes: int) -> None:
        self._nodes = nodes
        self._sides: dict[str, dict[str, Array]] = {"own": {}, "sent": {}, "arrived": {}}
        self.store = 0.0

    def add(self, side: str, resource: str, seconds: Array) -> None:
        loads = self._sides[side]
        loads[resource] = loads.get(resource, np.zeros(self._nodes)) + seconds

    @property
    def resources(self) -> list[str]:
        return [name for loads in self._sides.values() for name in loads]

    def stacked(self, resources: Sequence[str]) -> PassLoads:
        none = np.zeros(self._nodes)

        def side(name: str) -> Array:
            loads = self._sides[name]
            return np.array([loads.get(each, none) for each in resources])

        return PassLoads(side("own"), side("sent"), side("arrived"), self.store)


class _Drawing:
    """What each demand takes of which resource of which node."""

    def __init__(
        self,
        job: Job,
        demand: LayoutDemand,
        buckets: Buckets,
        nodes: int,
        seed: int,
        block_bytes: float,
    ) -> None:
        self._block_bytes = block_bytes
        self._job, self._demand, self._buckets = job, demand, buckets
        self._nodes, self._seed = nodes, seed
        self._bursts: dict[str, tuple[float, float] | None] = {}
        self._copied_later = any(phase.name == COPY for phase in job.phases)
        is_copied = job.durability == "replicated" and not self._copied_later
        self._copies = 2 if is_copied else 1

    def cluster(self) -> SimulatedCluster:
        outside = [each for each in self._demand.phases if each.name == OUTSIDE_PHASES]
        names = [phase.name for phase in self._job.phases]
        phases = [each for each in self._demand.phases if each.name in names]
        one, two, *later = zip(self._job.phases, phases, strict=True)
        pass_one, pass_two = _Loads(self._nodes), _Loads(self._nodes)
        third, copying = _Loads(self._nodes), _Loads(self._nodes)
        self._pass_one(*one, pass_one, third)
        first_read = self._pass_two(*two, pass_two, third)
        for each in later:
            self._copying(*each, copying)
        passes = [pass_one, pass_two, third, copying]
        resources = tuple(dict.fromkeys(name for each in passes for name in each.resources))
        stacked = [each.stacked(resources) for each in passes]
        bursts = [self._bursts.get(name) or (1.0, 0.0) for name in resources]
        shape = len(resources), self._nodes
        return SimulatedCluster(
            resources,
            pass_one=stacked[0],
            pass_two=stacked[1],
            third_pass=stacked[2],
            first_read=first_read,
            copying=stacked[3] if self._copied_later else None,
            burst=np.broadcast_to(np.array([[each[0]] for each in bursts]), shape),
            credit=np.broadcast_to(np.array([[each[1]] for each in bursts]), shape),
            fixed_seconds=(one[1].fixed_seconds, two[1].fixed_seconds),
            outside_seconds=sum(map(self._outside, outside)),
        )

    def _outside(self, planned: PhaseDemand) -> float:
        """Seconds before and after the passes, until the slowest node has begun and ended."""
        return planned.fixed_seconds + sum(
            part.per_byte * float(np.max(self._seconds(term, part)))
            for term in planned.terms
            for part in term.parts
        )

    def _pass_one(
        self, phase: JobPhase, planned: PhaseDemand, loads: _Loads, third: _Loads
    ) -> None:
        for term in planned.terms:
            for demand, resource, seconds in self._uses(phase, term, loads):
                if demand.resource == "network":
                    loads.add("sent", LINK_OUT, seconds)
                    loads.add("arrived", LINK_IN, seconds)
                elif demand.resource.endswith("write"):
                    loads.add("arrived", resource, seconds)
                    third.add("own", resource, seconds)
                else:
                    loads.add("own", resource, seconds)
                    if demand.resource == "cpu partition":
                        third.add("own", resource, seconds)

    def _pass_two(
        self,
        phase: JobPhase,
        planned: PhaseDemand,
        loads: _Loads,
        third: _Loads,
    ) -> Array:
        """The loads of pass two; returns the seconds that it reads a byte before it can write."""
        reading: dict[str, Array] = {}
        writing: set[str] = set()
        for term in planned.terms:
            for demand, resource, seconds in self._uses(phase, term, loads):
                if demand.resource == "network":
                    loads.add("sent", LINK_OUT, seconds)
                    loads.add("arrived", LINK_IN, seconds)
                elif demand.resource.endswith(("write", "put")):
                    writing.add(resource)
                    loads.add("own", resource, seconds / self._copies)
                    if self._copies > 1:
                        loads.add("arrived", resource, seconds / self._copies)
                else:
                    loads.add("own", resource, seconds)
                    if demand.resource == "volume read" and resource == ATTACHED:
                        operations = demand.per_byte * self._operation_seconds()
                        loads.add("own", OPERATIONS, operations)
                        third.add("own", OPERATIONS, operations)
                    if demand.resource.endswith("read"):
                        reading[resource] = reading.get(resource, 0.0) + seconds
                        third.add("own", resource, seconds)
        # What shares a device with writing takes as long before as at the same time.
        apart = [each for name, each in reading.items() if name not in writing]
        return np.max(apart, axis=0) if apart else np.zeros(self._nodes)

    def _copying(self, phase: JobPhase, planned: PhaseDemand, loads: _Loads) -> None:
        for term in planned.terms:
            for demand, resource, seconds in self._uses(phase, term, loads):
                if demand.resource == "network":
                    loads.add("sent", LINK_OUT, seconds)
                    loads.add("arrived", LINK_IN, seconds)
                else:
                    way = "arrived" if demand.resource.endswith("write") else "own"
                    loads.add(way, resource, seconds)

    def _uses(
        self, phase: JobPhase, term: DemandTerm, loads: _Loads
    ) -> Iterator[tuple[Demand, str, Array]]:
        """Each demand of the term, which resource it uses, and how many seconds for each byte."""
        demands = [
            moved
            for each in phase.demands
            for moved in [each if self._demand.own_disks else move_to_volumes(each)]
            if RESOURCE_CLASSES[moved.resource] == term.resource_class and moved.per_byte
        ]
        if any(part.shared for part in term.parts):
            # The store's limits are apart from each other: the least one counts.
            total = sum(part.per_byte / self._shared_rate(term, part) for part in term.parts)
            loads.store = max(loads.store, total)
        elif not demands:
            # Connections and threads, and the bottleneck of a calibrating run: limits that are not
            # those of a resource.
            for part in term.parts:
                loads.add("own", term.resource_class, part.per_byte * self._seconds(term, part))
        else:
            part_of = {part.resource: part for part in term.parts}
            ways = {each.resource for each in demands}
            # Both ways of a disk at once, each as fast as if the other were not there.
            at_once = term.resource_class == "local disks" and len(part_of) < len(ways)
            left_out = term.resource_class == "cpu" and term.per_byte < _bytes(demands)
            for each in demands:
                if left_out and each.resource not in part_of:
                    continue  # Nothing is known of this work, and the plan leaves it out, too.
                # A part for several demands has the rate of each.
                part = part_of.get(each.resource) or term.parts[0]
                seconds = each.per_byte * self._seconds(term, part)
                resource = str(each.resource if at_once else term.resource_class)
                if each.resource in ("object get", "object put", "network"):
                    resource = LINK_OUT if each.resource == "object put" else LINK_IN
                    self._note_burst(LINK_IN, part)
                    self._note_burst(LINK_OUT, part)
                elif term.resource_class == "volumes":
                    self._note_burst(resource, part)
                    yield each, ATTACHED, each.per_byte * self._attached(part)
                yield each, resource, seconds

    def _shared_rate(self, term: DemandTerm, part: DemandPart) -> float:
        """The store's rate; of requests that are as long as memory allows, bytes a second."""
        rate = part.capacity.modes[0].median
        return rate * float(self._bucket(term, part.advertised).baseline if part.advertised else 1)

    def _bucket(self, term: DemandTerm, resource: AdvertisedResource) -> TokenBucket:
        bucket = self._buckets[resource]
        return bucket if term.max_per_node is None else bucket.capped(term.max_per_node)

    def _seconds(self, term: DemandTerm, part: DemandPart) -> Array:
        """Seconds of a node's resource for each of the part's bytes."""
        rates = draw_rates(part.capacity, self._nodes, self._seed)
        if part.curve:
            rates = rates * part.curve.share(np.array([self._nodes]))
        if part.advertised:
            bucket = self._bucket(term, part.advertised)
            # Without its burst a device is slower itself than the threads that wait for it.
            bursts = part.in_turn and bool(bucket.credit)
            rates = rates * float(bucket.burst if bursts else bucket.baseline)
        if part.in_turn:
            rates = rates * float(self._buckets["threads"].baseline)
        return np.asarray(1 / rates)

    def _note_burst(self, resource: str, part: DemandPart) -> None:
        """A resource bursts if all of its rates are shares of what the machine advertises."""
        found = None
        if part.advertised:
            found = _burst_of(self._buckets[part.advertised])
        self._bursts[resource] = found if self._bursts.get(resource, found) else None

    def _attached(self, part: DemandPart) -> Array:
        """Seconds of a node's volumes themselves, whatever its link to them allows."""
        volumes = self._demand.volumes
        assert volumes is not None
        bucket = volumes.bucket(np.array(float(self._nodes)))
        self._bursts[ATTACHED] = _burst_of(bucket)
        shares = np.ones(self._nodes)
        if part.advertised:
            shares = draw_rates(part.capacity, self._nodes, self._seed)
        return np.asarray(1 / (shares * float(bucket.baseline)))

    def _operation_seconds(self) -> Array:
        """Seconds of a node's volumes for the operation of a block, for each of its bytes."""
        volumes = self._demand.volumes
        assert volumes is not None
        bucket = volumes.operations(np.array(float(self._nodes)))
        if bucket is None:
            return np.zeros(self._nodes)
        self._bursts[OPERATIONS] = _burst_of(bucket)
        return np.full(self._nodes, 1 / (self._block_bytes * float(bucket.baseline)))


def _bytes(demands: Sequence[Demand]) -> float:
    return sum(demand.per_byte for demand in demands) * (1 - ROUNDING)


def _burst_of(bucket: TokenBucket) -> tuple[float, float] | None:
    """The burst rate relative to the baseline, and the credit in seconds of the baseline."""
    if not float(bucket.credit):
        return None
    baseline = float(bucket.baseline)
    return float(bucket.burst) / baseline, float(bucket.credit) / baseline
