"""Watches the machine while a job runs: block devices, cores, network, this process's memory.

What iostat, sar and vnStat showed in the papers, from the same kernel counters, sampled by one
sleeping thread four times a second.
"""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from typing import Any

from tonnage.base.system import procfs

EVERY_SECONDS = 0.25


class MachineSampler:
    """Samples the kernel's counters between entering and leaving.

    Used as::

        with Watch(["vda"]) as watch:
            ...
        watch.devices, watch.host    # columns, for `artifacts.write_table`
    """

    def __init__(self, devices: list[str]) -> None:
        self._names = set(devices)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)
        self._began = 0.0
        self.devices: dict[str, list[Any]] = {
            name: []
            for name in (
                "seconds",
                "device",
                "read_bytes",
                "written_bytes",
                "busy_seconds",
                "in_flight",
            )
        }
        self.host: dict[str, list[Any]] = {
            name: []
            for name in (
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
        }

    def __enter__(self) -> MachineSampler:
        self._began = time.monotonic()
        self._sample()  # By whoever enters and leaves: the thread may come to run late.
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
        self._sample_devices(seconds)
        self._sample_host(seconds)

    def _sample_devices(self, seconds: float) -> None:
        for name, disk in procfs.disks().items():
            if name in self._names:
                row = (
                    seconds,
                    name,
                    disk.read_bytes,
                    disk.written_bytes,
                    disk.busy_milliseconds / 1e3,
                    disk.in_flight,
                )
                _append(self.devices, row)

    def _sample_host(self, seconds: float) -> None:
        received = sent = 0
        for line in Path("/proc/net/dev").read_text().splitlines()[2:]:
            name, _, fields = line.partition(":")
            if name.strip() != "lo":
                received += int(fields.split()[0])
                sent += int(fields.split()[8])
        row = (
            seconds,
            *procfs.core_seconds(),
            received,
            sent,
            resident_memory(),
        )
        _append(self.host, row)


def resident_memory() -> int:
    """Resident memory of this process, in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _append(columns: dict[str, list[Any]], row: tuple[Any, ...]) -> None:
    for column, value in zip(columns.values(), row, strict=True):
        column.append(value)
