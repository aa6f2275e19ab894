"""A reduction's own directory, ``--job-dir``: all that its driver knows; the same command goes on.

::

    job.json             settings
    plan.json            the files as they were seen, with who has them
    index.parquet        their chunks
    reduction.pickle     what is done with them, made of sampled rows if it is
    round.pickle         how many rounds were done, and what the last has finished with
    reduction.json       the record, when all is done

Each is written whole or not at all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tonnage.base.records import write_atomically
from tonnage.run.two_pass.job_dir import JOB, PLAN, LockedDir, locked_job_dir

INDEX, REDUCTION, ROUND, RECORD = (
    "index.parquet",
    "reduction.pickle",
    "round.pickle",
    "reduction.json",
)


class ReduceJobDir(LockedDir):
    """The directory, held by one command at a time; made by `reduce_home`."""

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

    def forget(self) -> None:
        """Has nothing begun: what was refused leaves nothing behind."""
        for name in (ROUND, REDUCTION, INDEX, PLAN, JOB):
            (self._out / name).unlink(missing_ok=True)


@contextmanager
def open_job_dir(out: Path, settings: Mapping[str, Any]) -> Iterator[ReduceJobDir]:
    """The directory ``out``, with what an earlier command of the same settings left in it.

    Raises:
        UsageError: It holds something else, was begun with other settings, or is in use.
    """
    with locked_job_dir(out, settings, [PLAN, INDEX, REDUCTION, ROUND, RECORD]) as job:
        yield ReduceJobDir(out, job)
