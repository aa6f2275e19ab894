"""A machine's agent in a job: does one step after another, in a thread, and tells how far it is.

What a step is, `tonnage.run.two_pass.worker` says. An answer that was lost costs nothing: it is asked again.
"""

from __future__ import annotations

import errno
import os
import re
import resource
import threading
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Protocol

from tonnage.base import core
from tonnage.run.sort.local import peak_memory_bytes
from tonnage.run.two_pass.output.object_store import InputChanged
from tonnage.run.two_pass.worker import DeterministicError, InputUnreadable

REFUSED, DISK, FULL, INPUT, CHANGED, DETERMINISTIC, FAILED, STOPPED = (
    "refused",
    "disk",
    "full",
    "input",
    "changed",
    "deterministic",
    "failed",
    "stopped",
)
"""Why a step did not come to its end: what it was given, a disk, one without space, an input that
cannot be read, one that is not what it was, what would fail on any machine, something else, or
since it was told to."""

NO_SPACE = {errno.ENOSPC, errno.EDQUOT}


@dataclass(frozen=True)
class StepResult:
    """How a step ended."""

    value: Any = None
    kind: str | None = None
    """What kind of failure it was."""
    reason: str = ""
    error: str | None = None
    """All of what went wrong, if it was not foreseen."""
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    """Of the agent's process meanwhile."""
    peak_memory_bytes: int = 0


@dataclass(frozen=True)
class Heartbeat:
    """How far a step is."""

    number: int
    done_bytes: int
    idle_seconds: float
    """Since something was last moved."""
    news: tuple[Mapping[str, Any], ...]
    """Lines of its list of finished files that who asks does not have."""
    result: StepResult | None


class Steps(Protocol):
    """What an agent does its steps with: methods that are given what is asked, and `OnProgress`."""

    @property
    def STEPS(self) -> Sequence[str]:
        """Their names."""

    on_news: Callable[[], None]
    """Called when there is something to tell at once."""

    def begin(self) -> None:
        """A step begins: it has finished nothing yet."""

    def finished(self, known: int) -> Sequence[Mapping[str, Any]]:
        """What the step has finished, after so many of these."""


class Part(Protocol):
    """A job as one of its machines has it."""

    def site(self) -> Steps:
        """The machine's part."""


class _Stopped(KeyboardInterrupt):
    """It was told to end: what runs cleans up as on Ctrl-C."""


class StepWorker:
    """Does steps. Its methods are called one after another; only `tell` takes a while."""

    def __init__(self) -> None:
        self._site: Steps | None = None
        self._port: core.ReservedPort | None = None
        self._number = -1
        self._thread: threading.Thread | None = None
        self._stopping = threading.Event()
        self._halted = False
        self._news = threading.Event()
        self._ended: StepResult | None = None
        self._done = 0
        self._moved = time.monotonic()

    def take(self, place: Part) -> None:
        """Takes its place in a job."""
        self._site = self.settle(place)
        self._site.on_news = self._news.set

    def settle(self, place: Part) -> Steps:
        """What it does its steps with."""
        return place.site()

    def there(self) -> None:
        """It answers."""

    def listen(self, host: str) -> str:
        """An address of this machine on which nobody else listens."""
        if self._port is not None:
            self._port.close()
        self._port = core.ReservedPort(host)
        return str(self._port)

    def begin(self, number: int, step: str, asked: Any) -> None:
        """Begins a step, unless it was begun already; numbers grow."""
        assert self._site is not None and step in self._site.STEPS
        if number == self._number:
            return
        if self._thread:
            self._thread.join()  # It has told its end, and has nothing left to do.
        self._site.begin()
        self._number, self._ended, self._done = number, None, 0
        self._halted = False
        self._moved = time.monotonic()
        self._news.clear()
        self._thread = threading.Thread(target=self._run, args=(step, asked), daemon=True)
        self._thread.start()

    def tell(self, known: int, seconds: float) -> Heartbeat:
        """How far it is, with the finished files that come after so many.

        It waits for news, like the step's end, but no longer than ``seconds``.
        """
        assert self._site is not None
        self._news.wait(seconds)
        self._news.clear()
        ended = self._ended  # First: what was finished before is in the list.
        finished: Sequence[Mapping[str, Any]] = ()
        try:
            finished = self._site.finished(known)
        except OSError as why:
            # What is finished nobody can tell any more, however well it was done.
            if ended and ended.kind is None:
                ended = replace(ended, value=None, kind=DISK, reason=_in_words(why))
        return Heartbeat(
            number=self._number,
            done_bytes=self._done,
            idle_seconds=time.monotonic() - self._moved,
            news=tuple(finished),
            result=ended,
        )

    def stop(self) -> None:
        """Has the step end early, and clean up; `tell` says when it has."""
        self._stopping.set()

    def halt(self, number: int) -> None:
        """Has the step of this number end early, if it is under way; others may follow."""
        self._halted = number == self._number

    def _run(self, step: str, asked: Any) -> None:
        with suppress(PermissionError):
            # Ray's processes yield to all others (nice 15); who sorts does not, on its own.
            os.setpriority(os.PRIO_PROCESS, 0, 0)
        began, cpu = time.monotonic(), _cpu_seconds()
        try:
            ended = StepResult(getattr(self._site, step)(asked, self._progress))
        except _Stopped:
            ended = StepResult(kind=STOPPED, reason="was told to end")
        except core.UsageError as why:
            ended = StepResult(kind=REFUSED, reason=str(why.args[0]))
        except InputUnreadable as why:
            ended = StepResult(kind=INPUT, reason=str(why))
        except InputChanged as why:
            ended = StepResult(kind=CHANGED, reason=str(why))
        except DeterministicError as why:
            error = "".join(traceback.format_exception(why))
            ended = StepResult(kind=DETERMINISTIC, reason=str(why), error=error)
        except core.RunError as why:
            # What names a file is the disk's; of a peer there is none.
            of_disk = len(why.args) > 2 and why.args[2]
            ended = StepResult(kind=_of_disk(why.args[0]) if of_disk else FAILED, reason=why.args[0])
        except OSError as why:
            ended = StepResult(kind=FULL if why.errno in NO_SPACE else DISK, reason=_in_words(why))
        except Exception as why:
            error = "".join(traceback.format_exception(why))
            ended = StepResult(kind=FAILED, reason=f"{type(why).__name__}: {why}", error=error)
        self._ended = StepResult(
            **{**vars(ended)}
            | {
                "seconds": time.monotonic() - began,
                "cpu_seconds": _cpu_seconds() - cpu,
                "peak_memory_bytes": peak_memory_bytes(),
            }
        )
        self._news.set()

    def _progress(self, done: int) -> None:
        if self._stopping.is_set() or self._halted:
            raise _Stopped
        if done != self._done:
            self._done, self._moved = done, time.monotonic()


def _of_disk(why: str) -> str:
    """The kind of a disk's error, of which the core tells the number at the end."""
    found = re.search(r"\(os error (\d+)\)$", why)
    return FULL if found and int(found[1]) in NO_SPACE else DISK


def _in_words(why: OSError) -> str:
    return f"{why.filename or ''}: {why.strerror}".lstrip(": ")


def _cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime
