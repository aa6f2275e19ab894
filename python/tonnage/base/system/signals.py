"""Defer signals, so that a request to AWS or a clean-up is not cut short."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

DEFERRED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def signals_deferred(*, discard: bool = False) -> Iterator[None]:
    """Deliver signals at the end of the context, or never with ``discard``."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    pending: list[int] = []
    handlers = {number: signal.getsignal(number) for number in DEFERRED}
    try:
        for number in DEFERRED:
            signal.signal(number, lambda received, _: pending.append(received))
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        if pending and not discard:
            signal.raise_signal(pending[0])
