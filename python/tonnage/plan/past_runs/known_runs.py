"""The runs of a job and of its variants, and what they say of other clusters."""

from collections.abc import Sequence

import numpy as np

from tonnage.base.records.past_run import PastRun, PastRuns
from tonnage.catalog import Offer
from tonnage.model.jobs.application import MEMORY_FOR_DATA
from tonnage.model.past_runs.posterior import RunsOf, Times, predict
from tonnage.model.past_runs.prior import PRIOR, Prior
from tonnage.plan.backtest.run_machines import Machines
from tonnage.plan.backtest.run_table import by_job
from tonnage.plan.backtest.runs import RunsOfJob

MOST_RUNS = 150
"""So many are used, those of the job first: more tell hardly more, and take longer."""


MEMORY_SPREAD = 0.35
"""How far the cluster memory in which stated data fits is from what usual settings say, as a
logarithm."""


class NoFinishedRun(Exception):
    """None of the job's runs finished."""


class KnownRuns:
    def __init__(self, past: PastRuns, machines: Machines) -> None:
        self.machines, self.past = machines, past
        self.jobs = {name: RunsOfJob(some, machines) for name, some in by_job(past.runs).items()}
        self.job = self.jobs[past.job]
        if not self.job.finished:
            raise NoFinishedRun

    @property
    def usual_bytes(self) -> int | None:
        """Of the job's input; ``None`` if its runs do not state it."""
        return int(self.job.usual_bytes) if self.job.usual_bytes else None

    def times(self, clusters: Sequence[tuple[Offer, int]], size: int | None) -> Times:
        """Of the job on these machines and numbers of them, with so much input."""
        known, log_seconds, unfinished = self._joined()
        ratio = size / self.job.usual_bytes if size and self.job.usual_bytes else 1.0
        targets = RunsOf(
            self.machines.clusters(clusters),
            np.full(len(clusters), np.log(ratio)),
            np.zeros(len(clusters), dtype=np.int64),
            np.zeros((len(clusters), len(self.job.parameters))),
        )
        return predict(
            *(known, log_seconds, unfinished, targets, self.machines.families),
            prior=self._prior(),
        )

    def _prior(self) -> Prior:
        prior = PRIOR.of_engine(self.job.runs[0].framework)
        if self.past.cached_bytes is None:
            return prior
        # Nodes keep data in a part of their memory, which engines and settings make another.
        return prior.with_working_set(
            self.past.cached_bytes / MEMORY_FOR_DATA, spread=MEMORY_SPREAD
        )

    def _joined(self) -> tuple[RunsOf, np.ndarray, np.ndarray]:
        """The runs, logarithms of what they took, and which were stopped before their end."""
        others = [each for name, each in self.jobs.items() if name != self.past.job]
        parts: list[RunsOf] = []
        runs: list[PastRun] = []
        for variant, its in enumerate([self.job, *others]):
            room = MOST_RUNS - len(runs)
            places = [at for at, run in enumerate(its.runs) if run.outcome != "failed"][:room]
            if places:
                parts.append(its.as_runs(places, variant, self.job))
                runs += [its.runs[at] for at in places]
        joined = parts[0]
        for part in parts[1:]:
            joined += part
        seconds = np.array([run.seconds for run in runs])
        return joined, np.log(seconds), np.array([run.outcome == "timeout" for run in runs])
