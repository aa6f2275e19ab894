"""The files that jobs of runs are written to."""

from pathlib import Path

from tonnage.base import core

JOB_SUFFIX = ".json"


def refuse_other_suffix(out: Path | None) -> None:
    if out and out.suffix != JOB_SUFFIX:
        raise core.UsageError(
            f"--output {out}: the job of a run is a file; use a name that ends in {JOB_SUFFIX}"
        )
