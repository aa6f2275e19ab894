"""A node's part in a cluster measurement: it runs ``tonnage measure`` in its own directory.

The files of that directory are its news. They come from the driver if an earlier command measured
some of it, and the measurement is resumed.
"""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import NoneType
from typing import Any, ClassVar

from tonnage.base import core
from tonnage.base.records import Measurement, Trial
from tonnage.cluster.protocol import Idle, Message, Step
from tonnage.cluster.step_worker import Handler, WorkerSteps

Work = Callable[..., Iterator[Trial | Measurement]]
"""Measures into a directory; also takes ``command``, ``labels`` and ``on_progress`` by name, and
``barrier`` if it is done in step with other nodes."""

DIR_PREFIX = ".tonnage-agent-"


class Measure(Message, frozen=True):
    """Measure."""


class FileWritten(Message, frozen=True, tag=True):
    name: str
    content: bytes


class RoundResult(Message, frozen=True, tag=True):
    """How a part went that a node took in what several do at once."""

    number: int
    why: str | None
    began: float | None
    """When it began, on the node's clock."""


News = FileWritten | RoundResult
MEASURE = Step("measure", Measure, NoneType, news=News, idle=Idle.ALONE)


@dataclass(frozen=True)
class MeasureTask:
    TITLE: ClassVar[str] = "MeasureWorker"

    work: Work
    command: list[str]
    labels: Mapping[str, str]
    files: Mapping[str, bytes]
    """What an earlier command has of it, by name."""
    kept_in: str
    """The directory that these are in on the driver: errors name that."""
    in_step: bool = False
    """Whether its work waits for that of other nodes."""

    def steps(self) -> MeasureSteps:
        return MeasureSteps(self)


class MeasureSteps(WorkerSteps):
    """The node's worker; `UsageError` if there is no room for its files."""

    STEP: Step[Any, Any] = MEASURE

    def __init__(self, task: MeasureTask) -> None:
        self._task, self._stack = task, ExitStack()
        parent = Path(tempfile.gettempdir())
        workspace = core.workspace("the temporary directory", parent, DIR_PREFIX)
        self._out = self._stack.enter_context(workspace) / "out"
        self._out.mkdir()
        for name, content in task.files.items():
            (self._out / name).write_bytes(content)
        self._names = {*task.files}
        self._news: list[str | RoundResult] = []
        self._lock = threading.Lock()

    def handlers(self) -> Sequence[Handler[Any, Any]]:
        return (Handler(self.STEP, self.measure),)

    def measure(self, request: Measure, on_progress: core.OnProgress) -> None:
        try:
            for _ in self._work(on_progress):
                self.context.note_progress()
                self.context.note_news()
        except core.UsageError as why:
            # Users know the driver's directory, not this node's.
            text = why.why.replace(str(self._out), self._task.kept_in)
            raise core.UsageError(text, setting=why.setting) from why

    def news(self, known: int) -> list[News]:
        self._add_news()
        return [
            FileWritten(each, (self._out / each).read_bytes()) if isinstance(each, str) else each
            for each in self._news[known:]
        ]

    def _add_news(self, *results: RoundResult) -> None:
        """Adds results, after the files that were written before them."""
        with self._lock:
            written = {path.name for path in self._out.glob("*.json")} - self._names
            self._names |= written
            self._news += [*sorted(written), *results]

    def close(self) -> None:
        self._stack.close()

    def _work(self, on_progress: core.OnProgress) -> Iterator[Trial | Measurement]:
        task = self._task
        barrier = {"barrier": self.context.barrier} if task.in_step else {}
        return task.work(
            self._out, command=task.command, labels=task.labels, on_progress=on_progress, **barrier
        )
