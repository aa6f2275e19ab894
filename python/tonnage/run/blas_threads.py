"""Limits for libraries that users' functions call from several threads at once.

A BLAS starts a thread for each core, for each caller: two workers on two cores make four threads
that busy-wait for each other and take twice as long. So while workers run, each call gets one
worker's share of the cores. And memory: glibc returns large freed blocks to the kernel, so each
intermediate NumPy array consists of new pages that the kernel clears one by one. A heap that keeps
freed blocks avoids that (docs/decisions/0025-blas-threads-and-heap.md).
"""

import ctypes
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from threadpoolctl import threadpool_limits

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
"""Parameters of glibc's ``mallopt``."""
HEAP_BYTES = 32 << 20
"""Freed blocks up to this size stay in the heap; glibc allows no larger threshold."""

_lock = threading.Lock()
_sharing = 0
_limits: Any = None


@contextmanager
def limit_blas_threads(workers: int) -> Iterator[None]:
    """Limit each library call to one worker's share of the cores in this context.

    If calls overlap, the first one's limit holds until the last one ends.
    """
    global _sharing, _limits
    with _lock:
        if not _sharing:
            _keep_freed()
            cores = len(os.sched_getaffinity(0))
            _limits = threadpool_limits(max(cores // max(workers, 1), 1), user_api="blas")
        _sharing += 1
    try:
        yield
    finally:
        with _lock:
            _sharing -= 1
            if not _sharing:
                _limits.restore_original_limits()
                _limits = None


def _keep_freed() -> None:
    """Set glibc's thresholds, if it is glibc; for good, since it does not tell the old ones."""
    if (mallopt := getattr(ctypes.CDLL(None), "mallopt", None)) is not None:
        mallopt(M_MMAP_THRESHOLD, HEAP_BYTES)
        mallopt(M_TRIM_THRESHOLD, 2 * HEAP_BYTES)
