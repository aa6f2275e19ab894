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
from tonnage.catalog import CatalogError, Offer
from tonnage.model.past_runs.baselines import BASELINES
from tonnage.model.past_runs.choice import cheapest
from tonnage.model.past_runs.clusters import Floats
from tonnage.model.past_runs.misfit import MISFIT, Misfit
from tonnage.model.past_runs.posterior import RunsOf, Times, predict
from tonnage.model.past_runs.prior import PRIOR, Prior
from tonnage.plan.backtest.run_machines import Machines
from tonnage.plan.backtest.run_table import by_job
from tonnage.plan.backtest.training_sets import TrainingSet

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
    """As ``regret``, of the clusters in time; ``None`` if it is missed."""
    baselines: Mapping[str, "OfBaseline"]


@dataclass(frozen=True)
class OfBaseline:
    """How well a simpler law predicted the same runs, and chose."""

    errors: Floats
    regret: float
    missed: bool


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
        variants = {name: 0}
        parts, log_seconds, unfinished = [], [], []
        for other, place in known:
            its = self.jobs[other]
            run = its.runs[place]
            if run.outcome == "failed":
                continue
            number = variants.setdefault(other, len(variants))
            parts.append(its.as_runs([place], number, job))
            log_seconds.append(np.log(run.seconds))
            unfinished.append(run.outcome == "timeout")
        everything = job.as_runs(range(len(job.runs)), 0, job)
        joined = parts[0]
        for part in parts[1:]:
            joined += part
        return predict(
            joined,
            np.array(log_seconds),
            np.array(unfinished),
            everything,
            self.machines.families,
            prior=self.prior.of_engine(job.runs[0].framework),
            misfit=self.misfit,
        )


class RunsOfJob:
    """The runs of a job, and what its clusters have."""

    def __init__(self, runs: Sequence[PastRun], machines: Machines) -> None:
        self.runs = list(runs)
        self.name, self.program = runs[0].name, runs[0].program
        offers = [machines.offer(run.provider, run.machine_type, run.disks) for run in runs]
        self.clusters = machines.clusters(
            (offer, run.nodes) for offer, run in zip(offers, runs, strict=True)
        )
        self.seconds = np.array([run.seconds for run in runs])
        hourly = [_usd_per_hour(run, offer) for run, offer in zip(runs, offers, strict=True)]
        self.usd_per_second = np.array(hourly) * self.clusters.nodes / 3600
        sizes = [run.data_bytes for run in runs if run.data_bytes]
        self.usual_bytes = float(np.median(sizes)) if sizes else None
        self.sizes = np.array([run.data_bytes or self.usual_bytes or 1.0 for run in runs])
        self.finished = [place for place, run in enumerate(runs) if run.outcome == "ok"]
        self.parameters = {
            name: value for name, value in runs[0].parameters.items() if isinstance(value, float)
        }
        self.words = {
            name: value for name, value in runs[0].parameters.items() if isinstance(value, str)
        }
        """Parameters that are no numbers; how much work they make is unknown."""
        self.choices = self._choices()
        """A place for each cluster that a run of the usual size finished on."""
        self.typical_seconds = np.array([self._typical(place) for place in self.choices])
        self.deadline = float(np.median(self.typical_seconds)) if self.choices else 0.0
        """Half of these clusters keep it."""

    def _choices(self) -> list[int]:
        if not self.finished:
            return []
        sizes = self.sizes[self.finished]
        size = sizes[np.argmin(np.abs(np.log(sizes / (self.usual_bytes or 1.0))))]
        clusters: dict[tuple[str, str, int], int] = {}
        for place in self.finished:
            if self.sizes[place] == size:
                clusters.setdefault(self._cluster(place), place)
        return list(clusters.values())

    def _cluster(self, place: int) -> tuple[str, str, int]:
        run = self.runs[place]
        return run.provider, run.machine_type, run.nodes

    def _typical(self, place: int) -> float:
        """The median of a cluster's repeated runs."""
        same = [
            self.seconds[other]
            for other in self.finished
            if self._cluster(other) == self._cluster(place)
            and self.sizes[other] == self.sizes[place]
        ]
        return float(np.median(same))

    @property
    def paid(self) -> Floats:
        """Dollars of a run on each of the clusters to choose from."""
        usd: Floats = self.typical_seconds * self.usd_per_second[self.choices]
        return usd

    def cheapest_by(self, seconds: Floats) -> int:
        """The choice by predicted seconds of all runs."""
        return int(np.argmin((seconds * self.usd_per_second)[self.choices]))

    def choose(self, times: Times, deadline: float | None = None) -> int:
        """By what is predicted of all its runs; a choice is a place among ``choices``."""
        return cheapest(times.at(self.choices), self.usd_per_second[self.choices], deadline)

    def regret(self, choice: int) -> float:
        return float(self.paid[choice] / self.paid.min() - 1)

    def is_missed(self, choice: int) -> bool:
        return bool(self.typical_seconds[choice] > self.deadline)

    def deadline_regret(self, choice: int) -> float:
        in_time = self.typical_seconds <= self.deadline
        return float(self.paid[choice] / self.paid[in_time].min() - 1)

    def as_runs(self, places: Sequence[int], variant: int, job: "RunsOfJob") -> RunsOf:
        """Its runs, relative to the job that is predicted."""
        where = np.array(places, dtype=np.int64)
        if self.words != job.words:
            log_sizes = np.full(len(where), np.nan)
        elif job.usual_bytes and self.usual_bytes:
            log_sizes = np.log(self.sizes[where] / job.usual_bytes)
        elif variant == 0:
            log_sizes = np.zeros(len(where))
        else:
            log_sizes = np.full(len(where), np.nan)
        names = sorted(job.parameters)
        ratios = [
            np.log(self.parameters[name] / job.parameters[name])
            if self.parameters.get(name, 0) > 0 and job.parameters[name] > 0
            else 0.0
            for name in names
        ]
        return RunsOf(
            self.clusters.at(where),
            log_sizes,
            np.full(len(where), variant),
            np.tile(np.array(ratios), (len(where), 1)).reshape(len(where), len(names)),
        )


def _usd_per_hour(run: PastRun, offer: Offer) -> float:
    """What the run's owner counts, or the catalog's price."""
    if run.price_hour:
        return run.price_hour
    if offer.on_demand is None:
        raise CatalogError(
            f"the price of {offer.type} of {offer.provider} is unknown; specify it in a column "
            "price_hour"
        )
    return offer.on_demand.usd_per_hour


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
        baselines[name] = OfBaseline(
            errors=np.abs(seconds[tested] / true - 1),
            regret=job.regret(job.cheapest_by(seconds)),
            missed=job.is_missed(_cheapest_in_time(job, seconds)),
        )
    chosen = job.choose(times, job.deadline)
    missed = job.is_missed(chosen)
    return Tested(
        job=job.name,
        program=job.program,
        errors=np.abs(times.seconds[tested] / true - 1),
        inside=((low <= job.seconds) & (job.seconds <= high))[tested],
        widths=(high / low)[tested],
        regret=job.regret(job.choose(times)),
        missed=missed,
        deadline_regret=None if missed else job.deadline_regret(chosen),
        baselines=baselines,
    )


def _cheapest_in_time(job: RunsOfJob, seconds: Floats) -> int:
    """Of a law that knows no probabilities; the fastest, if none is in time."""
    its = seconds[job.choices]
    if its.min() > job.deadline:
        return int(np.argmin(its))
    paid = its * job.usd_per_second[job.choices]
    return int(np.argmin(np.where(its <= job.deadline, paid, np.inf)))
