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

EVERY_SECONDS = 0.25
SECTOR_BYTES = 512


class Watch:
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

    def __enter__(self) -> Watch:
        self._began = time.monotonic()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        ended = False
        while True:
            seconds = time.monotonic() - self._began
            self._sample_devices(seconds)
            self._sample_host(seconds)
            if ended:
                return
            ended = self._stop.wait(EVERY_SECONDS)  # One more sample: the job's end counts too.

    def _sample_devices(self, seconds: float) -> None:
        # Documentation/admin-guide/iostats: fields after the name, from 0: 2 sectors read,
        # 6 sectors written, 8 in flight, 9 milliseconds with any in flight.
        for line in Path("/proc/diskstats").read_text().splitlines():
            _, _, name, *counters = line.split()
            if name in self._names:
                row = (
                    seconds,
                    name,
                    int(counters[2]) * SECTOR_BYTES,
                    int(counters[6]) * SECTOR_BYTES,
                    int(counters[9]) / 1e3,
                    int(counters[8]),
                )
                _append(self.devices, row)

    def _sample_host(self, seconds: float) -> None:
        tick = os.sysconf("SC_CLK_TCK")
        # man proc: user nice system idle iowait irq softirq steal, in ticks over all cores.
        cpu = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
        user, nice, system, idle, iowait, irq, softirq, steal = (
            int(value) / tick for value in cpu[:8]
        )
        received = sent = 0
        for line in Path("/proc/net/dev").read_text().splitlines()[2:]:
            name, _, counters = line.partition(":")
            if name.strip() != "lo":
                received += int(counters.split()[0])
                sent += int(counters.split()[8])
        row = (
            seconds,
            user + nice,
            system + irq + softirq,
            idle,
            iowait,
            steal,
            received,
            sent,
            memory_now(),
        )
        _append(self.host, row)


def memory_now() -> int:
    """Resident memory of this process, in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _append(columns: dict[str, list[Any]], row: tuple[Any, ...]) -> None:
    for column, value in zip(columns.values(), row, strict=True):
        column.append(value)
