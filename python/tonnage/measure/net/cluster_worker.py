"""A node's endpoint in a measurement of the network: it takes part in one round after another.

The driver gives it each part when it gives all others theirs. It runs a part as `tonnage measure
net` does, in a process of its own, and records what it sent and received as its own trials. It
listens on the address that its machine has in the cluster, and nowhere else.
"""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import NoneType
from typing import Any

from msgspec import structs

from tonnage.base import core
from tonnage.base.clock import utc_now
from tonnage.base.records import Measurement, Trial
from tonnage.base.records.cluster_measurement import UNKNOWN_TYPE
from tonnage.base.records.network_rounds import NET
from tonnage.cluster import time_limits
from tonnage.cluster.protocol import Idle, Message, Step
from tonnage.cluster.step_worker import Handler
from tonnage.measure.cluster.measure_worker import (
    Measure,
    MeasureSteps,
    MeasureTask,
    News,
    RoundResult,
)
from tonnage.measure.net import endpoint_round
from tonnage.measure.net.endpoint import EndpointHost, run_endpoints
from tonnage.measure.net.endpoint_round import RoundSpec, core_configs
from tonnage.measure.trial import environment
from tonnage.measure.trial.session import open_session


class RoundPart(Message, frozen=True, tag=True):
    """What one node does in what several do at once."""

    number: int
    """The number of the test; unique in a run."""
    attempt: str
    """A unique name of this attempt at the test."""
    pattern: str
    nodes: tuple[str, ...]
    """The nodes that take part, in the order of endpoints."""
    endpoint: int
    machine_types: tuple[str, ...]
    """Of all nodes that take part, each once."""
    ways: tuple[str, ...]
    """The directions that this node records."""
    spec: RoundSpec
    addresses: tuple[str, ...]
    secret: str

    @property
    def timeout_seconds(self) -> float:
        meeting, drain = time_limits.NETWORK_MEETING_SECONDS, time_limits.NETWORK_DRAIN_SECONDS
        return meeting + self.spec.seconds + drain

    @property
    def core_config(self) -> dict[str, Any]:
        meeting = time_limits.NETWORK_MEETING_SECONDS
        return core_configs(self.addresses, self.spec, meeting, self.secret)[self.endpoint]


class NoMoreParts(Message, frozen=True, tag=True):
    """There are no more parts: the measurement ends."""


class MachineType(Message, frozen=True):
    name: str


DESCRIBE = Step("describe machine", NoneType, MachineType, idle=Idle.ALONE)
MEASURE_NETWORK = Step(
    "measure network", Measure, NoneType, news=News, notice=RoundPart | NoMoreParts, idle=Idle.ALONE
)

OnResult = Callable[[RoundResult], None]


def take_part(
    out: Path,
    settings: Mapping[str, Any],
    stopping_rule: str,
    *,
    command: list[str],
    labels: Mapping[str, str],
    on_progress: core.OnProgress,
    parts: Iterable[RoundPart],
    on_result: OnResult,
) -> Iterator[Trial | Measurement]:
    """Yield the trials of one part after another, and the measurement; report failed parts."""
    with open_session(
        out,
        NET,
        dict(settings),
        command=command,
        environment=environment.capture([], labels),
        stopping_rule=stopping_rule,
        page_cache="untouched: no file was read or written",
    ) as session:
        session.start()
        for part in parts:
            host = EndpointHost(part.nodes[part.endpoint])
            began_at = utc_now()
            try:
                (outcome,) = run_endpoints(
                    [host],
                    [part.core_config],
                    timeout_seconds=part.timeout_seconds,
                    on_progress=on_progress,
                )
            except (core.RunError, core.UsageError) as why:
                # There is only one endpoint here, so its number says nothing.
                text = str(why.args[0]).removeprefix(f"endpoint 0 ({host.host})").lstrip(": ")
                on_result(RoundResult(part.number, text, None))
                continue
            trials = endpoint_round.endpoint_trials(part.endpoint, part.spec, outcome, began_at)
            for trial in trials:
                if trial.step and trial.step.operation in part.ways:
                    yield session.add(_with_test(trial, part))
            on_result(RoundResult(part.number, None, outcome["began"]))
        yield session.finish()


def _with_test(found: Trial, each: RoundPart) -> Trial:
    assert found.reading and found.step
    more = {
        "attempt": each.attempt,
        "pattern": each.pattern,
        "node_names": list(each.nodes),
        "machine_types": list(each.machine_types),
    }
    return structs.replace(
        found,
        name=f"{found.step.operation}, {each.pattern}",
        reading=structs.replace(found.reading, details=found.reading.details | more),
    )


@dataclass(frozen=True)
class NetworkTask(MeasureTask):
    TITLE = "NetworkWorker"

    def steps(self) -> NetworkSteps:
        return NetworkSteps(self)


class NetworkSteps(MeasureSteps):
    STEP = MEASURE_NETWORK

    def __init__(self, task: MeasureTask) -> None:
        super().__init__(task)
        self._parts: queue.SimpleQueue[RoundPart | NoMoreParts] = queue.SimpleQueue()

    def handlers(self) -> Sequence[Handler[Any, Any]]:
        return (*super().handlers(), Handler(DESCRIBE, self.describe))

    def describe(self, _: None, on_progress: core.OnProgress) -> MachineType:
        name = environment.capture([], self._task.labels).machine_type
        return MachineType(name or UNKNOWN_TYPE)

    def notify(self, notice: RoundPart | NoMoreParts) -> None:
        self.context.note_progress()
        self._parts.put(notice)

    def _work(self, on_progress: core.OnProgress) -> Iterator[Trial | Measurement]:
        return self._task.work(
            self._out,
            command=self._task.command,
            labels=self._task.labels,
            on_progress=on_progress,
            parts=self._incoming(),
            on_result=self._add_news,
        )

    def _incoming(self) -> Iterator[RoundPart]:
        while True:
            self.context.check_stopped()
            try:
                part = self._parts.get(timeout=time_limits.STOP_POLL_SECONDS)
            except queue.Empty:
                self.context.note_progress()  # It waits for its turn, and does not hang.
                continue
            if isinstance(part, NoMoreParts):
                return
            yield part
        self.context.note_progress()
        self.context.note_news()
