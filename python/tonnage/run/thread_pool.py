"""Threads that share work until there is none left, or until one of them fails.

Threads, not processes: docs/decisions/0019-threads-for-functions.md.
"""

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
    """Threads that do the same work.

    ``on_cancel`` is called when they have to end early: it unblocks whatever they wait for.
    """

    def __init__(self, workers: int, on_cancel: Callable[[], None] = lambda: None) -> None:
        self.workers, self._on_cancel = workers, on_cancel
        self._cancelled = threading.Event()
        self._failure: BaseException | None = None
        self._lock, self._failure_lock = threading.Lock(), threading.Lock()
        self._done = threading.Semaphore(0)

    def check(self) -> None:
        if self._cancelled.is_set():
            raise Cancelled

    def take_from(self, items: Iterator[T]) -> Iterator[T]:
        """The items that the calling thread gets; all threads take from ``items`` in turn."""
        while True:
            self.check()
            with self._lock:
                taken = list(itertools.islice(items, 1))
            if not taken:
                return
            yield taken.pop()  # So that the caller alone refers to it.

    def run(self, work: Callable[[], None], on_poll: Callable[[], None] = lambda: None) -> None:
        """Run ``work`` once in each thread, and wait.

        Args:
            work: Calls `check` periodically.
            on_poll: Called twenty times a second; its exceptions cancel the work.

        Raises:
            BaseException: The exception of the first thread that failed.
        """
        threads = [threading.Thread(target=self._run, args=(work,)) for _ in range(self.workers)]
        left = len(threads)
        with limit_blas_threads(self.workers):
            try:
                for thread in threads:
                    thread.start()
                while left and not self._failure:
                    left -= self._done.acquire(timeout=POLL_SECONDS)
                    on_poll()
            finally:
                if left:
                    self._cancel()
                for thread in threads:
                    if thread.ident is not None:  # It was started.
                        thread.join()
        if self._failure:
            raise self._failure

    def _run(self, work: Callable[[], None]) -> None:
        try:
            work()
        except Cancelled:
            pass
        except BaseException as why:
            with self._failure_lock:
                self._failure = self._failure or why
            self._cancel()
        finally:
            self._done.release()

    def _cancel(self) -> None:
        self._cancelled.set()
        self._on_cancel()
