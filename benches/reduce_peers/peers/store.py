"""Objects by boto3 in its usual way: threads fetch ranges into reused buffers."""

from __future__ import annotations

import functools
import queue
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import boto3
from botocore.config import Config
from jobs import Job, Partial
from task import Task

REQUESTS = 16
"""Concurrent requests."""
RANGE_BYTES = 4 << 20
BUFFERS = 32
"""Ranges in flight or waiting for a reducer."""

Range = tuple[str, int, int]
"""Key, offset, length."""


class Store:
    """A bucket, with threads that fetch for threads that reduce."""

    def __init__(self, task: Task, reducers: int) -> None:
        self._task, self._reducers = task, reducers
        self._client = boto3.client(
            "s3",
            endpoint_url=task.endpoint,
            config=Config(max_pool_connections=REQUESTS, s3={"addressing_style": "path"}),
        )
        self._threads = ThreadPoolExecutor(REQUESTS + reducers)
        self._free: queue.SimpleQueue[bytearray] = queue.SimpleQueue()
        for _ in range(BUFFERS):
            self._free.put(bytearray(RANGE_BYTES))

    def reduced(self, job: Job, keys: Sequence[str], known: Any) -> Partial:
        """Reduce all rows of objects."""
        ranges: queue.SimpleQueue[Range] = queue.SimpleQueue()
        count = 0
        for each in self._ranges(keys):
            ranges.put(each)
            count += 1
        come: queue.SimpleQueue[tuple[bytearray, int] | None] = queue.SimpleQueue()

        def fetch() -> None:
            for key, offset, length in _until_empty(ranges):
                buffer = self._free.get()
                where = f"bytes={offset}-{offset + length - 1}"
                got = self._client.get_object(Bucket=self._task.bucket, Key=key, Range=where)
                view, at = memoryview(buffer)[:length], 0
                while at < length:
                    at += got["Body"].readinto(view[at:]) or _cut_short(key)
                come.put((buffer, length))

        def reduce() -> Partial | None:
            whole: Partial | None = None
            while (here := come.get()) is not None:
                buffer, length = here
                found = job.local(self._task.rows(memoryview(buffer)[:length]), known)
                self._free.put(buffer)
                whole = found if whole is None else job.merge(whole, found)
            return whole

        reducers = [self._threads.submit(reduce) for _ in range(self._reducers)]
        fetchers = [self._threads.submit(fetch) for _ in range(min(REQUESTS, count))]
        try:
            for fetcher in fetchers:
                fetcher.result()
        finally:
            for _ in reducers:
                come.put(None)
        wholes = [found for each in reducers if (found := each.result()) is not None]
        return functools.reduce(job.merge, wholes)

    def _ranges(self, keys: Sequence[str]) -> Iterator[Range]:
        for key in keys:
            for offset in range(0, self._task.object_bytes, RANGE_BYTES):
                yield key, offset, min(RANGE_BYTES, self._task.object_bytes - offset)


@functools.cache
def kept(task: Task) -> Store:
    """Return the process's only store, for functions that are called for each part."""
    return Store(task, reducers=1)


def _until_empty(ranges: queue.SimpleQueue[Range]) -> Iterator[Range]:
    take: Callable[[], Range] = ranges.get_nowait
    while True:
        try:
            yield take()
        except queue.Empty:
            return


def _cut_short(key: str) -> int:
    raise EOFError(f"{key}: the answer is cut short")
