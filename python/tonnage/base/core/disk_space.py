"""Check free disk space before a job starts, so that a full disk stops it early."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from tonnage.base.core.errors import UsageError


def require_free_space(needs: Iterable[tuple[Path, int]], purpose: str) -> None:
    """Raise `UsageError` if a device has less free space than its directories need together.

    ``needs`` pairs directories with bytes; directories that do not exist are skipped.
    """
    devices: dict[int, tuple[Path, int]] = {}
    for directory, size in needs:
        if directory.is_dir():
            first, sum_of_sizes = devices.get(directory.stat().st_dev, (directory, 0))
            devices[directory.stat().st_dev] = (first, sum_of_sizes + size)
    for directory, size in devices.values():
        status = os.statvfs(directory)
        free = status.f_bavail * status.f_frsize
        if status.f_blocks and free < size:
            raise UsageError(
                f"{directory} has {free} bytes free, {purpose} needs {size}: free some space or "
                "choose another directory"
            )
