"""What happened beside a trial: the device's own counters, the host's cores, dirty pages.

A trial's bytes beside the bytes that its device says it moved tell whether a cache was in the
way. Stolen and foreign core seconds tell whether the trial had the machine to itself; the depth-1
latency of a guest depends on how idle it is.
"""

from __future__ import annotations

import os
from pathlib import Path

from tonnage.base.records import SystemActivity
from tonnage.base.system import block_devices as devices
from tonnage.base.system import procfs
from tonnage.base.system.procfs import DiskCounters


class ActivityMonitor:
    """Reads the kernel's counters on entering and on leaving.

    Used as::

        with Watch("vda") as watch:
            ...
        watch.beside    # what happened meanwhile

    Args:
        devices: Their kernel's names, if any; their counters are added up.
    """

    def __init__(self, *devices: str) -> None:
        self._devices = devices
        self.activity: SystemActivity | None = None

    def __enter__(self) -> ActivityMonitor:
        self._disk, self._cores = procfs.disk_totals(self._devices), procfs.core_seconds()
        self._own = _own_seconds()
        self._dirty = _dirty_bytes()
        return self

    def __exit__(self, *_: object) -> None:
        cores, early = procfs.core_seconds(), self._cores
        late = procfs.disk_totals(self._devices)
        moved = _grown(self._disk, late) if self._disk and late else None
        own = _own_seconds() - self._own
        self.activity = SystemActivity(
            device=", ".join(self._devices),
            device_reads=moved.reads if moved else None,
            device_read_bytes=moved.read_bytes if moved else None,
            device_writes=moved.writes if moved else None,
            device_written_bytes=moved.written_bytes if moved else None,
            foreign_cpu_seconds=max(cores.busy - early.busy - own, 0.0),
            stolen_cpu_seconds=cores.stolen - early.stolen,
            dirty_bytes_before=self._dirty,
            dirty_bytes_after=_dirty_bytes(),
            queue=queue_options(self._devices[0]) if self._devices else {},
        )


def queue_options(device: str) -> dict[str, str]:
    """How the kernel treats the device's queue; empty for what has none."""
    queue = devices.queue_dir(device)
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


def _grown(early: DiskCounters, late: DiskCounters) -> DiskCounters:
    return DiskCounters(*(after - before for before, after in zip(early, late, strict=True)))


def _own_seconds() -> float:
    times = os.times()
    return times.user + times.system


def _dirty_bytes() -> int | None:
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("Dirty:"):
            return int(line.split()[1]) * 1024
    return None
