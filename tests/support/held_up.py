"""What holds a user's function up until a test lets it go on: machines are threads of its process.

A reduction is sent to machines with the module that it is in, which this one is not: so all mean
the same events.
"""

from __future__ import annotations

import threading

PATIENCE_SECONDS = 120.0
BEGUN, GOES_ON = threading.Event(), threading.Event()


def clear() -> None:
    """Nobody has begun."""
    BEGUN.clear()
    GOES_ON.clear()


def wait() -> None:
    """Waits to go on."""
    BEGUN.set()
    assert GOES_ON.wait(PATIENCE_SECONDS), "nobody answered meanwhile"
