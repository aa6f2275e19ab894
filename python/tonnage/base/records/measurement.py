"""Measurements: our own trials, and metrics of any tool."""

from typing import Any, ClassVar

from msgspec import field

from tonnage.base.records.base import Amount, Count, Record, Seconds, Struct
from tonnage.base.records.environment import Environment
from tonnage.base.records.known_keys import (
    EndpointSettings,
    MeasurementSettings,
    MetricDetails,
    NetworkTestDetails,
    check_known_keys,
)
from tonnage.base.records.phase import Phase

SINGLE = "single"  # The layout of one disk, the base of comparisons


class TrialSpec(Struct, frozen=True, kw_only=True):
    """Which trial of a measurement: ``round`` is its repetition, or its place in time.

    ``until_confidence``: trials of this kind end once the median's interval lies within this share.
    """

    operation: str
    outstanding: Count
    round: Count
    suite: str = "explore"
    block_bytes: Count | None = None
    until_confidence: Amount | None = None


class Source(Struct, frozen=True, kw_only=True):
    tool: str
    version: str | None = None


class Latency(Struct, frozen=True, kw_only=True):
    """Of one operation, in seconds; ``None``: not stated, or no operations.

    Ours is from the scheduled start to the observed end, and off by at most ``error_bound``.
    """

    count: Count | None = None
    mean: Amount | None = None
    p50: Amount | None = None
    p90: Amount | None = None
    p99: Amount | None = None
    p999: Amount | None = None
    max: Amount | None = None
    error_bound: Amount | None = None


class Metric(Struct, frozen=True, kw_only=True):
    """One operation's speed, in a vocabulary that all tools share (docs/concepts/readings.md).

    ``concurrency`` is the queue depth; ``cached`` says why only a cache can reach this speed.
    ``bins`` is the latency histogram, ``series`` the rate over time in bytes or else operations
    per second; both are (seconds, value). ``None``: the tool does not state it.
    """

    source: Source
    operation: str
    block_bytes: Count | None = None
    direct: bool | None = None
    concurrency: Count | None = None
    bandwidth_bytes_per_second: Amount | None = None
    operations_per_second: Amount | None = None
    latency_seconds: Latency = field(default_factory=Latency)
    cached: str | None = None
    bins: list[tuple[Amount, Count]] | None = None
    series: list[tuple[Amount, Amount]] | None = None
    details: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_known_keys(self.details, MetricDetails, "details")


class SystemActivity(Struct, frozen=True, kw_only=True):
    """Activity of the machine during a trial, as the kernel counts; ``None``: not counted.

    Foreign core seconds are other processes', stolen ones the hypervisor gave to other machines.
    """

    device: str
    device_reads: Count | None
    device_read_bytes: Count | None
    device_writes: Count | None
    device_written_bytes: Count | None
    foreign_cpu_seconds: Seconds
    stolen_cpu_seconds: Seconds
    dirty_bytes_before: Count | None
    dirty_bytes_after: Count | None
    queue: dict[str, str]


class Trial(Record, frozen=True, kw_only=True):
    """A graph that ran for a set time, or through its data once.

    ``rates`` are bytes per second of each window after ``warm_up_seconds``; ``reading`` sums them
    up. ``each_second`` has the number of single operations by worker and second.
    """

    SCHEMA: ClassVar[str] = "tonnage.trial/1"

    name: str
    bytes_per_second: Amount
    cpu_seconds_per_byte: Amount
    warm_up_seconds: Seconds
    rates: list[Amount]
    phase: Phase
    began_at: str | None = None
    step: TrialSpec | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    reading: Metric | None = None
    cpu_seconds_per_operation: Amount | None = None
    each_second: list[list[Count]] = field(default_factory=list)
    activity: SystemActivity | None = field(default=None, name="beside")


class Summary(Struct, frozen=True, kw_only=True):
    """Trials of one kind: their median, between the slowest and the fastest.

    The 95 % interval is by order statistics, ``None`` below six trials. ``reached_share`` is
    its farther end's distance from the median, as a share; ``wanted_share`` is the target,
    and ``still_needed`` the estimated number of further trials, ``None`` above a million.
    """

    name: str
    trials: Count
    median_bytes_per_second: Amount
    low_bytes_per_second: Amount
    high_bytes_per_second: Amount
    interval_bytes_per_second: tuple[Amount, Amount] | None = None
    reached_share: Amount | None = None
    wanted_share: Amount | None = None
    still_needed: Count | None = None


class ScorecardItem(Struct, frozen=True, kw_only=True):
    """A rule for credible results: ``verdict`` is pass, short or unknown."""

    rule: str
    verdict: str
    reason: str


class Measurement(Record, frozen=True, kw_only=True):
    """Our trials, or another tool's metrics, of one machine.

    Predictions cite the ``id``; ``environment`` is ``None`` for imported ones; ``scorecard``: see
    `tonnage.base.credibility`.
    """

    SCHEMA: ClassVar[str] = "tonnage.measurement/1"
    PRINTED_KEYS: ClassVar[frozenset[str]] = frozenset({"costs", "knees", "warnings"})

    id: str
    kind: str
    began_at: str
    command: list[str]
    environment: Environment | None
    settings: dict[str, Any]
    stopping_rule: str
    page_cache: str
    figures: list[Summary] = field(default_factory=list)
    trials: list[Trial]
    imported: list[Metric] = field(default_factory=list)
    scorecard: list[ScorecardItem] = field(default_factory=list)

    def __post_init__(self) -> None:
        check_known_keys(self.settings, MeasurementSettings, "settings")
        if self.kind != "net":
            return
        if "endpoints" in self.settings:
            check_known_keys(self.settings, EndpointSettings, "settings")
            return
        for at, trial in enumerate(self.trials):
            if trial.reading:
                place = f"trials[{at}].reading.details"
                check_known_keys(trial.reading.details, NetworkTestDetails, place)

    @property
    def readings(self) -> list[Metric]:
        return [trial.reading for trial in self.trials if trial.reading] + self.imported
