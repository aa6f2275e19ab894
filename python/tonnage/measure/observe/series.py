"""Tables of samples, in memory and on file, so that a killed command leaves its samples.

During the observation ``NAME.csv`` grows line by line; at the end ``NAME.parquet`` replaces it.
"""

from collections.abc import Sequence
from pathlib import Path

from tonnage.base.records import write_table

Value = float | str

SERIES = (
    "seconds",
    "cpu_seconds",
    "read_bytes",
    "written_bytes",
    "cancelled_bytes",
    "reads",
    "writes",
    "network_received_bytes",
    "network_sent_bytes",
    "loopback_bytes",
    "memory_bytes",
    "processes",
    "busiest_core",
    "core_waits_seconds",
    "io_waits_seconds",
    "host_busy_seconds",
    "host_idle_seconds",
    "host_iowait_seconds",
    "host_steal_seconds",
    "host_dirty_bytes",
)
"""The observed processes, and the host. Counters are cumulative; ``busiest_core`` is a share since
the previous sample. Network counters are those of the namespace while an observed process has a
socket; ``core_waits_seconds`` is summed over threads."""
DEVICES = (
    "seconds",
    "device",
    "read_bytes",
    "written_bytes",
    "reads",
    "writes",
    "busy_seconds",
    "waited_seconds",
)
"""Each device's own cumulative counters, which include all its users."""


class Series:
    def __init__(self, directory: Path, name: str, columns: Sequence[str]) -> None:
        self._growing = directory / f"{name}.csv"
        self._complete = directory / f"{name}.parquet"
        self._file = self._growing.open("w")
        self._file.write(",".join(columns) + "\n")
        self.columns: dict[str, list[Value]] = {column: [] for column in columns}

    def append(self, *row: Value) -> None:
        for column, value in zip(self.columns.values(), row, strict=True):
            column.append(value)
        self._file.write(",".join(map(str, row)) + "\n")

    def flush(self) -> None:
        """Hand the samples so far to the kernel: they survive this process, but not the machine."""
        self._file.flush()

    def close(self) -> None:
        """Replace the growing file by the complete table."""
        self._file.close()
        write_table(self._complete, self.columns)
        self._growing.unlink()
