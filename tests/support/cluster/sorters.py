"""Machines that sort, as threads of this process, and faults to inject into them."""

from __future__ import annotations

import itertools
import json
import shutil
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import msgspec
import pytest

from support.cluster.machines import Actor, Machines
from tonnage.base import core
from tonnage.base.records import RunRecord
from tonnage.cluster import protocol
from tonnage.cluster.protocol import Step
from tonnage.cluster.ray_adapter import Machine
from tonnage.cluster.step_worker import StepWorker
from tonnage.cluster.worker_pool import WorkerPool
from tonnage.run.mapreduce.worker import MapReduceWorker
from tonnage.run.sort.cluster.records import SortWorker, SortWorkerConfig
from tonnage.run.sort.cluster.table_worker import TableWorker, TableWorkerConfig
from tonnage.run.two_pass.job_spec import WorkerConfig
from tonnage.run.two_pass.messages import Mesh, PassOne
from tonnage.run.two_pass.worker import TwoPassWorker

STALL = {"milliseconds": 500}
AFTER_BYTES = 50_000


@dataclass
class Trouble:
    """A fault that a node has once."""

    step: str
    what: str
    """``dies``, ``dies at the end``, ``dies in the middle`` (of a pass), ``loses its agent`` (which
    dies, and the machine does not), ``hangs`` (says nothing), ``stalls`` (moves nothing),
    ``cannot read`` (its input), ``crawls`` (moves next to nothing), ``fails`` (its disk), ``is
    full`` (that), each of these three also ``in the middle`` of pass two, ``is cut off`` (of what
    it sends)."""
    skips: int = 0
    """So many times the step goes well before."""
    wipes: bool = False
    """Whether the machine's directories are gone with it."""
    happened: bool = False


class Faulty(TwoPassWorker):
    """A site whose steps come to what is wanted."""

    _actor: SorterActor

    _mesh_effect: Any = None

    def _mesh_config(self, mesh: Mesh) -> dict[str, Any]:
        """A network that delays or cuts what this endpoint sends, so that a step has a middle."""
        config = super()._mesh_config(mesh)
        if (effect := self._mesh_effect) is not None:
            peers = [number for number in range(len(mesh.endpoints)) if number != mesh.number]
            config["faults"] = [
                {"to": peer, "after_bytes": AFTER_BYTES, "effect": effect} for peer in peers
            ]
        return config

    def _run_with(self, effect: Any, run: Callable[..., Any], asked: Any, progress: Any) -> Any:
        self._mesh_effect = effect
        try:
            return run(asked, progress)
        finally:
            self._mesh_effect = None

    def _with(self, step: str, run: Callable[..., Any], asked: Any, progress: Any) -> Any:
        trouble = self._actor.due(step)
        if trouble is None:
            return run(asked, progress)
        what = trouble.what
        if what == "dies at the end":
            done = run(asked, progress)
            self._actor.die(wipe=trouble.wipes)
            return done
        if what == "is cut off":
            return self._run_with("cut", run, asked, progress)
        if what == "stalls":
            while True:
                progress(0)
                threading.Event().wait(0.02)
        if what == "dies":
            self._actor.die(wipe=trouble.wipes)
            progress(0)  # Who is dead does nothing more.
        if what == "dies in the middle" and step == "pass_two":
            some = asked.partitions[: len(asked.partitions) // 2]
            run(msgspec.structs.replace(asked, partitions=some), progress)
            self._actor.die(wipe=trouble.wipes)
        if what == "loses its agent":
            self._actor.end()
            progress(0)
        if what.endswith("in the middle") and not what.startswith("dies"):
            some = asked.partitions[: len(asked.partitions) // 2]
            run(msgspec.structs.replace(asked, partitions=some), progress)
        if what.startswith(("fails", "is full")):
            why = f"writing a file: (os error {28 if what.startswith('is full') else 5})"
            raise core.RunError(why, "write", Path("/a/file"), 0)
        if what.startswith("crawls"):
            for done in itertools.count():
                progress(done)
                threading.Event().wait(0.02)
        if what == "cannot read":
            why = "reading a file: (os error 5)"
            with patch.object(self, "_gather", side_effect=_unread(asked, why)):
                return run(asked, progress)
        if what == "hangs":
            self._actor.hang()
            while True:
                progress(0)
                threading.Event().wait(0.02)
        if what in ("dies in the middle", "dies unheard"):

            def dying(done: int) -> None:
                if done and self._actor.alive:
                    self._actor.die(wipe=trouble.wipes, heard=what != "dies unheard")
                progress(done)

            done = self._run_with({"stall": STALL}, run, asked, dying)
            if self._actor.alive:  # It had less to do than it takes to look.
                self._actor.die(wipe=trouble.wipes, heard=what != "dies unheard")
            return done
        return run(asked, progress)

    def sample(self, asked: Any, on_progress: Any) -> Any:
        run = super().sample  # type: ignore[safe-super]
        return self._with("sample", run, asked, on_progress)

    def pass_one(self, asked: Any, on_progress: Any) -> Any:
        run = super().pass_one
        return self._with("pass_one", run, asked, on_progress)

    def pass_two(self, asked: Any, on_progress: Any) -> Any:
        run = super().pass_two  # type: ignore[safe-super]
        return self._with("pass_two", run, asked, on_progress)

    def copy(self, asked: Any, on_progress: Any) -> Any:
        return self._with("copy", super().copy, asked, on_progress)

    def seal(self, asked: Any, on_progress: Any) -> Any:
        return self._with("seal", super().seal, asked, on_progress)

    def clear(self, asked: Any, on_progress: Any) -> Any:
        return self._with("clear", super().clear, asked, on_progress)

    def publish(self, asked: Any, on_progress: Any) -> Any:
        return self._with("publish", super().publish, asked, on_progress)

    def leave(self, asked: Any, on_progress: Any) -> Any:
        return self._with("leave", super().leave, asked, on_progress)


class FaultySort(Faulty, SortWorker):
    """One that sorts."""


class FaultyTableSort(Faulty, TableWorker):
    """One that sorts tables."""


class FaultyMapReduce(Faulty, MapReduceWorker):
    """One that does a MapReduce."""


def _unread(asked: PassOne, why: str) -> core.RunError:
    """What the core says of the first file that it was to read."""
    return core.RunError(why, "read", Path(asked.files[0].path), 0)


class SorterActor(Actor):
    """An agent whose machine may die, or hang."""

    def __init__(self, node: str, cluster: SortMachines) -> None:
        self._node, self._cluster = node, cluster
        self.alive, self.answers = node not in cluster.dead, True
        self._config: WorkerConfig | None = None
        super().__init__()

    def start(self, make: Callable[[], Any]) -> Future[Any]:
        config, node = make.args  # type: ignore[attr-defined]
        self._config = config
        kinds: dict[type[Any], type[Faulty]] = {
            SortWorkerConfig: FaultySort,
            TableWorkerConfig: FaultyTableSort,
        }
        faulty: Faulty = kinds.get(type(config), FaultyMapReduce)(config)
        faulty._actor = self
        spec = SimpleNamespace(steps=lambda: faulty)
        return self._unless_lost(super().start, lambda: StepWorker(spec, node))

    def due(self, step: str) -> Trouble | None:
        """The fault of this step, if one is due."""
        for each in self._cluster.troubles.get(self._node, []):
            if each.step == step and not each.happened:
                if each.skips:
                    each.skips -= 1
                    return None
                each.happened = True
                return each
        return None

    def send(self, message: bytes, attached: Any = None) -> Future[Any]:
        return self._unless_lost(super().send, message, attached)

    def installed_version(self) -> Future[Any]:
        return self._unless_lost(super().installed_version)

    def _unless_lost(self, call: Callable[..., Future[Any]], *arguments: Any) -> Future[Any]:
        reply: Future[Any] = Future()

        def answered(done: Future[Any]) -> None:
            # A dead machine says nothing of what it did.
            if not self.alive and self.answers:
                reply.set_exception(RuntimeError("died: its machine is gone"))
            elif self.answers and done.exception():
                reply.set_exception(done.exception())
            elif self.answers:
                reply.set_result(done.result())

        if self.alive and self.answers:
            call(*arguments).add_done_callback(answered)
        elif self.answers:
            reply.set_exception(RuntimeError("died: its machine is gone"))
        return reply

    def hang(self) -> None:
        """Answers nothing any more."""
        self.answers = False

    def die(self, wipe: bool = False, heard: bool = True) -> None:
        """Ends at once: its connections are cut, what it was asked is not answered.

        Args:
            wipe: Whether its disk is gone, too.
            heard: Whether the cluster sees it, and says so.
        """
        if wipe and self._config:
            for directory in (*self._config.output, *self._config.scratch):
                shutil.rmtree(directory, ignore_errors=True)
        self._cluster.dead.add(self._node)
        self.answers = heard
        self.end()

    def end(self) -> None:
        """Ends at once, and its machine does not."""
        self.alive = False
        self._stop()

    def kill(self) -> None:
        self._stop()
        super().kill()

    def _stop(self) -> None:
        if self._shell._worker is not None:
            self._shell.handle(protocol.encode(protocol.Stop()))


class SortMachines(Machines):
    """The cluster: nodes of these names, and their faults."""

    def __init__(self, *names: str, troubles: Mapping[str, list[Trouble]] | None = None) -> None:
        super().__init__(*names)
        self.troubles = dict(troubles or {})
        self.sorters: dict[str, SorterActor] = {}
        self.dead: set[str] = set()

    def place_actor(self, machine: Machine, title: str) -> Any:
        self.sorters[machine.name] = SorterActor(machine.name, self)
        return self.sorters[machine.name]


class Killed(BaseException):
    """What ends a driver in a test: it has no time to say anything."""


def killed(*_: Any) -> Any:
    """In place of what a driver does when it dies."""
    raise Killed


@contextmanager
def driver(*, dies: int | str | None = None, before: bool = False) -> Iterator[list[str]]:
    """The steps that drivers run in this block; one dies after the step of this number or this
    name, or before it."""
    do = WorkerPool.run_step
    began: list[str] = []

    def noted(pool: WorkerPool, step: Step[Any, Any], *arguments: Any) -> Any:
        began.append(step.name)
        now = dies in (step.name, len(began))
        if now and before:
            raise Killed
        ended = do(pool, step, *arguments)
        if now:
            raise Killed
        return ended

    with (
        patch.object(WorkerPool, "run_step", noted),
        nullcontext() if dies is None else pytest.raises(Killed),
    ):
        yield began


def directories(room: Path, name: str) -> tuple[str, ...]:
    """A directory that each node has of its own."""
    return (f"{room}/{{node}}/{name}",)


def has_copies(room: Path, record: RunRecord, listed: str) -> None:
    """Each file is on two machines, and no machine that is there keeps anything else."""
    kept: dict[str, set[str]] = {}
    for each in json.loads((room / "job" / listed).read_text()):
        copy = each["copy"]
        assert copy["node"] != each["node"]
        assert Path(copy["path"]).read_bytes() == Path(each["path"]).read_bytes()
        kept.setdefault(copy["node"], set()).add(copy["path"])
    assert record.durability == "replicated"
    for node in record.nodes:
        if node.lost is None:
            copies = (room / node.node / "out" / "_copies").rglob("*")
            there = {str(path) for path in copies if path.is_file()}
            assert there == kept.get(node.node, set())
