"""Threads that share work until there is none, or until the first of them fails.

Threads, not processes: docs/decisions/0019-threads-for-functions.md.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from typing import TypeVar

from tonnage.run.blas_threads import limit_blas_threads

POLL_SECONDS = 0.05

T = TypeVar("T")


class Cancelled(Exception):
    """Another thread has failed, or the job was given up."""


class WorkerThreads:
    """Threads that do the same thing.

    Args:
        workers: How many.
        on_ending: Called when they end early: has whatever they wait for come to its end.
    """

    def __init__(self, workers: int, on_ending: Callable[[], None] = lambda: None) -> None:
        self.workers, self._on_ending = workers, on_ending
        self._ending = threading.Event()
        self._failure: BaseException | None = None
        self._lock, self._failing = threading.Lock(), threading.Lock()
        self._done = threading.Semaphore(0)

    def check(self) -> None:
        """Ends a thread that has nothing to go on for.

        Raises:
            Ended: The job ends.
        """
        if self._ending.is_set():
            raise Cancelled

    def take_from(self, things: Iterator[T]) -> Iterator[T]:
        """What a thread gets of ``things``, which all threads take from in turn."""
        while True:
            self.check()
            with self._lock:
                taken = list(itertools.islice(things, 1))
            if not taken:
                return
            yield taken.pop()  # Whoever takes it may let go of it.

    def run(self, work: Callable[[], None], look: Callable[[], None] = lambda: None) -> None:
        """Has every thread do ``work``, and waits.

        Args:
            work: Done by each thread once; it calls `check` now and then.
            look: Called twenty times a second; what it raises ends all.

        Raises:
            BaseException: What the first thread that failed has raised.
        """
        threads = [threading.Thread(target=self._do, args=(work,)) for _ in range(self.workers)]
        left = len(threads)
        with limit_blas_threads(self.workers):
            try:
                for thread in threads:
                    thread.start()
                while left and not self._failure:
                    left -= self._done.acquire(timeout=POLL_SECONDS)
                    look()
            finally:
                if left:
                    self._end()
                for thread in threads:
                    if thread.ident is not None:  # It was started.
                        thread.join()
        if self._failure:
            raise self._failure

    def _do(self, work: Callable[[], None]) -> None:
        try:
            work()
        except Cancelled:
            pass
        except BaseException as why:
            with self._failing:
                self._failure = self._failure or why
            self._end()
        finally:
            self._done.release()

    def _end(self) -> None:
        self._ending.set()
        self._on_ending()
