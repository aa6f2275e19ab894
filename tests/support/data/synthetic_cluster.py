"""A synthetic cluster with known faults for the analysis to find: 45 instances, ten minutes.

Ten minutes hold no whole day. The daily cycle is one on a small scale: of 150 s, four times over.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from msgspec import structs

from support.data.measurements import ENVIRONMENT, PHASE
from tonnage.base.records import Latency, Measurement, Metric, Source, Trial, TrialSpec
from tonnage.base.stats.samples import Series

INSTANCES = 45
SECONDS = 600
LEVEL = 100.0
SPREAD = 0.05
"""Between healthy instances, as a share."""
NOISE = 0.06
"""Within an instance, from second to second, as a share."""
CORRELATION = 0.45
SLOW, SLOWER = 0.6, 1 / 30
LOW_MODE, DWELL_SECONDS = 0.55, 20.0
PERIOD_SECONDS, AMPLITUDE = 150.0, 0.15


@dataclass(frozen=True)
class SyntheticCluster:
    """What every instance gave, in MB/s, and what is wrong with which."""

    series: Mapping[str, Series]
    slow: str
    slower: str
    bimodal: str
    cyclic: str


def synthetic_cluster(seed: int, *, healthy: bool = False) -> SyntheticCluster:
    """A cluster from a seed; a healthy one has no faults, and its fields name normal nodes."""
    generator = np.random.default_rng(seed)
    names = [f"node-{number:02}" for number in range(INSTANCES)]
    slow, slower, bimodal, cyclic = generator.permutation(names)[:4].tolist()
    seconds = np.arange(float(SECONDS))
    series = {}
    for name in names:
        level = LEVEL * (1 + SPREAD * generator.standard_normal())
        course = 1 + NOISE * ar1(generator, SECONDS, CORRELATION)
        moods = telegraph(generator, SECONDS, DWELL_SECONDS)
        phase = 2 * math.pi * generator.random()
        if not healthy:
            if name in (slow, slower):
                # Relative to what is usual, not to what this one would have been.
                level = LEVEL * (SLOW if name == slow else SLOWER)
            elif name == bimodal:
                course = course * np.where(moods, LOW_MODE, 1)
            elif name == cyclic:
                course = course + AMPLITUDE * np.sin(2 * np.pi * seconds / PERIOD_SECONDS + phase)
        series[name] = Series(seconds, level * course)
    return SyntheticCluster(series, slow, slower, bimodal, cyclic)


def ar1(generator: np.random.Generator, size: int, correlation: float) -> npt.NDArray[np.float64]:
    """Standard normal values, each correlated with the one before it; shape ``(size,)``."""
    drawn = generator.standard_normal(size)
    values = np.empty(size)
    values[0] = drawn[0]
    fresh = math.sqrt(1 - correlation**2)
    for place in range(1, size):
        values[place] = correlation * values[place - 1] + fresh * drawn[place]
    return values


def telegraph(generator: np.random.Generator, size: int, dwell: float) -> npt.NDArray[np.bool_]:
    """Turns true and false at random, ``dwell`` samples apart on average; shape ``(size,)``."""
    turns = np.cumsum(generator.random(size) < 1 / dwell)
    truths: npt.NDArray[np.bool_] = (turns + generator.integers(2)) % 2 == 1
    return truths


BEGAN_AT = "2026-01-01T00:00:00+00:00"
BLOCK_BYTES = 4 << 20
OUTSTANDING = 4
COMMAND = ["tonnage", "measure", "ops", "--suite", "steady", "--operation", "read4m"]


def record(made: SyntheticCluster, directory: Path) -> list[Path]:
    """Writes what every instance would have kept of ten minutes of read4m; gives the files."""
    return [
        measured(name, series).write(directory / name / "measurement.json")
        for name, series in made.series.items()
    ]


def measured(name: str, series: Series) -> Measurement:
    """The measurement of an instance that gave so many MB/s in each second."""
    rates = [round(1e6 * value) for value in np.asarray(series.values).tolist()]
    bandwidth = float(np.mean(rates))
    # With as many outstanding all the time, Little's law gives each second's mean latency.
    seconds = OUTSTANDING * BLOCK_BYTES / np.asarray(rates)
    p50, p90, p99, p999 = np.quantile(seconds, [0.5, 0.9, 0.99, 0.999]).tolist()
    counts, edges = np.histogram(np.log10(seconds), 20)
    reading = Metric(
        source=Source(tool="tonnage", version="0.1.0"),
        operation="randread",
        block_bytes=BLOCK_BYTES,
        direct=True,
        concurrency=OUTSTANDING,
        bandwidth_bytes_per_second=bandwidth,
        operations_per_second=bandwidth / BLOCK_BYTES,
        latency_seconds=Latency(
            count=len(rates), p50=p50, p90=p90, p99=p99, p999=p999, max=float(seconds.max())
        ),
        bins=[
            (10**edge, count)
            for edge, count in zip(edges[1:].tolist(), counts.tolist(), strict=True)
            if count
        ],
        series=[(second + 1.0, float(rate)) for second, rate in enumerate(rates)],
        details={"engine": ["io_uring"], "submission": "single", "durable_one_in": 0},
    )
    trial = Trial(
        name=f"read4m x{OUTSTANDING}",
        bytes_per_second=bandwidth,
        cpu_seconds_per_byte=1e-9,
        warm_up_seconds=1.0,
        rates=[],
        phase=structs.replace(PHASE, seconds=float(len(rates))),
        began_at=BEGAN_AT,
        step=TrialSpec(operation="read4m", outstanding=OUTSTANDING, round=0, suite="steady"),
        reading=reading,
        cpu_seconds_per_operation=1e-9 * BLOCK_BYTES,
    )
    return Measurement(
        id=f"ops-{name}",
        kind="ops",
        began_at=BEGAN_AT,
        command=COMMAND,
        environment=structs.replace(ENVIRONMENT, host=name, versions={"tonnage": "0.1.0"}),
        settings={"suite": "steady"},
        stopping_rule="one trial of 600 s",
        page_cache="bypassed where a reading says direct",
        trials=[trial],
    )
