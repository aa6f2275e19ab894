"""What measures on several machines at once, as it sees the others: whom it meets, and what for.

Each says something where they meet, and hears what all that are there say; all go on at one moment.
Who is gone is not waited for, and is missing from what is heard. `tonnage.cluster` is what lets
machines meet.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol


class BarrierResult(NamedTuple):
    """What came of a meeting."""

    said: Mapping[str, Any]
    """By node, in the order of their names, on every node alike."""
    at: float
    """When all went on, as this machine's monotonic clock has it."""


class Barrier(Protocol):
    """The machines that measure with this one, this one among them."""

    @property
    def node(self) -> str:
        """This one's name."""
        ...

    def wait(self, says: Any) -> BarrierResult:
        """Waits for all that have not ended; what is said is plain data."""
        ...
