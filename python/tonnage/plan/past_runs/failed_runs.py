"""Clusters with as little memory as one on which the job failed.

A run that failed rules out clusters that have no more memory, neither for each vCPU nor in all, for
as much data or more. It does not if another run finished with as little: then it failed for another
reason.
"""

from dataclasses import dataclass

import numpy as np

from tonnage.model.past_runs.clusters import Clusters, Flags
from tonnage.plan.past_runs.runs_of_job import RunsOfJob


@dataclass(frozen=True)
class FailedRuns:
    """The runs that failed where no other finished with as little memory."""

    clusters: Clusters
    sizes: np.ndarray
    names: list[str]

    @classmethod
    def of_job(cls, job: RunsOfJob) -> "FailedRuns":
        finished = job.clusters.at(job.finished)
        failed = [
            place
            for place, run in enumerate(job.runs)
            if run.outcome == "failed"
            and not (
                _has_no_more(finished, job.clusters.at([place]))
                & (job.sizes[job.finished] >= job.sizes[place])
            ).any()
        ]
        names = [f"{job.runs[place].nodes} x {job.runs[place].machine_type}" for place in failed]
        return cls(job.clusters.at(failed), job.sizes[failed], [*dict.fromkeys(names)])

    def rule_out(self, clusters: Clusters, size: float) -> Flags:
        """Which clusters, for so much data."""
        found = np.zeros(len(clusters), dtype=bool)
        for place in np.flatnonzero(self.sizes <= size):
            found |= _has_no_more(clusters, self.clusters.at([place]))
        return found


def _has_no_more(clusters: Clusters, other: Clusters) -> Flags:
    """Which have no more memory than another, neither in all nor for each vCPU."""
    found: Flags = (clusters.nodes * clusters.memory_bytes <= other.nodes * other.memory_bytes) & (
        clusters.memory_bytes / clusters.vcpus <= other.memory_bytes / other.vcpus
    )
    return found
