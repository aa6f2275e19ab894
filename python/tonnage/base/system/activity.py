"""System activity during a trial: the device's counters, the host's cores, dirty pages.

If a trial's bytes differ from the bytes that its device moved, a cache was in the way. Core seconds
stolen by the hypervisor or used by other processes show whether the trial had the machine to
itself; the latency of a guest at queue depth 1 depends on how idle it is.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tonnage.base.core.process_usage import cpu_seconds
from tonnage.base.records import Phase, SystemActivity
from tonnage.base.system import procfs
from tonnage.base.system.block_devices import queue_dir
from tonnage.base.system.procfs import DiskCounters
from tonnage.base.system.sampler import MachineSampler

QUEUE_OPTIONS = (
    "scheduler",
    "nr_requests",
    "read_ahead_kb",
    "max_sectors_kb",
    "write_cache",
    "nomerges",
)


class ActivityMonitor:
    """Reads the kernel's counters on entering and on leaving; ``activity`` is what they rose by."""

    def __init__(self, *devices: str) -> None:
        self._devices = devices
        self.activity: SystemActivity | None = None

    def __enter__(self) -> ActivityMonitor:
        self._disk, self._cores = procfs.disk_totals(self._devices), procfs.core_seconds()
        self._own = cpu_seconds()
        self._dirty = procfs.meminfo_bytes("Dirty")
        return self

    def __exit__(self, *_: object) -> None:
        cores, before = procfs.core_seconds(), self._cores
        disk = procfs.disk_totals(self._devices)
        moved = _difference(self._disk, disk) if self._disk and disk else None
        own = cpu_seconds() - self._own
        self.activity = SystemActivity(
            device=", ".join(self._devices),
            device_reads=moved.reads if moved else None,
            device_read_bytes=moved.read_bytes if moved else None,
            device_writes=moved.writes if moved else None,
            device_written_bytes=moved.written_bytes if moved else None,
            foreign_cpu_seconds=max(cores.busy - before.busy - own, 0.0),
            stolen_cpu_seconds=cores.stolen - before.stolen,
            dirty_bytes_before=self._dirty,
            dirty_bytes_after=procfs.meminfo_bytes("Dirty"),
            queue=queue_options(self._devices[0]) if self._devices else {},
        )


def activity_during(
    phase: Phase, devices: Sequence[str], sampler: MachineSampler
) -> SystemActivity:
    """The activity during one phase, interpolated linearly; job and ``sampler`` began together."""
    times = [phase.began_seconds, phase.began_seconds + phase.seconds]

    def increase(seconds: Sequence[float], values: Sequence[float]) -> float:
        before, after = np.interp(times, seconds, values)
        return float(after - before)

    def host_increase(counter: str) -> float:
        return increase(sampler.host["seconds"], sampler.host[counter])

    def device_increase(counter: str) -> int:
        total = 0.0
        for device in devices:
            rows = [row for row, name in enumerate(sampler.devices["device"]) if name == device]
            columns = (sampler.devices["seconds"], sampler.devices[counter])
            seconds, values = ([column[row] for row in rows] for column in columns)
            total += increase(seconds, values)
        return round(total)

    busy = host_increase("cpu_user_seconds") + host_increase("cpu_system_seconds")
    own = sum(stage.cpu_seconds for stage in phase.stages)
    return SystemActivity(
        device=", ".join(devices),
        device_reads=None,
        device_read_bytes=device_increase("read_bytes"),
        device_writes=None,
        device_written_bytes=device_increase("written_bytes"),
        foreign_cpu_seconds=max(busy - own, 0.0),
        stolen_cpu_seconds=host_increase("cpu_steal_seconds"),
        dirty_bytes_before=None,
        dirty_bytes_after=None,
        queue=queue_options(devices[0]) if devices else {},
    )


def queue_options(device: str) -> dict[str, str]:
    queue = queue_dir(device)
    options = {}
    for name in QUEUE_OPTIONS:
        try:
            options[name] = (queue / name).read_text().strip()
        except OSError:
            continue
    return options


def _difference(before: DiskCounters, after: DiskCounters) -> DiskCounters:
    return DiskCounters(*(late - early for early, late in zip(before, after, strict=True)))  # type: ignore[arg-type]
