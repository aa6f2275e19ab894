"""The process on a node: first it says what is installed there, then it runs a worker.

One process does both: each start of Python costs seconds. Like `version_check`, this module is sent
to nodes as it is and imports nothing else of the package.
"""

from collections.abc import Callable
from typing import Any

from tonnage.cluster.version_check import installed_version


class ActorShell:
    """The process; its methods are called one after another."""

    def __init__(self) -> None:
        self._worker: Any = None

    def installed_version(self) -> tuple[str, str | None, str | None]:
        return installed_version()

    def start(self, make: Callable[[], Any]) -> None:
        """Make the worker; `RuntimeError` for reasons that are not meant for users."""
        try:
            self._worker = make()
        except Exception as why:
            if type(why).__name__ == "UsageError":
                raise
            reason = f"cannot start a worker: {type(why).__name__}: {why}"
            raise RuntimeError(reason) from why

    def handle(self, message: bytes, *attached: bytes) -> bytes:
        if self._worker is None:
            raise RuntimeError("the worker has not been started")
        reply: bytes = self._worker.handle(message, *attached)
        return reply
