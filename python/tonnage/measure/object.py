"""What an object store carries: chunks of some sizes, got and put by so many threads.

Threads make one request after another, as MATE-EC2's retrieval threads do: ranges of objects that
were put for it, objects of one chunk, or parts of one upload. Trials of a round come in a random,
seeded order, so that a drift of the store meets all of them. What was put is removed at the end.
"""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tonnage
from tonnage.base import core
from tonnage.base.core import stage_stats
from tonnage.base.records import Measurement, Metric, Source, SystemActivity, Trial, TrialSpec
from tonnage.base.records.base import to_builtins
from tonnage.base.stats.knee import knee
from tonnage.base.system import activity
from tonnage.measure.random_io.trial import (
    latency_from_report,
    rate_series,
    rates_after_warm_up,
    warm_up,
)
from tonnage.measure.trial import environment, repetition
from tonnage.measure.trial.repetition import RepetitionPlan, TrialKind
from tonnage.measure.trial.session import open_session
from tonnage.measure.trial.trial import utc_now

OPERATIONS = ("get", "put", "multipart")
LEAST_PART_BYTES = 5 << 20
"""Of a multipart upload all parts but the last have this at least (S3's rule)."""
FOLDER_PREFIX = "tonnage-"
LAYING_OUT_THREADS = 4


@dataclass(frozen=True)
class ObjectSettings:
    """How to measure."""

    bucket: str
    prefix: str
    """The folder in which objects are put; it may be empty. They have a folder of their own there,
    named for the measurement."""
    endpoint: str | None
    """The store's address; ``None`` for what the environment says, or else AWS' own."""
    operations: tuple[str, ...]
    chunk_bytes: tuple[int, ...]
    threads: tuple[int, ...]
    seconds: float
    rounds: int
    """Trials of each; at most, if they end when it is known well enough."""
    until_confidence: float | None
    """As `tonnage.measure.trial.repetition`."""
    objects: int
    """From how many objects chunks are got."""
    object_bytes: int
    seed: int

    def for_node(self, node: str) -> ObjectSettings:
        """The same for one node of a fleet, with a seed of its own."""
        return dataclasses.replace(self, seed=repetition.node_seed(self.seed, node))

    @property
    def prepared_bytes(self) -> int:
        """What is put to be got."""
        return self.objects * self.object_bytes if "get" in self.operations else 0

    @property
    def trial_kinds(self) -> list[TrialKind]:
        """Each operation with each size of a chunk that it can have, by each number of threads."""
        return [
            TrialKind(operation, threads, chunk_bytes)
            for operation in self.operations
            for chunk_bytes in self.chunk_bytes
            if operation != "multipart" or chunk_bytes >= LEAST_PART_BYTES
            for threads in self.threads
        ]

    @property
    def repetition_plan(self) -> RepetitionPlan:
        """How often each is tried."""
        return RepetitionPlan(self.rounds, self.until_confidence, self.seed)

    @property
    def max_duration_seconds(self) -> float:
        """How long all trials take at most."""
        return self.rounds * len(self.trial_kinds) * self.seconds


@dataclass(frozen=True)
class Knee:
    """How many threads it takes to come near the best that a chunk of this size gives."""

    operation: str
    chunk_bytes: int
    threads: int
    bytes_per_second: float


def trial_order(settings: ObjectSettings, done: Sequence[Trial]) -> Iterator[TrialSpec]:
    """The trials in their order; what was found in ``done``, which grows, decides what follows."""
    return repetition.trial_specs("object", settings.trial_kinds, settings.repetition_plan, done)


def buffer_bytes(settings: ObjectSettings) -> int:
    """The most that a trial's buffers take: one for each thread, and some that wait."""
    return (max(settings.threads) + 2) * max(settings.chunk_bytes)


def knees(trials: Sequence[Trial]) -> list[Knee]:
    """The knee of each operation and size of a chunk, over the medians of trials alike."""
    rates: dict[tuple[str, int], dict[int, list[float]]] = {}
    for trial in trials:
        if trial.step and trial.reading and trial.reading.block_bytes:
            of_pair = rates.setdefault((trial.step.operation, trial.reading.block_bytes), {})
            of_pair.setdefault(trial.step.outstanding, []).append(trial.bytes_per_second)
    found = []
    for (operation, chunk_bytes), of_pair in sorted(rates.items()):
        medians = {threads: statistics.median(several) for threads, several in of_pair.items()}
        enough = knee(medians)
        found.append(Knee(operation, chunk_bytes, enough, medians[enough]))
    return found


def threads_needed(measured: Iterable[Measurement], chunk_bytes: int) -> int | None:
    """The knee of getting chunks of the size that is next to this; ``None`` if none was tried."""
    gets = [each for one in measured for each in knees(one.trials) if each.operation == "get"]
    nearest = min(
        gets, key=lambda each: abs(math.log(each.chunk_bytes / chunk_bytes)), default=None
    )
    return None if nearest is None else nearest.threads


def measure_object(
    out: Path,
    settings: ObjectSettings,
    *,
    command: list[str],
    labels: Mapping[str, str] | None = None,
    on_progress: core.OnProgress | None = None,
) -> Iterator[Trial | Measurement]:
    """Runs the trials that ``out`` does not have yet: gives each, and at last the measurement.

    Args:
        out: Where trials are kept; see `tonnage.measure.trial.session`.
        settings: What to do.
        command: How it can be repeated.
        labels: What else is known of where it is done, like its region.
        on_progress: Called with bytes; the first are those that are put to be got.

    Raises:
        UsageError: ``out`` holds trials of other settings, or the store lets nobody in.
        RunError: The store failed; the trials that were done are in ``out``.
        KeyboardInterrupt: Ctrl-C; likewise.
    """
    with open_session(
        out,
        "object",
        dataclasses.asdict(settings),
        command=command,
        environment=environment.capture([], labels),
        stopping_rule=f"{settings.seconds:g} s each (the first {warm_up(settings.seconds):g} s are "
        "not counted), a thread's last request is waited for; "
        f"{repetition.stopping_rule(settings.repetition_plan)}",
        page_cache="untouched: no file was read or written here; what the store caches is unknown",
    ) as trials:
        store = {"bucket": settings.bucket, "endpoint": settings.endpoint}
        folder = "/".join(filter(None, (settings.prefix, FOLDER_PREFIX + trials.header.id)))
        with _emptied(store, folder):
            # So that a killed command's objects are found by the one that goes on with it.
            trials.start()
            watched = core.offset_progress(settings.prepared_bytes, on_progress)
            laid_out = False
            for _, step in repetition.remaining(
                trial_order(settings, trials.trials), trials.trials
            ):
                if settings.prepared_bytes and not laid_out:
                    _lay_out(store, folder, settings, on_progress)
                    laid_out = True
                yield trials.add(_run(store, folder, step, settings, watched))
        yield trials.finish()


@contextmanager
def _emptied(store: dict[str, Any], folder: str) -> Iterator[None]:
    """The folder without any objects, before and after, however it ends.

    Raises:
        UsageError: The store lets nobody in; nothing was put.
    """
    removal = {"store": store, "folder": folder}
    core.run("object_remove", removal)
    try:
        yield
    finally:
        try:
            core.run("object_remove", removal)
        except (core.UsageError, core.RunError) as why:
            place = f"s3://{store['bucket']}/{folder}/"
            raise core.RunError(
                f"{why.args[0]}; objects may be left in {place}: remove them"
            ) from why


def _lay_out(
    store: dict[str, Any],
    folder: str,
    settings: ObjectSettings,
    on_progress: core.OnProgress | None,
) -> None:
    config = {
        "store": store,
        "work": {"lay_out": {"objects": settings.objects}},
        "prefix": f"{folder}/get-",
        "chunk_bytes": settings.object_bytes,
        "threads": min(LAYING_OUT_THREADS, settings.objects),
    }
    core.run("object_bench", config, on_progress)


def _run(
    store: dict[str, Any],
    folder: str,
    step: TrialSpec,
    settings: ObjectSettings,
    on_progress: core.OnProgress | None,
) -> Trial:
    got = {"objects": settings.objects, "object_bytes": settings.object_bytes}
    config = {
        "store": store,
        "work": {"get": got} if step.operation == "get" else step.operation,
        "prefix": f"{folder}/{step.operation}-",
        "chunk_bytes": step.block_bytes,
        "threads": step.outstanding,
        "seconds": settings.seconds,
        "warm_up_seconds": warm_up(settings.seconds),
    }
    began_at = utc_now()
    with (
        activity.ActivityMonitor() as watch
    ):  # There is no device below a store that this machine could ask.
        outcome = core.run("object_bench", config, on_progress)
    return build_trial(outcome, config, step, began_at, watch.activity)


def build_trial(
    outcome: dict[str, Any],
    config: dict[str, Any],
    step: TrialSpec,
    began_at: str,
    happened: SystemActivity | None = None,
) -> Trial:
    """A trial from the core's report of requests, and what happened beside it."""
    phase = stage_stats.phase_record(outcome["phases"][0])
    cpu = sum(stage.cpu_seconds for stage in phase.stages)
    moved = next(stage for stage in phase.stages if stage.kind in ("get", "put"))
    reading = build_metric(outcome, config, step)
    return Trial(
        name=f"{step.operation} {_size(config['chunk_bytes'])} x{step.outstanding}",
        bytes_per_second=reading.bandwidth_bytes_per_second or 0.0,
        cpu_seconds_per_byte=cpu / moved.bytes if moved.bytes else 0.0,
        warm_up_seconds=config["warm_up_seconds"],
        rates=rates_after_warm_up(reading, config["warm_up_seconds"]),
        phase=phase,
        began_at=began_at,
        step=step,
        settings=config,
        reading=reading,
        cpu_seconds_per_operation=cpu / moved.records if moved.records else 0.0,
        each_second=[worker["each_second"] for worker in outcome["workers"]],
        beside=happened,
    )


def build_metric(outcome: dict[str, Any], config: dict[str, Any], step: TrialSpec) -> Metric:
    """What the core's report of requests comes to, in the vocabulary of all tools.

    Of the errors those are ``errors`` that the store or the network made, by their kind; requests
    that were repeated for them are ``retries``. Both count the warm-up too.
    """
    chunk_bytes, rate = config["chunk_bytes"], outcome["operations_per_second"]
    first_byte, gets = latency_from_report(outcome["first_byte"]), step.operation == "get"
    return Metric(
        source=Source(tool="tonnage", version=tonnage.__version__),
        operation="get" if gets else "put",
        block_bytes=chunk_bytes,
        concurrency=step.outstanding,
        bandwidth_bytes_per_second=rate * chunk_bytes,
        operations_per_second=rate,
        latency_seconds=latency_from_report(outcome["latency"]),
        bins=[(value / 1e9, count) for value, count in outcome["latency"]["bins"]],
        series=rate_series(outcome["workers"], chunk_bytes, config["seconds"]),
        details={
            "tool_operation": step.operation,
            **({"object_bytes": config["work"]["get"]["object_bytes"]} if gets else {}),
            "requests": outcome["tally"]["requests"],
            "retries": outcome["tally"]["retries"],
            "errors": outcome["tally"]["errors"],
            "first_byte_seconds": {
                name: value
                for name, value in to_builtins(first_byte).items()
                if value is not None and first_byte.count
            },
            "completing_seconds": outcome["completing_seconds"],
        },
    )


def _size(count: int) -> str:
    """A size as it is given on the command line: 4MiB, or plain bytes."""
    for unit, power in (("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if count and not count % (1 << power):
            return f"{count >> power}{unit}"
    return str(count)
