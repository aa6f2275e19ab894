"""A machine's agent: measures there, in a thread of its own, while it answers how far it is.

It runs what ``tonnage measure`` runs, into a directory of its own. Its files are what it tells: who
asks has those that it does not have yet, so an answer that was lost costs nothing, and what was
told of an earlier command is where this one goes on. An answer waits for news for a while: asking
often would take cores from what is measured.
"""

from __future__ import annotations

import os
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tonnage.base import core
from tonnage.base.records import Measurement, Trial
from tonnage.cluster.barrier import BarrierWait, WorkerBarrier

Work = Callable[..., Iterator[Trial | Measurement]]
"""Measures into a directory; also takes ``command``, ``labels`` and ``on_progress`` by name, and
``peers`` if it is done in step with other machines."""

ROOM_PREFIX = ".tonnage-agent-"
WAKE_SECONDS = 0.02
"""A sleep ends later than it should: the last of a wait is spent looking at the clock."""


@dataclass(frozen=True)
class MeasureTask:
    """What one machine is to do."""

    work: Work
    command: list[str]
    labels: Mapping[str, str]
    files: Mapping[str, bytes]
    """What an earlier command has of it, by name."""
    kept_in: str
    """What the directory is called that these are in: what goes wrong is told of that."""
    in_step_as: str | None = None
    """This machine's name, if its work meets that of others."""


@dataclass(frozen=True)
class RoundResult:
    """How a part went that a machine took in what several do at once."""

    why: str | None
    """Why it came to nothing."""
    began: float | None
    """When it began, on the machine's clock."""


@dataclass(frozen=True)
class Told:
    """How far a machine is."""

    began_late_seconds: float | None
    """How much later than agreed it began; None: not yet."""
    done_bytes: int
    quiet_seconds: float
    """Since something was last moved, or was done."""
    files: Mapping[str, bytes]
    """Those that who asks did not have, in the order in which they are told."""
    ended: bool
    seconds: float | None
    """From its beginning to its end."""
    why: str | None
    """Why it did not measure all, in a line."""
    error: str | None = None
    """All of what went wrong, if it was not foreseen."""
    said: Mapping[int, RoundResult] = field(default_factory=dict)
    """Of each part that it was given one after another, and has done, by its number."""
    waits: BarrierWait | None = None
    """If it waits for other machines, and is not quiet meanwhile."""


class _Stopped(KeyboardInterrupt):
    """It was told to end: what runs cleans up as on Ctrl-C."""


class MeasureWorker:
    """Measures once. Its methods are called one after another; only `tell` takes a while."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._out = Path()
        self._task: MeasureTask | None = None
        self._meeting: WorkerBarrier | None = None
        self._thread: threading.Thread | None = None
        self._stopping = threading.Event()
        self._news = threading.Event()
        self._began_late: float | None = None
        self._began = self._moved = time.monotonic()
        self._ended: float | None = None
        self._done = 0
        self._files: dict[str, None] = {}  # Their names, in the order in which they are told.
        self._why: str | None = None
        self._error: str | None = None
        self._said: dict[int, RoundResult] = {}

    def prepare(self, task: MeasureTask) -> None:
        """Takes the task; all that it needs is loaded when this returns.

        Raises:
            UsageError: There is no room for its files.
        """
        parent = Path(tempfile.gettempdir())
        room = self._stack.enter_context(core.workspace(None, parent, ROOM_PREFIX))
        self._out, self._task = room / "out", task
        self._out.mkdir()
        for name, content in task.files.items():
            (self._out / name).write_bytes(content)
        self._files = dict.fromkeys(task.files)
        if task.in_step_as is not None:
            self._meeting = WorkerBarrier(task.in_step_as, self._news.set, self._wait_until)

    def clock(self) -> float:
        """This machine's monotonic clock, in seconds."""
        return time.monotonic()

    def start(self, at: float) -> None:
        """Has the measurement begin when the clock says ``at``."""
        self._moved = time.monotonic()
        self._thread = threading.Thread(target=self._run, args=(at,), daemon=True)
        self._thread.start()

    def tell(self, known: int, seconds: float) -> Told:
        """How far it is, with the files that come after so many.

        The first are those of its task. It waits for a trial that is done, or for the end, but no
        longer than ``seconds``.
        """
        self._news.wait(seconds)
        self._news.clear()
        # First: what was done before them is among the files.
        ended, said = self._ended, dict(self._said)
        self._files |= dict.fromkeys(path.name for path in sorted(self._out.glob("*.json")))
        files = {name: (self._out / name).read_bytes() for name in list(self._files)[known:]}
        waits = self._meeting.waits if self._meeting else None
        if waits:
            self._moved = time.monotonic()
        return Told(
            began_late_seconds=self._began_late,
            done_bytes=self._done,
            quiet_seconds=time.monotonic() - self._moved,
            files=files,
            ended=ended is not None,
            seconds=None if ended is None else ended - self._began,
            why=self._why,
            error=self._error,
            said=said,
            waits=waits,
        )

    def go(self, number: int, at: float, said: Mapping[str, Any]) -> None:
        """Has the work go on when the clock says ``at``, from where it met others."""
        assert self._meeting is not None
        self._meeting.go(number, at, said)

    def stop(self) -> None:
        """Has the measurement end early, and clean up; `tell` says when it has."""
        self._stopping.set()

    def leave(self) -> None:
        """Removes its files."""
        self._stack.close()

    def _run(self, at: float) -> None:
        assert self._task is not None
        with suppress(PermissionError):
            # Ray's processes yield to all others (nice 15); what is measured does not, on its own.
            # Of this thread, and of those that it starts. Who may not: its environment says so.
            os.setpriority(os.PRIO_PROCESS, 0, 0)
        try:
            self._wait_until(at)
            self._began = self._moved = time.monotonic()
            self._began_late = self._began - at
            for _ in self._work(self._task):
                self._has_moved()
        except _Stopped:
            self._why = "was told to end"
        except core.UsageError as why:
            # Of what it was given from --output; of its own room nobody knows who asked.
            text = str(why.args[0]).replace(str(self._out), self._task.kept_in)
            self._why = _in_a_line(text)
        except Exception as why:
            # Whatever it was, this machine's row has to say it: nobody sees this process's errors.
            self._why = _in_a_line(_in_words(why))
            self._error = "".join(traceback.format_exception(why))
        finally:
            self._ended = time.monotonic()
            self._news.set()

    def _work(self, task: MeasureTask) -> Iterator[Trial | Measurement]:
        peers = {"peers": self._meeting} if self._meeting else {}
        return task.work(
            self._out,
            command=task.command,
            labels=task.labels,
            on_progress=self._progress,
            **peers,
        )

    def _has_moved(self) -> None:
        self._moved = time.monotonic()
        self._news.set()

    def _wait_until(self, at: float) -> None:
        if self._stopping.is_set():
            raise _Stopped
        while (left := at - time.monotonic()) > 0:
            if self._stopping.wait(left - WAKE_SECONDS if left > 2 * WAKE_SECONDS else 0):
                raise _Stopped

    def _progress(self, done: int) -> None:
        if self._stopping.is_set():
            raise _Stopped
        if done != self._done:
            self._done, self._moved = done, time.monotonic()


def _in_a_line(text: str) -> str:
    return " ".join(text.split())


def _in_words(why: Exception) -> str:
    """What went wrong; what nobody put in words is told with its kind."""
    if isinstance(why, core.RunError):
        return str(why.args[0])
    if isinstance(why, OSError) and why.strerror:
        return f"{why.filename or ''}: {why.strerror}".lstrip(": ")
    return f"{type(why).__name__}: {why}"
