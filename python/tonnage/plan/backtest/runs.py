"""Hide all but some runs of each job, predict the others, and compare.

For each job and each training set: the runs of the set, and those of the same set of its variants
(the program with other data), are known; every other finished run is predicted, also by simpler
laws. What is chosen is the cheapest of the job's clusters, by what is predicted; where a job has
runs of several sizes, for its usual one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tonnage.base.records.past_run import PastRun
from tonnage.model.past_runs.baselines import BASELINES
from tonnage.model.past_runs.clusters import Floats
from tonnage.model.past_runs.misfit import MISFIT, Misfit
from tonnage.model.past_runs.posterior import Times, predict
from tonnage.model.past_runs.prior import PRIOR, Prior
from tonnage.plan.backtest.training_sets import TrainingSet
from tonnage.plan.past_runs.run_machines import Machines
from tonnage.plan.past_runs.run_table import by_job
from tonnage.plan.past_runs.runs_of_job import RunsOfJob, join_runs

CONFIDENCE = 0.9


@dataclass(frozen=True)
class Tested:
    """The runs that were predicted from one training set of a job, and how well."""

    job: str
    program: tuple[str, str]
    errors: Floats
    inside: npt.NDArray[np.bool_]
    widths: Floats
    regret: float
    """What the chosen cluster costs above the cheapest, as a share."""
    missed: bool
    """Whether the cluster that is chosen for a deadline is too late."""
    deadline_regret: float | None
    """What that cluster costs above the cheapest that is in time; ``None`` if it is late."""
    baselines: Mapping[str, "OfBaseline"]


@dataclass(frozen=True)
class OfBaseline:
    """How well a simpler law predicted the same runs, and chose."""

    errors: Floats
    regret: float
    missed: bool
    deadline_regret: float | None


class Backtest:
    """The jobs of a table, with what is known of their machines."""

    def __init__(
        self,
        runs: Sequence[PastRun],
        machines: Machines,
        prior: Prior = PRIOR,
        misfit: Misfit = MISFIT,
    ) -> None:
        self.machines = machines
        self.prior, self.misfit = prior, misfit
        self.runs = by_job(runs)
        self.jobs = {name: RunsOfJob(some, machines) for name, some in self.runs.items()}

    def test(self, sets: Sequence[TrainingSet], runs: int) -> list[Tested]:
        """Predict each job from the first so many runs of each set."""
        return [
            tested
            for each in sets
            for name in each.places
            if (tested := self._tested(name, each, runs)) is not None
        ]

    def known_runs(
        self, name: str, trained: TrainingSet, runs: int
    ) -> list[tuple[str, int]] | None:
        """A job's first so many runs of a set and those of its variants, by name and place.

        ``None`` if none of its own finished, or no other did.
        """
        job, own = self.jobs[name], list(trained.places[name][:runs])
        if not set(own) & set(job.finished) or not set(job.finished) - set(own):
            return None
        return [(name, place) for place in own] + [
            (other, place)
            for other, places in trained.places.items()
            if other != name and self.jobs[other].program == job.program
            for place in places[:runs]
        ]

    def _tested(self, name: str, trained: TrainingSet, runs: int) -> Tested | None:
        known = self.known_runs(name, trained, runs)
        if known is None:
            return None
        return _judged(self.jobs[name], known, self.predict(name, known))

    def predict(self, name: str, known: Sequence[tuple[str, int]]) -> Times:
        """Predict all runs of a job from some, each a job's name and a place among its runs."""
        job = self.jobs[name]
        some = [(self.jobs[other], place) for other, place in known]
        times = predict(
            *join_runs(job, some),
            job.as_runs(job.distinct, 0, job),
            self.machines.families,
            prior=self.prior.of_engine(job.runs[0].framework),
            misfit=self.misfit,
        )
        return times.at(job.which_distinct)


def _judged(job: RunsOfJob, runs: Sequence[tuple[str, int]], times: Times) -> Tested:
    own = [place for name, place in runs if name == job.name]
    tested = [place for place in job.finished if place not in own]
    true = job.seconds[tested]
    low, high = times.interval(CONFIDENCE)
    known = [place for place in own if place in job.finished]
    baselines = {}
    for name, law in BASELINES.items():
        trained = job.clusters.at(known), job.sizes[known], job.seconds[known]
        seconds = law(*trained, job.clusters, job.sizes)
        in_time = job.cheapest_in_time(seconds)
        baselines[name] = OfBaseline(
            errors=np.abs(seconds[tested] / true - 1),
            regret=job.regret(job.cheapest_by(seconds)),
            missed=job.is_missed(in_time),
            deadline_regret=job.deadline_regret(in_time),
        )
    chosen = job.choose(times, job.deadline)
    return Tested(
        job=job.name,
        program=job.program,
        errors=np.abs(times.seconds[tested] / true - 1),
        inside=((low <= job.seconds) & (job.seconds <= high))[tested],
        widths=(high / low)[tested],
        regret=job.regret(job.choose(times)),
        missed=job.is_missed(chosen),
        deadline_regret=job.deadline_regret(chosen),
        baselines=baselines,
    )
