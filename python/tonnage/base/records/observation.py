"""An observed command, or observed processes: what they did, phase by phase."""

from typing import ClassVar

from tonnage.base.records.base import Amount, Count, Level, Record, Seconds, Struct
from tonnage.base.records.environment import Environment


class ObservedPhase(Struct, frozen=True, kw_only=True):
    """A period with similar demands."""

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


class Observation(Record, frozen=True, kw_only=True):
    """A command or processes, observed by the kernel's counters."""

    SCHEMA: ClassVar[str] = "tonnage.observation/1"

    id: str
    began_at: str
    command: list[str]  # Empty if it ran already
    pids: list[Count]  # Roots of the observed trees; empty if it was started here
    exit_code: Level | None  # As a shell has it; None for processes not started here
    environment: Environment
    interval_seconds: Seconds
    samples: Count
    longest_gap_seconds: Seconds
    seconds: Seconds
    own_cpu_seconds: Seconds  # Cost of observing
    cpu_from: str
    operations_of: str
    network_of: str
    control_group: str  # Its version, or why there was none
    device_bytes: dict[str, tuple[Count, Count]]
    """Read and written, by device, as charged to the control group."""
    dirty_bytes_before: Count
    dirty_bytes_after: Count  # Of the whole machine, still to be written back
    input_bytes: Count | None
    input_from: str
    phases: list[ObservedPhase]
    notes: list[str]
