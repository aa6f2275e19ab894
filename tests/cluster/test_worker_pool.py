"""Whom a driver gives up, of agents that answer as they are told to here."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import wait
from types import SimpleNamespace
from typing import Any

import pytest

from support.machines import Machines
from tonnage.cluster import worker_pool
from tonnage.cluster.ray_adapter import installed_here
from tonnage.cluster.step_worker import Heartbeat, StepResult
from tonnage.cluster.version_check import ActorShell, InstalledVersion
from tonnage.cluster.worker_pool import LOST, WorkerPool
from tonnage.run.two_pass.output import object_store
from tonnage.run.two_pass.worker import STEPS

PATIENCE_SECONDS = 5.0
TELLS = 3


def test_why_there_is_no_agent_is_told() -> None:
    class Broken:
        def __init__(self) -> None:
            raise OSError("no such directory")

    seat = ActorShell()
    assert InstalledVersion(*seat.look()) == installed_here()
    seat.become(Broken)
    with pytest.raises(RuntimeError, match="could not start an agent: OSError: no such directory"):
        seat.call("tell", 0, 0.0)
    seat.become(Quiet)
    seat.call("begin", 7, "look", None)
    assert seat.call("tell", 0, 0.0).number == 7


class Quiet:
    """An agent that has long moved nothing whenever it is asked, until it comes to its end."""

    quiet_seconds = 0.0

    def __init__(self) -> None:
        self._number, self._told = -1, 0

    def take(self, place: object) -> None:
        """Has no place."""

    def begin(self, number: int, step: str, asked: Any) -> None:
        """Begins a step."""
        self._number, self._told = number, 0

    def stop(self) -> None:
        """It ends soon."""

    def tell(self, known: int, seconds: float) -> Heartbeat:
        """That it is at it, or, then, at the end."""
        self._told += 1
        ended = StepResult("the answer") if self._told > TELLS else None
        return Heartbeat(self._number, 0, self.quiet_seconds, (), ended)


class Stuck(Quiet):
    """One that moves nothing."""

    quiet_seconds = 100 * PATIENCE_SECONDS


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[SimpleNamespace]:
    """The driver's clock, which stands unless a test moves it."""
    clock = SimpleNamespace(now=1.0, sleep=lambda _: None)
    clock.monotonic = lambda: clock.now
    monkeypatch.setattr(worker_pool, "time", clock)
    yield clock


def crew_of(kind: Any, *names: str) -> WorkerPool:
    """A crew of such agents that is ready."""
    cluster = Machines(*names)
    made = WorkerPool(cluster, cluster.machines, PATIENCE_SECONDS, kind)
    made.ready(lambda node: node)  # type: ignore[arg-type,return-value]
    return made


@pytest.mark.parametrize("step", STEPS)
def test_who_waits_for_a_store_moves_nothing_and_does_not_hang(
    step: str, clock: SimpleNamespace
) -> None:
    with crew_of(Stuck, "a") as made:
        end = made.run_step(step, {"a": None})["a"]
    if step in object_store.STEPS:
        assert end == StepResult("the answer")
    else:
        assert end.kind == LOST and end.reason.startswith("hangs: it moved nothing for")


def test_who_answered_while_the_driver_was_busy_is_not_silent(clock: SimpleNamespace) -> None:
    def busy(*_: Any) -> None:
        wait([each.call for each in made.workers.values() if each.call is not None])
        clock.now += 100 * PATIENCE_SECONDS

    nodes = [f"n{number}" for number in range(4)]
    with crew_of(Quiet, *nodes) as made:
        ended = made.run_step("pass_one", dict.fromkeys(nodes), busy)
    assert {node: end.kind for node, end in ended.items()} == dict.fromkeys(nodes)
