"""NumPy with boto3: threads that fetch ranges and threads that reduce them, in one process."""

from __future__ import annotations

from collections.abc import Callable

from jobs import Array, in_rounds, job_of
from store import Store
from task import Task, serve


def begin(task: Task) -> Callable[[], Array]:
    job, store = job_of(task), Store(task, task.workers)
    return lambda: in_rounds(job, lambda known: store.reduced(job, task.keys, known))


if __name__ == "__main__":
    serve(begin)
