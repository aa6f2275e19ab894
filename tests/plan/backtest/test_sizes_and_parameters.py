"""Made-up tables in which sizes, parameters and repetitions vary: what is learned from few runs.

Times follow the law, with demands of the prior, an error for each type and cluster, and repetitions
that vary with a heavy tail.
"""

from collections.abc import Sequence
from functools import cache

import numpy as np

from tonnage.base.records.past_run import PastRun
from tonnage.catalog import load_catalog
from tonnage.model.past_runs.law import log_times
from tonnage.model.past_runs.prior import prior_draws
from tonnage.plan.backtest.runs import Backtest
from tonnage.plan.backtest.training_sets import TrainingSet, random_sets
from tonnage.plan.past_runs.run_machines import Machines

TYPES = ("m4.xlarge", "c4.xlarge", "r4.xlarge")
NODES = (2, 4, 6, 8, 12)
GIGABYTES = (10, 15, 20, 30)
USUAL = (5, 17)
"""A value of the parameter and a size between the others."""


@cache
def machines() -> Machines:
    return Machines([load_catalog("aws-us-east-1-2026")])


def table(number: int, power: float = 0.8, values: Sequence[int] = (3, 5, 9)) -> Backtest:
    dice = np.random.default_rng(number)
    demands = prior_draws(machines().families, 200, seed=77).at([number])
    of_type = dict(zip(TYPES, dice.normal(0, 0.08, len(TYPES)), strict=True))
    rows = []
    for kind in TYPES:
        for nodes in NODES:
            its = machines().clusters([(machines().offer("aws", kind), nodes)])
            error = of_type[kind] + dice.normal(0, 0.05)
            for value in values:
                for size in GIGABYTES:
                    work = power * np.log(value / USUAL[0])
                    size_of = np.log(np.array([size / USUAL[1]]))
                    log_seconds = 6 + log_times(demands, its, size_of, work)[0, 0] + error
                    rows += [
                        PastRun(
                            job="made up",
                            framework="spark",
                            machine_type=kind,
                            nodes=nodes,
                            seconds=float(np.exp(log_seconds + 0.02 * abs(dice.standard_t(2.5)))),
                            data_bytes=size * 10**9,
                            repetition=repetition,
                            parameters={"k": float(value)},
                        )
                        for repetition in (1, 2)
                    ]
    return Backtest(rows, machines())


def of_size(backtest: Backtest, gigabytes: int, count: int) -> TrainingSet:
    """So many runs of one size of each job, on clusters that differ."""
    places = {}
    for name, runs in backtest.runs.items():
        of_it = [place for place, run in enumerate(runs) if run.data_bytes == gigabytes * 10**9]
        places[name] = of_it[:: len(of_it) // count][:count]
    return TrainingSet(f"{gigabytes} GB", places)


def test_runs_of_one_size_predict_the_others_within_their_intervals() -> None:
    errors, inside, of_law = [], [], []
    for number in range(8):
        backtest = table(number, values=(5,))
        for tested in backtest.test([of_size(backtest, 10, 3)], 3):
            errors.append(np.median(tested.errors))
            inside.append(tested.inside.mean())
            of_law.append(np.median(tested.baselines["a + b/n"].errors))
    assert np.median(errors) < 0.2 and np.median(errors) < np.median(of_law)
    assert 0.8 < np.mean(inside) <= 1.0


def test_further_runs_narrow_what_is_predicted() -> None:
    tested = {1: [], 3: []}
    for number in range(6):
        backtest = table(number)
        for count, found in tested.items():
            found += backtest.test(random_sets(backtest.runs, 2, 3), count)
    error, width = (
        {
            count: np.median(np.concatenate([getattr(each, part) for each in found]))
            for count, found in tested.items()
        }
        for part in ("errors", "widths")
    )
    assert error[3] < 0.75 * error[1] and width[3] < 0.8 * width[1]
    for found in tested.values():
        assert 0.8 < np.concatenate([each.inside for each in found]).mean() < 0.99


def test_the_power_of_a_parameter_is_learned_from_other_values() -> None:
    for power in (-0.5, 0.8, 1.4):
        errors = []
        for number in range(6):
            backtest = table(number, power, values=(3, 5, 9, 20))
            names = {run.parameters["k"]: name for name, (run, *_) in backtest.runs.items()}
            known = of_size(backtest, 20, 2).places
            others = [
                (names[value], place) for value in (3.0, 5.0, 9.0) for place in known[names[value]]
            ]
            times = backtest.predict(names[20.0], others)
            errors.append(np.median(times.seconds / backtest.jobs[names[20.0]].seconds) - 1)
        assert np.median(np.abs(errors)) < 0.2, power


def test_repeated_runs_have_one_prediction() -> None:
    backtest = table(2, values=(5,))
    ((name, job),) = backtest.jobs.items()
    assert len(job.distinct) == len(job.runs) // 2
    times = backtest.predict(name, [(name, place) for place in range(100)])
    repeated = [
        [place for place, at in enumerate(job.which_distinct) if at == one]
        for one in range(len(job.distinct))
    ]
    for first, second in repeated:
        assert np.array_equal(times.single[:, first], times.single[:, second])
        assert job.seconds[first] / job.seconds[second] < 2.0


def test_a_cluster_is_chosen_for_the_usual_size() -> None:
    job = next(iter(table(1, values=(5,)).jobs.values()))
    assert {job.runs[place].data_bytes for place in job.choices} == {20 * 10**9}
    assert len(job.choices) == len(TYPES) * len(NODES)
    fastest = int(np.argmin(job.typical_seconds))
    place = job.choices[fastest]
    repeated = [
        run.seconds
        for run in job.runs
        if (run.machine_type, run.nodes, run.data_bytes)
        == (job.runs[place].machine_type, job.runs[place].nodes, 20 * 10**9)
    ]
    assert job.typical_seconds[fastest] == np.median(repeated) and len(repeated) == 2
