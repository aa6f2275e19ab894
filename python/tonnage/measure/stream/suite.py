"""Files in order, as IOR does it and Magellan used it: blocks, transfers, segments, N at once.

Each of N workers writes, and then reads, its block of each segment in transfers, of a file of its
own or of one that all share: segment after segment holds a block of each worker. A worker is a
thread that blocks, as IOR's processes do. What was written is flushed as part of the time if that
is asked for; before it is read through the page cache, the kernel is told to drop it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

from tonnage.base import core
from tonnage.base.records import Measurement, Trial, TrialSpec
from tonnage.cluster.peers import Barrier
from tonnage.measure.stream import shared
from tonnage.measure.stream.trial import (
    OPERATIONS,
    StreamSettings,
    core_config,
    drop_cached_pages,
    run_trial,
)
from tonnage.measure.trial import environment, repetition
from tonnage.measure.trial.repetition import RepetitionPlan, TrialKind
from tonnage.measure.trial.session import MeasurementSession, open_session

__all__ = ["OPERATIONS", "StreamSettings", "drop_cached_pages", "measure_stream"]

DATA_PREFIX = ".tonnage-stream-"


def measure_stream(
    directory: Path,
    out: Path,
    settings: StreamSettings,
    *,
    command: list[str],
    labels: Mapping[str, str] | None = None,
    on_progress: core.OnProgress | None = None,
    peers: Barrier | None = None,
) -> Iterator[Trial | Measurement]:
    """Runs the trials that ``out`` does not have yet: gives each, and at last the measurement.

    Args:
        directory: Where files are written and read; they are removed at the end.
        out: Where trials are kept; see `tonnage.measure.trial.session`.
        settings: What to do.
        command: How it can be repeated.
        labels: What else is known of where it is done, like its region.
        on_progress: Called with bytes, of all trials so far.
        peers: The machines that use the directory together, if ``settings`` says so.

    Raises:
        UsageError: ``out`` holds trials of other settings, or ``directory`` cannot be used.
        RunError: The device failed; the trials that were done are in ``out``.
        KeyboardInterrupt: Ctrl-C; likewise.
    """
    repeated = RepetitionPlan(settings.repetitions, settings.until_confidence)
    tried = [
        TrialKind(name, settings.workers) for name in OPERATIONS if name in settings.operations
    ]
    cache = "bypassed" if settings.direct else "used; dropped before it is read"
    if settings.shared_dir:
        cache += "; each node read what another one wrote; what a server remembers is not known"
    with open_session(
        out,
        "stream",
        dataclasses.asdict(settings) | {"directory": str(directory.resolve())},
        command=command,
        environment=environment.capture([directory], labels),
        stopping_rule="a trial goes through its files once, and nothing is left out as "
        f"warm-up; {repetition.stopping_rule(repeated)}",
        page_cache=cache,
    ) as trials:
        steps = repetition.trial_specs("stream", tried, repeated, trials.trials)
        if settings.shared_dir:
            assert peers is not None
            yield from shared.shared_trials(directory, settings, steps, trials, peers, on_progress)
        else:
            yield from _alone(directory, settings, steps, trials, on_progress)
        yield trials.finish()


def _alone(
    directory: Path,
    settings: StreamSettings,
    steps: Iterable[TrialSpec],
    trials: MeasurementSession,
    on_progress: core.OnProgress | None,
) -> Iterator[Trial]:
    """The steps that are not on file yet, in a directory that no other machine uses."""
    with ExitStack() as stack:
        files: list[Path] = []
        for number, step in repetition.remaining(steps, trials.trials):
            writes = step.operation == "write"
            if not files:
                room = stack.enter_context(core.workspace("dir", directory, DATA_PREFIX))
                core.require_free_space(
                    [(room, settings.bytes)], "the files to be written and read"
                )
                count = 1 if settings.shared else settings.workers
                files = [room / f"file-{place}" for place in range(count)]
                if not writes:
                    core.run("ops_bench", core_config(files, settings, writes=True))
            if not writes and not settings.direct:
                for file in files:
                    drop_cached_pages(file)
            watched = core.offset_progress(number * settings.bytes, on_progress)
            yield trials.add(
                run_trial(core_config(files, settings, writes), step, settings, directory, watched)
            )
