"""Signals that wait: what has been asked of AWS is heard, and an end is brought to its end."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

WAITING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def signals_deferred(*, discard: bool = False) -> Iterator[None]:
    """What interrupts meanwhile does so at the end; with ``forgets`` not even then."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    before = {number: signal.getsignal(number) for number in WAITING}
    try:
        for number in WAITING:
            signal.signal(number, lambda caught, _: came.append(caught))
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if came and not discard:
            signal.raise_signal(came[0])
