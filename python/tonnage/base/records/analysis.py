"""The analysis of measurements, of one machine or of a cluster: all that its page draws.

Rates are per second, in bytes or in operations as the subject's ``unit`` says; times are seconds.
What could not be known is ``None``, never a guess, and what could not be drawn is in ``left_out``.
Each figure names the measurements that it comes from.
"""

from __future__ import annotations

from typing import ClassVar

from msgspec import field

from tonnage.base.records.base import Amount, Count, Number, Record, Seconds, Share, Struct
from tonnage.base.records.measurement import ScorecardItem


class Estimate(Struct, frozen=True, kw_only=True):
    """A quantile (``share`` 0.5 is the median), and the interval that holds the true one.

    ``over`` tells what was counted: instances, each with one value; trials, where there is but one
    instance; or samples in time. They are worth ``effective_size`` independent ones. Without
    ``low`` and ``high`` the interval is not estimable, and ``lacking`` is how many more it takes.
    """

    share: Share
    value: Amount
    low: Amount | None
    high: Amount | None
    confidence: Share | None
    size: Count
    effective_size: Count
    over: str
    lacking: Count


class Percentile(Struct, frozen=True, kw_only=True):
    """A percentile of latency (mean, p50, p90, p99, p999, max), the median over instances.

    Each instance has its own percentile; operations of several are never put together.
    """

    name: str
    seconds: Estimate


class ConcurrencyLevel(Struct, frozen=True, kw_only=True):
    """What an operation gave with so many outstanding; ``None`` where the tool does not say."""

    concurrency: Count | None
    bandwidth: Estimate | None
    operations: Estimate | None
    latencies: list[Percentile]
    cpu_seconds_per_operation: Amount | None
    cpu_seconds_per_byte: Amount | None
    measurements: list[str]

    def rate(self, unit: str) -> Estimate | None:
        """Bytes per second, or operations."""
        return self.bandwidth if unit == "bytes" else self.operations


class LatencyHistogram(Struct, frozen=True, kw_only=True):
    """How long one instance's operations took: the share of them between each two edges.

    ``role`` tells which instance it is: best, middle, worst, or only.
    """

    instance: str
    role: str
    count: Count
    edges_seconds: list[Seconds]
    shares: list[Amount]
    measurements: list[str]


class InstancePercentiles(Struct, frozen=True, kw_only=True):
    """Percentiles of each instance, from the best to the worst: ``values[percentile][instance]``.

    ``of`` is latency (seconds) or rate (the subject's unit, over time).
    """

    of: str
    percentiles: list[str]
    instances: list[str]
    values: list[list[Amount | None]]


class SteadyState(Struct, frozen=True, kw_only=True):
    """From when a long trial was steady, in seconds after its beginning, and by which rule.

    ``None``: it never was. ``slope_per_second`` is what the line rises by in a second that was
    fitted to the window that was level, in shares of that window's mean.
    """

    begins_seconds: Seconds | None
    rule: str
    slope_per_second: Number | None


class TimeSeries(Struct, frozen=True, kw_only=True):
    """An instance's rate over time, as shares of the highest rate of all; ``None`` is a gap."""

    instance: str
    seconds: list[Amount]
    shares: list[Amount | None]
    steady: SteadyState | None = None


class Instance(Struct, frozen=True, kw_only=True):
    """One machine: its median over time, how much it varied, its autocorrelation."""

    name: str
    rate: Estimate
    variation: Amount | None
    autocorrelation: Number
    measurements: list[str]


class Mode(Struct, frozen=True, kw_only=True):
    """A value around which others gather, and what share of them."""

    value: Number
    share: Share


class InstanceDistribution(Struct, frozen=True, kw_only=True):
    """How instances differ: a histogram of their medians, and the density in instances per bin."""

    axis: str
    edges: list[Number]
    counts: list[Count]
    values: list[Number]
    densities: list[Amount]
    modes: list[Mode]
    rule: str
    measurements: list[str]


class Outlier(Struct, frozen=True, kw_only=True):
    """An instance that does not belong to the others; a bad apple if it is ``worse``.

    ``ratio`` is to the median instance, ``deviations`` robust standard deviations of logarithms
    (``None``: it did nothing). ``false_alarm`` is how often a fleet without any shows such a one.
    """

    instance: str
    rate: Amount
    ratio: Amount
    deviations: Number | None
    false_alarm: Share
    worse: bool
    measurements: list[str]


class MultimodalInstance(Struct, frozen=True, kw_only=True):
    """An instance with several modes, and how often one without shows as many."""

    instance: str
    modes: list[Mode]
    false_alarm: Share
    measurements: list[str]


class CyclicInstance(Struct, frozen=True, kw_only=True):
    """A cycle of an instance, or of the fleet as a whole (``None``)."""

    instance: str | None
    period_seconds: Seconds
    amplitude_share: Amount | None
    explained_share: Share
    false_alarm: Share
    measurements: list[str]


class Subject(Struct, frozen=True, kw_only=True):
    """What was measured alike: one operation of one tool, done in one way.

    ``levels`` are by how many were outstanding; ``near_best`` is the smallest number within 5 % of
    the best. ``chosen`` is what the rest is of: the long trials, or those of that number.
    ``variation`` is the coefficient of variation of the instances' medians,
    ``variation_over_time`` the median instance's own.
    """

    key: str
    name: str
    tool: str
    operation: str
    block_bytes: Count | None
    direct: bool | None
    layout: str | None
    cached: bool
    unit: str
    levels: list[ConcurrencyLevel]
    near_best: Count | None
    concurrencies: list[Count]
    chosen: ConcurrencyLevel
    instances: list[Instance]
    quantiles: list[Estimate]
    variation: Amount | None
    variation_over_time: Amount | None
    lines: InstancePercentiles | None
    courses: list[TimeSeries]
    highest: Amount | None
    latency_histograms: list[LatencyHistogram]
    spread: InstanceDistribution | None
    outliers: list[Outlier]
    alternating: list[MultimodalInstance]
    cycles: list[CyclicInstance]

    @property
    def rate(self) -> Estimate | None:
        """What it gives, in its unit."""
        return self.chosen.rate(self.unit)

    @property
    def bad_apples(self) -> list[Outlier]:
        """The outliers that are worse than the others."""
        return [each for each in self.outliers if each.worse]


class CostEfficiency(Struct, frozen=True, kw_only=True):
    """What a dollar buys of a subject on machines of one price."""

    subject: str
    priced_as: str
    usd_per_hour: Amount
    operations: Estimate | None
    bytes: Estimate | None
    measurements: list[str]


class Comparison(Struct, frozen=True, kw_only=True):
    """How many times as fast one way is as another, of what is alike in all else.

    The core seconds a byte are those of the threads that measured, each way.
    """

    subject: str
    way: str
    than: str
    concurrency: Count | None
    ratio: Estimate
    way_cpu_seconds_per_byte: Amount | None
    than_cpu_seconds_per_byte: Amount | None
    measurements: list[str]


class LabelGroup(Struct, frozen=True, kw_only=True):
    """What was measured with one value of a label.

    ``shares`` are of its instances (of its trials, if it has but one) in each bin; ``densities``
    in shares a bin at each place, ``None`` of too few.
    """

    value: str
    rate: Estimate
    shares: list[Amount]
    densities: list[Amount] | None
    measurements: list[str]


class LabelComparison(Struct, frozen=True, kw_only=True):
    """An operation by the values of a label, with bins and places that all values share."""

    subject: str
    label: str
    unit: str
    concurrency: Count | None
    axis: str
    edges: list[Number]
    places: list[Number]
    values: list[LabelGroup]
    rule: str

    @property
    def is_dense(self) -> bool:
        """Whether two values at least have a density."""
        return sum(each.densities is not None for each in self.values) > 1


class Omission(Struct, frozen=True, kw_only=True):
    """A chart that could not be drawn, of which subjects (none: of all), and why."""

    chart: str
    why: str
    subjects: list[str]


class Machine(Struct, frozen=True, kw_only=True):
    """An instance, as it described itself, and its price if one was given.

    What was imported is not ``known`` to be of a machine of its own, and stands for one.
    """

    name: str
    known: bool
    description: str
    usd_per_hour: Amount | None
    price_source: str | None
    measurements: list[str]


class CitedMeasurement(Struct, frozen=True, kw_only=True):
    """A measurement that figures come from, and how it was made."""

    id: str
    kind: str
    machine: str
    tools: list[str]
    began_at: str
    command: list[str]
    stopping_rule: str
    page_cache: str
    readings: Count


class Analysis(Record, frozen=True, kw_only=True):
    """What measurements come to. The same ones with the same ``seed`` give the same analysis.

    ``false_alarm_level`` is how often each kind of finding is made of a fleet that has none.
    """

    SCHEMA: ClassVar[str] = "tonnage.analysis/1"

    seed: Count
    confidence: Share
    false_alarm_level: Share
    machines: list[Machine]
    subjects: list[Subject]
    per_dollar: list[CostEfficiency]
    direct_against_buffered: list[Comparison]
    layouts: list[Comparison]
    findings: list[str]
    warnings: list[str]
    scorecard: list[ScorecardItem]
    left_out: list[Omission]
    cited: list[CitedMeasurement]
    labels: list[Comparison] = field(default_factory=list)
    by_label: list[LabelComparison] = field(default_factory=list)
