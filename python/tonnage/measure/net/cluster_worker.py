"""A machine's endpoint of the network: an agent that takes part in one round after another.

It is given each part when all others are given theirs, and runs it as `tonnage measure net` does,
in a process of its own. What it sent and received is kept as its own trials. It listens on the
address that its machine has in the cluster, and nowhere else.
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

LOOK_SECONDS = 0.1
"""How often who waits for a part looks whether to end."""
ENDING_SECONDS = 60.0
"""A part has to end within this after its time: what lies in buffers goes at the slowest's pace."""


@dataclass(frozen=True)
class TestPart:
    """What one machine does in what several do at once."""

    number: int
    """Of what all do; no two of a run have the same."""
    attempt: str
    """Tells what was done at once from what was done at another time; no two are alike."""
    pattern: str
    nodes: tuple[str, ...]
    """Who takes part, in the order of endpoints."""
    endpoint: int
    machine_types: tuple[str, ...]
    """Of all that take part, each once."""
    ways: tuple[str, ...]
    """Of what this one does, what is kept."""
    spec: RoundSpec
    config: Mapping[str, Any] = field(repr=False)
    """As the core takes it; it holds the secret that only these machines have."""
    patience_seconds: float
    """Within this all have to be there."""

    @property
    def timeout_seconds(self) -> float:
        """Who is not done after this is given up."""
        return self.patience_seconds + self.spec.seconds + ENDING_SECONDS


Keep = Callable[[TestPart, RoundResult], None]
"""Told how each part went, when its trials are kept."""


def take_part(
    out: Path,
    settings: Mapping[str, Any],
    stopping_rule: str,
    *,
    command: list[str],
    labels: Mapping[str, str],
    on_progress: core.OnProgress,
    parts: Iterable[TestPart],
    said: Keep,
) -> Iterator[Trial | Measurement]:
    """Does the parts one after another: gives their trials, and at last the measurement.

    One that fails is told, and the next is waited for.
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
    """What an endpoint said, without what it is called here: there is no other."""
    return why.removeprefix(f"endpoint 0 ({place.host})").lstrip(": ")


def _named(found: Trial, each: TestPart) -> Trial:
    """The trial by what was done, with who took part."""
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
    """An agent whose work is to take part."""

    def __init__(self) -> None:
        super().__init__()
        self._parts: queue.SimpleQueue[TestPart | None] = queue.SimpleQueue()
        self._port: core.ReservedPort | None = None

    def listen(self, host: str) -> tuple[str, int, str]:
        """An address of this machine, a port that nobody else has, and the machine's type."""
        assert self._task is not None
        type_ = environment.capture([], self._task.labels).machine_type or UNKNOWN_TYPE
        if self._port is not None:
            self._port.close()
        self._port = core.ReservedPort(host)
        return host, self._port.number, type_

    def do(self, each: TestPart | None) -> None:
        """Gives it its next part; None: there is none."""
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

    def _given(self) -> Iterator[TestPart]:
        while True:
            self._progress(self._done)  # Whether to end.
            try:
                each = self._parts.get(timeout=LOOK_SECONDS)
            except queue.Empty:
                continue
            if each is None:
                return
            yield each

    def _keep_said(self, each: TestPart, said: RoundResult) -> None:
        self._said[each.number] = said
        self._has_moved()
