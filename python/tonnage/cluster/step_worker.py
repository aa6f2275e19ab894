"""The worker on a node: it runs one step after another in a thread, and answers at the same time.

A job defines the steps (`WorkerSteps`); this file begins, watches and halts them, and reports their
failures. A lost message costs nothing: it is sent again (`protocol`).
"""

from __future__ import annotations

import errno
import os
import re
import threading
import time
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Generic, NoReturn, Protocol, TypeVar

import msgspec

from tonnage.base import core
from tonnage.base.core import process_usage
from tonnage.cluster import protocol, time_limits
from tonnage.cluster.barrier import WorkerBarrier
from tonnage.cluster.failure_kinds import (
    BadInput,
    DeterministicError,
    Failure,
    InputChanged,
    InputUnreadable,
    Stopped,
)
from tonnage.cluster.protocol import Heartbeat, ProtocolError, Step, StepResult

Q = TypeVar("Q")
R = TypeVar("R")

NO_SPACE = {errno.ENOSPC, errno.EDQUOT}


@dataclass(frozen=True)
class Handler(Generic[Q, R]):
    """A step with the function that does it, which is given the request and `OnProgress`."""

    step: Step[Q, R]
    do: Callable[[Q, core.OnProgress], R]


class WorkerSteps(ABC):
    """The steps that a job needs on a node; what they share stays between them."""

    context: StepWorker

    @abstractmethod
    def handlers(self) -> Sequence[Handler[Any, Any]]:
        """All its steps."""

    def begin_step(self) -> None:  # noqa: B027
        """Begins a step: it has reported nothing yet."""

    def news(self, known: int) -> Sequence[object]:
        """What the step under way has to report, after so many of these."""
        return ()

    def notify(self, notice: Any) -> None:
        """Takes what the driver tells the step under way."""
        raise NotImplementedError(f"{type(self).__name__} does not accept notices")

    @property
    def last_progress(self) -> float:
        """When a step last made progress that `on_progress` does not see; monotonic clock."""
        return 0.0

    def fetch_object(self, attempt: int) -> bytes:
        """The object of this attempt, for another worker."""
        raise NotImplementedError(f"{type(self).__name__} does not support merging")

    def store_object(self, attempt: int, content: bytes) -> None:
        """Takes another worker's object of this attempt."""
        raise NotImplementedError(f"{type(self).__name__} does not support merging")

    def close(self) -> None:  # noqa: B027
        """Removes the worker's own files."""


class WorkerSpec(Protocol):
    """A job as one of its nodes has it; it is sent there."""

    def steps(self) -> WorkerSteps:
        """The node's part in the job."""


class StepWorker:
    """Does steps. Its methods are called one after another; only `Poll` takes a while."""

    def __init__(self, spec: WorkerSpec, node: str) -> None:
        self._steps = spec.steps()
        self._steps.context = self
        self._handlers = {handler.step.name: handler for handler in self._steps.handlers()}
        self.barrier = WorkerBarrier(node, self.note_news, self._wait_until)
        self._port: core.ReservedPort | None = None
        self._number = -1
        self._step: Step[Any, Any] | None = None
        self._thread: threading.Thread | None = None
        self._stopping = threading.Event()
        self._halted = False
        self._news = threading.Event()
        self._result: StepResult[Any] | None = None
        self._late_seconds: float | None = None
        self._done_bytes = 0
        self._progress_at = time.monotonic()

    def handle(self, message: bytes, *attached: bytes) -> bytes:
        """Handle a driver's message; gives the reply, or `ProtocolError` if it is none."""
        match protocol.decode(message, protocol.Request):
            case protocol.Begin() as begin:
                self._begin(begin)
            case protocol.Poll(known, seconds):
                return protocol.encode(self._heartbeat(known, seconds))
            case protocol.Notify(number, notice):
                if number == self._number and self._step is not None:
                    what = f"a notice to {self._step.name}"
                    self._steps.notify(protocol.convert(notice, self._step.notice, what))
            case protocol.ReleaseBarrier(number, at, values):
                self.barrier.release(number, at, values)
            case protocol.Halt(number):
                self._halted = number == self._number
            case protocol.Stop():
                self._stopping.set()
            case protocol.Close():
                self._steps.close()
            case protocol.ReadClock():
                return protocol.encode(time.monotonic())
            case protocol.ReservePort(host):
                return protocol.encode(self._reserve_port(host))
            case protocol.FetchObject(attempt):
                return self._steps.fetch_object(attempt)
            case protocol.StoreObject(attempt):
                self._steps.store_object(attempt, *attached)
        return protocol.encode(None)

    def on_progress(self, done_bytes: int) -> None:
        """Notes how far the step is; raises `Stopped` if it is to end."""
        self.check_stopped()
        if done_bytes != self._done_bytes:
            self._done_bytes, self._progress_at = done_bytes, time.monotonic()

    def note_progress(self) -> None:
        """Notes that something was done, however far the step is."""
        self._progress_at = time.monotonic()

    def note_news(self) -> None:
        """Has the driver hear of news at once."""
        self._news.set()

    def _begin(self, begin: protocol.Begin) -> None:
        """Begins a step, unless that is known; numbers grow."""
        if begin.number == self._number:
            return
        handler = self._handlers.get(begin.step)
        if handler is None:
            raise ProtocolError(f"unknown step {begin.step}")
        what = f"a request to {begin.step}"
        request = protocol.convert(begin.request, handler.step.request, what)
        if self._thread:
            self._thread.join()  # Its result was sent: nothing is left to do.
        self._steps.begin_step()
        self._number, self._step, self._result, self._done_bytes = (
            begin.number,
            handler.step,
            None,
            0,
        )
        self._late_seconds, self._halted = None, False
        self._progress_at = time.monotonic()
        self._news.clear()
        arguments = (handler, request, begin.starts_at)
        self._thread = threading.Thread(target=self._run, args=arguments, daemon=True)
        self._thread.start()

    def _heartbeat(self, known: int, seconds: float) -> Heartbeat:
        self._news.wait(seconds)
        self._news.clear()
        result = self._result  # First: news that came before the end are complete then.
        news: Sequence[object] = ()
        try:
            news = self._steps.news(known)
        except OSError as why:
            # The step's finished work cannot be reported any more, even if it succeeded.
            if result and result.failure is None:
                failed = failure_of(why)
                result = msgspec.structs.replace(
                    result, value=None, failure=failed.failure, reason=failed.reason
                )
        waits = self.barrier.waiting
        if waits:
            self.note_progress()
        return Heartbeat(
            number=self._number,
            done_bytes=self._done_bytes,
            idle_seconds=time.monotonic() - max(self._progress_at, self._steps.last_progress),
            news=tuple(news),
            result=result,
            late_seconds=self._late_seconds,
            barrier=waits,
        )

    def _reserve_port(self, host: str) -> str:
        if self._port is not None:
            self._port.close()
        self._port = core.ReservedPort(host)
        return str(self._port)

    def _run(self, handler: Handler[Any, Any], request: Any, starts_at: float | None) -> None:
        with suppress(PermissionError):
            # Ray gives its processes a low priority (nice 15). Work is done, and measured, at the
            # usual one: this thread's, which those that it starts inherit.
            os.setpriority(os.PRIO_PROCESS, 0, 0)
        began, cpu_seconds = time.monotonic(), process_usage.cpu_seconds()
        try:
            if starts_at is not None:
                self._wait_until(starts_at)
                began = time.monotonic()
                self._late_seconds = began - starts_at
                self.note_progress()
            result = StepResult(handler.do(request, self.on_progress))
        except BaseException as why:
            result = failure_of(why)
        self._result = msgspec.structs.replace(
            result,
            seconds=time.monotonic() - began,
            cpu_seconds=process_usage.cpu_seconds() - cpu_seconds,
            peak_memory_bytes=process_usage.peak_memory_bytes(),
        )
        self._news.set()

    def _wait_until(self, at: float) -> None:
        self.check_stopped()
        while (left := at - time.monotonic()) > 0:
            longest = left - time_limits.WAKE_SECONDS if left > 2 * time_limits.WAKE_SECONDS else 0
            if self._stopping.wait(longest):
                raise Stopped

    def check_stopped(self) -> None:
        if self._stopping.is_set() or self._halted:
            raise Stopped


def failure_of(why: BaseException) -> StepResult[NoReturn]:
    error = "".join(traceback.format_exception(why))
    match why:
        case Stopped():
            return StepResult(failure=Failure.STOPPED, reason="was stopped")
        case core.UsageError():
            return StepResult(failure=Failure.REFUSED, reason=why.why, setting=why.setting)
        case InputUnreadable():
            failure, reason = Failure.INPUT, str(why)
        case InputChanged():
            failure, reason = Failure.CHANGED, str(why)
        case BadInput():
            failure, reason = Failure.BAD_INPUT, str(why)
        case DeterministicError():
            failure, reason = Failure.DETERMINISTIC, str(why)
        case core.RunError():
            # Errors of disks name a file, those of the network do not.
            failure = _disk_failure(why.why) if why.file else Failure.FAILED
            reason = why.why
        case OSError():
            failure = Failure.FULL if why.errno in NO_SPACE else Failure.DISK
            reason = f"{why.filename or ''}: {why.strerror or why}".lstrip(": ")
        case _:
            failure, reason = Failure.FAILED, f"{type(why).__name__}: {why}"
    return StepResult(failure=failure, reason=reason, error=error)


def _disk_failure(why: str) -> Failure:
    """The core puts the error's number at the end of the text."""
    number = re.search(r"\(os error (\d+)\)$", why)
    return Failure.FULL if number and int(number[1]) in NO_SPACE else Failure.DISK
