"""Run one trial of sequential reads or writes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msgspec import structs

from tonnage.base import core
from tonnage.base.clock import utc_now
from tonnage.base.records import Trial, TrialSpec
from tonnage.base.system import activity, block_devices
from tonnage.measure.random_io.trial import build_metric, build_trial

OPERATIONS = ("write", "read")


@dataclass(frozen=True)
class StreamSettings:
    operations: tuple[str, ...]
    """Of `OPERATIONS`; without "write", files are written unmeasured before they are read."""
    workers: int
    block_bytes: int
    """A worker's part of a segment."""
    transfer_bytes: int
    segments: int
    shared: bool
    """One file for all workers, instead of one each."""
    direct: bool
    """Past the page cache."""
    flush: bool
    """The time of writing includes making the data durable."""
    repetitions: int
    until_confidence: float | None = None
    """See `tonnage.measure.trial.repetition`; ``repetitions`` is then the most."""
    shared_dir: bool = False
    """Several nodes have mounted the same directory, and a ``shared`` file is shared by all."""

    def for_node(self, node: str) -> StreamSettings:
        """The same for each node of a cluster: files must be written before they are read."""
        return self

    @property
    def bytes(self) -> int:
        return self.segments * self.workers * self.block_bytes

    @property
    def memory_bytes(self) -> int:
        return self.workers * self.transfer_bytes


def run_trial(
    config: dict[str, Any],
    step: TrialSpec,
    settings: StreamSettings,
    directory: Path,
    on_progress: core.OnProgress | None,
) -> Trial:
    began_at = utc_now()
    with activity.ActivityMonitor(*block_devices.devices_of(directory)) as monitor:
        outcome = core.run("ops_bench", config, on_progress)
    metric = build_metric(outcome, config, step.operation, monitor.activity)
    layout = {"shared": settings.shared, "segments": settings.segments, "flush": settings.flush}
    metric = structs.replace(metric, details=metric.details | layout)
    return build_trial(outcome, config, metric, step, monitor.activity, began_at)


def core_config(files: Sequence[Path], settings: StreamSettings, writes: bool) -> dict[str, Any]:
    return {
        "files": [str(file) for file in files],
        "writes": writes,
        "durable_one_in": 0,
        "block_bytes": settings.transfer_bytes,
        "outstanding": settings.workers,
        "blocking": True,
        "batched": False,
        "seconds": 0.0,
        "warm_up_seconds": 0.0,
        "seed": 0,
        "segments": {"count": settings.segments, "part_bytes": settings.block_bytes},
        "flush_at_end": writes and settings.flush,
        "disk": {"page_cache": not settings.direct},
    }


def drop_cached_pages(file: Path) -> None:
    """Write the file to its device and drop it from the page cache."""
    handle = os.open(file, os.O_RDONLY)
    try:
        os.fsync(handle)
        os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(handle)
