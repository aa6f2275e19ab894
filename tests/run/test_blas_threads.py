"""What libraries have while workers call them, and that they have again what they had."""

from __future__ import annotations

import os

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from tonnage.run.blas_threads import limit_blas_threads
from tonnage.run.thread_pool import WorkerThreads

CORES = len(os.sched_getaffinity(0))


def blas_threads() -> set[int]:
    """Threads of each BLAS that NumPy has loaded."""
    np.ones((2, 2)) @ np.ones((2, 2))
    found = {each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"}
    assert found, "NumPy has a BLAS"
    return found


@pytest.mark.parametrize("workers", [0, 1, CORES, 3 * CORES])
def test_a_call_has_the_cores_that_are_left_to_a_worker(workers: int) -> None:
    seen: list[set[int]] = []
    with threadpool_limits(CORES + 1, user_api="blas"):
        before = blas_threads()
        WorkerThreads(workers).run(lambda: seen.append(blas_threads()))
        assert blas_threads() == before
    assert seen == [{max(CORES // max(workers, 1), 1)}] * workers


def test_crews_that_overlap_leave_what_was_there_before_both() -> None:
    with threadpool_limits(CORES + 1, user_api="blas"):
        before = blas_threads()
        one, other = limit_blas_threads(1), limit_blas_threads(1)
        one.__enter__()
        other.__enter__()
        one.__exit__(None, None, None)
        assert blas_threads() != before
        other.__exit__(None, None, None)
        assert blas_threads() == before


def test_a_crew_that_fails_leaves_what_was_there_before() -> None:
    def fail() -> None:
        raise ValueError("on purpose")

    with threadpool_limits(CORES + 1, user_api="blas"):
        before = blas_threads()
        with pytest.raises(ValueError, match="on purpose"):
            WorkerThreads(2).run(fail)
        assert blas_threads() == before
