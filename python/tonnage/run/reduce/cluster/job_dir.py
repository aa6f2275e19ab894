"""The job directory of a reduction: the driver's state, from which the same command resumes.

::

    job.json             settings
    plan.json            the files as they were found, with the nodes that have them
    index.parquet        their chunks
    sample.msgpack       the sampled rows that the reduction is made of, if it is
    round.msgpack        the number of rounds done, the last one's result, whether it was the last
    reduction.json       the record, at the end

Each is written atomically. Nothing that is read back can run code (`round_state`).
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tonnage.base import core
from tonnage.base.records import write_atomically
from tonnage.run.reduce.cluster.round_state import NotStorable, RoundStateCodec
from tonnage.run.two_pass.job_dir import JOB, PLAN, LockedDir, locked_job_dir
from tonnage.run.two_pass.job_dir.schemas import InputFiles

INDEX, SAMPLE, ROUND, RECORD = (
    "index.parquet",
    "sample.msgpack",
    "round.msgpack",
    "reduction.json",
)


class ReduceJobDir(LockedDir):
    PLAN_FILE = InputFiles

    @property
    def record(self) -> Path:
        return self._out / RECORD

    def read(self, name: str) -> bytes | None:
        path = self._out / name
        return path.read_bytes() if path.exists() else None

    def write(self, name: str, content: bytes) -> None:
        write_atomically(self._out / name, content)

    def read_state(self, name: str, codec: RoundStateCodec) -> Any:
        """The value stored by this name, if any; `UsageError` if it is damaged or another job's."""
        content = self.read(name)
        if content is None:
            return None
        try:
            value = codec.decode(content)
            if name == ROUND:
                rounds, _, over = value
                if type(rounds) is not int or rounds < 1 or type(over) is not bool:
                    raise ValueError("the file contains no valid round state")
        except (ValueError, TypeError) as why:
            raise core.UsageError(
                f"{self._out / name}: {why}; use another directory", setting="job_dir"
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
        """Remove everything, since a job that was refused leaves nothing."""
        for name in (ROUND, SAMPLE, INDEX, PLAN, JOB):
            (self._out / name).unlink(missing_ok=True)


@contextmanager
def open_job_dir(out: Path, settings: Mapping[str, Any]) -> Iterator[ReduceJobDir]:
    """Lock a job directory; `UsageError` if it is in use, of other settings, or something else."""
    with locked_job_dir(out, settings, [PLAN, INDEX, SAMPLE, ROUND, RECORD]) as job:
        yield ReduceJobDir(out, job)
