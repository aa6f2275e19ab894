"""Run one trial of random I/O on a file at a constant queue depth.

The operations are those of "A Systematic Look at EC2 I/O": ``read4k``, ``read4m``, ``write4k``,
``write4m`` (each write is durable before it counts) and ``write4k-64`` (one write in 64, chosen at
random, is durable).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

import tonnage
from tonnage.base import core
from tonnage.base.clock import utc_now
from tonnage.base.core import stage_stats
from tonnage.base.records import Latency, Metric, Source, SystemActivity, Trial, TrialSpec
from tonnage.base.system import activity
from tonnage.measure.trial.cache_detection import cache_evidence, unproved_detail

RECORD_BYTES = 100
WARM_UP_SHARE = 0.1
"""The share of a trial that is not counted; at most a second."""


@dataclass(frozen=True)
class Operation:
    """An operation, and the queue depths at which the cluster study tried it."""

    name: str
    writes: bool
    block_bytes: int
    durable_one_in: int
    sweep: tuple[int, ...]


SMALL = (1, 2, 4, 8, 12, 16, 24, 32, 48, 64)
LARGE = (1, 2, 3, 4, 6, 8, 12, 16)
OPERATIONS = {
    operation.name: operation
    for operation in (
        Operation("read4k", False, 4 << 10, 0, SMALL),
        Operation("read4m", False, 4 << 20, 0, LARGE),
        Operation("write4k", True, 4 << 10, 1, LARGE),
        Operation("write4m", True, 4 << 20, 1, LARGE),
        Operation("write4k-64", True, 4 << 10, 64, LARGE),
    )
}


@dataclass(frozen=True)
class IoMethod:
    """How operations are issued; the same for all trials of a measurement."""

    blocking: bool
    """One blocking thread per operation in flight, instead of one io_uring for all."""
    batched: bool
    """All completed operations are replaced with one system call, instead of one call each."""
    seed: int


def buffer_bytes(operation: str, outstanding: int) -> int:
    return outstanding * OPERATIONS[operation].block_bytes


def warm_up(seconds: float) -> float:
    """How many seconds of a trial of this length are not counted."""
    return min(1.0, WARM_UP_SHARE * seconds)


def write_test_file(room: Path, file_bytes: int, on_progress: core.OnProgress | None) -> Path:
    """Write a file of this size in ``room``, without zeros or holes."""
    core.require_free_space([(room, file_bytes)], "the test file")
    file = room / "file"
    config = {
        "records": -(-file_bytes // RECORD_BYTES),
        "start": "0",
        "encoding": "binary",
        "skew": False,
        "files": [str(file)],
    }
    core.run("gensort", config, on_progress)
    return file


def run_trial(
    file: Path,
    devices: Sequence[str],
    step: TrialSpec,
    seconds: float,
    method: IoMethod,
    number: int,
    on_progress: core.OnProgress | None = None,
) -> Trial:
    """Run one trial on a test file; operations that write change it.

    ``devices`` are the kernel's names of those that hold it. ``seconds`` includes the warm-up. Each
    ``number`` draws its own offsets. Raises `UsageError` if the file is smaller than a block.
    """
    operation = OPERATIONS[step.operation]
    config: dict[str, Any] = {
        "files": [str(file)],
        "writes": operation.writes,
        "durable_one_in": operation.durable_one_in,
        "block_bytes": operation.block_bytes,
        "outstanding": step.outstanding,
        "blocking": method.blocking,
        "batched": method.batched,
        "seconds": seconds,
        "warm_up_seconds": warm_up(seconds),
        "seed": method.seed + number,
    }
    began_at = utc_now()
    with activity.ActivityMonitor(*devices) as monitor:
        outcome = core.run("ops_bench", config, on_progress)
    metric = build_metric(
        outcome, config, "randwrite" if operation.writes else "randread", monitor.activity
    )
    return build_trial(outcome, config, metric, step, monitor.activity, began_at)


def build_trial(
    outcome: dict[str, Any],
    config: dict[str, Any],
    metric: Metric,
    step: TrialSpec,
    system_activity: SystemActivity | None,
    began_at: str,
) -> Trial:
    phase = stage_stats.phase_record(outcome["phases"][0])
    stage = phase.stages[0]
    cpu = stage.cpu_seconds / stage.records if stage.records else 0.0
    return Trial(
        name=f"{step.operation} x{step.outstanding}"
        + (" steady" if step.suite == "steady" else ""),
        bytes_per_second=metric.bandwidth_bytes_per_second or 0.0,
        cpu_seconds_per_byte=cpu / config["block_bytes"],
        warm_up_seconds=config["warm_up_seconds"],
        rates=rates_after_warm_up(metric, config["warm_up_seconds"]),
        phase=phase,
        began_at=began_at,
        step=step,
        settings={name: value for name, value in config.items() if name != "files"},
        reading=metric,
        cpu_seconds_per_operation=cpu,
        each_second=[worker["each_second"] for worker in outcome["workers"]],
        activity=system_activity,
    )


def build_metric(
    outcome: dict[str, Any],
    config: dict[str, Any],
    operation: str,
    system_activity: SystemActivity | None,
) -> Metric:
    """Turn the core's report of operations into a metric, in the vocabulary of all tools."""
    phase = stage_stats.phase_record(outcome["phases"][0])
    rate = outcome["operations_per_second"]
    bandwidth = rate * config["block_bytes"]
    requested = phase.stages[0].bytes
    return Metric(
        source=Source(tool="tonnage", version=tonnage.__version__),
        operation=operation,
        block_bytes=config["block_bytes"],
        direct=all(mode["direct"] for mode in phase.disk_modes),
        concurrency=config["outstanding"],
        bandwidth_bytes_per_second=bandwidth,
        operations_per_second=rate,
        latency_seconds=latency_from_report(outcome["latency"]),
        cached=cache_evidence(system_activity, config["writes"], requested, bandwidth),
        bins=[(value / 1e9, count) for value, count in outcome["latency"]["bins"]],
        series=rate_series(outcome["workers"], config["block_bytes"], outcome["seconds"]),
        details={
            "engine": sorted({mode["engine"] for mode in phase.disk_modes}),
            "submission": "batched" if config["batched"] else "single",
            "durable_one_in": config["durable_one_in"],
            "durable_writes": outcome["durable_writes"],
            **unproved_detail(system_activity),
        },
    )


def rate_series(
    workers: list[dict[str, Any]], block_bytes: int, seconds: float
) -> list[tuple[float, float]]:
    """The end of each second and its bytes; an incomplete last one only if it is alone."""
    each_second = zip_longest(*(worker["each_second"] for worker in workers), fillvalue=0)
    totals = [float(sum(counts) * block_bytes) for counts in each_second]
    return [(place + 1.0, total) for place, total in enumerate(totals[: int(seconds) or None])]


def rates_after_warm_up(metric: Metric, warm_up_seconds: float) -> list[float]:
    return [rate for ended, rate in metric.series or [] if ended > warm_up_seconds]


def latency_from_report(reported: dict[str, Any]) -> Latency:
    """The core's report of latencies, in seconds."""
    percentiles = {f"{percent:g}": value / 1e9 for percent, value in reported["percentiles"]}
    return Latency(
        count=reported["count"],
        mean=_seconds(reported["mean"]),
        p50=percentiles.get("50"),
        p90=percentiles.get("90"),
        p99=percentiles.get("99"),
        p999=percentiles.get("99.9"),
        max=_seconds(reported["max"]),
        error_bound=reported["error_bound"],
    )


def _seconds(nanoseconds: float | None) -> float | None:
    return None if nanoseconds is None else nanoseconds / 1e9
