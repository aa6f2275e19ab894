"""A cluster of machines that are threads of this process: agents as Ray would have them, at once.

What a driver does with machines that are as it wants them is seen here in moments; what becomes of
real processes, `support.rays` is for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ALL_COMPLETED, FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Any

from tonnage.cluster import version_check
from tonnage.cluster.ray_adapter import Cluster, WorkerLost, Machine


class Actor:
    """An object whose methods are called one after another, in a thread of its own."""

    def __init__(self, kind: Callable[[], Any]) -> None:
        self._pool = ThreadPoolExecutor(1)
        self._made = kind()

    def look(self) -> Future[Any]:
        """What its machine has of Tonnage."""
        return self._pool.submit(version_check.look)

    def become(self) -> None:
        """It is there already."""

    def ask(self, method: str, *arguments: Any) -> Future[Any]:
        """Calls a method."""

        def call() -> Any:
            given = [each.result() if isinstance(each, Future) else each for each in arguments]
            return getattr(self._made, method)(*given)

        return self._pool.submit(call)

    def kill(self) -> None:
        """Takes no more calls."""
        self._pool.shutdown(wait=False)


class Machines(Cluster):
    """The cluster: a machine for each name, all of which say that they are this host."""

    def __init__(self, *names: str) -> None:
        self.machines = [Machine(name, {}, "127.0.0.1", name) for name in sorted(names)]
        self.actors: dict[str, Actor] = {}

    def place(self, machine: Machine, kind: Callable[[], Any]) -> Any:
        self.actors[machine.name] = Actor(kind)
        return self.actors[machine.name]

    def wait(self, calls: Sequence[Any], seconds: float, least: int = 1) -> list[Any]:
        if not calls:
            return []
        until = ALL_COMPLETED if least == len(calls) else FIRST_COMPLETED
        wait(calls, timeout=seconds, return_when=until)
        return [call for call in calls if call.done()]

    def answer(self, call: Any, seconds: float) -> Any:
        try:
            return call.result(timeout=seconds)
        except TimeoutError:
            raise
        except Exception as why:
            raise WorkerLost(str(why)) from why
