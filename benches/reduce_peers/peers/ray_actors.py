"""Ray: an actor for each core with its own boto3 threads and buffers; only partial results move."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ray
from jobs import Array, Partial, in_rounds, job_of
from ray.util import ActorPool
from rays import started
from store import Store
from task import Task, serve


@ray.remote(num_cpus=1)  # type: ignore[untyped-decorator]
class Worker:
    """Reduces its objects."""

    def __init__(self, task: Task) -> None:
        self._job, self._store = job_of(task), Store(task, reducers=1)

    def reduced(self, key: str, known: Any) -> Partial:
        return self._store.reduced(self._job, [key], known)


def begin(task: Task) -> Callable[[], Array]:
    started(task)
    job = job_of(task)
    pool = ActorPool([Worker.remote(task) for _ in range(task.workers)])

    def one_round(known: Any) -> Partial:
        told, whole = ray.put(known), None
        for found in pool.map_unordered(
            lambda worker, key: worker.reduced.remote(key, told), task.keys
        ):
            whole = found if whole is None else job.merge(whole, found)
        assert whole is not None, "some objects"
        return whole

    return lambda: in_rounds(job, one_round)


if __name__ == "__main__":
    serve(begin)
