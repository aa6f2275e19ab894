"""scikit-learn's estimators that take data in parts: MiniBatchKMeans and IncrementalPCA.

boto3's threads fetch the next object during the fit of the current one. MiniBatchKMeans is another
algorithm: its centres move with each part, and points are assigned to the moved ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import boto3
import numpy as np
import numpy.typing as npt
from sklearn.cluster import MiniBatchKMeans
from sklearn.decomposition import IncrementalPCA
from task import Task, serve

RANGES = 16
"""Concurrent ranges of an object."""


class Objects:
    """Objects one after another, each complete, in two alternating buffers."""

    def __init__(self, task: Task) -> None:
        self._task = task
        config = boto3.session.Config(max_pool_connections=RANGES)
        self._client = boto3.client("s3", endpoint_url=task.endpoint, config=config)
        self._threads = ThreadPoolExecutor(RANGES + 1)
        self._buffers = [bytearray(task.object_bytes) for _ in range(2)]

    def __iter__(self) -> Iterator[npt.NDArray[Any]]:
        coming = None
        for number, key in enumerate(self._task.keys):
            here, coming = coming, self._threads.submit(self._fetch, key, self._buffers[number % 2])
            if here:
                yield self._task.rows(here.result())
        if coming:
            yield self._task.rows(coming.result())

    def _fetch(self, key: str, buffer: bytearray) -> bytearray:
        length = -(-len(buffer) // RANGES)

        def part(begin: int) -> None:
            end = min(begin + length, len(buffer))
            got = self._client.get_object(
                Bucket=self._task.bucket, Key=key, Range=f"bytes={begin}-{end - 1}"
            )
            memoryview(buffer)[begin:end] = got["Body"].read()

        list(self._threads.map(part, range(0, len(buffer), length)))
        return buffer


def begin(task: Task) -> Callable[[], npt.NDArray[np.float64]]:
    objects = Objects(task)

    def kmeans() -> npt.NDArray[np.float64]:
        centres = np.fromfile(task.centres).reshape(task.k, task.columns)
        learner = MiniBatchKMeans(task.k, init=centres, n_init=1, reassignment_ratio=0)
        for rows in objects:
            learner.partial_fit(rows)
        # It returns neither the counts of its last centres nor the inertia.
        unknown = np.full(task.k + 1, np.nan)
        return np.concatenate([learner.cluster_centers_.ravel(), unknown])

    def covariance() -> npt.NDArray[np.float64]:
        learner = IncrementalPCA()
        for rows in objects:
            learner.partial_fit(rows)
        return np.concatenate([learner.mean_, learner.get_covariance().ravel()])

    return {"kmeans": kmeans, "covariance": covariance}[task.job]


if __name__ == "__main__":
    serve(begin)
