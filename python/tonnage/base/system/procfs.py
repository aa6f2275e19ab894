"""Counters of the whole machine under /proc: disks, cores, memory pages, network interfaces.

All are cumulative. A device's counters include all its users; the network's are those of a
network namespace, since the kernel does not count a process's traffic.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

PROC = Path("/proc")
SYS = Path("/sys")
SECTOR_BYTES = 512
TICKS = os.sysconf("SC_CLK_TCK")
STACKED = ("loop", "ram", "zram")
"""Name prefixes of devices that pass I/O on to others, or are memory."""


class DiskCounters(NamedTuple):
    """A block device's counters (Documentation/admin-guide/iostats)."""

    reads: int
    read_bytes: int
    writes: int
    written_bytes: int
    in_flight: int
    """Requests at this moment; not a counter."""
    busy_seconds: float
    """Time with anything in flight: a device that serves many at once may be busy and not full."""
    waited_seconds: float
    """Summed over requests: divided by ``busy_seconds`` it is the mean queue depth."""


class CoreSeconds(NamedTuple):
    """Seconds of all cores together; the hypervisor gave stolen ones to other guests."""

    user: float
    system: float
    idle: float
    waiting: float
    stolen: float

    @property
    def busy(self) -> float:
        return self.user + self.system


@dataclass(frozen=True)
class NetworkCounters:
    """Bytes moved by the interfaces of one network namespace; loopback apart."""

    received_bytes: int = 0
    sent_bytes: int = 0
    loopback_bytes: int = 0

    def plus_increase(self, before: NetworkCounters, now: NetworkCounters) -> NetworkCounters:
        """This plus the increase from ``before`` to ``now``; a decrease adds nothing."""
        return NetworkCounters(
            self.received_bytes + max(now.received_bytes - before.received_bytes, 0),
            self.sent_bytes + max(now.sent_bytes - before.sent_bytes, 0),
            self.loopback_bytes + max(now.loopback_bytes - before.loopback_bytes, 0),
        )


def disks(proc: Path = PROC) -> dict[str, DiskCounters]:
    counters = {}
    for line in (proc / "diskstats").read_text().splitlines():
        _, _, name, *fields = line.split()
        reads, _, read, _, writes, _, written, _, in_flight, busy, waited = map(int, fields[:11])
        counters[name] = DiskCounters(
            reads=reads,
            read_bytes=read * SECTOR_BYTES,
            writes=writes,
            written_bytes=written * SECTOR_BYTES,
            in_flight=in_flight,
            busy_seconds=busy / 1e3,
            waited_seconds=waited / 1e3,
        )
    return counters


def base_disks(proc: Path = PROC, sys: Path = SYS) -> dict[str, DiskCounters]:
    """Whole devices that store data themselves: no partitions, none built on other devices."""
    return {
        name: counters
        for name, counters in disks(proc).items()
        if not name.startswith(STACKED) and _is_base_disk(name, sys)
    }


def disk_totals(names: Sequence[str], proc: Path = PROC) -> DiskCounters | None:
    """The sum of these devices' counters; None if one of them has none."""
    known = disks(proc)
    if not names or not known.keys() >= {*names}:
        return None
    return DiskCounters(*map(sum, zip(*(known[name] for name in names), strict=True)))


def core_seconds(proc: Path = PROC) -> CoreSeconds:
    return _core_seconds((proc / "stat").read_text().split("\n", 1)[0])


def seconds_of_each_core(proc: Path = PROC) -> dict[str, CoreSeconds]:
    """Those of each core that is online, by the kernel's names (``cpu0``)."""
    lines = (proc / "stat").read_text().splitlines()[1:]
    return {line.split()[0]: _core_seconds(line) for line in lines if line.startswith("cpu")}


def meminfo_bytes(*names: str, proc: Path = PROC) -> int:
    """The sum of these fields of /proc/meminfo, like ``Dirty``."""
    fields = tuple(f"{name}:" for name in names)
    lines = (proc / "meminfo").read_text().splitlines()
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith(fields))


def network(pid: int, proc: Path = PROC) -> NetworkCounters | None:
    """The counters of a process's network namespace; None if the process is gone."""
    try:
        counters = interfaces(pid, proc)
    except OSError:
        return None
    _, loopback = counters.pop("lo", (0, 0))
    return NetworkCounters(
        sum(received for received, _ in counters.values()),
        sum(sent for _, sent in counters.values()),
        loopback,
    )


def interfaces(pid: int, proc: Path = PROC) -> dict[str, tuple[int, int]]:
    """Bytes received and sent by each interface of a process's network namespace."""
    counters = {}
    for line in (proc / str(pid) / "net" / "dev").read_text().splitlines()[2:]:
        name, _, text = line.partition(":")
        fields = text.split()
        counters[name.strip()] = int(fields[0]), int(fields[8])
    return counters


def network_scope(pid: int, proc: Path = PROC) -> str:
    """In words, whose traffic the counters of a process's namespace include."""
    try:
        namespace = os.stat(proc / str(pid) / "ns" / "net").st_ino
        first = os.stat(proc / "1" / "ns" / "net").st_ino
    except OSError:
        return "of all in its network namespace"
    return "of the whole machine" if namespace == first else "of all in its own network namespace"


def link_bytes_per_second(sys: Path = SYS) -> float | None:
    """The nominal speed of all interfaces together, each way; None if none states one."""
    total = 0.0
    interfaces = sys / "class" / "net"
    for entry in interfaces.iterdir() if interfaces.is_dir() else ():
        try:
            megabits = int((entry / "speed").read_text())
        except (OSError, ValueError):
            continue  # Virtual interfaces have none.
        total += max(megabits, 0) * 1e6 / 8
    return total or None


def optional_text(path: Path) -> str | None:
    """The content of a small file of the kernel; ``None`` if it cannot be read."""
    try:
        return path.read_text(errors="surrogateescape").strip()  # A path may not be text.
    except OSError:
        return None


def resident_memory() -> int:
    """Resident memory of this process, in bytes."""
    return int((PROC / "self" / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _core_seconds(line: str) -> CoreSeconds:
    # proc(5): user nice system idle iowait irq softirq steal, in ticks.
    user, nice, system, idle, waiting, irq, softirq, stolen = (
        int(value) / TICKS for value in line.split()[1:9]
    )
    return CoreSeconds(user + nice, system + irq + softirq, idle, waiting, stolen)


def _is_base_disk(name: str, sys: Path) -> bool:
    block = sys / "block" / name.replace("/", "!")
    if not block.is_dir():
        return False
    below = block / "slaves"
    return not (below.is_dir() and any(below.iterdir()))
