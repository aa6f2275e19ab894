"""The worker of a cluster's network benchmark: it takes part in one test after another.

It gets its part of a test when all other nodes get theirs, and runs it as `tonnage measure net`
does, in a process of its own. What it sent and received is recorded as its own trials. It listens
only on the address that its node has in the cluster.
"""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from msgspec import structs

from tonnage.base import core
from tonnage.base.records import Measurement, Trial
from tonnage.base.records.cluster_measurement import UNKNOWN_TYPE
from tonnage.base.records.network_rounds import NET
from tonnage.measure.cluster.measure_worker import MeasureTask, MeasureWorker, RoundResult
from tonnage.measure.net import endpoint_round
from tonnage.measure.net.endpoint import EndpointHost, run_endpoints
from tonnage.measure.net.endpoint_round import RoundSpec
from tonnage.measure.trial import environment
from tonnage.measure.trial.session import open_session
from tonnage.measure.trial.trial import utc_now

POLL_SECONDS = 0.1
"""How often a waiting worker checks whether to end."""
END_TIMEOUT_SECONDS = 60.0
"""A part has to end within this time after its round: buffers drain at the slowest node's pace."""


@dataclass(frozen=True)
class NetworkTestPart:
    """One node's part of a test."""

    number: int
    """The number of the test; unique in a run."""
    attempt: str
    """A unique name of this attempt at the test."""
    pattern: str
    nodes: tuple[str, ...]
    """The nodes that take part, in the order of endpoints."""
    endpoint: int
    machine_types: tuple[str, ...]
    """The distinct machine types of all nodes that take part."""
    ways: tuple[str, ...]
    """The directions to record."""
    spec: RoundSpec
    config: Mapping[str, Any] = field(repr=False)
    """The core's configuration, with the secret that only these nodes share."""
    patience_seconds: float
    """How long connecting may take."""

    @property
    def timeout_seconds(self) -> float:
        """A node that takes longer is given up."""
        return self.patience_seconds + self.spec.seconds + END_TIMEOUT_SECONDS


Keep = Callable[[NetworkTestPart, RoundResult], None]
"""Called with the result of each part, once its trials are recorded."""


def take_part(
    out: Path,
    settings: Mapping[str, Any],
    stopping_rule: str,
    *,
    command: list[str],
    labels: Mapping[str, str],
    on_progress: core.OnProgress,
    parts: Iterable[NetworkTestPart],
    said: Keep,
) -> Iterator[Trial | Measurement]:
    """Run the parts one after another: yields their trials, and finally the measurement.

    A failure is reported, and the next part awaited.
    """
    with open_session(
        out,
        NET,
        dict(settings),
        command=command,
        environment=environment.capture([], labels),
        stopping_rule=stopping_rule,
        page_cache="untouched: no file was read or written",
    ) as trials:
        trials.start()
        for each in parts:
            place = EndpointHost(each.nodes[each.endpoint])
            began_at = utc_now()
            try:
                (answer,) = run_endpoints(
                    [place],
                    [dict(each.config)],
                    timeout_seconds=each.timeout_seconds,
                    on_progress=on_progress,
                )
            except (core.RunError, core.UsageError) as why:
                said(each, RoundResult(_own_words(str(why.args[0]), place), None))
                continue
            for found in endpoint_round.endpoint_trials(each.endpoint, each.spec, answer, began_at):
                if found.step and found.step.operation in each.ways:
                    yield trials.add(_named(found, each))
            said(each, RoundResult(None, answer["began"]))
        yield trials.finish()


def _own_words(why: str, place: EndpointHost) -> str:
    """An endpoint's error without its name, which is the same on every node."""
    return why.removeprefix(f"endpoint 0 ({place.host})").lstrip(": ")


def _named(found: Trial, each: NetworkTestPart) -> Trial:
    """Name the trial by its test and add the nodes that took part."""
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


class NetworkAgent(MeasureWorker):
    """An agent that takes part in network tests."""

    def __init__(self) -> None:
        super().__init__()
        self._parts: queue.SimpleQueue[NetworkTestPart | None] = queue.SimpleQueue()
        self._port: core.ReservedPort | None = None

    def listen(self, host: str) -> tuple[str, int, str]:
        """An address of this node, a reserved port, and the machine type."""
        assert self._task is not None
        type_ = environment.capture([], self._task.labels).machine_type or UNKNOWN_TYPE
        if self._port is not None:
            self._port.close()
        self._port = core.ReservedPort(host)
        return host, self._port.number, type_

    def do(self, each: NetworkTestPart | None) -> None:
        """Hand over the next part; None ends the work."""
        self._has_moved()
        self._parts.put(each)

    def _work(self, task: MeasureTask) -> Iterator[Trial | Measurement]:
        return task.work(
            self._out,
            command=task.command,
            labels=task.labels,
            on_progress=self._progress,
            parts=self._given(),
            said=self._keep_said,
        )

    def _given(self) -> Iterator[NetworkTestPart]:
        while True:
            self._progress(self._done)  # Raises if the work is to end.
            try:
                each = self._parts.get(timeout=POLL_SECONDS)
            except queue.Empty:
                continue
            if each is None:
                return
            yield each

    def _keep_said(self, each: NetworkTestPart, said: RoundResult) -> None:
        self._said[each.number] = said
        self._has_moved()
