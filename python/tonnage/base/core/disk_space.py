"""Room on devices, asked for before a job starts: a full disk that is foreseen is no failure."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from tonnage.base.core.errors import UsageError


def require_free_space(needs: Iterable[tuple[Path, int]], purpose: str) -> None:
    """Refuses if a device has less room than the bytes wanted in its directories together.

    Args:
        wanted: Directories, each with the bytes wanted there; those that are not there are skipped.
        what: What wants them, for the message.

    Raises:
        UsageError: There is too little room.
    """
    devices: dict[int, tuple[Path, int]] = {}
    for directory, size in needs:
        if directory.is_dir():
            first, sum_of_sizes = devices.get(directory.stat().st_dev, (directory, 0))
            devices[directory.stat().st_dev] = (first, sum_of_sizes + size)
    for directory, size in devices.values():
        about = os.statvfs(directory)
        free = about.f_bavail * about.f_frsize
        if about.f_blocks and free < size:
            raise UsageError(
                f"{directory} has {free} bytes free, {purpose} needs {size} there: free some, or give "
                "a directory elsewhere"
            )
