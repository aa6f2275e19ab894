"""Which workers a driver gives up; these workers answer as the tests script them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import wait
from types import NoneType, SimpleNamespace
from typing import Any

import pytest

from support.cluster.machines import Machines
from tonnage.base import core
from tonnage.cluster import protocol, worker_handle, worker_pool
from tonnage.cluster.actor import ActorShell
from tonnage.cluster.failure_kinds import Failure
from tonnage.cluster.protocol import (
    Begin,
    Heartbeat,
    Idle,
    Message,
    Ping,
    Poll,
    ProtocolError,
    ReservePort,
    Step,
    StepResult,
)
from tonnage.cluster.ray_adapter import installed_here
from tonnage.cluster.step_worker import Handler, StepWorker, WorkerSteps
from tonnage.cluster.version_check import InstalledVersion
from tonnage.cluster.worker_pool import WorkerPool
from tonnage.run.two_pass import messages

PATIENCE_SECONDS = 5.0
HEARTBEATS = 3


class Doubled(Message, frozen=True):
    """Twice a number."""

    number: int


class Number(Message, frozen=True):
    """A number."""

    number: int


DOUBLE = Step("double", Number, Doubled)


class Doubling(WorkerSteps):
    """A worker that doubles numbers."""

    def handlers(self) -> Sequence[Handler[Any, Any]]:
        return (Handler(DOUBLE, self.double),)

    def double(self, request: Number, on_progress: core.OnProgress) -> Doubled:
        return Doubled(2 * request.number)


def test_why_there_is_no_worker_is_told() -> None:
    def broken() -> Any:
        raise OSError("no such directory")

    shell = ActorShell()
    assert InstalledVersion(*shell.installed_version()) == installed_here()
    with pytest.raises(RuntimeError, match="the worker has not been started"):
        shell.handle(protocol.encode(Ping()))
    with pytest.raises(RuntimeError, match="cannot start a worker: OSError: no such directory"):
        shell.start(broken)
    shell.start(lambda: StepWorker(SimpleNamespace(steps=Doubling), "a"))  # type: ignore[arg-type]
    assert protocol.decode_reply(shell.handle(protocol.encode(Ping())), Ping()) is None
    reply = shell.handle(protocol.encode(ReservePort("127.0.0.1")))
    assert protocol.decode_reply(reply, ReservePort("")).startswith("127.0.0.1:")


@pytest.mark.parametrize(
    ("message", "why"),
    [
        (b"", "a message uses no protocol version; expected 1"),
        (b"\x02\xc0", "a message uses protocol version 2; expected 1"),
        (b"\x01\xc0", "a message is not a valid request: Expected `object`, got `None`"),
        (b"\x01\xc1", "a message is not a valid request: "),
        (protocol.encode(Begin(1, "halve", None)), "unknown step halve"),
        (
            protocol.encode(Begin(1, "double", {"number": "two"})),
            r"a request to double is not a valid Number: Expected `int`, got `str`",
        ),
        (
            protocol.encode(Begin(1, "double", {"number": 2, "more": 3})),
            "a request to double is not a valid Number: Object contains unknown field `more`",
        ),
    ],
)
def test_a_wrong_message_is_one_line(message: bytes, why: str) -> None:
    worker = StepWorker(SimpleNamespace(steps=Doubling), "a")  # type: ignore[arg-type]
    with pytest.raises(ProtocolError, match=f"^{why}[^\n]*$"):
        worker.handle(message)


def test_a_wrong_result_is_one_line() -> None:
    heartbeat = Heartbeat(7, 0, 0.0, (), StepResult({"number": None}))
    with pytest.raises(
        ProtocolError, match=r"^the result of double is not a valid Doubled: [^\n]*$"
    ):
        protocol.decode_heartbeat(protocol.encode(heartbeat), DOUBLE, 7)
    # Of another step it is not looked at.
    assert protocol.decode_heartbeat(protocol.encode(heartbeat), DOUBLE, 8).result is None


def test_a_node_with_another_protocol_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Machines("a")
    with WorkerPool(cluster, cluster.machines, PATIENCE_SECONDS) as pool:
        pool.ready(lambda _: SimpleNamespace(steps=Doubling))  # type: ignore[arg-type,return-value]
        assert pool.run_step(DOUBLE, {"a": Number(21)})["a"].value == Doubled(42)
        monkeypatch.setattr(protocol, "VERSION", 2)
        message = protocol.encode(Begin(9, "double", Number(1)))
        monkeypatch.setattr(protocol, "VERSION", 1)
        monkeypatch.setattr(protocol, "encode", lambda _: message)
        result = pool.run_step(DOUBLE, {"a": Number(21)})["a"]
        monkeypatch.undo()
    assert result.failure == Failure.LOST
    assert result.reason == "a message uses protocol version 2; expected 1"


class Fake:
    """A worker that has long made no progress whenever it is asked, until it ends."""

    def __init__(self, idle_seconds: float) -> None:
        self._idle_seconds, self._number, self._heartbeats = idle_seconds, -1, 0

    def handle(self, message: bytes) -> bytes:
        match protocol.decode(message, protocol.Request):
            case Begin(number):
                self._number, self._heartbeats = number, 0
            case Poll():
                self._heartbeats += 1
                result = StepResult() if self._heartbeats > HEARTBEATS else None
                heartbeat = Heartbeat(self._number, 0, self._idle_seconds, (), result)
                return protocol.encode(heartbeat)
        return protocol.encode(None)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[SimpleNamespace]:
    """The driver's clock, which stands unless a test moves it."""
    clock = SimpleNamespace(now=1.0, sleep=lambda _: None)
    clock.monotonic = lambda: clock.now
    for module in (worker_pool, worker_handle):
        monkeypatch.setattr(module, "time", clock)
    yield clock


def pool_of(monkeypatch: pytest.MonkeyPatch, idle_seconds: float, *names: str) -> WorkerPool:
    """A pool of such workers."""
    monkeypatch.setattr(worker_pool, "StepWorker", lambda *_: Fake(idle_seconds))
    cluster = Machines(*names)
    pool = WorkerPool(cluster, cluster.machines, PATIENCE_SECONDS)
    pool.ready(lambda _: None)  # type: ignore[arg-type,return-value]
    return pool


STEPS = [each for each in vars(messages).values() if isinstance(each, Step)]


@pytest.mark.parametrize("idle", Idle)
def test_a_step_that_makes_no_progress_hangs_unless_it_waits_for_a_store(
    idle: Idle, clock: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = Step("wait", NoneType, NoneType, idle=idle)
    with pool_of(monkeypatch, 100 * PATIENCE_SECONDS, "a") as pool:
        result = pool.run_step(step, {"a": None})["a"]
    if idle is Idle.ALLOWED:
        assert result == StepResult()
    else:
        assert result.failure == Failure.LOST
        assert result.reason.startswith("hung: no progress for")


def test_steps_in_object_storage_may_be_idle() -> None:
    idle = {step.name for step in STEPS if step.idle is Idle.ALLOWED}
    assert idle == {"find", "reach", "claim", "clear", "publish", "release"}


def test_a_node_that_answered_while_the_driver_was_busy_is_not_silent(
    clock: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    def busy(*_: Any) -> None:
        wait([each.call for each in pool.workers.values() if each.call is not None])
        clock.now += 100 * PATIENCE_SECONDS

    nodes = [f"n{number}" for number in range(4)]
    with pool_of(monkeypatch, 0.0, *nodes) as pool:
        results = pool.run_step(Step("wait", NoneType, NoneType), dict.fromkeys(nodes), busy)
    assert {node: each.failure for node, each in results.items()} == dict.fromkeys(nodes)
