"""How a job of two passes divides its data and a node's memory, by the real code's arithmetic.

A sort's partitions are ranges between sampled keys. With k sampled keys for each, their sizes are
distributed as Gamma(k) (the spacings of uniform order statistics: David and Nagaraja, Order
Statistics, section 6.4). A MapReduce's are by hash, and are taken to be equal, as with many more
keys than partitions.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tonnage.base.records.job import Job
from tonnage.run.mapreduce.cluster import MAX_PARTITIONS
from tonnage.run.mapreduce.local import check_memory
from tonnage.run.mapreduce.shuffle import MemoryBudget
from tonnage.run.sort.local import Layout
from tonnage.run.two_pass import sizing
from tonnage.run.two_pass.schedule import Round, Schedule
from tonnage.run.two_pass.sizing import NodeResources, usual_connections

CHUNK_BYTES, CHUNK_RECORDS = 16 << 10, 256  # Maximum size of a sampled chunk, as in the core


@dataclass(frozen=True)
class Machine:
    memory_bytes: int  # For the job
    cores: int
    devices: int = 1  # For scratch, and for output
    connections: int | None = None
    """From each node to each other; ``None``: as many as a job has by default."""
    layout: Layout = field(default_factory=Layout)
    from_objects: bool = False
    to_objects: bool = False

    @classmethod
    def for_job(cls, job: Job, **more: Any) -> Machine:
        """A machine, for a job whose data is where this one's is."""
        return cls(
            from_objects=job.input_location == "objects",
            to_objects=job.output_location == "objects",
            **more,
        )

    @property
    def resources(self) -> NodeResources:
        """What a sort has of a node."""
        return NodeResources(
            self.layout,
            self.memory_bytes,
            self.connections,
            (1, self.devices, self.devices),
            downloads=self.from_objects,
            uploads=self.to_objects,
        )

    def links(self, nodes: int) -> int:
        """Its connections to all other nodes."""
        return (nodes - 1) * (self.connections or usual_connections(nodes, self.cores))


class Division(ABC):
    """The division of one kind of job; sizes are bytes of input."""

    def __init__(self, machine: Machine, map_share: float = 1.0) -> None:
        self.machine, self.map_share = machine, map_share

    @abstractmethod
    def partitions(self, share_bytes: int, nodes: int) -> int:
        """How many partitions all nodes have; `UsageError` if the memory is too small."""

    @abstractmethod
    def slot_bytes(self, share_bytes: int, nodes: int) -> int:
        """The largest partition that is not divided once more."""

    @abstractmethod
    def first_block_bytes(self, share_bytes: int, nodes: int) -> int:
        """A block of a partition, if a node reads so many bytes."""

    @abstractmethod
    def block_bytes(self, each: Round, schedule: Schedule) -> int:
        """A block of a partition in a round."""

    @abstractmethod
    def open_bytes(self, owned: int, block_bytes: int) -> int:
        """The most that a node holds before it sends, with so many partitions in the round."""

    @abstractmethod
    def keys_per_partition(self, nodes: int, partitions: int) -> float:
        """Sampled keys that decide each partition's size; infinite if sizes are equal."""

    def _workers(self, nodes: Sequence[str]) -> Mapping[str, int]:
        return dict.fromkeys(nodes, self.machine.cores)


class SortDivision(Division):
    def partitions(self, share_bytes: int, nodes: int) -> int:
        count = self._plan(share_bytes, nodes)["partitions"] * nodes
        return min(count, int(keys_per_partition(nodes, count, self._record_bytes) * count))

    def slot_bytes(self, share_bytes: int, nodes: int) -> int:
        return self._plan(share_bytes, nodes)["slot_bytes"]

    def first_block_bytes(self, share_bytes: int, nodes: int) -> int:
        return self._plan(share_bytes, nodes)["block_bytes"]

    def block_bytes(self, each: Round, schedule: Schedule) -> int:
        workers = self._workers(each.nodes)
        return sizing.block_bytes(each, schedule, workers, self.machine.resources)

    def open_bytes(self, owned: int, block_bytes: int) -> int:
        return self.machine.cores * owned * block_bytes

    def keys_per_partition(self, nodes: int, partitions: int) -> float:
        return keys_per_partition(nodes, partitions, self._record_bytes)

    @property
    def _record_bytes(self) -> int:
        return self.machine.layout.record_bytes

    def _plan(self, share_bytes: int, nodes: int) -> Mapping[str, int]:
        return sizing.plan(share_bytes, self.machine.cores, nodes, self.machine.resources)


class MapReduceDivision(Division):
    def partitions(self, share_bytes: int, nodes: int) -> int:
        return min(self._budget(nodes).partitions(share_bytes) * nodes, MAX_PARTITIONS)

    def slot_bytes(self, share_bytes: int, nodes: int) -> int:
        return int(self._budget(nodes).portion_bytes / self.map_share)

    def first_block_bytes(self, share_bytes: int, nodes: int) -> int:
        return self._blocks(nodes, self.partitions(share_bytes, nodes))

    def block_bytes(self, each: Round, schedule: Schedule) -> int:
        return self._blocks(len(each.nodes), len(each.owners))

    def _blocks(self, nodes: int, partitions: int) -> int:
        """A thread's buffer makes a block for each partition."""
        budget = self._budget(nodes)
        return min(budget.block_bytes, max(budget.buffer_bytes // partitions, 1))

    def open_bytes(self, owned: int, block_bytes: int) -> int:
        return int(self.machine.cores * self._budget(1).buffer_bytes / self.map_share)

    def keys_per_partition(self, nodes: int, partitions: int) -> float:
        return math.inf

    def _budget(self, nodes: int) -> MemoryBudget:
        machine = self.machine
        links = machine.links(nodes) + machine.devices
        budget = MemoryBudget(machine.memory_bytes, machine.cores, machine.devices, links)
        check_memory(budget, uploads=machine.to_objects)
        return budget


def division_of(job: Job, machine: Machine) -> Division:
    """The division of a sort or a MapReduce."""
    map_share = float(job.settings.get("map_share", 1.0))
    return SortDivision(machine) if job.name == "sort" else MapReduceDivision(machine, map_share)


def keys_per_partition(nodes: int, partitions: int, record_bytes: int) -> float:
    """The number of sampled keys for each partition, by the driver's arithmetic."""
    chunks = nodes * max(-(-sizing.chunks(partitions) // nodes), 1)
    chunk = max(min(CHUNK_BYTES, CHUNK_RECORDS * record_bytes) // record_bytes, 1)
    return chunks * chunk / partitions
