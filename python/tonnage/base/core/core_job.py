"""Run jobs of the compiled core, and cancel them on Ctrl-C.

The core's threads move the bytes. This thread polls twenty times a second; on an interrupt or any
other exception it cancels the job and waits until it has cleaned up.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any

import msgspec

from tonnage import _core
from tonnage.base.core.errors import Cancelled, RunError, UsageError

GateClosed = _core.GateClosed
HostInput = _core.HostInput
HostOutput = _core.HostOutput
Retrieval = _core.Retrieval

POLL_SECONDS = 0.05

OnProgress = Callable[[int], None]
"""Called periodically with the bytes done so far."""


def offset_progress(done: int, on_progress: OnProgress | None) -> OnProgress | None:
    """The callback for a job that starts after ``done`` bytes of earlier work."""
    return (lambda moved: on_progress(done + moved)) if on_progress else None


def run(name: str, config: dict[str, Any], on_progress: OnProgress | None = None) -> dict[str, Any]:
    """Run the core's job ``name``; `UsageError` before anything is started, `RunError` later."""
    job = None
    try:
        # A signal just after the start loses the job, which then ends by itself.
        job = _core.Job(name, _as_json(config))
        while not job.wait(POLL_SECONDS):
            if on_progress:
                on_progress(job.done_bytes())
    except BaseException:
        if job is not None:
            _end(job)
        raise
    outcome: dict[str, Any] = json.loads(job.result())
    return outcome


class BackgroundJob:
    """A job that runs while this thread does something else, until the context ends.

    An exception cancels it. Its failure closes its gate (`GateClosed`) and is raised at the end.
    """

    def __init__(
        self, name: str, config: dict[str, Any], gate: HostInput | HostOutput | Retrieval
    ) -> None:
        self._job = _core.Job(name, _as_json(config), gate)
        self.outcome: dict[str, Any] = {}

    def __enter__(self) -> BackgroundJob:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, why: BaseException | None, _: TracebackType | None
    ) -> None:
        if not (why is None or isinstance(why, GateClosed)):
            _end(self._job)
            return
        try:
            while not self._job.wait(POLL_SECONDS):
                pass
        except BaseException:
            _end(self._job)
            raise
        self.outcome = json.loads(self._job.result())

    def done_bytes(self) -> int:
        """Bytes that the job's last stage has processed so far."""
        return self._job.done_bytes()


def plan(config: dict[str, Any]) -> dict[str, Any]:
    """How the core would divide memory for a sort; raises `UsageError` if it is too small."""
    # Plans ask some thousand times, and this is several times as fast as the standard library.
    asked = msgspec.json.encode(config).decode()
    planned: dict[str, Any] = msgspec.json.decode(_core.plan(asked))
    return planned


def _end(job: _core.Job) -> None:
    """Cancel a job and ignore its own error: the exception under way says more."""
    job.cancel()
    with suppress(Cancelled, RunError, UsageError):
        job.result()


def _as_json(config: dict[str, Any]) -> str:
    text = json.dumps(config, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError as why:
        path = repr(os.fsencode(next(filter(_has_surrogates, _texts(config)), "")))[1:]
        raise UsageError(f"the path {path} is not UTF-8; rename it") from why
    return text


def _texts(config: Any) -> Iterator[str]:
    """All values of a configuration that are text."""
    if isinstance(config, str):
        yield config
    elif isinstance(config, Mapping):
        yield from _texts([*config.values()])
    elif isinstance(config, Sequence):
        for each in config:
            yield from _texts(each)


def _has_surrogates(text: str) -> bool:
    """Whether Python kept bytes of a file name in it, which are no UTF-8."""
    return any("\ud800" <= character <= "\udfff" for character in text)
