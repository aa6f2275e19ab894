"""Machines that reduce, as threads of this process, and die when it is wanted."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from support.cluster.checksums import COLUMNS
from support.cluster.machines import Actor, Machines
from support.stores.s3 import Bucket
from tonnage.cluster import protocol
from tonnage.cluster.ray_adapter import Machine
from tonnage.run.reduce.cluster.job_spec import ReduceJob
from tonnage.run.storage.object_store import ObjectStoreOptions

DIED = "died: its machine is gone"
TRANSFERS = (protocol.FetchObject, protocol.StoreObject)


class ReducerActor(Actor):
    """A process that dies when its time has come, at once: what it was asked is not answered."""

    def __init__(self, dies: Callable[[protocol.Message, Any], bool]) -> None:
        super().__init__()
        self._dies, self.alive = dies, True
        self._end = threading.Lock()

    def installed_version(self) -> Future[Any]:
        return super().installed_version() if self.alive else _dead()

    def start(self, make: Callable[[], Any]) -> Future[Any]:
        return super().start(make) if self.alive else _dead()

    def send(self, message: bytes, attached: Any = None) -> Future[Any]:
        if not self.alive:
            return _dead()
        reply: Future[Any] = Future()
        decoded = protocol.decode(message, protocol.Request)

        def answered(done: Future[Any]) -> None:
            with self._end:
                if self.alive and not done.exception():
                    content = done.result()
                    if isinstance(decoded, protocol.Poll):
                        content = protocol.decode(content, protocol.Heartbeat)
                    if self._dies(decoded, content):
                        self.alive = False
                        self._stop()
            if not self.alive:
                reply.set_exception(RuntimeError(DIED))
            elif done.exception():
                reply.set_exception(done.exception())
            else:
                reply.set_result(done.result())

        super().send(message, attached).add_done_callback(answered)
        return reply

    def kill(self) -> None:
        self.alive = False
        self._stop()
        super().kill()

    def _stop(self) -> None:
        if self._shell._worker is not None:
            self._shell.handle(protocol.encode(protocol.Stop()))


def _dead() -> Future[Any]:
    reply: Future[Any] = Future()
    reply.set_exception(RuntimeError(DIED))
    return reply


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

    def place_actor(self, machine: Machine, title: str) -> Any:
        name = machine.name
        if name in self._gone and name in self.died:
            actor = ReducerActor(lambda *_: True)
            actor.alive = False
            return actor
        return ReducerActor(lambda message, reply: self._dies(name, message, reply))

    def _dies(self, name: str, message: protocol.Message, reply: Any) -> bool:
        at_work = isinstance(message, protocol.Poll) and reply.news
        if not (at_work or isinstance(message, TRANSFERS)):
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
    """A reduction of small chunks that reports each of them."""
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
