"""Choose the runs of each job one after the other, and see what the cluster chosen then costs.

The first run is a training set's first. Each next one is that of the job's table which is worth
most by what is predicted from those before it, or, to compare, one at random.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tonnage.model.past_runs.baselines import BASELINES
from tonnage.model.past_runs.next_run import next_runs
from tonnage.plan.backtest.runs import Backtest
from tonnage.plan.backtest.training_sets import TrainingSet
from tonnage.plan.past_runs.runs_of_job import RunsOfJob

Choice = Callable[[Sequence[int]], int]
"""From the places of the runs that are known, in order, to that of the next."""


@dataclass(frozen=True)
class ChosenRuns:
    """What was chosen after 1, 2, ... runs of a job, beginning with one training set's first."""

    job: str
    program: tuple[str, str]
    regrets: Sequence[float]
    """What the chosen cluster costs above the cheapest, as a share, by the number of runs."""
    random_regrets: Sequence[float]
    """The same, had the runs been drawn at random."""
    law_regrets: Mapping[str, Sequence[float]]
    """The same, of simpler laws that know the runs at random."""
    spent: float
    """What the chosen runs cost together, in runs on the cheapest cluster."""


def choose_runs(backtest: Backtest, sets: Sequence[TrainingSet], count: int) -> list[ChosenRuns]:
    """Choose up to so many runs of each job, from each set's first run that finished."""
    return [
        _choose(backtest, name, places[0], count)
        for each in sets
        for name, places in each.places.items()
        if places[0] in backtest.jobs[name].finished and len(backtest.jobs[name].choices) > 1
    ]


def _choose(backtest: Backtest, name: str, first: int, count: int) -> ChosenRuns:
    job = backtest.jobs[name]
    count = min(count, len(job.runs))
    dice = random.Random(f"{name} {first}")

    def best(known: Sequence[int]) -> int:
        times = backtest.predict(name, [(name, place) for place in known])
        ranking = next_runs(times, job.usd_per_second, choices=job.choices)
        return next(each.place for each in ranking if each.place not in known)

    def any_of(known: Sequence[int]) -> int:
        return dice.choice([place for place in range(len(job.runs)) if place not in known])

    runs, regrets = _series(backtest, job, first, count, best)
    drawn, random_regrets = _series(backtest, job, first, count, any_of)
    paid = (job.seconds * job.usd_per_second)[runs].sum()
    return ChosenRuns(
        job=name,
        program=job.program,
        regrets=regrets,
        random_regrets=random_regrets,
        law_regrets={law: _regrets_by(job, drawn, law) for law in BASELINES},
        spent=float(paid / job.paid.min()),
    )


def _regrets_by(job: RunsOfJob, runs: Sequence[int], law: str) -> list[float]:
    """Of the cluster that a simpler law chooses after each of these runs."""
    regrets = []
    for number in range(1, len(runs) + 1):
        known = [place for place in runs[:number] if place in job.finished]
        trained = job.clusters.at(known), job.sizes[known], job.seconds[known]
        seconds = BASELINES[law](*trained, job.clusters, job.sizes)
        regrets.append(job.regret(job.cheapest_by(seconds)))
    return regrets


def _series(
    backtest: Backtest, job: RunsOfJob, first: int, count: int, choice: Choice
) -> tuple[list[int], list[float]]:
    runs = [first]
    regrets = []
    for number in range(1, count + 1):
        times = backtest.predict(job.name, [(job.name, place) for place in runs])
        regrets.append(job.regret(job.choose(times)))
        if number < count:
            runs.append(choice(runs))
    return runs, regrets
