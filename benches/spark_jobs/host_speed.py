"""How fast the machine is while a cell runs: virtual machines share their processors with others.

A fixed loop is timed by the CPU time that it takes, twice in three seconds, on a thread of its own.
What else runs on the machine does not count, but a slower clock, a busy sibling thread and full
caches do, as they do for the cell itself.
"""

from __future__ import annotations

import statistics
import threading
import time
from types import TracebackType

PERIOD_SECONDS = 1.5
ROUNDS = 100_000


def loop_seconds() -> float:
    """CPU time of the loop."""
    before, total = time.thread_time(), 0
    for each in range(ROUNDS):
        total += each * each % 7
    return time.thread_time() - before


class HostSpeed:
    """Times the loop until its end; then ``seconds`` is the median."""

    def __init__(self) -> None:
        self._samples: list[float] = []
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)
        self.seconds = 0.0

    def __enter__(self) -> HostSpeed:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stopped.set()
        self._thread.join()
        self.seconds = statistics.median(self._samples)

    def _sample(self) -> None:
        while True:
            self._samples.append(loop_seconds())
            if self._stopped.wait(PERIOD_SECONDS):
                return
