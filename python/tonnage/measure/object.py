"""Measure an object store: get and put chunks of several sizes with several numbers of threads.

Each thread makes one request after another, as MATE-EC2's retrieval threads do: it gets ranges of
prepared objects, puts objects of one chunk, or uploads parts of a multipart upload. The trials of a
round come in a random, seeded order, so that a drift of the store affects them all. All objects are
removed at the end.
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
from tonnage.base.clock import utc_now
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

OPERATIONS = ("get", "put", "multipart")
MIN_PART_BYTES = 5 << 20
"""The smallest part of a multipart upload, except for the last one (S3's rule)."""
FOLDER_PREFIX = "tonnage-"
PREPARING_THREADS = 4


@dataclass(frozen=True)
class ObjectSettings:
    bucket: str
    prefix: str
    """The folder for objects, or empty. The measurement has a folder of its own in it."""
    endpoint: str | None
    """The store's URL; ``None`` for that in the environment, or else AWS."""
    operations: tuple[str, ...]
    chunk_bytes: tuple[int, ...]
    threads: tuple[int, ...]
    seconds: float
    rounds: int
    """Trials of each kind; with ``until_confidence``, at most."""
    until_confidence: float | None
    objects: int
    """How many objects are prepared to get chunks from."""
    object_bytes: int
    seed: int

    def for_node(self, node: str) -> ObjectSettings:
        return dataclasses.replace(self, seed=repetition.node_seed(self.seed, node))

    @property
    def prepared_bytes(self) -> int:
        return self.objects * self.object_bytes if "get" in self.operations else 0

    @property
    def trial_kinds(self) -> list[TrialKind]:
        return [
            TrialKind(operation, threads, chunk_bytes)
            for operation in self.operations
            for chunk_bytes in self.chunk_bytes
            if operation != "multipart" or chunk_bytes >= MIN_PART_BYTES
            for threads in self.threads
        ]

    @property
    def repetition_plan(self) -> RepetitionPlan:
        return RepetitionPlan(self.rounds, self.until_confidence, self.seed)

    @property
    def max_duration_seconds(self) -> float:
        return self.rounds * len(self.trial_kinds) * self.seconds


@dataclass(frozen=True)
class Knee:
    """How many threads nearly reach the best rate for chunks of this size."""

    operation: str
    chunk_bytes: int
    threads: int
    bytes_per_second: float


def trial_order(settings: ObjectSettings, completed: Sequence[Trial]) -> Iterator[TrialSpec]:
    return repetition.trial_specs(
        "object", settings.trial_kinds, settings.repetition_plan, completed
    )


def buffer_bytes(settings: ObjectSettings) -> int:
    return (max(settings.threads) + 2) * max(settings.chunk_bytes)


def knees(trials: Sequence[Trial]) -> list[Knee]:
    """The knee of each operation and chunk size, over the medians of equal trials."""
    rates: dict[tuple[str, int], dict[int, list[float]]] = {}
    for trial in trials:
        if trial.step and trial.reading and trial.reading.block_bytes:
            key = trial.step.operation, trial.reading.block_bytes
            by_threads = rates.setdefault(key, {})
            by_threads.setdefault(trial.step.outstanding, []).append(trial.bytes_per_second)
    result = []
    for (operation, chunk_bytes), by_threads in sorted(rates.items()):
        medians = {threads: statistics.median(values) for threads, values in by_threads.items()}
        threads = knee(medians)
        result.append(Knee(operation, chunk_bytes, threads, medians[threads]))
    return result


def threads_needed(measurements: Iterable[Measurement], chunk_bytes: int) -> int | None:
    """The knee of getting chunks of the size nearest to this; ``None`` if none was tried."""
    all_knees = (each for measurement in measurements for each in knees(measurement.trials))
    gets = [each for each in all_knees if each.operation == "get"]
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
    """Yield the trials that are not in ``out`` yet, and finally the measurement."""
    with open_session(
        out,
        "object",
        dataclasses.asdict(settings),
        command=command,
        environment=environment.capture([], labels),
        stopping_rule=f"{settings.seconds:g} s each (the first {warm_up(settings.seconds):g} s are "
        "not counted), the last request of each thread is completed; "
        f"{repetition.stopping_rule(settings.repetition_plan)}",
        page_cache="untouched: no file was read or written here; the store's caches are unknown",
    ) as session:
        store = {"bucket": settings.bucket, "endpoint": settings.endpoint}
        folder = "/".join(filter(None, (settings.prefix, FOLDER_PREFIX + session.header.id)))
        with _empty_folder(store, folder):
            # With the header on file, a resumed command finds the objects of a killed one.
            session.start()
            progress = core.offset_progress(settings.prepared_bytes, on_progress)
            is_prepared = False
            for _, step in repetition.remaining(
                trial_order(settings, session.trials), session.trials
            ):
                if settings.prepared_bytes and not is_prepared:
                    _prepare(store, folder, settings, on_progress)
                    is_prepared = True
                yield session.add(_run(store, folder, step, settings, progress))
        yield session.finish()


@contextmanager
def _empty_folder(store: dict[str, Any], folder: str) -> Iterator[None]:
    """Remove all objects of the folder, before and after; `UsageError` if access is denied."""
    removal = {"store": store, "folder": folder}
    core.run("object_remove", removal)
    try:
        yield
    finally:
        try:
            core.run("object_remove", removal)
        except (core.UsageError, core.RunError) as why:
            url = f"s3://{store['bucket']}/{folder}/"
            raise core.RunError(f"{why}; objects may be left in {url}; remove them") from why


def _prepare(
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
        "threads": min(PREPARING_THREADS, settings.objects),
    }
    core.run("object_bench", config, on_progress)


def _run(
    store: dict[str, Any],
    folder: str,
    step: TrialSpec,
    settings: ObjectSettings,
    on_progress: core.OnProgress | None,
) -> Trial:
    source = {"objects": settings.objects, "object_bytes": settings.object_bytes}
    config = {
        "store": store,
        "work": {"get": source} if step.operation == "get" else step.operation,
        "prefix": f"{folder}/{step.operation}-",
        "chunk_bytes": step.block_bytes,
        "threads": step.outstanding,
        "seconds": settings.seconds,
        "warm_up_seconds": warm_up(settings.seconds),
    }
    began_at = utc_now()
    with activity.ActivityMonitor() as monitor:  # A store has no device on this machine.
        outcome = core.run("object_bench", config, on_progress)
    return build_trial(outcome, config, step, began_at, monitor.activity)


def build_trial(
    outcome: dict[str, Any],
    config: dict[str, Any],
    step: TrialSpec,
    began_at: str,
    system_activity: SystemActivity | None = None,
) -> Trial:
    phase = stage_stats.phase_record(outcome["phases"][0])
    cpu = sum(stage.cpu_seconds for stage in phase.stages)
    moved = next(stage for stage in phase.stages if stage.kind in ("get", "put"))
    metric = build_metric(outcome, config, step)
    return Trial(
        name=f"{step.operation} {_size(config['chunk_bytes'])} x{step.outstanding}",
        bytes_per_second=metric.bandwidth_bytes_per_second or 0.0,
        cpu_seconds_per_byte=cpu / moved.bytes if moved.bytes else 0.0,
        warm_up_seconds=config["warm_up_seconds"],
        rates=rates_after_warm_up(metric, config["warm_up_seconds"]),
        phase=phase,
        began_at=began_at,
        step=step,
        settings=config,
        reading=metric,
        cpu_seconds_per_operation=cpu / moved.records if moved.records else 0.0,
        each_second=[worker["each_second"] for worker in outcome["workers"]],
        activity=system_activity,
    )


def build_metric(outcome: dict[str, Any], config: dict[str, Any], step: TrialSpec) -> Metric:
    """Turn the core's report into a metric; ``errors`` and ``retries`` include the warm-up."""
    chunk_bytes, rate = config["chunk_bytes"], outcome["operations_per_second"]
    first_byte, is_get = latency_from_report(outcome["first_byte"]), step.operation == "get"
    return Metric(
        source=Source(tool="tonnage", version=tonnage.__version__),
        operation="get" if is_get else "put",
        block_bytes=chunk_bytes,
        concurrency=step.outstanding,
        bandwidth_bytes_per_second=rate * chunk_bytes,
        operations_per_second=rate,
        latency_seconds=latency_from_report(outcome["latency"]),
        bins=[(value / 1e9, count) for value, count in outcome["latency"]["bins"]],
        series=rate_series(outcome["workers"], chunk_bytes, config["seconds"]),
        details={
            "tool_operation": step.operation,
            **({"object_bytes": config["work"]["get"]["object_bytes"]} if is_get else {}),
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
    for unit, power in (("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if count and not count % (1 << power):
            return f"{count >> power}{unit}"
    return str(count)
