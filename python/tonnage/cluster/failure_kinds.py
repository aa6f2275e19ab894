"""How a step can fail: the driver tells these apart to decide what is done again, and where."""

from enum import StrEnum


class Failure(StrEnum):
    REFUSED = "refused"
    """Its request cannot be used."""
    DISK = "disk"
    """A disk failed: nothing on it is trusted."""
    FULL = "full"
    """A disk is full: what is finished there stays."""
    INPUT = "input"
    """An input cannot be read here."""
    CHANGED = "changed"
    """An input was changed since the job began."""
    DETERMINISTIC = "deterministic"
    """It would fail on any node, as often as it is tried."""
    BAD_INPUT = "bad input"
    """What is in the input cannot be used, on any node."""
    FAILED = "failed"
    """Anything else, such as a peer that is lost."""
    STOPPED = "stopped"
    """The driver ended it."""
    LOST = "lost"
    """The worker does not answer. The driver says so; a worker never does."""


class InputUnreadable(Exception):
    """An input cannot be read on this node."""


class InputChanged(Exception):
    """An input was changed since the job began: nothing derived from it can be used."""


class DeterministicError(Exception):
    """A step would fail on any node, as often as it is tried."""


class BadInput(DeterministicError):
    """What is in the input cannot be used."""


class Stopped(KeyboardInterrupt):
    """The driver ended the step: what runs cleans up as on Ctrl-C."""
