"""One trial of files in order: what the core is told, and what is said of it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msgspec import structs

from tonnage.base import core
from tonnage.base.records import Trial, TrialSpec
from tonnage.base.system import activity, block_devices
from tonnage.measure.random_io.trial import build_metric, build_trial
from tonnage.measure.trial.trial import utc_now

OPERATIONS = ("write", "read")


@dataclass(frozen=True)
class StreamSettings:
    """How to measure."""

    operations: tuple[str, ...]
    """Of `OPERATIONS`; what is not written to be measured is written to be read."""
    workers: int
    block_bytes: int
    """A worker's part of a segment."""
    transfer_bytes: int
    segments: int
    shared: bool
    """One file for all workers, instead of one for each."""
    direct: bool
    """Past the page cache."""
    flush: bool
    """What was written is durable before its time ends."""
    repetitions: int
    until_confidence: float | None = None
    """As `tonnage.measure.trial.repetition`; ``repetitions`` is then how many there are at most."""
    shared_dir: bool = False
    """The directory is one, which several machines have mounted, and ``shared`` is among all."""

    def for_node(self, node: str) -> StreamSettings:
        """The same for any node of a fleet: what is read has to be written before."""
        return self

    @property
    def bytes(self) -> int:
        """What one trial moves."""
        return self.segments * self.workers * self.block_bytes

    @property
    def memory_bytes(self) -> int:
        """What buffers take: one for each worker."""
        return self.workers * self.transfer_bytes


def run_trial(
    config: dict[str, Any],
    step: TrialSpec,
    settings: StreamSettings,
    directory: Path,
    on_progress: core.OnProgress | None,
) -> Trial:
    """Goes through files once, as ``config`` says; ``directory`` is where they are."""
    began_at = utc_now()
    with activity.ActivityMonitor(*block_devices.devices_of(directory)) as watch:
        outcome = core.run("ops_bench", config, on_progress)
    reading = build_metric(outcome, config, step.operation, watch.activity)
    layout = {"shared": settings.shared, "segments": settings.segments, "flush": settings.flush}
    reading = structs.replace(reading, details=reading.details | layout)
    return build_trial(outcome, config, reading, step, watch.activity, began_at)


def core_config(files: Sequence[Path], settings: StreamSettings, writes: bool) -> dict[str, Any]:
    """What the core is to do, one file for each worker or one for all."""
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
    """Has the kernel forget what it holds of the file, once it is on the device."""
    handle = os.open(file, os.O_RDONLY)
    try:
        os.fsync(handle)
        os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(handle)
