"""Measure sequential reads and writes as IOR does: blocks, transfers, segments, N workers.

Each of N workers writes, and then reads, its block of each segment in transfers. It uses a file of
its own, or one shared by all, in which each segment holds a block of each worker. A worker is a
blocking thread, where IOR has a process. On request, the time of writing includes the flush. Before
a file is read through the page cache, the kernel drops its pages.
"""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

from tonnage.base import core
from tonnage.base.records import Measurement, Trial, TrialSpec
from tonnage.cluster.barrier import Barrier
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

DATA_PREFIX = ".tonnage-stream-"


def measure_stream(
    directory: Path,
    out: Path,
    settings: StreamSettings,
    *,
    command: list[str],
    labels: Mapping[str, str] | None = None,
    on_progress: core.OnProgress | None = None,
    barrier: Barrier | None = None,
) -> Iterator[Trial | Measurement]:
    """Yield the trials that are not in ``out`` yet, and finally the measurement.

    ``barrier`` joins the nodes that share ``directory``, if ``settings`` says so.
    """
    plan = RepetitionPlan(settings.repetitions, settings.until_confidence)
    kinds = [
        TrialKind(name, settings.workers) for name in OPERATIONS if name in settings.operations
    ]
    cache = "bypassed" if settings.direct else "used; dropped before reading"
    if settings.shared_dir:
        cache += "; each node reads what another one wrote; what a server caches is not known"
    with open_session(
        out,
        "stream",
        dataclasses.asdict(settings) | {"directory": str(directory.resolve())},
        command=command,
        environment=environment.capture([directory], labels),
        stopping_rule="a trial goes through its files once, without a "
        f"warm-up; {repetition.stopping_rule(plan)}",
        page_cache=cache,
    ) as session:
        steps = repetition.trial_specs("stream", kinds, plan, session.trials)
        if settings.shared_dir:
            assert barrier is not None
            yield from shared.shared_trials(
                directory, settings, steps, session, barrier, on_progress
            )
        else:
            yield from _local_trials(directory, settings, steps, session, on_progress)
        yield session.finish()


def _local_trials(
    directory: Path,
    settings: StreamSettings,
    steps: Iterable[TrialSpec],
    session: MeasurementSession,
    on_progress: core.OnProgress | None,
) -> Iterator[Trial]:
    with ExitStack() as stack:
        files: list[Path] = []
        for number, step in repetition.remaining(steps, session.trials):
            writes = step.operation == "write"
            if not files:
                room = stack.enter_context(core.workspace("dir", directory, DATA_PREFIX))
                core.require_free_space([(room, settings.bytes)], "the test data")
                count = 1 if settings.shared else settings.workers
                files = [room / f"file-{place}" for place in range(count)]
                if not writes:
                    core.run("ops_bench", core_config(files, settings, writes=True))
            if not writes and not settings.direct:
                for file in files:
                    drop_cached_pages(file)
            progress = core.offset_progress(number * settings.bytes, on_progress)
            yield session.add(
                run_trial(core_config(files, settings, writes), step, settings, directory, progress)
            )
