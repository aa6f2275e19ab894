"""The runs of a job and of its variants, and what they say of other clusters."""

from collections.abc import Hashable, Sequence

import numpy as np
from msgspec import structs

from tonnage.base.executor_memory import MEMORY_FOR_DATA
from tonnage.base.records.past_run import PastRun, PastRuns, RunDemands
from tonnage.catalog import Offer
from tonnage.model.past_runs.posterior import RunsOf, Times, predict
from tonnage.model.past_runs.prior import PRIOR, Prior
from tonnage.model.past_runs.run_demands import DemandShares, demand_shares
from tonnage.plan.past_runs.run_machines import Machines
from tonnage.plan.past_runs.run_table import by_job
from tonnage.plan.past_runs.runs_of_job import RunsOfJob, join_runs

MOST_RUNS = 150
"""So many are used, those of the job first: more tell hardly more, and take longer."""
MEMORY_SPREAD = 0.35
"""How far the cluster memory in which stated data fits is from what usual settings say, as a
logarithm."""


def typical_runs(runs: Sequence[PastRun]) -> list[PastRun]:
    """One run for all that were repeated: many of one cluster tell no more of others than one."""
    alike: dict[Hashable, list[PastRun]] = {}
    for run in runs:
        cluster = run.provider, run.machine_type, run.nodes, run.disks
        alike.setdefault((run.name, run.data_bytes, run.outcome, cluster), []).append(run)
    return [
        structs.replace(some[0], seconds=float(np.median([run.seconds for run in some])))
        for some in alike.values()
    ]


class NoFinishedRun(Exception):
    """None of the job's runs finished."""


class KnownRuns:
    def __init__(self, past: PastRuns, machines: Machines) -> None:
        self.machines, self.past = machines, past
        runs = typical_runs(past.runs)
        self.jobs = {name: RunsOfJob(some, machines) for name, some in by_job(runs).items()}
        self.job = self.jobs[past.job]
        if not self.job.finished:
            raise NoFinishedRun

    @property
    def usual_bytes(self) -> int | None:
        """Of the job's input; ``None`` if its runs do not state it."""
        return int(self.job.usual_bytes) if self.job.usual_bytes else None

    def times(self, clusters: Sequence[tuple[Offer, int]], size: int | None) -> Times:
        """Of the job on these machines and numbers of them, with so much input."""
        ratio = size / self.job.usual_bytes if size and self.job.usual_bytes else 1.0
        targets = RunsOf(
            self.machines.clusters(clusters),
            np.full(len(clusters), np.log(ratio)),
            np.zeros(len(clusters), dtype=np.int64),
            np.zeros((len(clusters), len(self.job.parameters))),
        )
        return predict(
            *join_runs(self.job, self._runs_to_learn()),
            targets,
            self.machines.families,
            prior=self._prior(),
        )

    def _prior(self) -> Prior:
        prior = PRIOR.of_engine(self.job.runs[0].framework)
        if self.past.demands is not None:
            prior = prior.with_shares(self._told_shares(self.past.demands))
        if self.past.cached_bytes is None:
            return prior
        if not self.past.cached_bytes:
            return prior.without_working_set()
        # Nodes keep data in a part of their memory, which engines and settings make another.
        return prior.with_working_set(
            self.past.cached_bytes / MEMORY_FOR_DATA, spread=MEMORY_SPREAD
        )

    def _told_shares(self, demands: RunDemands) -> DemandShares:
        offer = self.machines.offer(demands.provider, demands.machine_type)
        its = self.machines.clusters([(offer, 1)])
        speed = float(its.cores[0] / its.vcpus[0])
        return demand_shares(demands, speed**PRIOR.core_speed_power.mean)

    def _runs_to_learn(self) -> list[tuple[RunsOfJob, int]]:
        """The runs to learn from, those of the job that finished first."""
        others = [each for name, each in self.jobs.items() if name != self.past.job]
        some = [
            (its, place)
            for its in [self.job, *others]
            for place in sorted(range(len(its.runs)), key=lambda at: at not in its.finished)
        ]
        return some[:MOST_RUNS]
