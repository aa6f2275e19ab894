"""Ray Data: objects as a dataset of bytes, which tasks map to partial results."""

from __future__ import annotations

import functools
import pickle
from collections.abc import Callable
from typing import Any

import pyarrow.fs
import ray.data
from jobs import Array, Partial, in_rounds, job_of
from rays import started
from task import Task, serve


def begin(task: Task) -> Callable[[], Array]:
    started(task)
    ray.data.DataContext.get_current().enable_progress_bars = False
    job = job_of(task)
    scheme, _, address = task.endpoint.partition("://")
    files = pyarrow.fs.S3FileSystem(endpoint_override=address, scheme=scheme)
    paths = [f"{task.bucket}/{key}" for key in task.keys]

    def one_round(known: Any) -> Partial:
        told = ray.put(known)

        def local(batch: dict[str, Any]) -> dict[str, list[bytes]]:
            here = ray.get(told)
            found = (job.local(task.rows(data), here) for data in batch["bytes"])
            return {"partial": [pickle.dumps(functools.reduce(job.merge, found))]}

        objects = ray.data.read_binary_files(
            paths, filesystem=files, override_num_blocks=task.objects
        )
        partials = objects.map_batches(local, batch_size=None, batch_format="numpy")
        found = (pickle.loads(each["partial"]) for each in partials.iter_rows())
        return functools.reduce(job.merge, found)

    return lambda: in_rounds(job, one_round)


if __name__ == "__main__":
    serve(begin)
