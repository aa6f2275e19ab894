"""Machines that reduce, as threads of this process, and die when it is wanted."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from support.checksums import COLUMNS
from support.machines import Actor, Machines
from support.s3 import Bucket
from tonnage.cluster.ray_adapter import Machine
from tonnage.run.reduce.cluster.job_spec import ReduceJob
from tonnage.run.reduce.cluster.worker_actor import ReduceStepWorker
from tonnage.run.storage.object_store import ObjectStoreOptions

DIED = "died: its machine is gone"


class ReducerActor(Actor):
    """An agent that dies when its time has come, at once: what it was asked is not answered."""

    def __init__(self, dies: Callable[[str, Any], bool]) -> None:
        super().__init__(ReduceStepWorker)
        self._dies, self.alive = dies, True
        self._end = threading.Lock()

    def ask(self, method: str, *arguments: Any) -> Future[Any]:
        heard: Future[Any] = Future()
        if not self.alive:
            heard.set_exception(RuntimeError(DIED))
            return heard

        def answered(done: Future[Any]) -> None:
            with self._end:
                if self.alive and not done.exception() and self._dies(method, done.result()):
                    self.alive = False
                    self._made.stop()
            if not self.alive:
                heard.set_exception(RuntimeError(DIED))
            elif done.exception():
                heard.set_exception(done.exception())
            else:
                heard.set_result(done.result())

        super().ask(method, *arguments).add_done_callback(answered)
        return heard

    def kill(self) -> None:
        self.alive = False
        self._made.stop()
        super().kill()


class ReduceMachines(Machines):
    """The cluster.

    Args:
        names: Of its nodes.
        deaths: How many agents die.
        likely: How likely one does, whenever it tells how far it is, or gives an object.
        seed: Of the drawing.
        gone: Nodes whose machines are gone when their agents have died.
    """

    def __init__(
        self,
        *names: str,
        deaths: int = 0,
        likely: float = 0.2,
        seed: int = 0,
        gone: tuple[str, ...] = (),
    ) -> None:
        super().__init__(*names)
        self.deaths, self._likely, self._gone = deaths, likely, gone
        self._draw, self._lock = random.Random(seed), threading.Lock()
        self.died: list[str] = []

    def place(self, machine: Machine, kind: Callable[[], Any]) -> Any:
        name = machine.name
        if name in self._gone and name in self.died:
            actor = ReducerActor(lambda *_: True)
            actor.alive = False
            return actor
        return ReducerActor(lambda method, answer: self._dies(name, method, answer))

    def _dies(self, name: str, method: str, answer: Any) -> bool:
        at_work = method == "tell" and answer.finished
        if not (at_work or method in ("held", "join")):
            return False
        with self._lock:
            if not self.deaths or self._draw.random() > self._likely:
                return False
            self.deaths -= 1
            self.died.append(name)
            return True


def asked(
    reduction: Any, inputs: list[str], bucket: Bucket | None = None, **more: Any
) -> ReduceJob:
    """A reduction of small chunks, of which each is told."""
    usual: dict[str, Any] = {
        "named": ("test", {}),
        "memory_bytes": 1 << 18,
        "patience_seconds": 60.0,
        "command": ["test"],
        "workers": 2,
        "chunk_bytes": 4096,
        "dtype": f"{COLUMNS}f8",
        "checkpoint_seconds": 0.0,
    }
    if bucket is not None:
        usual["object_store"] = ObjectStoreOptions(endpoint=bucket.endpoint, requests=4)
    return ReduceJob(reduction=reduction, inputs=inputs, **usual | more)
