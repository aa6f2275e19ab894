"""Whether somebody computes: who does moves no bytes, and does not hang.

How long a user's function takes is nobody's business, nor is an object's packing or merging. What
hangs is a process that does not answer, or a store that gives nothing while all wait for it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class ComputeFlag:
    """Those who compute, in any threads.

    Args:
        clock: Seconds since some moment.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._lock = clock, threading.Lock()
        self._count, self._last = 0, float("-inf")

    @contextmanager
    def computing(self) -> Iterator[None]:
        """Somebody computes meanwhile."""
        with self._lock:
            self._count += 1
        try:
            yield
        finally:
            with self._lock:
                self._count -= 1
                self._last = self._clock()

    @property
    def last(self) -> float:
        """When somebody last did: now, if somebody does."""
        with self._lock:
            return self._clock() if self._count else self._last
