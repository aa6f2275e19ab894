"""Change points: known answers, and the right number at the right place under slow noise."""

import itertools

import numpy as np
import pytest

from tonnage.base.stats.change_points import change_points, long_run_deviation
from tonnage.base.stats.samples import FloatArray

SEED = 20240817


def steps(*levels: tuple[int, float]) -> FloatArray:
    """So many values of each level."""
    return np.concatenate([np.full(count, level) for count, level in levels])[:, None]


def ar1(generator: np.random.Generator, count: int, r: float) -> FloatArray:
    """Noise of variance 1 whose neighbours are correlated by r."""
    shocks = generator.normal(size=count) * np.sqrt(1 - r**2)
    noise = np.empty(count)
    noise[0] = generator.normal()
    for place in range(1, count):
        noise[place] = r * noise[place - 1] + shocks[place]
    return noise


def test_one_level_has_no_change() -> None:
    assert change_points(steps((50, 3.0))) == []
    assert change_points(np.zeros((3, 2))) == []
    assert change_points(np.zeros((0, 1))) == []


def test_steps_without_noise_are_found_where_they_are() -> None:
    assert change_points(steps((20, 0.0), (30, 5.0), (15, 1.0)), floor=0.1) == [20, 50]


def test_any_of_several_series_may_step() -> None:
    first, second = steps((20, 0.0), (40, 5.0)), steps((45, 1.0), (15, 3.0))
    assert change_points(np.hstack([first, second, np.zeros((60, 1))]), floor=0.1) == [20, 45]


def test_a_segment_has_the_least_length() -> None:
    series = steps((20, 0.0), (3, 5.0), (20, 0.0))
    assert change_points(series, floor=0.1, least=3) == [20, 23]
    found = change_points(series, floor=0.1, least=5)
    assert all(late - early >= 5 for early, late in itertools.pairwise([0, *found, 43]))


def test_the_floor_hides_what_does_not_matter() -> None:
    series = steps((50, 0.0), (50, 0.01))
    assert change_points(series, floor=0.001) == [50]
    assert change_points(series, floor=0.1) == []


def test_a_value_that_is_of_both_levels_makes_no_segment() -> None:
    series = np.hstack([steps((20, 0.0), (1, 2.0), (20, 5.0)) for _ in range(3)])
    (cut,) = change_points(series, floor=0.1, blurred=1)
    assert cut in (20, 21)


def test_pelt_finds_the_exhaustive_optimum() -> None:
    """Pruning loses nothing, with the least length of segments too."""
    generator = np.random.default_rng(SEED)
    for _ in range(60):
        count, least = int(generator.integers(12, 30)), int(generator.integers(1, 5))
        series = generator.normal(size=(count, 2))
        series[int(generator.integers(0, count)) :] += generator.normal(size=2) * 3
        penalty = float(generator.uniform(0.5, 12))
        deviations = np.array([long_run_deviation(column) for column in series.T])
        scale = np.maximum(deviations, 0.5)
        found = change_points(series, least=least, floor=0.5, penalty=penalty)
        assert cost(series / scale, found, penalty) == pytest.approx(
            exhaustive(series / scale, least, penalty)
        )


def cost(series: FloatArray, cuts: list[int], penalty: float) -> float:
    borders = [0, *cuts, len(series)]
    parts = [series[low:high] for low, high in itertools.pairwise(borders)]
    return sum(float(((p - p.mean(axis=0)) ** 2).sum()) for p in parts) + penalty * len(cuts)


def exhaustive(series: FloatArray, least: int, penalty: float) -> float:
    """The least cost, by dynamic programming without pruning."""
    best = {0: -penalty}
    for end in range(least, len(series) + 1):
        options = [
            known + penalty + cost(series[start:end], [], 0.0)
            for start, known in best.items()
            if end - start >= least
        ]
        if options:
            best[end] = min(options)
    return best[len(series)]


@pytest.mark.parametrize("r", [0.0, 0.4, 0.7])
def test_noise_is_measured_despite_steps(r: float) -> None:
    generator = np.random.default_rng(SEED)
    noise = ar1(generator, 4000, r)
    noise[2000:] += 20
    expected = np.sqrt((1 + r) / (1 - r))
    assert long_run_deviation(noise) == pytest.approx(expected, rel=0.15)


@pytest.mark.parametrize("r", [0.0, 0.3, 0.6])
def test_slow_noise_alone_is_no_change(r: float) -> None:
    generator = np.random.default_rng(SEED)
    wrong = 0
    for _ in range(60):
        noise = np.column_stack([ar1(generator, 300, r) for _ in range(4)])
        wrong += bool(change_points(noise))
    assert wrong <= 3, f"{wrong} of 60 series without a change had one"


@pytest.mark.parametrize("r", [0.0, 0.3, 0.6])
def test_the_right_number_of_changes_at_the_right_places(r: float) -> None:
    """Three phases of four rates; steps of six deviations in one rate, or of four in two."""
    generator = np.random.default_rng(SEED)
    right = 0
    for _ in range(60):
        noise = np.column_stack([ar1(generator, 300, r) for _ in range(4)])
        noise[80:, 1] += 6
        noise[190:, 2] -= 4
        noise[190:, 3] += 4
        found = change_points(noise)
        right += len(found) == 2 and abs(found[0] - 80) <= 2 and abs(found[1] - 190) <= 2
    assert right >= 54, f"{right} of 60"


def test_invalid_input_is_refused() -> None:
    with pytest.raises(ValueError, match="shape"):
        change_points(np.zeros(5))
    with pytest.raises(ValueError, match="finite"):
        change_points(np.full((5, 1), np.nan))
    with pytest.raises(ValueError, match="least is 0; use at least 1"):
        change_points(np.zeros((5, 1)), least=0)
