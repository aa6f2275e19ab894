"""What happened beside one phase of a job, cut out of samples that were taken of all of it.

Between two samples the counters are taken to have grown evenly.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tonnage.base.records import Phase, SystemActivity
from tonnage.base.system.activity import queue_options
from tonnage.base.system.sampler import MachineSampler


def activity_during(phase: Phase, devices: Sequence[str], watch: MachineSampler) -> SystemActivity:
    """The counters of devices, together, and of the machine during a phase.

    Args:
        phase: Of a job that began when the watch did.
        devices: The kernel's names of those that were watched.
        watch: Has ended.
    """
    times = [phase.began_seconds, phase.began_seconds + phase.seconds]

    def grown(seconds: Sequence[float], values: Sequence[float]) -> float:
        early, late = np.interp(times, seconds, values)
        return float(late - early)

    def of_host(counter: str) -> float:
        return grown(watch.host["seconds"], watch.host[counter])

    def of_devices(counter: str) -> int:
        total = 0.0
        for device in devices:
            rows = [row for row, name in enumerate(watch.devices["device"]) if name == device]
            columns = (watch.devices["seconds"], watch.devices[counter])
            seconds, values = ([column[row] for row in rows] for column in columns)
            total += grown(seconds, values)
        return round(total)

    own = sum(stage.cpu_seconds for stage in phase.stages)
    return SystemActivity(
        device=", ".join(devices),
        device_reads=None,
        device_read_bytes=of_devices("read_bytes"),
        device_writes=None,
        device_written_bytes=of_devices("written_bytes"),
        foreign_cpu_seconds=max(
            of_host("cpu_user_seconds") + of_host("cpu_system_seconds") - own, 0.0
        ),
        stolen_cpu_seconds=of_host("cpu_steal_seconds"),
        dirty_bytes_before=None,
        dirty_bytes_after=None,
        queue=queue_options(devices[0]) if devices else {},
    )
