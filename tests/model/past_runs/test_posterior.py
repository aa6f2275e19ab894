"""Predictions of made-up jobs whose demands are drawn, from some of their runs."""

import numpy as np
import pytest

from tonnage.model.past_runs.baselines import BASELINES
from tonnage.model.past_runs.clusters import Clusters
from tonnage.model.past_runs.law import log_times
from tonnage.model.past_runs.misfit import ANY_SCALE, MISFIT
from tonnage.model.past_runs.posterior import Outcomes, RunsOf, Times, predict
from tonnage.model.past_runs.prior import PRIOR, prior_draws

GIB = 1 << 30
NODES = (4, 6, 8, 12, 16, 24)
MIDDLE = 3
"""Of the first type, with twelve nodes."""


def clusters() -> Clusters:
    """Three types of as many sizes of clusters."""
    vcpus, memory = np.array([4.0, 4.0, 8.0]), np.array([16.0, 30.0, 15.0]) * GIB
    which = np.repeat([0, 1, 2], len(NODES))
    return Clusters(
        nodes=np.tile(np.array(NODES, dtype=np.float64), 3),
        vcpus=vcpus[which],
        cores=np.array([4.0, 4.4, 9.6])[which],
        memory_bytes=memory[which],
        disk_bytes_per_second=np.array([94e6, 106e6, 125e6])[which],
        network_bytes_per_second=np.array([0.18e9, 0.4e9, 0.6e9])[which],
        machine_types=which,
        families=which,
    )


def all_runs(log_sizes: float = 0.0) -> RunsOf:
    its = clusters()
    count = len(its)
    return RunsOf(
        its, np.full(count, log_sizes), np.zeros(count, dtype=np.int64), np.zeros((count, 0))
    )


def made_up(number: int) -> np.ndarray:
    """The logarithms of seconds of a job of the prior, which its law fits as well as others'."""
    dice = np.random.default_rng(number)
    demands = prior_draws(3, 200, seed=5).at([number])
    its = all_runs()
    spread = MISFIT.covariance(its.clusters, its.variants, its.log_sizes) - ANY_SCALE**2
    wrong = dice.multivariate_normal(np.zeros(len(clusters())), spread)
    noise = MISFIT.noise * dice.standard_t(MISFIT.tail, len(clusters()))
    return np.asarray(6.0 + log_times(demands, clusters())[0] + wrong + noise)


def predicted(true: np.ndarray, known: list[int], unfinished: list[int] | None = None) -> Times:
    places = [*known, *(unfinished or [])]
    stopped = np.array([False] * len(known) + [True] * len(unfinished or []))
    its = Outcomes(true[places], stopped, np.zeros(len(places), dtype=bool))
    return predict(all_runs().at(places), its, all_runs(), 3)


def test_intervals_hold_and_more_runs_narrow_them() -> None:
    widths, inside = {}, {}
    for known in ([MIDDLE], [MIDDLE, 1, 14]):
        held, wide = [], []
        for number in range(40):
            true = made_up(number)
            low, high = predicted(true, known).interval(0.9)
            others = np.ones(len(true), dtype=bool)
            others[known] = False
            held.append(((np.log(low) <= true) & (true <= np.log(high)))[others])
            wide.append(np.median(high / low))
        inside[len(known)], widths[len(known)] = np.mean(held), np.median(wide)
    assert 0.84 <= inside[1] <= 0.96 and 0.84 <= inside[3] <= 0.96
    assert widths[3] < 0.85 * widths[1]


def test_a_run_that_was_stopped_took_at_least_that_long() -> None:
    true = made_up(1)
    without = predicted(true, [MIDDLE]).seconds[0]
    limit = np.array(true)
    limit[0] = np.log(2 * without)
    assert predicted(limit, [MIDDLE], unfinished=[0]).seconds[0] > 1.2 * without


def test_a_run_that_failed_where_memory_is_least_suggests_a_step() -> None:
    true = made_up(7)
    runs, least = all_runs().at([MIDDLE, MIDDLE + len(NODES), 2 * len(NODES)]), 2 * len(NODES)
    seconds = true[[MIDDLE, MIDDLE + len(NODES), least]]
    none, last = np.zeros(3, dtype=bool), np.array([False, False, True])
    failed = predict(runs, Outcomes(seconds, none, last), all_runs(), 3)
    finished = runs.at([0, 1])
    without = predict(finished, Outcomes.of_finished(seconds[:2]), all_runs(), 3)
    slower = failed.seconds / without.seconds
    assert slower[least] > 1.1
    assert slower[[MIDDLE, MIDDLE + len(NODES)]] == pytest.approx(1.0, abs=0.05)


def test_a_variant_of_twice_the_size_teaches_and_takes_longer() -> None:
    true = made_up(2)
    its = all_runs()
    larger = all_runs(np.log(2.0))
    variant = RunsOf(
        larger.clusters,
        larger.log_sizes,
        np.ones(len(larger), dtype=np.int64),
        larger.log_parameters,
    )
    known = its.at([MIDDLE]) + variant.at([0, 14])
    seconds = np.array([true[MIDDLE], true[0] + np.log(2), true[14] + np.log(2)])
    both = predict(known, Outcomes.of_finished(seconds), its, 3)
    (low, high), (alone_low, alone_high) = (
        both.interval(0.9),
        predicted(true, [MIDDLE]).interval(0.9),
    )
    assert np.median(high / low) < np.median(alone_high / alone_low)
    of_larger = predict(its.at([MIDDLE]), Outcomes.of_finished(true[[MIDDLE]]), larger, 3)
    assert np.all(of_larger.seconds > predicted(true, [MIDDLE]).seconds)


def test_a_working_set_that_is_told_places_the_step() -> None:
    true = made_up(4)
    less, more = (
        predict(
            all_runs().at([MIDDLE]),
            Outcomes.of_finished(true[[MIDDLE]]),
            all_runs(),
            3,
            prior=PRIOR.with_working_set(size * GIB),
        ).seconds
        for size in (20, 300)
    )
    # The run fits into its 192 GiB, or does not: then clusters of 300 GiB and more are faster.
    memory = clusters().nodes * clusters().memory_bytes / GIB
    assert np.median(more[memory > 400] / less[memory > 400]) < 0.7
    assert np.median(more[memory < 100] / less[memory < 100]) < 1.3


def test_an_engine_that_keeps_nothing_hardly_has_a_step() -> None:
    chances = [PRIOR.of_engine(name).cliff_factor.chance for name in ("hadoop", "spark2.1", "")]
    assert chances[0] < 0.1 < chances[1] == chances[2]


def test_of_many_runs_a_few_decide_which_draws_are_weighted() -> None:
    true = made_up(5)
    everything = predicted(true, list(range(len(true))))
    assert np.median(np.abs(np.log(everything.seconds) - true)) < 0.05


def test_the_same_runs_give_the_same_prediction() -> None:
    true = made_up(3)
    assert np.array_equal(predicted(true, [1, 9]).single, predicted(true, [1, 9]).single)


@pytest.mark.parametrize("law", BASELINES)
def test_a_baseline_finds_what_follows_its_law(law: str) -> None:
    its, ones = clusters(), np.ones(len(clusters()))
    work = its.nodes * its.cores
    seconds = 5000 / work + (0 if law == "cores x speed" else 40)
    some = [0, 5, 9, 13, 17]
    found = BASELINES[law](its.at(some), ones[some], seconds[some], its, ones)
    assert found == pytest.approx(seconds, rel=1e-3)
