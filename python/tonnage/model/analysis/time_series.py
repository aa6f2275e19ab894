"""Rates over time: what each instance gave, on one clock where they were measured together.

An instance's course is the series of its longest trial, or a point for each trial where there are
more trials than that has samples, as there are of what was tried now and then for days. Instances
whose times overlap share a clock; else each begins at zero, and what is alike in their courses is
chance. For drawing, a course is averaged into `POINTS` equal bins, with gaps where nothing was.
Of a long trial it is said from when it was steady; what is tried now and then has no warm-up.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tonnage.base.credibility import PASSED_BY
from tonnage.base.records.analysis import SteadyState, TimeSeries
from tonnage.base.stats.samples import FloatArray, Series
from tonnage.base.stats.steady_state import steady_by_slope
from tonnage.model.analysis.grouping import Sample, by_instance, rate_of

POINTS = 150
"""More would not be seen, with a line for each of 45 instances."""
TOGETHER = 2.0
"""All begin and end within so many times the longest one's length, if they share a clock."""
GAP = 1.75
"""Steps so much longer than the usual one hold a gap: a slot that was missed makes it two."""

LONG_SAMPLES = 120
"""A trial of fewer is too short: a quarter of it, or its noise, would look like a slope."""
WINDOW_SHARE, LEVEL_SHARE = 0.25, 0.1
"""Of a trial's time; of the window's mean, SNIA's."""


@dataclass(frozen=True)
class RateSeries:
    """An instance's rates: ``values[i]`` at ``seconds[i]`` after ``began``, if that is known."""

    seconds: FloatArray
    values: FloatArray
    began: float | None


def series_of(samples: Sequence[Sample], unit: str) -> dict[str, Series]:
    """Each instance's rates over time in the unit, instances in order of their names.

    An instance whose tool says no rate is left out.
    """
    raw = {
        name: course
        for name, of in by_instance(samples).items()
        if (course := _raw(of, unit)) is not None
    }
    first = _shared_beginning(list(raw.values()))
    return {
        name: Series(
            each.seconds + (each.began - first if first is not None and each.began else 0.0),
            each.values,
        )
        for name, each in raw.items()
    }


def steadiness(samples: Sequence[Sample]) -> dict[str, SteadyState]:
    """From when each instance's longest trial was steady, of those that are long enough."""
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
    """The courses as shares of the highest rate drawn, and that rate; none if nothing moved."""
    thinned = {
        name: _thinned(np.asarray(each.seconds), np.asarray(each.values))
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


def _raw(samples: Sequence[Sample], unit: str) -> RateSeries | None:
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
    """A reading's series, which is in bytes if the tool says bytes, in the unit."""
    reading = sample.reading
    operations, bandwidth = reading.operations_per_second, reading.bandwidth_bytes_per_second
    factor = 1.0
    if unit == "operations" and bandwidth and operations:
        factor = operations / bandwidth
    return [(at, value * factor) for at, value in reading.series or []]


def _increasing(points: Sequence[tuple[float, float]], began: float | None) -> RateSeries | None:
    """The points without those that do not come after the one before."""
    kept: list[tuple[float, float]] = []
    for at, value in points:
        if not kept or at > kept[-1][0]:
            kept.append((at, value))
    if not kept:
        return None
    return RateSeries(np.asarray([at for at, _ in kept]), np.asarray([of for _, of in kept]), began)


def _shared_beginning(raw: Sequence[RateSeries]) -> float | None:
    """When the first began, if all were measured at about the same time."""
    begins = [each.began for each in raw if each.began is not None]
    if not raw or len(begins) < len(raw):
        return None
    spans = [float(each.seconds[-1]) for each in raw]
    ends = [began + span for began, span in zip(begins, spans, strict=True)]
    together = max(ends) - min(begins) <= TOGETHER * max(spans)
    return min(begins) if together else None


def _thinned(seconds: FloatArray, values: FloatArray) -> tuple[list[float], list[float | None]]:
    """At most `POINTS` means over equal bins of time, and a None in the middle of each gap."""
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
