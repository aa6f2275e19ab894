"""Sample the machine while a job runs: block devices, cores, network, this process's memory.

These are the kernel counters behind iostat, sar and vnStat, sampled by one thread four times a
second.
"""

from __future__ import annotations

import os
import threading
import time
from typing import Any

from tonnage.base.system import procfs

EVERY_SECONDS = 0.25
DEVICES = ("seconds", "device", "read_bytes", "written_bytes", "busy_seconds", "in_flight")
HOST = (
    "seconds",
    "cpu_user_seconds",
    "cpu_system_seconds",
    "cpu_idle_seconds",
    "cpu_iowait_seconds",
    "cpu_steal_seconds",
    "network_received_bytes",
    "network_sent_bytes",
    "process_memory_bytes",
)


class MachineSampler:
    """Samples the kernel's counters until left; ``devices`` and ``host`` are columns of tables."""

    def __init__(self, devices: list[str]) -> None:
        self._names = set(devices)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sampler", daemon=True)
        self._began = 0.0
        self.devices: dict[str, list[Any]] = {name: [] for name in DEVICES}
        self.host: dict[str, list[Any]] = {name: [] for name in HOST}

    def __enter__(self) -> MachineSampler:
        self._began = time.monotonic()
        self._sample()  # Here, since the thread may start late.
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self._sample()

    def _run(self) -> None:
        while not self._stop.wait(EVERY_SECONDS):
            self._sample()

    def _sample(self) -> None:
        seconds = time.monotonic() - self._began
        for name, disk in procfs.disks().items():
            if name in self._names:
                moved = disk.read_bytes, disk.written_bytes
                _append(self.devices, (seconds, name, *moved, disk.busy_seconds, disk.in_flight))
        network = procfs.network(os.getpid()) or procfs.NetworkCounters()
        moved = network.received_bytes, network.sent_bytes
        _append(self.host, (seconds, *procfs.core_seconds(), *moved, procfs.resident_memory()))


def _append(columns: dict[str, list[Any]], row: tuple[Any, ...]) -> None:
    for column, value in zip(columns.values(), row, strict=True):
        column.append(value)
