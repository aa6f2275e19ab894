"""A resumable measurement directory: each trial is written as soon as it is done.

A directory holds ``begun.json`` (the measurement without its trials), ``trial-NNNNN.json`` in the
order of the trials, and ``measurement.json`` once all are done. A command that was killed resumes
after the last trial on file. Measurements that belong together, such as those of several layouts,
have a directory each in a parent directory that holds nothing else.
"""

import fcntl
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from msgspec import structs

from tonnage.base import core
from tonnage.base.clock import utc_now
from tonnage.base.credibility import NOT_PROVED, scorecard
from tonnage.base.records import Environment, Measurement, Summary, Trial
from tonnage.base.records.find_measurements import BEGUN, WHOLE
from tonnage.measure.trial.trial import new_id, summaries


class MeasurementSession:
    def __init__(self, out: Path, header: Measurement) -> None:
        self._out, self.header = out, header
        self.trials: list[Trial] = []
        while (path := self._path(len(self.trials))).exists():
            self.trials.append(Trial.read(path))

    def start(self, environment: Environment | None = None) -> None:
        """Write the header unless it is on file, with ``environment`` if more is known by now."""
        if not (path := self._out / BEGUN).exists():
            if environment:
                self.header = structs.replace(self.header, environment=environment)
            self.header.write(path)

    def add(self, trial: Trial) -> Trial:
        self.start()
        trial.write(self._path(len(self.trials)))
        self.trials.append(trial)
        return trial

    def finish(self, overall: Sequence[Summary] = (), page_cache: str | None = None) -> Measurement:
        """Write the measurement; ``overall`` are summaries beyond those of each kind of trial."""
        self.start()
        measurement = structs.replace(
            self.header,
            trials=self.trials,
            figures=[*overall, *summaries(self.trials)],
            page_cache="; ".join([page_cache or self.header.page_cache, *self._unproved()]),
        )
        measurement = structs.replace(measurement, scorecard=scorecard([measurement]))
        measurement.write(self._out / WHOLE)
        return measurement

    def _unproved(self) -> list[str]:
        details = [trial.reading.details for trial in self.trials if trial.reading]
        reasons = dict.fromkeys(each[NOT_PROVED] for each in details if NOT_PROVED in each)
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
    """Start a measurement in ``out``, or resume it; `UsageError` if it is another one."""
    settings = _as_json(settings)
    with locked_dir(out):
        path = out / BEGUN
        if path.exists():
            header = Measurement.read(path)
            _require_same_measurement(out, header, kind, settings, environment)
        else:
            _require_nothing_else(out)
            header = Measurement(
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
        yield MeasurementSession(out, header)


@contextmanager
def locked_parent_dir(out: Path, children: Sequence[str]) -> Iterator[None]:
    """Lock ``out``, which holds only ``children``, directories for `open_session`."""
    with locked_dir(out):
        _require_nothing_else(out, children)
        yield


def require_same_settings(out: Path, recorded: dict[str, Any], settings: dict[str, Any]) -> None:
    for name in settings | recorded:
        before, now = recorded.get(name), settings.get(name)
        if before != now:
            raise core.UsageError(
                f"{out} was started with {name}={before}, not {now}; use the original value to "
                "resume, or choose another output directory",
                setting=name,
            )


@contextmanager
def locked_dir(out: Path) -> Iterator[int]:
    """Create and lock ``out``, or raise `UsageError`; a child may inherit the lock."""
    out.mkdir(parents=True, exist_ok=True)
    handle = os.open(out, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield handle
    except BlockingIOError:
        raise core.UsageError(
            f"another command is writing to {out}; wait until it ends, or choose another directory",
            setting="output",
        ) from None
    finally:
        with suppress(OSError):
            out.rmdir()  # Empty if it was refused, or ended before the first trial.
        os.close(handle)


def _require_nothing_else(out: Path, children: Sequence[str] = ()) -> None:
    """Raise `UsageError` unless ``out`` holds only ``children`` and partly written files."""
    unfinished = tuple(f".{name}." for name in (*children, BEGUN))
    for path in sorted(out.iterdir()):
        if path.name not in children and not path.name.startswith(unfinished):
            raise core.UsageError(
                f"{out} contains other files ({path.name}); choose another directory",
                setting="output",
            )


def _require_same_measurement(
    out: Path, header: Measurement, kind: str, settings: dict[str, Any], environment: Environment
) -> None:
    if header.kind != kind:
        raise core.UsageError(
            f"{out} contains a measurement of kind {header.kind}; choose another directory",
            setting="output",
        )
    require_same_settings(out, header.settings, settings)
    if header.environment and header.environment.host != environment.host:
        raise core.UsageError(
            f"{out} contains trials of machine {header.environment.host}, but this machine is "
            f"{environment.host}; choose another directory",
            setting="output",
        )


def _as_json(values: dict[str, Any]) -> dict[str, Any]:
    """The values as JSON returns them: lists for tuples."""
    return {
        name: list(value) if isinstance(value, tuple) else value for name, value in values.items()
    }
