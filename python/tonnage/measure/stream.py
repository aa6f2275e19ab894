"""Files in order, as IOR does it and Magellan used it: blocks, transfers, segments, N at once.

Each of N workers writes, and then reads, its block of each segment in transfers, of a file of its
own or of one that all share: segment after segment holds a block of each worker. A worker is a
thread that blocks, as IOR's processes do. What was written is flushed as part of the time if that
is asked for; before it is read through the page cache, the kernel is told to drop it.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tonnage import engine
from tonnage.artifacts import Measurement, Step, Trial
from tonnage.measure import beside, devices, environment, rounds
from tonnage.measure.kept import kept
from tonnage.measure.operations import reading_of, trial_of
from tonnage.measure.rounds import Rounds, Tried
from tonnage.measure.trials import now

DATA_PREFIX = ".tonnage-stream-"
OPERATIONS = ("write", "read")


@dataclass(frozen=True)
class Settings:
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
    """As `tonnage.measure.rounds`; ``repetitions`` is then how many there are at most."""

    def of_node(self, node: str) -> Settings:
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


def measure_stream(
    directory: Path,
    out: Path,
    settings: Settings,
    *,
    command: list[str],
    labels: Mapping[str, str] | None = None,
    on_progress: engine.OnProgress | None = None,
) -> Iterator[Trial | Measurement]:
    """Runs the trials that ``out`` does not have yet: gives each, and at last the measurement.

    Args:
        directory: Where files are written and read; they are removed at the end.
        out: Where trials are kept; see `tonnage.measure.kept`.
        settings: What to do.
        command: How it can be repeated.
        labels: What else is known of where it is done, like its region.
        on_progress: Called with bytes, of all trials so far.

    Raises:
        Refused: ``out`` holds trials of other settings, or ``directory`` cannot be used.
        Failed: The device failed; the trials that were done are in ``out``.
        KeyboardInterrupt: Ctrl-C; likewise.
    """
    repeated = Rounds(settings.repetitions, settings.until_confidence)
    tried = [Tried(name, settings.workers) for name in OPERATIONS if name in settings.operations]
    with (
        kept(
            out,
            "stream",
            dataclasses.asdict(settings) | {"directory": str(directory.resolve())},
            command=command,
            environment=environment.capture([directory], labels),
            stopping_rule="a trial goes through its files once, and nothing is left out as "
            f"warm-up; {rounds.rule(repeated)}",
            page_cache="bypassed" if settings.direct else "used; dropped before it is read",
        ) as trials,
        ExitStack() as stack,
    ):
        files: list[Path] = []
        steps = rounds.steps("stream", tried, repeated, trials.trials)
        for number, step in rounds.not_done(steps, trials.trials):
            if not files:
                room = stack.enter_context(engine.workspace("--dir", directory, DATA_PREFIX))
                engine.refuse_full([(room, settings.bytes)], "the files to be written and read")
                count = 1 if settings.shared else settings.workers
                files = [room / f"file-{place}" for place in range(count)]
                if step.operation == "read":
                    engine.run("ops_bench", _config(files, settings, writes=True))
            watched = engine.after(number * settings.bytes, on_progress)
            yield trials.keep(_trial(files, step, settings, directory, watched))
        yield trials.close()


def _trial(
    files: list[Path],
    step: Step,
    settings: Settings,
    directory: Path,
    on_progress: engine.OnProgress | None,
) -> Trial:
    writes = step.operation == "write"
    if not writes and not settings.direct:
        for file in files:
            drop(file)
    config = _config(files, settings, writes)
    began_at = now()
    with beside.Watch(*devices.holding(directory)) as watch:
        outcome = engine.run("ops_bench", config, on_progress)
    reading = reading_of(outcome, config, step.operation, watch.beside)
    layout = {"shared": settings.shared, "segments": settings.segments, "flush": settings.flush}
    reading = dataclasses.replace(reading, details=reading.details | layout)
    return trial_of(outcome, config, reading, step, watch.beside, began_at)


def _config(files: list[Path], settings: Settings, writes: bool) -> dict[str, Any]:
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


def drop(file: Path) -> None:
    """Has the kernel forget what it holds of the file, once it is on the device."""
    handle = os.open(file, os.O_RDONLY)
    try:
        os.fsync(handle)
        os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(handle)
