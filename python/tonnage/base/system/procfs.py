"""The kernel's counters of block devices and of cores: read here, for all who watch."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

DISKS = Path("/proc/diskstats")
SECTOR_BYTES = 512


class DiskCounters(NamedTuple):
    """What a device did since it was there; ``in_flight`` is what it is doing."""

    reads: int
    read_bytes: int
    writes: int
    written_bytes: int
    in_flight: int
    busy_milliseconds: int


class CoreSeconds(NamedTuple):
    """Core seconds of all cores together; those stolen the hypervisor gave to others."""

    user: float
    system: float
    idle: float
    waiting: float
    stolen: float

    @property
    def busy(self) -> float:
        """Spent on anything."""
        return self.user + self.system

    def stolen_share_since(self, earlier: CoreSeconds) -> float:
        """What part of the time between the hypervisor gave to others; 0 of none."""
        return (self.stolen - earlier.stolen) / ((sum(self) - sum(earlier)) or 1.0)


def disks() -> dict[str, DiskCounters]:
    """Each block device by the kernel's name (Documentation/admin-guide/iostats)."""
    found = {}
    for line in DISKS.read_text().splitlines():
        _, _, name, *fields = line.split()
        reads, _, read, _, writes, _, written, _, in_flight, busy = map(int, fields[:10])
        found[name] = DiskCounters(
            reads, read * SECTOR_BYTES, writes, written * SECTOR_BYTES, in_flight, busy
        )
    return found


def disk_totals(names: Sequence[str]) -> DiskCounters | None:
    """The counters of these devices added up; None if one of them has none."""
    known = disks()
    if not names or not known.keys() >= {*names}:
        return None
    columns = zip(*(known[name] for name in names), strict=True)
    return DiskCounters(*(sum(column) for column in columns))


def core_seconds() -> CoreSeconds:
    """What all cores did since the machine was started."""
    tick = os.sysconf("SC_CLK_TCK")
    # man proc: user nice system idle iowait irq softirq steal, in ticks over all cores.
    cpu = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
    user, nice, system, idle, waiting, irq, softirq, stolen = (
        int(value) / tick for value in cpu[:8]
    )
    return CoreSeconds(user + nice, system + irq + softirq, idle, waiting, stolen)
