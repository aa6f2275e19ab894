"""The runs of a job with what their clusters have, and how they relate to those of its variants."""

from collections.abc import Sequence

import numpy as np

from tonnage.base.records.past_run import PastRun
from tonnage.catalog import CatalogError, Offer
from tonnage.model.past_runs.choice import cheapest, cheapest_in_time
from tonnage.model.past_runs.clusters import Floats
from tonnage.model.past_runs.posterior import Outcomes, RunsOf, Times
from tonnage.plan.past_runs.run_machines import Machines

FAR = 20.0
"""The most by which parameters differ, as a logarithm; beyond, nothing is learned."""


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
        alike = [(*self._cluster(place), self.sizes[place]) for place in range(len(runs))]
        numbers = {each: number for number, each in enumerate(dict.fromkeys(alike))}
        self.distinct = [alike.index(each) for each in numbers]
        """A place for each cluster and size: repeated runs have the same prediction."""
        self.which_distinct = [numbers[each] for each in alike]
        """Of each run, where it is in ``distinct``."""
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
        clusters: dict[tuple[str, str, int, str], int] = {}
        for place in self.finished:
            if self.sizes[place] == size:
                clusters.setdefault(self._cluster(place), place)
        return list(clusters.values())

    def _cluster(self, place: int) -> tuple[str, str, int, str]:
        run = self.runs[place]
        return run.provider, run.machine_type, run.nodes, run.disks

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

    def cheapest_in_time(self, seconds: Floats) -> int:
        """As `cheapest_by`, of those that it predicts to be in time; a place among ``choices``."""
        its, usd = seconds[self.choices], self.usd_per_second[self.choices]
        return cheapest_in_time(its, usd, self.deadline)

    def choose(self, times: Times, deadline: float | None = None) -> int:
        """By what is predicted of all its runs; a choice is a place among ``choices``."""
        return cheapest(times.at(self.choices), self.usd_per_second[self.choices], deadline)

    def regret(self, choice: int) -> float:
        return float(self.paid[choice] / self.paid.min() - 1)

    def is_missed(self, choice: int) -> bool:
        return bool(self.typical_seconds[choice] > self.deadline)

    def deadline_regret(self, choice: int) -> float | None:
        """What a choice costs above the cheapest in time; ``None`` if it is late."""
        if self.is_missed(choice):
            return None
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
            float(np.clip(np.log(self.parameters[name] / job.parameters[name]), -FAR, FAR))
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


def join_runs(job: RunsOfJob, some: Sequence[tuple[RunsOfJob, int]]) -> tuple[RunsOf, Outcomes]:
    """Runs of a job and of its variants, each by its place, relative to the job, and how they
    ended."""
    variants = {job.name: 0}
    parts = [
        its.as_runs([place], variants.setdefault(its.name, len(variants)), job)
        for its, place in some
    ]
    joined = parts[0]
    for part in parts[1:]:
        joined += part
    runs = [its.runs[place] for its, place in some]
    return joined, Outcomes(
        np.log([run.seconds for run in runs]),
        np.array([run.outcome == "timeout" for run in runs]),
        np.array([run.outcome == "failed" for run in runs]),
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
