"""The machine beside what is watched: devices, cores, network, dirty pages.

All counters are the kernel's and cumulative. A device's are of whoever uses it; the network's are
of all in a network namespace: the kernel does not count a process's traffic.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
SYS = Path("/sys")
SECTOR_BYTES = 512
TICKS = os.sysconf("SC_CLK_TCK")
PASSING = ("loop", "ram", "zram")
"""Devices that pass on to others, or are memory."""


@dataclass(frozen=True)
class Device:
    """A block device's counters (Documentation/admin-guide/iostats)."""

    read_bytes: int
    written_bytes: int
    reads: int
    writes: int
    busy_seconds: float
    """Time with anything in flight: a device that serves many at once may be busy and not full."""
    waited_seconds: float
    """Summed over what was in flight: over ``busy_seconds`` it is how many there were at once."""


@dataclass(frozen=True)
class Host:
    """All cores, and the pages that are to be written back."""

    busy_seconds: float
    idle_seconds: float
    iowait_seconds: float
    steal_seconds: float
    dirty_bytes: int


@dataclass(frozen=True)
class Network:
    """What the interfaces of one namespace moved; loopback apart."""

    received_bytes: int = 0
    sent_bytes: int = 0
    loopback_bytes: int = 0

    def and_since(self, before: Network, now: Network) -> Network:
        """This, and what was moved from ``before`` to ``now``; what falls back adds nothing."""
        return Network(
            self.received_bytes + max(now.received_bytes - before.received_bytes, 0),
            self.sent_bytes + max(now.sent_bytes - before.sent_bytes, 0),
            self.loopback_bytes + max(now.loopback_bytes - before.loopback_bytes, 0),
        )


def devices(proc: Path = PROC, sys: Path = SYS) -> dict[str, Device]:
    """Whole devices that carry data themselves: no partitions, none that are made of others."""
    found = {}
    for line in (proc / "diskstats").read_text().splitlines():
        _, _, name, *text = line.split()
        if name.startswith(PASSING) or not _is_whole(name, sys):
            continue
        counters = [int(value) for value in text]
        found[name] = Device(
            read_bytes=counters[2] * SECTOR_BYTES,
            written_bytes=counters[6] * SECTOR_BYTES,
            reads=counters[0],
            writes=counters[4],
            busy_seconds=counters[9] / 1e3,
            waited_seconds=counters[10] / 1e3,
        )
    return found


def device_numbers(sys: Path = SYS) -> dict[str, str]:
    """Names of block devices by ``major:minor``, as control groups have them."""
    found = {}
    block = sys / "block"
    for entry in block.iterdir() if block.is_dir() else ():
        try:
            found[(entry / "dev").read_text().strip()] = entry.name
        except OSError:
            continue
    return found


def host(proc: Path = PROC) -> Host:
    """The cores together."""
    # man proc: user nice system idle iowait irq softirq steal, in ticks over all cores.
    cpu = (proc / "stat").read_text().split("\n", 1)[0].split()[1:]
    user, nice, system, idle, iowait, irq, softirq, steal = (
        int(value) / TICKS for value in cpu[:8]
    )
    dirty = 0
    for line in (proc / "meminfo").read_text().splitlines():
        if line.startswith(("Dirty:", "Writeback:")):
            dirty += int(line.split()[1]) * 1024
    return Host(user + nice + system + irq + softirq, idle, iowait, steal, dirty)


def network(pid: int, proc: Path = PROC) -> Network | None:
    """The counters of a process's network namespace; None if the process is gone."""
    try:
        lines = (proc / str(pid) / "net" / "dev").read_text().splitlines()[2:]
    except OSError:
        return None
    received = sent = loopback = 0
    for line in lines:
        name, _, text = line.partition(":")
        counters = text.split()
        if name.strip() == "lo":
            loopback += int(counters[8])
        else:
            received += int(counters[0])
            sent += int(counters[8])
    return Network(received, sent, loopback)


def network_scope(pid: int, proc: Path = PROC) -> str:
    """In words, whom the network's counters are of."""
    try:
        own = os.stat(proc / str(pid) / "ns" / "net").st_ino
        first = os.stat(proc / "1" / "ns" / "net").st_ino
    except OSError:
        return "of all in its network namespace"
    return "of the whole machine" if own == first else "of all in its own network namespace"


def link_bytes_per_second(sys: Path = SYS) -> float | None:
    """What the interfaces are said to carry each way, together; None if they do not say."""
    total = 0.0
    interfaces = sys / "class" / "net"
    for entry in interfaces.iterdir() if interfaces.is_dir() else ():
        try:
            megabits = int((entry / "speed").read_text())
        except (OSError, ValueError):
            continue  # Virtual interfaces have none.
        total += max(megabits, 0) * 1e6 / 8
    return total or None


def _is_whole(name: str, sys: Path) -> bool:
    block = sys / "block" / name.replace("/", "!")
    if not block.is_dir():
        return False
    made_of = block / "slaves"
    return not (made_of.is_dir() and any(made_of.iterdir()))
