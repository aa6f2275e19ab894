"""How fast the machine is while a cell runs: virtual machines share their processors with others.

A fixed loop is timed by the CPU time that it takes, twice in three seconds, on a thread of its own.
What else runs on the machine does not count, but a slower clock, a busy sibling thread and full
caches do, as they do for the cell itself.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

PERIOD_SECONDS = 1.5
ROUNDS = 100_000


def loop_seconds() -> float:
    """CPU time of the loop."""
    before, total = time.thread_time(), 0
    for each in range(ROUNDS):
        total += each * each % 7
    return time.thread_time() - before


@contextmanager
def loop_timed() -> Iterator[list[float]]:
    """Times the loop again and again; yields the times, one at least at the end."""
    samples: list[float] = []
    stopped = threading.Event()

    def sample() -> None:
        samples.append(loop_seconds())
        while not stopped.wait(PERIOD_SECONDS):
            samples.append(loop_seconds())

    thread = threading.Thread(target=sample, daemon=True)
    thread.start()
    try:
        yield samples
    finally:
        stopped.set()
        thread.join()
