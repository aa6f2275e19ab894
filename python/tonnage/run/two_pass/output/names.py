"""What a fleet's output is called, in directories and in folders of object storage. Pure."""

from __future__ import annotations

import os
import re
from collections.abc import Collection

UNFINISHED_PREFIX = ".tonnage-unfinished-"
MANIFEST = "_tonnage.json"
COPIES = "_copies"
"""The directory, in a machine's output, for copies of others'."""
PART = re.compile(r"part-(\d{5,})(?:-\d{5,})*(?:\.[a-z]+)*")


def is_part(name: str, only: Collection[int] | None = None, but: Collection[int] = ()) -> bool:
    """Whether it is a file of these partitions; ``only`` of those, if it is there."""
    found = PART.fullmatch(name)
    number = int(found[1]) if found else None
    return number is not None and number not in but and (only is None or number in only)


def partition_of(path: str) -> int:
    """The partition that a file is of."""
    found = PART.fullmatch(os.path.basename(path))
    assert found, path
    return int(found[1])


def adopted_path(copy: str) -> str:
    """What a copy is called when it is the machine's own output."""
    directory, name = os.path.split(copy)
    return os.path.join(os.path.dirname(directory), name)
