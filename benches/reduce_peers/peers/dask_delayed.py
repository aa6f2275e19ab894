"""Dask: a delayed task for each object, by s3fs; threads add up partial results in a tree."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dask
import s3fs
from jobs import Array, Partial, in_rounds, job_of
from task import Task, serve


def begin(task: Task) -> Callable[[], Array]:
    job = job_of(task)
    files = s3fs.S3FileSystem(
        endpoint_url=task.endpoint, config_kwargs={"s3": {"addressing_style": "path"}}
    )

    @dask.delayed  # type: ignore[untyped-decorator]
    def local(key: str, known: Any) -> Partial:
        return job.local(task.rows(files.cat_file(f"{task.bucket}/{key}")), known)

    merge = dask.delayed(job.merge)

    def one_round(known: Any) -> Partial:
        told = dask.delayed(known, pure=False, traverse=False)
        parts = [local(key, told) for key in task.keys]
        while len(parts) > 1:
            pairs = [parts[each : each + 2] for each in range(0, len(parts), 2)]
            parts = [merge(*pair) if len(pair) == 2 else pair[0] for pair in pairs]
        whole: Partial = parts[0].compute(scheduler="threads", num_workers=task.workers)
        return whole

    return lambda: in_rounds(job, one_round)


if __name__ == "__main__":
    serve(begin)
