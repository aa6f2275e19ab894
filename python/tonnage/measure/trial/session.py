"""Trials on file: each is written when it is done, so what was killed goes on where it stopped.

A directory holds ``begun.json`` (the measurement without its trials), ``trial-NNNNN.json`` in the
order in which they were done, and ``measurement.json`` once all are. Measurements that belong
together have a directory each in one that holds nothing else.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from msgspec import structs

from tonnage.base import core
from tonnage.base.credibility import NOT_PROVED, scorecard
from tonnage.base.records import Environment, Measurement, Summary, Trial
from tonnage.base.records.discovery import BEGUN, WHOLE
from tonnage.measure.trial.trial import new_id, summaries, utc_now

FLAGS = {
    "directory": "--dir",
    "read": "--dir",
    "write": "--dir",
    "operations": "--operation",
    "modes": "--mode",
    "layouts": "--layout",
    "devices": "DEVICE",
    "made_by": "--file-system",
    "bucket": "s3://BUCKET/PREFIX",
    "prefix": "s3://BUCKET/PREFIX",
    "file_bytes": "--file-size",
    "object_bytes": "--object-size",
    "rate_bits_per_second": "--rate",
    "explore_seconds": "--seconds",
    "blocking": "--engine",
    "batched": "--submission",
    "workers": "--processes",
    "direct": "--buffered",
    "rounds": "--repetitions",
    "outstanding": "--queue-depth",
    "chunk_bytes": "--chunk-size",
    "threads": "--requests",
    "endpoint": "--endpoint-url",
}
"""What says a setting on the command line, where that is not its own name."""


class MeasurementSession:
    """A measurement's directory, held by one command at a time; made by `kept`."""

    def __init__(self, out: Path, begun: Measurement) -> None:
        self._out, self.header = out, begun
        self.trials: list[Trial] = []
        while (path := self._path(len(self.trials))).exists():
            self.trials.append(Trial.read(path))

    def start(self, environment: Environment | None = None) -> None:
        """Writes what was begun, if nobody has: from now on a command goes on with it.

        ``environment`` is where, if more of it is known by now than when `kept` was entered.
        """
        if not (begun := self._out / BEGUN).exists():
            if environment:
                self.header = structs.replace(self.header, environment=environment)
            self.header.write(begun)

    def add(self, trial: Trial) -> Trial:
        """Writes the next trial; the first has what was begun written before it."""
        self.start()
        trial.write(self._path(len(self.trials)))
        self.trials.append(trial)
        return trial

    def finish(self, overall: Sequence[Summary] = (), page_cache: str | None = None) -> Measurement:
        """Writes the measurement with all its trials, of which there may be none.

        Args:
            of_all: Figures beyond those of each kind of trial.
            page_cache: What was found of it, if it was not known when `kept` was entered.
        """
        self.start()
        done = structs.replace(
            self.header,
            trials=self.trials,
            figures=[*overall, *summaries(self.trials)],
            page_cache="; ".join([page_cache or self.header.page_cache, *self._not_proved()]),
        )
        done = structs.replace(done, scorecard=scorecard([done]))
        done.write(self._out / WHOLE)
        return done

    def _not_proved(self) -> list[str]:
        """Why of some trials it is not proved that no cache was in the way."""
        readings = [trial.reading for trial in self.trials if trial.reading]
        reasons = dict.fromkeys(
            reading.details[NOT_PROVED] for reading in readings if NOT_PROVED in reading.details
        )
        return [f"not proved: {reason}" for reason in reasons]

    def _path(self, number: int) -> Path:
        return self._out / f"trial-{number:05}.json"


@contextmanager
def open_session(
    out: Path,
    kind: str,
    settings: dict[str, Any],
    *,
    command: list[str],
    environment: Environment,
    stopping_rule: str,
    page_cache: str,
) -> Iterator[MeasurementSession]:
    """The directory ``out``, with what an earlier command of the same settings left in it.

    Raises:
        UsageError: It holds another measurement, or one of another machine, or is in use.
    """
    settings = _plain(settings)
    with locked_dir(out):
        path = out / BEGUN
        if path.exists():
            begun = Measurement.read(path)
            _refuse_other(out, begun, kind, settings, environment)
        else:
            _refuse_else(out)
            begun = Measurement(
                id=new_id(kind),
                kind=kind,
                began_at=utc_now(),
                command=command,
                environment=environment,
                settings=settings,
                stopping_rule=stopping_rule,
                page_cache=page_cache,
                trials=[],
            )
        yield MeasurementSession(out, begun)


@contextmanager
def locked_parent_dir(out: Path, parts: Sequence[str]) -> Iterator[None]:
    """The directory ``out``, each of whose ``parts`` is one for `kept`.

    Raises:
        UsageError: It holds something else, or is in use.
    """
    with locked_dir(out):
        _refuse_else(out, parts)
        yield


def _refuse_else(out: Path, parts: Sequence[str] = ()) -> None:
    """Refuses what holds more than ``parts``, but for what was killed while it was written."""
    unfinished = tuple(f".{name}." for name in (*parts, BEGUN))
    for each in sorted(out.iterdir()):
        if each.name not in parts and not each.name.startswith(unfinished):
            raise core.UsageError(
                f"--output {out} holds something else ({each.name}): give another directory"
            )


def _refuse_other(
    out: Path, begun: Measurement, kind: str, settings: dict[str, Any], here: Environment
) -> None:
    if begun.kind != kind:
        raise core.UsageError(
            f"--output {out} holds a measurement of {begun.kind}: give another directory"
        )
    require_same_settings(out, begun.settings, settings)
    if begun.environment and begun.environment.host != here.host:
        raise core.UsageError(
            f"--output {out} holds trials of the machine {begun.environment.host}, this is "
            f"{here.host}: give another directory"
        )


def require_same_settings(out: Path, begun: dict[str, Any], settings: dict[str, Any]) -> None:
    """Refuses settings that differ from those with which ``out`` was begun."""
    for name in settings | begun:
        was, wanted = begun.get(name), settings.get(name)
        if was != wanted:
            raise core.UsageError(
                f"--output {out} was begun with {name} {was}, not {wanted}: give the same "
                f"{flag_of(name)} to go on with it, or another directory"
            )


def flag_of(setting: str) -> str:
    """What says a setting on the command line."""
    own = setting.removesuffix("_bytes").removesuffix("_seconds")
    return FLAGS.get(setting) or f"--{own.replace('_', '-')}"


def _plain(values: dict[str, Any]) -> dict[str, Any]:
    """As JSON gives it back."""
    return {
        name: list(value) if isinstance(value, tuple) else value for name, value in values.items()
    }


@contextmanager
def locked_dir(out: Path) -> Iterator[int]:
    """The directory ``out``, made if it is not there; whoever has this descriptor holds it.

    Raises:
        UsageError: Another command does.
    """
    out.mkdir(parents=True, exist_ok=True)
    handle = os.open(out, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield handle
    except BlockingIOError:
        raise core.UsageError(
            f"--output {out}: another command writes there: wait for it, or give another directory"
        ) from None
    finally:
        with suppress(OSError):
            out.rmdir()  # What was refused, or ended before its first trial, leaves nothing.
        os.close(handle)
