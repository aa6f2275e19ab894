"""Time series: each instance's rate over time, on one clock if they were measured together.

The series of an instance is that of its longest trial. If it has more trials than that has samples,
as in periodic measurements over days, it is a point for each trial. Instances whose times overlap
share a clock; otherwise each begins at zero, and similarities are chance. For charts a series is
averaged into `POINTS` equal bins, with gaps where there is no data. Long trials also get the start
of their steady state; periodic short trials have no warm-up.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tonnage.base.credibility import PASSED_BY
from tonnage.base.records.analysis import SteadyState, TimeSeries
from tonnage.base.stats.samples import FloatArray, Series
from tonnage.base.stats.steady_state import steady_by_slope
from tonnage.model.analysis.grouping import Sample, by_instance, rate_of

POINTS = 150  # More would not be visible, with a line for each of 45 instances
TOGETHER = 2.0  # Instances share a clock if all fit within this multiple of the longest series
GAP = 1.75
"""Steps longer than this multiple of the median contain a gap: one missed slot makes it 2."""

LONG_SAMPLES = 120
"""Shorter trials are not tested: noise in a quarter of them would look like a slope."""
WINDOW_SHARE, LEVEL_SHARE = 0.25, 0.1
"""The window as a share of the trial, and SNIA's tolerance as a share of the window's mean."""


@dataclass(frozen=True)
class RateSeries:
    """An instance's rates: ``values[i]`` at ``seconds[i]`` after ``began``, if known."""

    seconds: FloatArray
    values: FloatArray
    began: float | None


def series_of(samples: Sequence[Sample], unit: str) -> dict[str, Series]:
    """Each instance's rates over time in the unit; instances without rates are omitted."""
    raw = {
        name: course
        for name, of in by_instance(samples).items()
        if (course := _rate_series(of, unit)) is not None
    }
    first = _shared_start(list(raw.values()))
    return {
        name: Series(
            each.seconds + (each.began - first if first is not None and each.began else 0.0),
            each.values,
        )
        for name, each in raw.items()
    }


def steadiness(samples: Sequence[Sample]) -> dict[str, SteadyState]:
    found = {}
    for name, of in by_instance(samples).items():
        reading = _longest(of).reading
        raw = _increasing(reading.series or [], None)
        if raw and raw.seconds.size >= LONG_SAMPLES and not reading.operation.startswith(PASSED_BY):
            found[name] = _steadiness(raw)
    return found


def chart_series(
    series: Mapping[str, Series], steady: Mapping[str, SteadyState]
) -> tuple[list[TimeSeries], float | None]:
    """The series as shares of the highest rate, and that rate; none if all rates are 0."""
    thinned = {
        name: _binned(np.asarray(each.seconds), np.asarray(each.values))
        for name, each in series.items()
        if len(each.values) > 1
    }
    highest = max(
        (value for _, values in thinned.values() for value in values if value is not None),
        default=0.0,
    )
    if highest <= 0:
        return [], None
    courses = [
        TimeSeries(
            instance=name,
            seconds=[round(second, 3) for second in seconds],
            shares=[None if value is None else round(value / highest, 4) for value in values],
            steady=steady.get(name),
        )
        for name, (seconds, values) in thinned.items()
    ]
    return courses, highest


def _rate_series(samples: Sequence[Sample], unit: str) -> RateSeries | None:
    longest = _longest(samples)
    dated = sorted(
        (each.began_seconds, rate)
        for each in samples
        if each.began_seconds is not None and (rate := rate_of(each.reading, unit)) is not None
    )
    series = longest.reading.series or []
    if series and len(series) >= len(dated):
        return _increasing(_in_unit(longest, unit), longest.began_seconds)
    if dated:
        began = dated[0][0]
        return _increasing([(moment - began, rate) for moment, rate in dated], began)
    rates = [rate for each in samples if (rate := rate_of(each.reading, unit)) is not None]
    return _increasing([(0.0, float(np.median(rates)))], None) if rates else None


def _longest(samples: Sequence[Sample]) -> Sample:
    return max(samples, key=lambda each: len(each.reading.series or []))


def _steadiness(raw: RateSeries) -> SteadyState:
    window = float(f"{WINDOW_SHARE * (raw.seconds[-1] - raw.seconds[0]):.3g}")
    found = steady_by_slope(raw.seconds, raw.values, window, LEVEL_SHARE)
    slope = None
    if found.slope_per_second is not None and found.excursion_share is not None:
        slope = math.copysign(found.excursion_share / window, found.slope_per_second)
    return SteadyState(begins_seconds=found.begins_seconds, rule=found.rule, slope_per_second=slope)


def _in_unit(sample: Sample, unit: str) -> list[tuple[float, float]]:
    """A metric's series in the unit; it is in bytes if the tool states bytes."""
    reading = sample.reading
    operations, bandwidth = reading.operations_per_second, reading.bandwidth_bytes_per_second
    factor = 1.0
    if unit == "operations" and bandwidth and operations:
        factor = operations / bandwidth
    return [(at, value * factor) for at, value in reading.series or []]


def _increasing(points: Sequence[tuple[float, float]], began: float | None) -> RateSeries | None:
    """The points, without those that are not later than the one before."""
    kept: list[tuple[float, float]] = []
    for at, value in points:
        if not kept or at > kept[-1][0]:
            kept.append((at, value))
    if not kept:
        return None
    return RateSeries(np.asarray([at for at, _ in kept]), np.asarray([of for _, of in kept]), began)


def _shared_start(raw: Sequence[RateSeries]) -> float | None:
    begins = [each.began for each in raw if each.began is not None]
    if not raw or len(begins) < len(raw):
        return None
    spans = [float(each.seconds[-1]) for each in raw]
    ends = [began + span for began, span in zip(begins, spans, strict=True)]
    together = max(ends) - min(begins) <= TOGETHER * max(spans)
    return min(begins) if together else None


def _binned(seconds: FloatArray, values: FloatArray) -> tuple[list[float], list[float | None]]:
    """At most `POINTS` means over equal bins of time, with a None in the middle of each gap."""
    if seconds.size > POINTS:
        span = float(seconds[-1] - seconds[0])
        places = np.minimum(((seconds - seconds[0]) / span * POINTS).astype(np.int64), POINTS - 1)
        counts = np.bincount(places, minlength=POINTS)
        held = counts > 0
        values = np.bincount(places, values, POINTS)[held] / counts[held]
        seconds = np.bincount(places, seconds, POINTS)[held] / counts[held]
    steps = np.diff(seconds)
    usual = float(np.median(steps)) if steps.size else 0.0
    moments: list[float] = []
    found: list[float | None] = []
    for place, (second, value) in enumerate(zip(seconds.tolist(), values.tolist(), strict=True)):
        if place and steps[place - 1] > GAP * usual:
            moments.append(second - float(steps[place - 1]) / 2)
            found.append(None)
        moments.append(second)
        found.append(value)
    return moments, found
