"""A reduction's own directory, ``--job-dir``: all that its driver knows; the same command goes on.

::

    job.json             settings
    plan.json            the files as they were seen, with who has them
    index.parquet        their chunks
    sample.msgpack       the sampled rows that the reduction is made of, if it is
    round.msgpack        how many rounds were done, the last one's result, whether that was all
    reduction.json       the record, when all is done

Each is written whole or not at all. Nothing that is read back can run code (`round_state`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tonnage.base import core
from tonnage.base.records import write_atomically
from tonnage.run.reduce.cluster.round_state import NotStorable, RoundStateCodec
from tonnage.run.two_pass.job_dir import JOB, PLAN, LockedDir, locked_job_dir
from tonnage.run.two_pass.job_files import InputFiles

INDEX, SAMPLE, ROUND, RECORD = (
    "index.parquet",
    "sample.msgpack",
    "round.msgpack",
    "reduction.json",
)


class ReduceJobDir(LockedDir):
    """The directory, held by one command at a time; made by `open_job_dir`."""

    PLAN_FILE = InputFiles

    @property
    def record(self) -> Path:
        """Where the record is."""
        return self._out / RECORD

    def read(self, name: str) -> bytes | None:
        """What is kept by this name; ``None`` if nothing is."""
        path = self._out / name
        return path.read_bytes() if path.exists() else None

    def write(self, name: str, content: bytes) -> None:
        """Keeps it."""
        write_atomically(self._out / name, content)

    def read_state(self, name: str, codec: RoundStateCodec) -> Any:
        """Read the value that is stored by this name; ``None`` if there is none.

        Raises:
            UsageError: The file is damaged, or of another job.
        """
        content = self.read(name)
        if content is None:
            return None
        try:
            value = codec.decode(content)
            if name == ROUND:
                rounds, _, over = value
                if type(rounds) is not int or rounds < 1 or type(over) is not bool:
                    raise ValueError("it is not of a round")
        except (ValueError, TypeError) as why:
            raise core.UsageError(
                f"{self._out / name}: {why}: give another directory", setting="job_dir"
            ) from why
        return value

    def write_state(self, name: str, codec: RoundStateCodec, value: Any) -> None:
        """Store a value, unless it cannot be stored."""
        try:
            content = codec.encode(value)
        except NotStorable:
            (self._out / name).unlink(missing_ok=True)
        else:
            self.write(name, content)

    def forget(self) -> None:
        """Has nothing begun: what was refused leaves nothing behind."""
        for name in (ROUND, SAMPLE, INDEX, PLAN, JOB):
            (self._out / name).unlink(missing_ok=True)


@contextmanager
def open_job_dir(out: Path, settings: Mapping[str, Any]) -> Iterator[ReduceJobDir]:
    """The directory ``out``, with what an earlier command of the same settings left in it.

    Raises:
        UsageError: It holds something else, was begun with other settings, or is in use.
    """
    with locked_job_dir(out, settings, [PLAN, INDEX, SAMPLE, ROUND, RECORD]) as job:
        yield ReduceJobDir(out, job)
