"""A gate that holds up a user's function until a test releases it; nodes are threads of the test.

A reduction is shipped to the nodes with its own module, but not with this one, so that all share
these events.
"""

from __future__ import annotations

import threading

PATIENCE_SECONDS = 120.0
STARTED, RELEASED = threading.Event(), threading.Event()


def clear() -> None:
    """Reset the gate before a test."""
    STARTED.clear()
    RELEASED.clear()


def wait() -> None:
    """Wait for the release."""
    STARTED.set()
    assert RELEASED.wait(PATIENCE_SECONDS), "the function was not released"
