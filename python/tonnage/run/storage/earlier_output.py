"""Directories with a job's output, as the input of another: only if that output is whole."""

import os
from collections.abc import Sequence
from pathlib import Path

from tonnage.base import core
from tonnage.base.records.base import RecordError, decode
from tonnage.base.records.io import read_regular
from tonnage.run.two_pass.output.manifest import Manifest
from tonnage.run.two_pass.output.names import MANIFEST, UNFINISHED_PREFIX


def manifest_parts(directory: str) -> list[str]:
    """The names of an output's parts, some of which may be elsewhere; none without a manifest."""
    try:
        content = read_regular(Path(directory, MANIFEST))
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as why:
        raise core.UsageError(f"input {why.filename}: {why.strerror}") from why
    try:
        return decode(content, Manifest, Path(directory, MANIFEST)).parts
    except RecordError as why:
        raise core.UsageError(f"input {why}") from why


def refuse_unfinished(directory: str, names: Sequence[str]) -> None:
    """Refuse a directory with these names to which a job is writing, or was when it was killed."""
    if unfinished := [name for name in names if name.startswith(UNFINISHED_PREFIX)]:
        raise core.UsageError(
            f"input {directory} contains unfinished output ({unfinished[0]}); wait for its job, "
            "or run the job again"
        )


def refuse_incomplete(directories: Sequence[str]) -> None:
    """Refuse directories with outputs of which some part is in none of them."""
    for directory in directories:
        for part in manifest_parts(directory):
            if not any(os.path.isfile(os.path.join(each, part)) for each in directories):
                raise core.UsageError(
                    f"input {directory} is an incomplete output: {part} is missing; specify all "
                    "directories that the output was written to"
                )
