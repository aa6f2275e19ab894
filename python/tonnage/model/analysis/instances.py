"""Compare instances: rates, outliers, multimodal and cyclic ones, latency histograms.

Findings are those of `tonnage.base.stats.cluster_time_series` on each instance's rate over time.
Percentiles are of latency if all instances have it, otherwise of the rate over time. Instances are
sorted from best to worst, and each percentile is of a single instance.

Latency histograms have logarithmic bins, `PER_DECADE` for each factor of ten; a tool's bin counts
where its value lies. That is coarser than our own bins, so that spikes stand out from noise. Of
many instances three are shown, the best, the middle and the worst: in a merged histogram a few slow
machines would look like a slow tail of all.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from tonnage.base.records.analysis import (
    CyclicInstance,
    Instance,
    InstanceDistribution,
    InstancePercentiles,
    LatencyHistogram,
    Mode,
    MultimodalInstance,
    Outlier,
)
from tonnage.base.stats.cluster_time_series import ClusterFindings
from tonnage.base.stats.density import Axis, density, histogram
from tonnage.base.stats.multimodality import LEAST as MIN_FOR_MODES
from tonnage.base.stats.multimodality import Modality, modality
from tonnage.base.stats.outliers import MIN_INSTANCES, percentile_lines
from tonnage.base.stats.periodicity import Cycle
from tonnage.base.stats.samples import FloatArray, Series
from tonnage.model.analysis.concurrency import latency
from tonnage.model.analysis.estimates import IN_TIME, as_estimate, medians_of, values_of
from tonnage.model.analysis.grouping import Sample, by_instance, measurement_ids

LATENCIES = ("p50", "p90", "p99", "p999", "max")
PER_DECADE = 16  # Bins for each factor of ten of a latency histogram
MIN_SAMPLES = 10  # Minimum number of samples of a rate for percentiles
WIDE = 3.0  # Ratio of the fastest to the slowest instance above which the axis is logarithmic


def instances(found: ClusterFindings, samples: Sequence[Sample]) -> list[Instance]:
    of = by_instance(samples)
    return [
        Instance(
            name=each.name,
            rate=as_estimate(each.median, IN_TIME),
            variation=each.variation,
            autocorrelation=each.autocorrelation,
            measurements=measurement_ids(of[each.name]),
        )
        for each in found.instances
    ]


def outliers(found: ClusterFindings, samples: Sequence[Sample]) -> list[Outlier]:
    of = by_instance(samples)
    return [
        Outlier(
            instance=each.name,
            rate=each.value,
            ratio=each.ratio,
            deviations=_finite(each.distance),
            false_alarm=each.false_alarm,
            worse=each.worse,
            measurements=measurement_ids(of[each.name]),
        )
        for each in found.outliers
    ]


def alternating(found: ClusterFindings, samples: Sequence[Sample]) -> list[MultimodalInstance]:
    of = by_instance(samples)
    return [
        MultimodalInstance(
            instance=each.name,
            modes=modes_of(each.modality),
            false_alarm=each.modality.false_alarm,
            measurements=measurement_ids(of[each.name]),
        )
        for each in found.multimodal
        if each.modality
    ]


def cycles(found: ClusterFindings, samples: Sequence[Sample]) -> list[CyclicInstance]:
    of = by_instance(samples)
    several = len(found.instances) > 1
    together = (
        [_cyclic(None, found.cycle, measurement_ids(samples))] if several and found.cycle else []
    )
    return together + [
        _cyclic(each.name, each.cycle, measurement_ids(of[each.name]))
        for each in found.cyclic
        if each.cycle
    ]


def lines(samples: Sequence[Sample], series: Mapping[str, Series]) -> InstancePercentiles | None:
    if len(series) < 2:
        return None
    latencies = {name: medians_of(values_of(samples, latency(name))) for name in LATENCIES}
    if series.keys() <= latencies["p50"].keys():
        order = sorted(series, key=lambda name: (latencies["p50"][name], name))
        stated = [name for name in LATENCIES if latencies[name]]
        return InstancePercentiles(
            of="latency",
            percentiles=stated,
            instances=order,
            values=[[latencies[each].get(name) for name in order] for each in stated],
        )
    if min(len(each.values) for each in series.values()) < MIN_SAMPLES:
        return None
    found = percentile_lines({name: each.values for name, each in series.items()})
    return InstancePercentiles(
        of="rate",
        percentiles=[f"p{100 * share:g}" for share in found.shares],
        instances=list(found.names),
        values=[list(line) for line in found.values],
    )


def spread(
    medians: Mapping[str, float], samples: Sequence[Sample], seed: int
) -> InstanceDistribution | None:
    """The distribution of instances' medians; None with fewer than five, or if all are equal."""
    values = np.asarray([medians[name] for name in sorted(medians)])
    if values.size < MIN_INSTANCES or np.ptp(values) == 0:
        return None
    axis = axis_of(values)
    bars = histogram(values, axis)
    curve = density(values, axis)
    # In instances per bin, to share the histogram's axis.
    edges = np.log(bars.edges) if axis == "logarithmic" else np.asarray(bars.edges)
    per_bin = values.size * float(edges[1] - edges[0])
    return InstanceDistribution(
        axis=axis,
        edges=list(bars.edges),
        counts=list(bars.counts),
        values=list(curve.values),
        densities=[round(per_bin * each, 6) for each in curve.densities],
        modes=_modes_over(values, axis, seed),
        rule=f"bins: {bars.rule}; density: {curve.rule}",
        measurements=measurement_ids(samples),
    )


def modes_of(found: Modality) -> list[Mode]:
    return [Mode(value=mode.value, share=mode.share) for mode in found.modes]


def axis_of(values: FloatArray) -> Axis:
    is_wide = values.min() > 0 and values.max() > WIDE * values.min()
    return "logarithmic" if is_wide else "linear"


def _modes_over(values: FloatArray, axis: Axis, seed: int) -> list[Mode]:
    if values.size < MIN_FOR_MODES:
        return []
    # Instances have no order in time, and the order of names may be that of racks.
    mixed = np.random.default_rng(seed).permutation(values)
    if axis == "linear":
        return modes_of(modality(mixed, seed=seed))
    found = modes_of(modality(np.log(mixed), seed=seed))
    return [Mode(value=math.exp(mode.value), share=mode.share) for mode in found]


def _cyclic(name: str | None, cycle: Cycle, measurements: list[str]) -> CyclicInstance:
    return CyclicInstance(
        instance=name,
        period_seconds=cycle.period_seconds,
        amplitude_share=_finite(cycle.amplitude_share),
        explained_share=cycle.explained_share,
        false_alarm=cycle.false_alarm,
        measurements=measurements,
    )


def _finite(value: float) -> float | None:
    """The value, or None if JSON cannot represent it."""
    return value if math.isfinite(value) else None


def latency_histograms(order: Sequence[str], samples: Sequence[Sample]) -> list[LatencyHistogram]:
    of = by_instance(samples)
    told = [name for name in order if any(each.reading.bins for each in of[name])]
    if not told:
        return []
    places = {0: "best", len(told) // 2: "middle", len(told) - 1: "worst"}
    if len(told) == 1:
        places = {0: "only"}
    elif len(told) == 2:
        places = {0: "best", 1: "worst"}
    found = (_histogram(told[place], role, of[told[place]]) for place, role in places.items())
    return [each for each in found if each]


def _histogram(name: str, role: str, samples: Sequence[Sample]) -> LatencyHistogram | None:
    counts: Counter[int] = Counter()
    for sample in samples:
        for seconds, count in sample.reading.bins or []:
            if seconds > 0 and count:
                counts[math.floor(PER_DECADE * math.log10(seconds))] += count
    if not counts:
        return None
    first, last, total = min(counts), max(counts), counts.total()
    return LatencyHistogram(
        instance=name,
        role=role,
        count=total,
        edges_seconds=[10 ** (place / PER_DECADE) for place in range(first, last + 2)],
        shares=[counts[place] / total for place in range(first, last + 1)],
        measurements=measurement_ids(each for each in samples if each.reading.bins),
    )
