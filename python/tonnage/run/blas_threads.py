"""Libraries that users' functions call, while several threads call them at once.

A BLAS begins as many threads as the machine has cores, whoever calls: two workers on two cores are
four threads that wait for each other actively, and take twice as long. So while workers run, each
call gets the cores that are left to one. And memory: glibc gives large blocks back to the kernel
when they are freed, so that each intermediate array of NumPy is made of new pages, which the kernel
clears one by one. A heap that keeps what is freed spares that
(docs/decisions/0025-libraries-of-workers.md).
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from threadpoolctl import threadpool_limits

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
"""Of glibc's ``mallopt``."""
HEAP_BYTES = 32 << 20
"""What is freed stays in the heap up to this; glibc allows no larger threshold."""

_lock = threading.Lock()
_sharing = 0
_limits: Any = None


@contextmanager
def limit_blas_threads(workers: int) -> Iterator[None]:
    """So many threads call libraries meanwhile, each with its share of the cores.

    Crews may overlap; the first one's share holds until the last one is done.
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
    """Where the heap is glibc's; for good, since it cannot be asked what it did before."""
    if (mallopt := getattr(ctypes.CDLL(None), "mallopt", None)) is not None:
        mallopt(M_MMAP_THRESHOLD, HEAP_BYTES)
        mallopt(M_TRIM_THRESHOLD, 2 * HEAP_BYTES)
