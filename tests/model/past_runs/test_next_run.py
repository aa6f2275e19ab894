"""Which run is worth making next, where it is known what each could tell."""

import numpy as np
import pytest

from tonnage.model.past_runs.choice import cheapest
from tonnage.model.past_runs.next_run import next_runs
from tonnage.model.past_runs.posterior import Times

ONE_USD = np.ones(3)


def times(*seconds: np.ndarray) -> Times:
    logs = np.log(np.column_stack(seconds))
    return Times(logs, logs)


FITS = np.arange(600) % 2 == 0
"""Whether a working set fits into memory is open: half of the draws say so."""
KNOWN = np.full(600, 100.0)


def test_the_run_that_tells_is_worth_most() -> None:
    large = np.where(FITS, 50.0, 300.0)
    unsure = 300 * np.exp(np.random.default_rng(1).normal(0, 0.2, 600))
    first, *others = next_runs(times(KNOWN, large, unsure), ONE_USD)
    assert first.place == 1 and first.usd == pytest.approx((50 * 300) ** 0.5)
    # In half of the cases the choice afterwards costs half.
    assert first.gain == pytest.approx(1 - 0.5**0.5, abs=0.03)
    assert all(each.gain == pytest.approx(0.0, abs=0.01) for each in others)


def test_a_cheap_run_of_what_is_known_tells_nothing() -> None:
    gains = [each.gain for each in next_runs(times(KNOWN, 2 * KNOWN), ONE_USD[:2])]
    assert gains == pytest.approx([0.0, 0.0])


def test_a_run_that_tells_of_others_is_worth_something_without_being_chosen() -> None:
    cheap = np.where(FITS, 50.0, 150.0)
    found = next_runs(times(KNOWN, cheap, 10 * cheap), ONE_USD)
    gain = {each.place: each.gain for each in found}
    assert gain[1] == gain[2] == pytest.approx(1 - (100 / 150) ** 0.5, abs=0.03)


def test_a_deadline_asks_for_other_runs() -> None:
    large = np.where(FITS, 50.0, 200.0)
    usd = np.array([1.0, 4.0])
    assert max(each.gain for each in next_runs(times(KNOWN, large), usd)) < 0.01
    sure = times(KNOWN, large, 0 * KNOWN + 80.0)
    best = next_runs(sure, np.array([1.0, 1.5, 4.0]), deadline=90.0)[0]
    assert best.place == 1 and best.gain > 0.1


def test_the_cheapest_cluster_is_chosen_and_in_time_with_a_deadline() -> None:
    often = np.where(np.arange(600) < 480, 50.0, 150.0)
    its, usd = times(KNOWN, often, 0 * KNOWN + 60.0), np.array([1.0, 2.0, 3.0])
    assert cheapest(its, usd) == 0
    # In time with 80 %, and cheaper even if one of five runs is made again.
    assert cheapest(its, usd, deadline=90.0) == 1
    # Nearly as dear as the sure one, so the sure one.
    assert cheapest(its, np.array([1.0, 3.0, 3.0]), deadline=90.0) == 2
    # None is in time; the one that most likely is.
    assert cheapest(its, usd, deadline=55.0) == 1
    assert cheapest(its.at([0, 2]), usd[[0, 2]], deadline=40.0) == 0


def test_a_small_run_is_worth_what_it_tells_of_the_large_ones() -> None:
    large = np.where(FITS, 50.0, 300.0)
    found = next_runs(times(KNOWN, large, large / 10), ONE_USD, choices=[0, 1])
    gain = {each.place: each.gain for each in found}
    assert gain[1] == gain[2] == pytest.approx(1 - 0.5**0.5, abs=0.03)
    assert {each.place: each.usd for each in found}[2] == pytest.approx((5 * 30) ** 0.5)
