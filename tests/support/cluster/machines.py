"""A cluster of machines that are threads of this process: workers as Ray would have them, at once.

Real processes are in `support.cluster.ray_cluster`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ALL_COMPLETED, FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Any

from tonnage.cluster import version_check
from tonnage.cluster.actor import ActorShell
from tonnage.cluster.ray_adapter import Cluster, Machine, WorkerLost


class Actor:
    """A process whose methods are called one after another, in a thread."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1)
        self._shell = ActorShell()

    def installed_version(self) -> Future[Any]:
        return self._pool.submit(version_check.installed_version)

    def start(self, make: Callable[[], Any]) -> Future[Any]:
        return self._pool.submit(self._shell.start, make)

    def send(self, message: bytes, attached: Any = None) -> Future[Any]:
        def call() -> Any:
            content = attached.result() if isinstance(attached, Future) else attached
            return self._shell.handle(message, *([] if content is None else [content]))

        return self._pool.submit(call)

    def kill(self) -> None:
        """Takes no more calls."""
        self._pool.shutdown(wait=False)


class Machines(Cluster):
    """The cluster: a machine for each name, all of which say that they are this host."""

    def __init__(self, *names: str) -> None:
        self.machines = [Machine(name, {}, "127.0.0.1", name) for name in sorted(names)]
        self.actors: dict[str, Actor] = {}

    def place_actor(self, machine: Machine, title: str) -> Any:
        self.actors[machine.name] = Actor()
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
