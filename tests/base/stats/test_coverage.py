"""Coverages and false alarm rates of the statistics, by simulation.

All is seeded; with any other seed, a bound here would fail less often than once in a million.
"""

import numpy as np
import pytest
from scipy import stats

from support.data.synthetic_cluster import ar1, telegraph
from tonnage.base.stats.autocorrelation import effective_size
from tonnage.base.stats.multimodality import dip, dip_false_alarm, modality
from tonnage.base.stats.outliers import outliers
from tonnage.base.stats.periodicity import strongest_cycle
from tonnage.base.stats.quantiles import quantile_estimate
from tonnage.base.stats.samples import Interval

pytestmark = pytest.mark.slow

CHANCE = 1e-6


def at_least(hits: int, tries: int, promised: float) -> bool:
    """Whether so few hits would not be a wonder if the promise were kept."""
    return bool(stats.binom.cdf(hits, tries, promised) > CHANCE / 2)


def at_most(hits: int, tries: int, promised: float) -> bool:
    """Whether so many hits would not be a wonder if the promise were kept."""
    return bool(stats.binom.sf(hits - 1, tries, promised) > CHANCE / 2)


def holds(interval: Interval | None, truth: float) -> bool:
    """Whether the interval is there and holds the truth."""
    return interval is not None and interval.low_value <= truth <= interval.high_value


@pytest.mark.parametrize(("share", "size"), [(0.5, 6), (0.5, 25), (0.9, 36), (0.9, 100)])
def test_order_statistics_cover_exactly_as_often_as_they_say(share: float, size: int) -> None:
    generator, tries, hits, said = np.random.default_rng(1), 3_000, 0, 0.0
    truth = -np.log(1 - share)
    for _ in range(tries):
        interval = quantile_estimate(generator.exponential(size=size), share).interval
        hits += holds(interval, truth)
        said = interval.confidence if interval else 0.0
    assert said >= 0.95
    assert at_least(hits, tries, said) and at_most(hits, tries, said)


def test_medians_of_correlated_samples_are_covered_by_effective_size_but_not_without() -> None:
    generator, tries = np.random.default_rng(2), 500
    naive = by_size = 0
    for _ in range(tries):
        values = ar1(generator, 600, 0.45)
        naive += holds(quantile_estimate(values).interval, 0)
        worth = effective_size(values)
        by_size += holds(quantile_estimate(values, effective_size=worth).interval, 0)
    assert at_least(by_size, tries, 0.95)
    assert not at_least(naive, tries, 0.95)


@pytest.mark.parametrize("size", [8, 45])
def test_clusters_without_outliers_have_none(size: int) -> None:
    generator, tries = np.random.default_rng(5), 3_000
    names = [str(number) for number in range(size)]
    alarms = sum(
        bool(outliers(dict(zip(names, np.exp(values), strict=True)), least_share=0.0))
        for values in 0.05 * generator.standard_normal((tries, size))
    )
    assert at_most(alarms, tries, 0.01) and at_least(alarms, tries, 0.01)


@pytest.mark.parametrize("size", [30, 250])
def test_uniform_samples_dip_as_often_as_the_table_says(size: int) -> None:
    generator, tries = np.random.default_rng(6), 1_500
    found = [dip_false_alarm(dip(generator.random(size)), size) for _ in range(tries)]
    for level in (0.01, 0.1):
        alarms = sum(each <= level for each in found)
        assert at_most(alarms, tries, level) and at_least(alarms, tries, level)


@pytest.mark.parametrize("correlation", [0.45, 0.98])
def test_wandering_series_have_no_modes(correlation: float) -> None:
    generator, tries = np.random.default_rng(7), 100
    alarms = sum(modality(ar1(generator, 300, correlation)).multimodal for _ in range(tries))
    assert at_most(alarms, tries, 0.01)


@pytest.mark.parametrize(("correlation", "dwell"), [(0.0, 0), (0.45, 0), (0.95, 0), (0.45, 20)])
def test_noise_and_telegraph_series_have_no_cycles(correlation: float, dwell: int) -> None:
    generator, tries, alarms = np.random.default_rng(8), 400, 0
    seconds = np.arange(300.0)
    for _ in range(tries):
        values = 1 + 0.06 * ar1(generator, 300, correlation)
        if dwell:
            values = values * np.where(telegraph(generator, 300, dwell), 0.55, 1)
        alarms += strongest_cycle(seconds, values).false_alarm <= 0.01
    # The spectrum is fitted, not known: the level holds to half of itself.
    assert at_most(alarms, tries, 0.015)
