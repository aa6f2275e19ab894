"""Tonnage through its Python API: its own reductions, or with ``numpy`` a user's in NumPy.

A user's reduction has the same functions that all other peers get.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from jobs import BLOCK_ROWS, Array, Job, Partial, job_of
from task import Task, serve

import tonnage
from tonnage.api.aggregates import Histogram
from tonnage.run.reduce import AggregateReduction
from tonnage.run.reduce.builtin.kmeans import KMeans
from tonnage.run.reduce.builtin.pagerank import PageRank
from tonnage.run.reduce.builtin.scatter import Scatter


class InNumPy(tonnage.Reduction[Partial | None]):
    """A job of the peers as a user's reduction."""

    def __init__(self, job: Job) -> None:
        self._job = job

    def begin(self, known: Any) -> Partial | None:
        self._known = known
        return None

    def local(self, rows: Any, into: Partial | None) -> Partial | None:
        return self.merge(into, self._job.local(rows, self._known))

    def merge(self, one: Partial | None, other: Partial | None) -> Partial | None:
        return (
            self._job.merge(one, other) if one is not None and other is not None else one or other
        )

    def finish(self, whole: Partial | None, known: Any) -> Any:
        assert whole is not None, "some rows"
        return self._job.finish(whole, known)

    def until(self, result: Any, known: Any, rounds: int) -> bool:
        return rounds >= self._job.rounds


class Counts(AggregateReduction):
    """A histogram of each column, from Tonnage's aggregates."""

    def __init__(self, edges: Array, columns: int) -> None:
        for column in range(columns):
            setattr(self, f"x{column}", Histogram(edges))

    def local(self, rows: Any, into: Any) -> Any:
        # As in the other peers: a block stays in the cache while all its columns are counted.
        for begin in range(0, len(rows), BLOCK_ROWS):
            for column, values in enumerate(rows[begin : begin + BLOCK_ROWS].T):
                getattr(into, f"x{column}").add(values)
        return into


def own(task: Task) -> tuple[tonnage.Reduction[Any], Callable[[Any], Array]]:
    """Return Tonnage's own reduction of a job, and the function from its result to the answer."""
    if task.job == "kmeans":
        centres = np.fromfile(task.centres).reshape(task.k, task.columns)
        return KMeans(centres, rounds=1), lambda found: np.concatenate(
            [found.centres.ravel(), found.rows, [found.inertia]]
        )
    if task.job == "covariance":
        return Scatter(), lambda found: np.concatenate(
            [found["mean"], (found["scatter"] / (found["rows"] - 1)).ravel()]
        )
    if task.job == "pagerank":
        ranking = PageRank(damping=task.damping, tolerance=0.0, rounds=task.rounds)
        return ranking, lambda found: found.ranks
    edges = np.linspace(task.low, task.high, task.bins + 1)
    return Counts(edges, task.columns), lambda found: np.concatenate(list(found.values()))


def begin(task: Task) -> Callable[[], Array]:
    folder = task.keys[0].rpartition("/")[0]
    kind = f"{task.width}{task.dtype.str[1:]}"
    job = job_of(task)
    reduction, answer = (InNumPy(job), job.result) if "numpy" in sys.argv[2:] else own(task)

    def once() -> Array:
        done = tonnage.reduce(
            reduction,
            f"s3://{task.bucket}/{folder}/",
            dtype=kind,
            workers=task.workers,
            endpoint=task.endpoint,
        )
        return answer(done.result)

    return once


if __name__ == "__main__":
    serve(begin)
