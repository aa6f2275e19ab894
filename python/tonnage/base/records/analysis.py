"""The analysis of measurements, of one machine or of a cluster: all that its page draws.

Rates are per second, in bytes or in operations as the subject's ``unit`` says; times are seconds.
What could not be known is ``None``, never a guess, and what could not be drawn is in ``left_out``.
Each figure names the measurements that it comes from.
"""

from typing import ClassVar

from msgspec import field

from tonnage.base.records.base import Amount, Count, Number, Record, Seconds, Share, Struct
from tonnage.base.records.measurement import ScorecardItem


class Estimate(Struct, frozen=True, kw_only=True):
    """A quantile (0.5 is the median) and the interval that holds the true one.

    ``over`` is what was counted: instances, trials of a single instance, or samples in time, worth
    ``effective_size`` independent ones. Without ``low`` and ``high`` the interval is not estimable,
    and needs ``lacking`` more.
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
    """Of latency (mean, p50, p90, p99, p999, max): the median over instances' own ones."""

    name: str
    seconds: Estimate


class ConcurrencyLevel(Struct, frozen=True, kw_only=True):
    """An operation at one queue depth; ``None`` where the tool does not state it."""

    concurrency: Count | None
    bandwidth: Estimate | None
    operations: Estimate | None
    latencies: list[Percentile]
    cpu_seconds_per_operation: Amount | None
    cpu_seconds_per_byte: Amount | None
    measurements: list[str]

    def rate(self, unit: str) -> Estimate | None:
        return self.bandwidth if unit == "bytes" else self.operations


class LatencyHistogram(Struct, frozen=True, kw_only=True):
    """Shares of one instance's operations between edges; the best, middle, worst, or only."""

    instance: str
    role: str
    count: Count
    edges_seconds: list[Seconds]
    shares: list[Amount]
    measurements: list[str]


class InstancePercentiles(Struct, frozen=True, kw_only=True):
    """By instance, from best to worst: ``values[percentile][instance]``.

    ``of`` is latency (seconds) or rate (the subject's unit, over time).
    """

    of: str
    percentiles: list[str]
    instances: list[str]
    values: list[list[Amount | None]]


class SteadyState(Struct, frozen=True, kw_only=True):
    """When a long trial became steady; ``None``: never.

    ``slope_per_second`` is that of the line fitted to the level window, in shares of its mean.
    """

    begins_seconds: Seconds | None
    rule: str
    slope_per_second: Number | None


class TimeSeries(Struct, frozen=True, kw_only=True):
    """An instance's rate over time, as shares of the highest of all; ``None`` is a gap."""

    instance: str
    seconds: list[Amount]
    shares: list[Amount | None]
    steady: SteadyState | None = None


class Instance(Struct, frozen=True, kw_only=True):
    name: str
    rate: Estimate
    variation: Amount | None
    autocorrelation: Number
    measurements: list[str]


class Mode(Struct, frozen=True, kw_only=True):
    value: Number
    share: Share


class InstanceDistribution(Struct, frozen=True, kw_only=True):
    """A histogram of instances' medians, and the density in instances per bin."""

    axis: str
    edges: list[Number]
    counts: list[Count]
    values: list[Number]
    densities: list[Amount]
    modes: list[Mode]
    rule: str
    measurements: list[str]


class Outlier(Struct, frozen=True, kw_only=True):
    """An instance unlike the others.

    ``ratio`` is to the median instance, ``deviations`` are robust standard deviations of logarithms
    (``None``: it was idle), ``false_alarm`` is the share of clusters without any that show one.
    """

    instance: str
    rate: Amount
    ratio: Amount
    deviations: Number | None
    false_alarm: Share
    worse: bool
    measurements: list[str]


class MultimodalInstance(Struct, frozen=True, kw_only=True):
    instance: str
    modes: list[Mode]
    false_alarm: Share
    measurements: list[str]


class CyclicInstance(Struct, frozen=True, kw_only=True):
    """The cycle of an instance, or of the cluster as a whole (``None``)."""

    instance: str | None
    period_seconds: Seconds
    amplitude_share: Amount | None
    explained_share: Share
    false_alarm: Share
    measurements: list[str]


class Subject(Struct, frozen=True, kw_only=True):
    """One operation of one tool, measured under the same conditions.

    ``levels`` are by queue depth; ``near_best`` is the smallest within 5 % of the best. All else is
    of ``chosen``: the long trials, or those at that depth. ``variation`` is the coefficient of
    variation of the instances' medians, ``variation_over_time`` the median instance's own.
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
        return self.chosen.rate(self.unit)

    @property
    def bad_apples(self) -> list[Outlier]:
        return [each for each in self.outliers if each.worse]


class CostEfficiency(Struct, frozen=True, kw_only=True):
    subject: str
    priced_as: str
    usd_per_hour: Amount
    operations: Estimate | None
    bytes: Estimate | None
    measurements: list[str]


class Comparison(Struct, frozen=True, kw_only=True):
    """The ratio of one way to another, all else equal; core seconds are the measuring threads'."""

    subject: str
    way: str
    than: str
    concurrency: Count | None
    ratio: Estimate
    way_cpu_seconds_per_byte: Amount | None
    than_cpu_seconds_per_byte: Amount | None
    measurements: list[str]


class LabelGroup(Struct, frozen=True, kw_only=True):
    """One value of a label; ``shares`` of its instances, or of the trials of a single one.

    ``densities`` are in shares a bin at each place; ``None`` for too few.
    """

    value: str
    rate: Estimate
    shares: list[Amount]
    densities: list[Amount] | None
    measurements: list[str]


class LabelComparison(Struct, frozen=True, kw_only=True):
    """An operation by the values of a label, with common bins and places."""

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
        return sum(each.densities is not None for each in self.values) > 1


class Omission(Struct, frozen=True, kw_only=True):
    chart: str
    why: str
    subjects: list[str]


class Machine(Struct, frozen=True, kw_only=True):
    """An instance, as it described itself; imported results do not state theirs (``known``)."""

    name: str
    known: bool
    description: str
    usd_per_hour: Amount | None
    price_source: str | None
    measurements: list[str]


class CitedMeasurement(Struct, frozen=True, kw_only=True):
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
    """The same measurements with the same ``seed`` give the same analysis.

    ``false_alarm_level`` is the share of clusters without findings that show each kind of finding.
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
