"""Measurements: our own trials, and metrics of any tool."""

from __future__ import annotations

from typing import Any, ClassVar

from msgspec import field

from tonnage.base.records.base import Amount, Count, Record, Seconds, Struct
from tonnage.base.records.environment import Environment
from tonnage.base.records.known_keys import MeasurementSettings, MetricDetails, check_known_keys
from tonnage.base.records.phase import Phase

SINGLE = "single"
"""The layout of disks that takes one, which the others are compared with."""


class TrialSpec(Struct, frozen=True, kw_only=True):
    """Which trial of a measurement: ``round`` is its repetition, or its place in time.

    ``block_bytes`` is there if trials of one operation differ in it. ``until_confidence`` is the
    share of their median within which its interval ends the trials of this kind, if any does.
    """

    operation: str
    outstanding: Count
    round: Count
    suite: str = "explore"
    block_bytes: Count | None = None
    until_confidence: Amount | None = None


class Source(Struct, frozen=True, kw_only=True):
    """The tool that measured."""

    tool: str
    version: str | None = None


class Latency(Struct, frozen=True, kw_only=True):
    """How long one operation took, in seconds.

    Ours is from the moment at which it was meant to begin to the moment at which it was seen done,
    and is off by at most the share ``error_bound``. ``None`` is what nobody said, or nothing.
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

    ``concurrency`` is how many operations were outstanding. ``cached`` says why it is believed that
    only a cache can give this speed. ``bins`` is the latency histogram, ``series`` the rate over
    time, in bytes or, where there are none, operations per second; both are (seconds, value).
    ``details`` is what else identifies it. ``None`` is what the tool does not say.
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
    """What happened beside a trial, as the kernel counts; ``None`` where it does not.

    Core seconds are foreign that other processes used, and stolen that the hypervisor gave to
    other machines. ``queue`` is how the kernel treats the device's queue.
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
    """One trial of a measurement: a graph that ran for a set time, or through its data once.

    ``warm_up_seconds`` is how much of its beginning was not counted. ``rates`` are the raw samples:
    bytes per second moved in each window after that. ``reading`` is what it comes to. A trial of
    single operations also has its ``step``, their CPU, and for each worker the operations of each
    second.
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
    beside: SystemActivity | None = None


class Summary(Struct, frozen=True, kw_only=True):
    """What trials of one kind come to: their median, between the slowest and the fastest.

    ``interval_bytes_per_second`` is the median's, at 95 %, by order statistics over the trials:
    ``None`` of fewer than six, from which there is none.

    ``reached_share`` is how far its farther end lies from the median, as a share of that;
    ``wanted_share`` is what was to be reached, 5 % if nothing else was said, and ``still_needed``
    how many more trials that takes, as far as these can tell: 0 if it is reached, ``None`` if more
    than a million. All three are ``None`` of a median of zero.
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
    """One of the rules for results that can be believed: ``verdict`` is pass, short or unknown."""

    rule: str
    verdict: str
    reason: str


class Measurement(Record, frozen=True, kw_only=True):
    """What was measured in one place: trials of ours, or readings of another tool's.

    ``id`` is how predictions cite it. ``environment`` is not known of what was imported.
    ``scorecard`` says how far the result can be believed (`tonnage.base.credibility`).
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

    @property
    def readings(self) -> list[Metric]:
        """What was found, in the order in which it was."""
        return [trial.reading for trial in self.trials if trial.reading] + self.imported
