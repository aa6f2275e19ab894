"""What happened beside a trial: the device's own counters, the host's cores, dirty pages.

A trial's bytes beside the bytes that its device says it moved tell whether a cache was in the
way. Stolen and foreign core seconds tell whether the trial had the machine to itself; the depth-1
latency of a guest depends on how idle it is.
"""

from __future__ import annotations

import os
from pathlib import Path

from tonnage.artifacts import Beside

SECTOR_BYTES = 512


class Watch:
    """Reads the kernel's counters on entering and on leaving.

    Used as::

        with Watch("vda") as watch:
            ...
        watch.beside    # what happened meanwhile
    """

    def __init__(self, device: str) -> None:
        self._device = device
        self.beside: Beside | None = None

    def __enter__(self) -> Watch:
        self._disk, self._host = _device_counters(self._device), _host_seconds()
        self._own = _own_seconds()
        self._dirty = _dirty_bytes()
        return self

    def __exit__(self, *_: object) -> None:
        host = [late - early for late, early in zip(_host_seconds(), self._host, strict=True)]
        busy, stolen = host
        disk = _device_counters(self._device)
        moved = None
        if disk and self._disk:
            moved = [late - early for late, early in zip(disk, self._disk, strict=True)]
        self.beside = Beside(
            device=self._device,
            device_reads=moved[0] if moved else None,
            device_read_bytes=moved[1] * SECTOR_BYTES if moved else None,
            device_writes=moved[2] if moved else None,
            device_written_bytes=moved[3] * SECTOR_BYTES if moved else None,
            foreign_cpu_seconds=max(busy - (_own_seconds() - self._own), 0.0),
            stolen_cpu_seconds=stolen,
            dirty_bytes_before=self._dirty,
            dirty_bytes_after=_dirty_bytes(),
            queue=queue_settings(self._device),
        )


def queue_settings(device: str) -> dict[str, str]:
    """How the kernel treats the device's queue; empty for what has none."""
    block = Path("/sys/class/block") / device
    queue = block / "queue" if (block / "queue").is_dir() else block.resolve().parent / "queue"
    names = (
        "scheduler",
        "nr_requests",
        "read_ahead_kb",
        "max_sectors_kb",
        "write_cache",
        "nomerges",
    )
    found = {}
    for name in names:
        try:
            found[name] = (queue / name).read_text().strip()
        except OSError:
            continue
    return found


def _device_counters(device: str) -> list[int] | None:
    """Reads, sectors read, writes, sectors written (Documentation/admin-guide/iostats)."""
    for line in Path("/proc/diskstats").read_text().splitlines():
        _, _, name, *counters = line.split()
        if name == device:
            return [int(counters[place]) for place in (0, 2, 4, 6)]
    return None


def _host_seconds() -> list[float]:
    """Core seconds that all cores were busy, and that the hypervisor gave to others."""
    tick = os.sysconf("SC_CLK_TCK")
    # man proc: user nice system idle iowait irq softirq steal, in ticks over all cores.
    cpu = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
    user, nice, system, _, _, irq, softirq, steal = (int(value) / tick for value in cpu[:8])
    return [user + nice + system + irq + softirq, steal]


def _own_seconds() -> float:
    times = os.times()
    return times.user + times.system


def _dirty_bytes() -> int | None:
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("Dirty:"):
            return int(line.split()[1]) * 1024
    return None
