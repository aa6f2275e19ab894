"""The jobs in NumPy: what every peer that runs Python functions gets, and a user's own reduction.

A job is done in rounds. `local` makes a partial result of some rows, `merge` makes one of two, and
`finish` turns that of all rows into what the next round knows, until there is no next one; `result`
is the answer as numbers. Rows are gone through in blocks that stay in the cache, and inner loops
are BLAS or NumPy's.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from task import Task

Array = npt.NDArray[np.float64]
Partial = tuple[Any, ...]
BLOCK_ROWS = 8192


class Job(ABC):
    """One of the jobs."""

    rounds = 1

    @abstractmethod
    def local(self, rows: npt.NDArray[Any], known: Any) -> Partial:
        """Return the partial result of some rows."""

    def merge(self, one: Partial, other: Partial) -> Partial:
        """Merge two partial results, which may be modified."""
        return tuple(here + more for here, more in zip(one, other, strict=True))

    def finish(self, whole: Partial, known: Any) -> Any:
        """Return the state for the next round."""
        return whole

    @abstractmethod
    def result(self, known: Any) -> Array:
        """Return the answer as a flat array."""


class KMeans(Job):
    """A round of Lloyd's: the next centres, how many points the old ones have, the inertia."""

    def __init__(self, centres: Array) -> None:
        self._centres = centres

    def local(self, rows: npt.NDArray[Any], known: Any) -> Partial:
        centres = self._centres
        k, columns = centres.shape
        # |x - c|^2 less |x|^2, which is the same for all centres.
        factors, offsets = np.ascontiguousarray(-2 * centres.T), (centres * centres).sum(axis=1)
        sums, counts, inertia = np.zeros((k, columns)), np.zeros(k), 0.0
        chosen, places = np.zeros((BLOCK_ROWS, k)), np.arange(BLOCK_ROWS)
        for begin in range(0, len(rows), BLOCK_ROWS):
            block = rows[begin : begin + BLOCK_ROWS]
            distances = block @ factors
            distances += offsets
            nearest, place = distances.argmin(axis=1), places[: len(block)]
            one_hot = chosen[: len(block)]
            one_hot.fill(0)
            one_hot[place, nearest] = 1
            sums += one_hot.T @ block
            counts += one_hot.sum(axis=0)
            inertia += distances[place, nearest].sum() + np.vdot(block, block)
        return sums, counts, inertia

    def finish(self, whole: Partial, known: Any) -> Any:
        sums, counts, inertia = whole
        centres = np.where(
            counts[:, None] > 0, sums / np.maximum(counts, 1)[:, None], self._centres
        )
        return centres, counts, inertia

    def result(self, known: Any) -> Array:
        return np.concatenate([np.ravel(each) for each in known])


class Covariance(Job):
    """Mean and covariance, added up by the method of Chan, Golub and LeVeque."""

    def local(self, rows: npt.NDArray[Any], known: Any) -> Partial:
        whole: Partial | None = None
        for begin in range(0, len(rows), BLOCK_ROWS):
            block = rows[begin : begin + BLOCK_ROWS]
            mean = block.mean(axis=0)
            apart = block - mean
            here = (len(block), mean, apart.T @ apart)
            whole = here if whole is None else self.merge(whole, here)
        assert whole is not None, "some rows"
        return whole

    def merge(self, one: Partial, other: Partial) -> Partial:
        (rows, mean, scatter), (more, other_mean, other_scatter) = one, other
        apart, both = other_mean - mean, rows + more
        weight = rows * more / both
        return (
            both,
            mean + apart * (more / both),
            scatter + other_scatter + weight * np.outer(apart, apart),
        )

    def result(self, known: Any) -> Array:
        rows, mean, scatter = known
        return np.concatenate([mean, np.ravel(scatter / (rows - 1))])


class PageRank(Job):
    """PageRank of all nodes after so many rounds; nodes without edges give to all."""

    def __init__(self, nodes: int, rounds: int, damping: float) -> None:
        self._nodes, self.rounds, self._damping = nodes, rounds + 1, damping

    def local(self, rows: npt.NDArray[Any], known: Any) -> Partial:
        origin, target = rows[:, 0], rows[:, 1]
        if known is None:
            return (np.bincount(origin, minlength=self._nodes),)
        _, _, share = known
        return (np.bincount(target, share[origin], minlength=self._nodes),)

    def finish(self, whole: Partial, known: Any) -> Any:
        (found,) = whole
        if known is None:
            ranks, out = np.full(self._nodes, 1 / self._nodes), found
        else:
            ranks, out, _ = known
            lost = ranks[out == 0].sum()
            ranks = (1 - self._damping) / self._nodes + self._damping * (found + lost / self._nodes)
        return ranks, out, ranks / np.maximum(out, 1)

    def result(self, known: Any) -> Array:
        ranks: Array = known[0]
        return ranks


class Histogram(Job):
    """How many values of each column are in each bin; values beyond are in the outermost ones."""

    def __init__(self, columns: int, bins: int, low: float, high: float) -> None:
        self._columns, self._bins, self._low = columns, bins, low
        self._scale = bins / (high - low)

    def local(self, rows: npt.NDArray[Any], known: Any) -> Partial:
        counts = np.zeros(self._columns * self._bins, np.int64)
        first = np.arange(self._columns) * self._bins
        for begin in range(0, len(rows), BLOCK_ROWS):
            place = (rows[begin : begin + BLOCK_ROWS] - self._low) * self._scale
            np.floor(place, out=place)
            np.clip(place, 0, self._bins - 1, out=place)
            counts += np.bincount((place.astype(np.int64) + first).ravel(), minlength=len(counts))
        return (counts,)

    def result(self, known: Any) -> Array:
        return np.asarray(known[0], np.float64)


def job_of(task: Task) -> Job:
    """The job that a task asks for."""
    if task.job == "kmeans":
        return KMeans(np.fromfile(task.centres).reshape(task.k, task.columns))
    if task.job == "covariance":
        return Covariance()
    if task.job == "pagerank":
        return PageRank(task.nodes, task.rounds, task.damping)
    return Histogram(task.columns, task.bins, task.low, task.high)


def in_rounds(job: Job, one_round: Callable[[Any], Partial]) -> Array:
    """The answer of a job, with what makes the partial result of all rows, given what is known."""
    known = None
    for _ in range(job.rounds):
        known = job.finish(one_round(known), known)
    return job.result(known)
