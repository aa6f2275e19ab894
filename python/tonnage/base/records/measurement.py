"""What was measured: trials of ours, readings of any tool's."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from tonnage.base.records.base import Record
from tonnage.base.records.environment import Environment
from tonnage.base.records.phase import Phase

SINGLE = "single"
"""The layout of disks that takes one, which the others are compared with."""


@dataclass(frozen=True, kw_only=True)
class TrialSpec:
    """Which trial of a measurement: ``round`` is its repetition, or its place in time.

    ``block_bytes`` is there if trials of one operation differ in it. ``until_confidence`` is the
    share of their median within which its interval ends the trials of this kind, if any does.
    """

    operation: str
    outstanding: int
    round: int
    suite: str = "explore"
    block_bytes: int | None = None
    until_confidence: float | None = None


@dataclass(frozen=True, kw_only=True)
class Source:
    """The tool that measured."""

    tool: str
    version: str | None = None


@dataclass(frozen=True, kw_only=True)
class Latency:
    """How long one operation took, in seconds.

    Ours is from the moment at which it was meant to begin to the moment at which it was seen done,
    and is off by at most the share ``error_bound``. ``None`` is what nobody said, or nothing.
    """

    count: int | None = None
    mean: float | None = None
    p50: float | None = None
    p90: float | None = None
    p99: float | None = None
    p999: float | None = None
    max: float | None = None
    error_bound: float | None = None


@dataclass(frozen=True, kw_only=True)
class Metric:
    """One operation's speed, in a vocabulary that all tools share (docs/concepts/readings.md).

    ``concurrency`` is how many operations were outstanding. ``cached`` says why it is believed that
    only a cache can give this speed. ``bins`` is the latency histogram, ``series`` the rate over
    time, in bytes or, where there are none, operations per second; both are (seconds, value).
    ``details`` is what else identifies it. ``None`` is what the tool does not say.
    """

    source: Source
    operation: str
    block_bytes: int | None = None
    direct: bool | None = None
    concurrency: int | None = None
    bandwidth_bytes_per_second: float | None = None
    operations_per_second: float | None = None
    latency_seconds: Latency = field(default_factory=Latency)
    cached: str | None = None
    bins: list[tuple[float, int]] | None = None
    series: list[tuple[float, float]] | None = None
    details: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class SystemActivity:
    """What happened beside a trial, as the kernel counts; ``None`` where it does not.

    Core seconds are foreign that other processes used, and stolen that the hypervisor gave to
    other machines. ``queue`` is how the kernel treats the device's queue.
    """

    device: str
    device_reads: int | None
    device_read_bytes: int | None
    device_writes: int | None
    device_written_bytes: int | None
    foreign_cpu_seconds: float
    stolen_cpu_seconds: float
    dirty_bytes_before: int | None
    dirty_bytes_after: int | None
    queue: dict[str, str]


@dataclass(frozen=True, kw_only=True)
class Trial(Record):
    """One trial of a measurement: a graph that ran for a set time, or through its data once.

    ``warm_up_seconds`` is how much of its beginning was not counted. ``rates`` are the raw samples:
    bytes per second moved in each window after that. ``reading`` is what it comes to. A trial of
    single operations also has its ``step``, their CPU, and for each worker the operations of each
    second.
    """

    SCHEMA: ClassVar[str] = "tonnage.trial/1"

    name: str
    bytes_per_second: float
    cpu_seconds_per_byte: float
    warm_up_seconds: float
    rates: list[float]
    phase: Phase
    began_at: str | None = None
    step: TrialSpec | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    reading: Metric | None = None
    cpu_seconds_per_operation: float | None = None
    each_second: list[list[int]] = field(default_factory=list)
    beside: SystemActivity | None = None


@dataclass(frozen=True, kw_only=True)
class Summary:
    """What trials of one kind come to: their median, between the slowest and the fastest.

    ``interval_bytes_per_second`` is the median's, at 95 %, by order statistics over the trials:
    ``None`` of fewer than six, from which there is none.

    ``reached_share`` is how far its farther end lies from the median, as a share of that;
    ``wanted_share`` is what was to be reached, 5 % if nothing else was said, and ``still_needed``
    how many more trials that takes, as far as these can tell: 0 if it is reached, ``None`` if more
    than a million. All three are ``None`` of a median of zero.
    """

    name: str
    trials: int
    median_bytes_per_second: float
    low_bytes_per_second: float
    high_bytes_per_second: float
    interval_bytes_per_second: tuple[float, float] | None = None
    reached_share: float | None = None
    wanted_share: float | None = None
    still_needed: int | None = None


@dataclass(frozen=True, kw_only=True)
class ScorecardItem:
    """One of the rules for results that can be believed: ``verdict`` is pass, short or unknown."""

    rule: str
    verdict: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class Measurement(Record):
    """What was measured in one place: trials of ours, or readings of another tool's.

    ``id`` is how predictions cite it. ``environment`` is not known of what was imported.
    ``scorecard`` says how far the result can be believed (`tonnage.base.credibility`).
    """

    SCHEMA: ClassVar[str] = "tonnage.measurement/1"

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

    @property
    def readings(self) -> list[Metric]:
        """What was found, in the order in which it was."""
        return [trial.reading for trial in self.trials if trial.reading] + self.imported
