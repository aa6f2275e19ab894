"""An observed command, observed processes, or the nodes of a run: what they did, phase by phase."""

from statistics import median
from typing import ClassVar

from msgspec import field

from tonnage.base.records.base import (
    Amount,
    Count,
    Level,
    PositiveCount,
    Record,
    Seconds,
    Struct,
)
from tonnage.base.records.environment import Environment


class NodeUsage(Struct, frozen=True, kw_only=True):
    """What one node of a run did in a phase, by all its processes."""

    node: str
    cpu_seconds: Seconds
    io_wait_seconds: Seconds  # Idle cores that waited for a disk
    stolen_seconds: Seconds  # Cores that the hypervisor gave to others
    read_bytes: Count
    written_bytes: Count
    network_received_bytes: Count
    network_sent_bytes: Count
    peak_memory_bytes: Count  # Without the page cache
    shares: dict[str, Amount]  # As in `ObservedPhase`
    bottleneck: str
    why: str

    def amount(self, resource: str) -> float:
        """What it used of a resource that can limit a phase: core seconds, or bytes."""
        if resource.startswith("disk"):
            return self.read_bytes + self.written_bytes
        if resource == "network":
            return max(self.network_received_bytes, self.network_sent_bytes)
        return self.cpu_seconds


class ObservedPhase(Struct, frozen=True, kw_only=True):
    """A period with similar demands. Of several nodes: the sums, and the most memory of one."""

    name: str
    began_seconds: Seconds
    seconds: Seconds
    read_bytes: Count  # At the block layer, so without the page cache
    written_bytes: Count  # At the block layer; to the page cache, bytes made dirty
    cancelled_bytes: Count  # Dirty bytes deleted before they were written back
    reads: Count  # Operations of the devices; ``Observation.operations_of`` states whose
    writes: Count
    network_received_bytes: Count
    network_sent_bytes: Count
    loopback_bytes: Count
    cpu_seconds: Seconds
    peak_memory_bytes: Count
    shares: dict[str, Amount]
    """How far each resource was used, from 0 to 1: ``cpu`` (of all cores), ``one core`` (by the
    busiest thread), devices (time busy), ``network`` where its speed is known; ``waits for I/O``,
    where the kernel tells it: how much of the time something did. ``waits for a core`` is summed
    over threads, so it may be more than 1."""
    bottleneck: str  # As in a prediction's terms, or ``one core``, ``network``, ``none: waits``
    why: str
    grows: bool  # False for a start or end that moves next to nothing, whatever the input
    nodes: list[NodeUsage] = field(default_factory=list)
    """Of a run on nodes; ``shares``, ``bottleneck`` and ``why`` are then those of the busiest."""

    @property
    def skew(self) -> float | None:
        """What the node that used most of the limiting resource used, over the nodes' median."""
        amounts = [node.amount(self.bottleneck) for node in self.nodes]
        middle = median(amounts) if amounts else 0.0
        return max(amounts) / middle if middle else None


class ObservedNode(Struct, frozen=True, kw_only=True):
    """A node of an observed run."""

    name: str
    cores: PositiveCount
    link_bytes_per_second: Amount | None  # Nominal, each way
    least_memory_bytes: Count  # What it used when it used least, as before the run
    samples: Count
    interval_seconds: Seconds  # Between samples, the median


class Observation(Record, frozen=True, kw_only=True):
    """A command, processes or the nodes of a run, observed by the kernel's counters."""

    SCHEMA: ClassVar[str] = "tonnage.observation/1"

    id: str
    began_at: str
    command: list[str]  # Empty if it ran already, or is not known
    pids: list[Count]  # Roots of the observed trees; empty if it was started here
    exit_code: Level | None  # As a shell has it; None for processes not started here
    environment: Environment | None  # None if other tools observed it
    interval_seconds: Seconds
    samples: Count
    longest_gap_seconds: Seconds
    seconds: Seconds
    own_cpu_seconds: Seconds | None  # Cost of observing
    cpu_from: str
    operations_of: str
    network_of: str
    control_group: str  # Its version, or why there was none
    device_bytes: dict[str, tuple[Count, Count]]
    """Read and written, by device, as charged to the control group."""
    dirty_bytes_before: Count | None
    dirty_bytes_after: Count | None  # Of the whole machine, still to be written back
    input_bytes: Count | None
    input_from: str
    phases: list[ObservedPhase]
    notes: list[str]
    nodes: list[ObservedNode] = field(default_factory=list)  # Empty: one machine, and not all of it
