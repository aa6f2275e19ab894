"""Statistics: each estimator against SciPy or a closed form, and properties for any sample."""

import math
from collections.abc import Callable, Iterable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, signal, special, stats

from support.data.synthetic_cluster import ar1, synthetic_cluster, telegraph
from tonnage.base.stats.autocorrelation import (
    autocorrelation,
    autocorrelations,
    effective_size,
    integrated_time,
)
from tonnage.base.stats.cluster_time_series import (
    ClusterFindings,
    InstanceFindings,
    analyse_cluster,
)
from tonnage.base.stats.density import bandwidth, density, histogram
from tonnage.base.stats.dispersion import (
    coefficient_of_variation,
    median_absolute_deviation,
    robust_scale,
)
from tonnage.base.stats.distributions import gamma_quantiles, normal_quantile, normal_quantiles
from tonnage.base.stats.multimodality import dip, modality, modes_of
from tonnage.base.stats.outliers import (
    Outlier,
    best_to_worst,
    outliers,
    over_instances,
    percentile_lines,
)
from tonnage.base.stats.periodicity import periodogram, strongest_cycle, without_cycle
from tonnage.base.stats.quantiles import needed_size, quantile, quantile_estimate, ranks
from tonnage.base.stats.sample_size import precision
from tonnage.base.stats.samples import FloatArray, Series
from tonnage.base.stats.steady_state import steady_by_slope

VALUES = st.lists(st.floats(1, 1e6), min_size=1, max_size=60)
SERIES = st.lists(st.floats(1, 1e6), min_size=20, max_size=60)
SHARES = st.floats(0.02, 0.98)


def drawn(seed: int = 1) -> np.random.Generator:
    """Random numbers, the same each time."""
    return np.random.default_rng(seed)


# Quantiles and their intervals.


def test_an_interval_needs_so_many_values() -> None:
    needed = {share: needed_size(share) for share in (0.5, 0.9, 0.95, 0.99)}
    assert needed == {0.5: 6, 0.9: 36, 0.95: 72, 0.99: 368}
    assert needed_size(0.1) == needed_size(0.9)


@given(size=st.integers(1, 500), share=SHARES, confidence=st.sampled_from([0.5, 0.9, 0.95, 0.99]))
def test_an_interval_is_there_exactly_when_the_extremes_hold_it(
    size: int, share: float, confidence: float
) -> None:
    error = (1 - confidence) / 2
    assert (ranks(size, share, confidence) is not None) == (max(share, 1 - share) ** size <= error)


@given(size=st.integers(6, 500), share=SHARES)
def test_ranks_are_the_innermost_that_err_by_no_more_than_half_on_a_side(
    size: int, share: float
) -> None:
    found = ranks(size, share)
    if found is None:
        return
    below = stats.binom(size, share).cdf
    # A rank whose tail is the error to the last bit may fall either way.
    assert below(found.low - 1) <= 0.025 + 1e-12 < below(found.low) + 2e-12
    assert 1 - below(found.high - 1) <= 0.025 + 1e-12 < 1 - below(found.high - 2) + 2e-12
    assert found.confidence == pytest.approx(below(found.high - 1) - below(found.low - 1))


@pytest.mark.parametrize("share", [0.25, 0.5, 0.9])
def test_intervals_are_those_of_scipy(share: float) -> None:
    values = drawn().lognormal(size=101)
    found = quantile_estimate(values, share).interval
    theirs = stats.quantile_test(values, q=0, p=share).confidence_interval(0.95)
    assert found is not None
    # SciPy takes the upper rank one further out.
    above = np.sort(values)
    assert found.low_value == pytest.approx(theirs.low)
    assert found.high_value in (
        pytest.approx(theirs.high),
        pytest.approx(above[np.searchsorted(above, theirs.high) - 1]),
    )


def test_normal_quantiles_are_those_of_scipy() -> None:
    far = 10.0 ** -np.arange(2, 300)
    shares = np.concatenate([far, np.linspace(0.01, 0.99, 99_999), 1 - far[:13]])
    assert normal_quantiles(shares) == pytest.approx(special.ndtri(shares), rel=1e-14, abs=1e-15)
    assert normal_quantiles(np.array([0.0, 1.0])).tolist() == [-math.inf, math.inf]
    assert normal_quantile(0.975) == pytest.approx(1.959963984540054, rel=1e-15)


@pytest.mark.parametrize("shape", [0.5, 1.5, 3.5, 22, 300, 40_000])
def test_gamma_quantiles_are_those_of_scipy(shape: float) -> None:
    shares = np.concatenate([[1e-9], (np.arange(400) + 0.5) / 400, [1 - 1e-6]])
    wanted = special.gammaincinv(shape, shares)
    assert gamma_quantiles(shape, shares) == pytest.approx(wanted, rel=2e-7)
    assert gamma_quantiles(shape, shares[1:-1]) == pytest.approx(wanted[1:-1], rel=1e-10)


def test_too_few_values_have_no_interval_and_say_how_many_lack() -> None:
    found = quantile_estimate([1.0, 2.0, 3.0, 4.0, 5.0])
    assert (found.value, found.interval, found.missing) == (3.0, None, 1)
    six = quantile_estimate([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    assert six.interval and (six.interval.low_value, six.interval.high_value) == (1.0, 6.0)
    assert (six.missing, six.interval.confidence) == (0, pytest.approx(1 - 2 / 64))
    assert quantile_estimate(np.arange(100.0), 0.99).missing == 268


def test_correlated_values_are_worth_fewer() -> None:
    values = np.arange(600.0)
    alone, few = quantile_estimate(values), quantile_estimate(values, effective_size=100.9)
    assert (few.size, few.effective_size) == (600, 100)
    # Ranks 40 and 61 of 100, at those shares of the 600.
    assert few.interval and alone.interval
    assert few.interval.low_value == pytest.approx(40 / 101 * 601 - 1)
    assert few.interval.high_value == pytest.approx(61 / 101 * 601 - 1)
    assert alone.interval.low_value > few.interval.low_value
    assert quantile_estimate(values, effective_size=5.5).missing == 1
    assert quantile_estimate(values, effective_size=1e9) == alone


@given(values=VALUES, share=st.floats(0, 1), factor=st.floats(0.01, 100), data=st.data())
def test_quantiles_are_numpys_scale_with_the_values_and_know_no_order(
    values: list[float], share: float, factor: float, data: st.DataObject
) -> None:
    here = quantile(values, share)
    assert here == pytest.approx(float(np.quantile(values, share)))
    assert quantile(data.draw(st.permutations(values)), share) == here
    assert quantile([factor * value for value in values], share) == pytest.approx(factor * here)


# Spread.


@given(values=st.lists(st.floats(1, 1e6), min_size=2, max_size=60))
def test_dispersion_is_scipys(values: list[float]) -> None:
    assert coefficient_of_variation(values) == pytest.approx(stats.variation(values, ddof=1))
    mad = stats.median_abs_deviation(values)
    assert median_absolute_deviation(values) == pytest.approx(mad)
    if mad > 0:
        scale = stats.median_abs_deviation(values, scale="normal")
        assert robust_scale(values).value == pytest.approx(scale)


def test_a_robust_scale_outlives_a_mad_of_zero() -> None:
    assert median_absolute_deviation([5.0, 5.0, 5.0, 9.0]) == 0
    found = robust_scale([5.0, 5.0, 5.0, 9.0])
    assert found.rule == "mean absolute deviation"
    assert found.value == pytest.approx(math.sqrt(math.pi / 2))
    assert robust_scale([5.0, 5.0]).rule == "all equal"
    with pytest.raises(ValueError, match="mean is zero"):
        coefficient_of_variation([-1.0, 1.0])


# Autocorrelation.


def test_autocorrelations_are_the_sums_they_are_defined_as() -> None:
    values = drawn().normal(size=37).cumsum()
    away = values - values.mean()
    sums = [np.dot(away[: 37 - lag], away[lag:]) for lag in range(37)]
    assert autocorrelations(values) == pytest.approx(np.asarray(sums) / sums[0])
    assert autocorrelation([3.0, 3.0, 3.0]) == 0
    assert autocorrelation([0.0, 1.0] * 50) == pytest.approx(-0.99)


@pytest.mark.parametrize("r", [0.0, 0.45, 0.8])
def test_a_series_is_worth_what_theory_says(r: float) -> None:
    values = ar1(drawn(), 100_000, r)
    worth = 100_000 * (1 - r) / (1 + r)
    assert autocorrelation(values) == pytest.approx(r, abs=0.015)
    assert effective_size(values) == pytest.approx(worth, rel=0.15)
    assert integrated_time(values) == pytest.approx((1 + r) / (1 - r), rel=0.15)


def test_slow_correlation_under_fast_noise_is_found() -> None:
    generator = drawn()
    values = telegraph(generator, 20_000, 50) + generator.normal(size=20_000)
    # The moods' autocorrelation at lag k is exp(-2 k / 50), a fifth of the variance: at lag 1
    # alone it looks as if more than half of them were independent.
    r = autocorrelation(values)
    assert (1 - r) / (1 + r) > 0.5
    assert integrated_time(values) == pytest.approx(1 + 0.2 * 50, rel=0.3)


# Steadiness.


def test_a_ramp_and_then_a_plain() -> None:
    seconds = np.arange(200.0)
    values = np.where(seconds < 50, 50 + seconds, 100.0)
    found = steady_by_slope(seconds, values, 20, tolerance_share=0.01)
    assert found.begins is not None and 45 <= found.begins <= 50
    assert found.rule == "slope within 0.01 of the mean over a window of 20 s"
    assert found.excursion_share is not None and found.excursion_share <= 0.01


def test_a_slope_is_scipys_and_what_still_rises_is_not_steady() -> None:
    seconds = np.sort(drawn().uniform(0, 100, 300))
    values = 100 + 0.05 * seconds + drawn(2).normal(size=300)
    found = steady_by_slope(seconds, values, seconds[-1] - seconds[0] + 1e-6, 0.2)
    assert found.slope_per_second == pytest.approx(stats.linregress(seconds, values).slope)
    rising = steady_by_slope(np.arange(100.0), np.arange(1.0, 101.0), 20, 0.1)
    assert rising.begins is None and rising.begins_seconds is None


def test_steady_from_the_start() -> None:
    seconds = np.arange(60.0)
    assert steady_by_slope(seconds, np.full(60, 7.0), 30).begins == 0
    assert steady_by_slope(seconds, np.full(60, 7.0), 60).begins == 0
    assert steady_by_slope(seconds, np.full(60, 7.0), 61).begins is None


def test_warm_up_ends_where_it_was_made_to() -> None:
    seconds = np.arange(600.0)
    for seed in range(20):
        noise = 5 * ar1(drawn(seed), 600, 0.45)
        found = steady_by_slope(seconds, 100 - 60 * np.exp(-seconds / 20) + noise, 60)
        # 10 % of it is left after 36 s, 1 % after 82 s.
        assert found.begins is not None and 15 <= found.begins <= 150


# Densities.


def test_a_density_is_scipys_and_sums_to_one() -> None:
    values = drawn().lognormal(1, 0.5, size=300)
    linear, logarithmic = density(values), density(values, "logarithmic")
    for mine, of in ((linear, values), (logarithmic, np.log(values))):
        places = np.asarray(mine.values) if of is values else np.log(mine.values)
        theirs = stats.gaussian_kde(of, mine.bandwidth / np.std(of, ddof=1))
        assert mine.densities == pytest.approx(theirs(places))
        assert np.trapezoid(mine.densities, places) == pytest.approx(1, abs=0.005)
        spread = min(np.std(of, ddof=1), stats.iqr(of) / 1.34)
        assert mine.bandwidth == pytest.approx(0.9 * spread * 300**-0.2)


def test_a_histogram_has_numpys_bins_and_all_values() -> None:
    values = drawn().lognormal(1, 0.5, size=300)
    mine = histogram(values)
    assert mine.edges == pytest.approx(np.histogram_bin_edges(values, "fd"))
    logarithmic = histogram(values, "logarithmic")
    assert logarithmic.edges == pytest.approx(np.exp(np.histogram_bin_edges(np.log(values), "fd")))
    assert sum(mine.counts) == sum(logarithmic.counts) == 300
    assert len(histogram(values, bins=7).counts) == 7


def test_densities_of_edge_cases() -> None:
    assert histogram([4.0, 4.0, 4.0]).counts == (3,)
    assert histogram([4.0] * 9 + [5.0]).rule == "Sturges: the IQR is zero"
    assert len(histogram([*np.linspace(0, 1, 99), 1e9]).counts) == 512
    assert bandwidth([4.0] * 9 + [5.0]) > 0
    with pytest.raises(ValueError, match="all values are equal"):
        density([4.0, 4.0])
    with pytest.raises(ValueError, match="no logarithm"):
        histogram([0.0, 1.0], "logarithmic")


# Modes.


def dip_by_definition(values: FloatArray) -> float:
    """The distance to the nearest unimodal distribution function, as linear programmes.

    The unknowns are its values at the samples, and before a jump at the mode; the mode is tried at
    each sample. It rises, in slopes that grow up to the mode and shrink after it.
    """
    x, n = np.sort(values), values.size
    best = 1.0
    for mode in range(n):
        # F(x_0) ... F(x_mode-), F(x_mode) ... F(x_n-1), distance.
        places = np.insert(x, mode, x[mode])
        limits: list[tuple[dict[int, float], float]] = []
        for column in range(n + 1):
            sample = column if column <= mode else column - 1
            if column != mode:
                limits.append(({column: -1, n + 1: -1}, -(sample + 1) / n))
            if column != mode + 1:
                limits.append(({column: 1, n + 1: -1}, sample / n))
            if column:
                limits.append(({column - 1: 1, column: -1}, 0))
        for part, sign in ((range(mode + 1), 1), (range(mode + 1, n + 1), -1)):
            for a, b, c in zip(part, part[1:], part[2:], strict=False):
                first, second = places[b] - places[a], places[c] - places[b]
                grown = {a: -1 / first, b: 1 / first + 1 / second, c: -1 / second}
                limits.append(({column: sign * value for column, value in grown.items()}, 0))
        bounds = [(0, 1)] * (n + 1) + [(0, None)]
        cost = [0.0] * (n + 1) + [1.0]
        rows = [[row.get(column, 0.0) for column in range(n + 2)] for row, _ in limits]
        ends = [end for _, end in limits]
        best = min(best, optimize.linprog(cost, rows, ends, bounds=bounds).fun)
    return best


def test_the_dip_is_the_distance_to_the_nearest_with_one_mode() -> None:
    for seed in range(8):
        generator = drawn(seed)
        values = generator.normal(size=12) + 4 * (generator.random(12) < 0.5) * (seed % 2)
        assert dip(values) == pytest.approx(max(dip_by_definition(values), 1 / 24), abs=1e-9)


def test_known_dips() -> None:
    assert dip(np.arange(50.0)) == pytest.approx(1 / 100)
    assert dip([0.0] * 20 + [1.0] * 20) == pytest.approx(1 / 4)
    assert dip([3.0] * 10) == pytest.approx(1 / 20)


@given(values=SERIES, factor=st.floats(0.01, 100), data=st.data())
def test_a_dip_does_not_depend_on_scale_direction_or_order(
    values: list[float], factor: float, data: st.DataObject
) -> None:
    values = [round(value, 3) for value in values]
    here = dip(values)
    assert 1 / (2 * len(values)) - 1e-12 <= here <= 0.25 + 1e-12
    assert dip(data.draw(st.permutations(values))) == here
    assert dip([-value for value in values]) == pytest.approx(here, abs=1e-6)
    assert dip([factor * value for value in values]) == pytest.approx(here, abs=1e-6)


def test_two_modes_are_found_where_they_are() -> None:
    generator = drawn()
    moods = telegraph(generator, 600, 20)
    found = modality((1 + 0.06 * ar1(generator, 600, 0.45)) * np.where(moods, 55, 100))
    low, high = found.modes
    assert found.multimodal and found.false_alarm == 0.005
    assert (low.value, high.value) == (pytest.approx(55, abs=2), pytest.approx(100, abs=3))
    assert low.share == pytest.approx(moods.mean(), abs=0.01)
    assert low.share + high.share == pytest.approx(1)


@pytest.mark.parametrize(
    "make",
    [
        lambda g: g.normal(size=600),
        lambda g: g.exponential(size=600),
        lambda g: np.round(g.normal(size=600)),
        lambda g: ar1(g, 600, 0.45),
        lambda g: ar1(g, 600, 0.9),
        lambda g: np.append(g.normal(size=598), [90.0, 100.0]),
        lambda g: np.full(600, 3.0),
    ],
)
def test_one_mode_is_one(make: Callable[[np.random.Generator], FloatArray]) -> None:
    for seed in range(10):
        values = make(drawn(seed))
        found = modality(values)
        assert [(mode.value, mode.share) for mode in found.modes] == [(np.median(values), 1.0)]


def test_three_modes_and_their_shares() -> None:
    generator = drawn()
    places = np.repeat([1.0, 5.0, 9.0], [100, 200, 300])
    modes = modes_of(places + 0.3 * generator.normal(size=600))
    assert [mode.share for mode in modes] == pytest.approx([1 / 6, 1 / 3, 1 / 2])
    assert [mode.value for mode in modes] == pytest.approx([1, 5, 9], abs=0.3)


# Instances.

CLUSTER = {f"i{number:02}": 100 + number / 2 for number in range(20)}


def test_outliers_have_ratio_and_false_alarm() -> None:
    found = outliers({**CLUSTER, "slow": 60.0, "slower": 3.0, "fast": 300.0})
    assert [each.name for each in found] == ["slower", "fast", "slow"]
    assert [each.worse for each in found] == [True, False, True]
    assert found[2].ratio == pytest.approx(60 / 104.5)
    assert all(each.false_alarm == 0.0001 for each in found)
    latencies = outliers({**CLUSTER, "slow": 160.0}, "lower")
    assert [(each.name, each.worse) for each in latencies] == [("slow", True)]


def test_distances_are_in_robust_deviations_of_logarithms() -> None:
    values = {**CLUSTER, "slow": 60.0}
    logarithms = np.log(list(values.values()))
    middle = np.median(logarithms)
    scale = stats.median_abs_deviation(logarithms, scale="normal")
    assert outliers(values)[0].distance == pytest.approx((math.log(60) - middle) / scale)


def test_close_few_or_equal_values_are_no_outliers() -> None:
    assert outliers(CLUSTER) == ()
    # Surely different, by five percent.
    assert outliers({**{f"i{n}": 100 + n / 1000 for n in range(20)}, "odd": 95.0}) == ()
    assert outliers({"a": 100.0, "b": 101.0, "c": 99.0, "d": 1.0}) == ()
    assert outliers({f"i{n}": 5.0 for n in range(9)}) == ()


def test_equal_and_idle_instances_hide_no_outlier() -> None:
    equal = {f"i{n}": 100.0 for n in range(20)}
    found = outliers({**equal, "slow": 50.0})
    assert [(each.name, each.ratio) for each in found] == [("slow", 0.5)]
    idle = outliers({**equal, "idle": 0.0})[0]
    assert (idle.name, idle.ratio, idle.distance) == ("idle", 0.0, -math.inf)
    with pytest.raises(ValueError, match="most instances have zero throughput"):
        outliers({"a": 0.0, "b": 0.0, "c": 1.0})
    with pytest.raises(ValueError, match="negative"):
        outliers({**equal, "odd": -1.0})


@given(factor=st.floats(1e-3, 1e3), names=st.permutations([*CLUSTER, "slow"]))
def test_outliers_do_not_depend_on_unit_or_order(factor: float, names: list[str]) -> None:
    values = {**CLUSTER, "slow": 60.0}
    found = outliers({name: factor * values[name] for name in names})
    assert [(each.name, round(each.ratio, 6)) for each in found] == [
        (each.name, round(each.ratio, 6)) for each in outliers(values)
    ]


def test_instances_in_order_with_lines_of_their_own_percentiles() -> None:
    samples = {"b": [1.0, 2.0, 9.0], "a": [3.0, 4.0, 5.0], "c": [2.0, 2.0, 2.0]}
    lines = percentile_lines(samples, (0.0, 0.5, 1.0))
    assert lines.names == ("a", "b", "c")
    assert lines.values == ((3, 1, 2), (4, 2, 2), (5, 9, 2))
    assert best_to_worst({"x": 1.0, "y": 2.0}, "lower") == ("x", "y")
    low, middle = over_instances(CLUSTER, (0.1, 0.5))
    assert low.interval is None and low.missing == 16
    assert middle.value == 104.75 and middle.interval is not None


# Periodicity.


def test_a_periodogram_is_scipys_also_with_gaps() -> None:
    seconds = np.sort(drawn().permutation(300)[:200]).astype(float)
    values = drawn(2).normal(size=200)
    frequencies = np.linspace(0.01, 0.45, 50)
    theirs = signal.lombscargle(
        seconds, values, 2 * np.pi * frequencies, floating_mean=True, normalize=True
    )
    centred = values - values.mean()
    mine = periodogram(seconds, values, frequencies)
    assert mine / (np.dot(centred, centred) / 2) == pytest.approx(theirs)


@pytest.mark.parametrize("kept", [600, 300])
@pytest.mark.parametrize("period", [150.0, 37.0, 5.3])
def test_a_cycle_is_found_with_its_period_amplitude_and_phase(period: float, kept: int) -> None:
    generator = drawn()
    seconds = 1000 + np.sort(generator.permutation(600)[:kept]).astype(float)
    noise = 5 * ar1(generator, kept, 0.45)
    values = 100 + 15 * np.cos(2 * np.pi * (seconds - 1003) / period) + noise
    found = strongest_cycle(seconds, values)
    assert found.period_seconds == pytest.approx(period, rel=0.02)
    assert found.amplitude_value == pytest.approx(15, rel=0.15)
    assert found.amplitude_share == pytest.approx(0.15, rel=0.17)
    late = (found.peak_seconds - 1003 + period / 2) % period - period / 2
    assert late == pytest.approx(0, abs=0.05 * period)
    assert 1000 <= found.peak_seconds <= 1000 + found.period_seconds
    assert found.false_alarm < 1e-5
    left = without_cycle(seconds, values, found)
    assert np.var(left) == pytest.approx((1 - found.explained_share) * np.var(values), rel=0.1)


def test_flat_straight_or_twice_repeated_series_have_no_cycle() -> None:
    seconds = np.arange(200.0)
    assert strongest_cycle(seconds, np.full(200, 5.0)).false_alarm == 1
    assert strongest_cycle(seconds, 3 + 0.1 * seconds).false_alarm == 1
    twice = 10 * np.sin(2 * np.pi * seconds / 100) + drawn().normal(size=200)
    assert strongest_cycle(seconds, twice).period_seconds <= 200 / 3 * 1.0001


def test_longer_series_are_averaged_and_keep_their_cycle() -> None:
    seconds = np.arange(20_000.0)
    values = 10 + np.sin(2 * np.pi * seconds / 3_000) + drawn().normal(size=20_000)
    found = strongest_cycle(seconds, values)
    assert found.period_seconds == pytest.approx(3_000, rel=0.02)
    assert found.amplitude_value == pytest.approx(1, rel=0.1)


# Repetitions.


def test_a_median_good_enough_or_not_and_how_many_it_needs() -> None:
    few = precision([100.0, 101.0, 99.0], 0.05)
    assert (few.interval, few.reached_share, few.is_sufficient) == (None, None, False)
    assert (few.needed, few.still_needed) == (6, 3)
    six = precision([98.0, 99.0, 100.0, 100.0, 101.0, 102.0], 0.05)
    assert six.is_sufficient and six.still_needed == 0
    assert six.reached_share == pytest.approx(0.02)
    wide = precision([80.0, 90.0, 100.0, 100.0, 110.0, 120.0], 0.05)
    assert not wide.is_sufficient and wide.still_needed and wide.still_needed > 6


def test_as_many_repetitions_as_asked_for_are_enough() -> None:
    found = []
    for seed in range(40):
        generator = drawn(seed)
        samples = generator.normal(100, 10, size=40)
        asked = precision(samples, 0.02)
        assert asked.needed and asked.still_needed == max(1, asked.needed - 40)
        found.append(asked.needed)
    # Of normal values a mean takes 96; the median half as many again, and since its farther end
    # counts, a half more.
    assert np.median(found) == pytest.approx(225, rel=0.25)


@settings(max_examples=30)
@given(values=VALUES, factor=st.sampled_from([0.5, 2.0, 1024.0]), data=st.data())
def test_precision_does_not_depend_on_unit_or_order(
    values: list[float], factor: float, data: st.DataObject
) -> None:
    here = precision(values, 0.05)
    there = precision([factor * v for v in data.draw(st.permutations(values))], 0.05)
    assert (here.needed, here.reached_share) == (there.needed, there.reached_share)


def test_an_unreachable_share_has_no_size() -> None:
    assert precision(drawn().normal(1, 10, size=50), 0.0001).needed is None


# Clusters.


def names(found: Iterable[InstanceFindings | Outlier]) -> set[str]:
    """Who was found."""
    return {each.name for each in found}


def slow(found: ClusterFindings) -> list[Outlier]:
    return [each for each in found.outliers if each.worse]


@pytest.mark.slow
def test_the_analysis_finds_exactly_the_faults_of_a_cluster() -> None:
    false_alarms = []
    for seed in range(20):
        made = synthetic_cluster(seed)
        found = analyse_cluster(made.series)
        assert [each.name for each in slow(found)[:2]] == [made.slower, made.slow]
        assert [each.ratio for each in slow(found)[:2]] == pytest.approx([1 / 30, 0.6], rel=0.1)

        alternating = {each.name: each.modality for each in found.multimodal}
        low, high = alternating[made.bimodal].modes
        assert low.value / high.value == pytest.approx(0.55, rel=0.1)

        cycles = {each.name: each.cycle for each in found.cyclic}
        assert cycles[made.cyclic].period_seconds == pytest.approx(150, rel=0.05)
        assert cycles[made.cyclic].amplitude_share == pytest.approx(0.15, rel=0.2)

        exactly = (
            names(found.outliers) == {made.slow, made.slower}
            and names(found.multimodal) == {made.bimodal}
            and names(found.cyclic) == {made.cyclic}
            and found.cycle is None
        )
        if not exactly:
            false_alarms.append(seed)
    assert len(false_alarms) <= 1, false_alarms


def test_order_and_percentiles_are_over_instances() -> None:
    made = synthetic_cluster(0)
    found = analyse_cluster(made.series)
    medians = [each.median.value for each in found.instances]
    assert medians == sorted(medians, reverse=True) and len(medians) == 45
    assert found.instances[-1].name == made.slower
    assert [each.share for each in found.percentiles] == [0.1, 0.25, 0.5, 0.75, 0.9]
    assert [each.value for each in found.percentiles] == pytest.approx(
        np.quantile(medians, [0.1, 0.25, 0.5, 0.75, 0.9])
    )
    assert all(each.interval for each in found.percentiles)
    healthy = found.instances[20]
    assert healthy.autocorrelation == pytest.approx(0.45, abs=0.12)
    assert healthy.variation == pytest.approx(0.06, abs=0.012)
    assert 120 < healthy.median.effective_size < 350
    assert analyse_cluster(dict(reversed(made.series.items()))) == found


def test_a_common_cycle_is_the_clusters() -> None:
    seconds = np.arange(300.0)
    together = 1 + 0.1 * np.sin(2 * np.pi * seconds / 60)
    made = {
        name: Series(seconds + 0.3, 10 * together * (1 + 0.05 * drawn(seed).normal(size=300)))
        for seed, name in enumerate("abcdef")
    }
    found = analyse_cluster(made)
    assert found.cycle and found.cycle.period_seconds == pytest.approx(60, rel=0.02)
    assert found.cycle.amplitude_share == pytest.approx(0.1, rel=0.1)
    assert names(found.cyclic) == set("abcdef")


def test_a_multimodal_instance_is_judged_by_its_best_mode() -> None:
    generator = drawn()
    seconds = np.arange(600.0)
    noises = {f"i{n}": 100 * (1 + 0.05 * generator.normal(size=600)) for n in range(12)}
    made = {name: Series(seconds, values) for name, values in noises.items()}
    # Seven tenths of the time in the lower mode, so its median is low.
    moods = generator.random(600) < 0.7
    made["sometimes"] = Series(seconds, noises["i0"] * np.where(moods, 0.5, 1))
    made["never"] = Series(seconds, noises["i1"] * np.where(moods, 0.2, 0.4))
    found = analyse_cluster(made)
    assert names(found.multimodal) == {"sometimes", "never"}
    assert names(slow(found)) == {"never"}


def test_a_half_idle_instance_is_judged_by_a_value_from_zero() -> None:
    seconds = np.arange(600.0)
    made = {
        f"i{n}": Series(seconds, 100 * (1 + 0.05 * drawn(n).normal(size=600))) for n in range(8)
    }
    # Its other mode is farther from the others than standing still is.
    moods = drawn(9).random(600) < 0.5
    made["half"] = Series(seconds, np.where(moods, 0, made["i0"].values) * 3)
    found = analyse_cluster(made)
    (half,) = found.multimodal
    assert half.modality and half.modality.modes[0].value < 0  # A density reaches beyond.
    (apple,) = slow(found)
    assert (apple.name, apple.value) == ("half", 0)


def test_small_clusters_short_series_and_idle_instances() -> None:
    alone = analyse_cluster({"a": Series([0.0], [5.0])})
    assert alone.instances[0].median.interval is None
    assert (alone.variation, alone.cycle, alone.outliers) == (None, None, ())
    seconds = np.arange(40.0)
    made = {f"i{n}": Series(seconds, drawn(n).normal(10, 1, size=40)) for n in range(8)}
    found = analyse_cluster({**made, "idle": Series(seconds, np.zeros(40))})
    assert names(slow(found)) == {"idle"}
    assert not found.multimodal and not found.cyclic


@pytest.mark.parametrize(
    ("refused", "why"),
    [
        (lambda: quantile([], 0.5), "at least 1"),
        (lambda: quantile([1.0, math.nan], 0.5), "not finite"),
        (lambda: quantile(np.zeros((2, 2)), 0.5), "one-dimensional"),
        (lambda: quantile([1.0], 1.5), "between 0 and 1"),
        (lambda: needed_size(0.0), "between 0 and 1"),
        (lambda: needed_size(0.5, 1.0), "confidence"),
        (lambda: quantile_estimate([1.0], effective_size=math.nan), "not finite"),
        (lambda: coefficient_of_variation([1.0]), "at least 2"),
        (lambda: autocorrelation([1.0, 2.0], 2), "at least 3"),
        (lambda: autocorrelation([1.0, 2.0], -1), "negative"),
        (lambda: steady_by_slope([0.0, 0.0], [1.0, 1.0], 1), "times must increase"),
        (lambda: steady_by_slope([0.0, 1.0], [1.0, 1.0], 0), "positive"),
        (
            lambda: steady_by_slope([0.0, 1.0], [1.0], 1),
            "expected 1 times, one for each value, but got 2",
        ),
        (lambda: histogram([1.0], bins=0), "bins"),
        (lambda: modality([1.0] * 19), "at least 20"),
        (lambda: strongest_cycle(range(31), range(31)), "at least 32"),
        (lambda: strongest_cycle(range(40), range(40), least_cycles=0.5), "at least 1"),
        (lambda: precision([-1.0, 1.0], 0.05), "median is zero"),
        (lambda: precision([1.0], 5), "between 0 and 1"),
        (lambda: analyse_cluster({}), "no instances"),
        (lambda: analyse_cluster({"a": Series([0.0, 1.0], [-1.0, -1.0])}), "negative"),
        (lambda: outliers({}), "at least 1"),
    ],
)
def test_invalid_values_are_refused(refused: Callable[[], object], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        refused()
