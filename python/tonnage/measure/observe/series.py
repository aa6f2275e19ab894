"""Samples as they come: in memory, and on file along the way, so that a kill leaves what there is.

While it is watched, ``NAME.csv`` grows line by line; at the end ``NAME.parquet`` takes its place.
"""

from __future__ import annotations

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
"""What is watched, and the host beside. Counters are cumulative; ``busiest_core`` is a share since
the sample before. The network's are its namespace's, while something that is watched has a socket;
``core_waits_seconds`` is summed over threads."""
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
"""Each device's own counters, cumulative, of whoever used it."""


class Series:
    """A table that grows."""

    def __init__(self, directory: Path, name: str, columns: Sequence[str]) -> None:
        self._growing = directory / f"{name}.csv"
        self._whole = directory / f"{name}.parquet"
        self._file = self._growing.open("w")
        self._file.write(",".join(columns) + "\n")
        self.columns: dict[str, list[Value]] = {column: [] for column in columns}

    def append(self, *row: Value) -> None:
        """One sample."""
        for column, value in zip(self.columns.values(), row, strict=True):
            column.append(value)
        self._file.write(",".join(map(str, row)) + "\n")

    def flush(self) -> None:
        """What came so far is the kernel's to keep: it survives us, though not the machine."""
        self._file.flush()

    def close(self) -> None:
        """The whole table, in the place of the growing one."""
        self._file.close()
        write_table(self._whole, self.columns)
        self._growing.unlink()
