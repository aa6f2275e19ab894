"""Names in the output of a cluster, in directories and in folders of object storage."""

import os
import re
from collections.abc import Collection

UNFINISHED_PREFIX = ".tonnage-unfinished-"
MANIFEST = "_tonnage.json"
COPIES = "_copies"
"""The directory, in a node's output, for copies of other nodes' files."""
PART = re.compile(r"part-(\d{5,})(?:-\d{5,})*(?:\.[a-z][a-z0-9]*)*")


def is_part(name: str, only: Collection[int] | None = None, but: Collection[int] = ()) -> bool:
    """Whether it is a partition's file: of these only, if given, and of none of the others."""
    found = PART.fullmatch(name)
    number = int(found[1]) if found else None
    return number is not None and number not in but and (only is None or number in only)


def partition_of(path: str) -> int:
    found = PART.fullmatch(os.path.basename(path))
    assert found, path
    return int(found[1])


def adopted_path(copy: str) -> str:
    """The path of a copy once it is the node's own output."""
    directory, name = os.path.split(copy)
    return os.path.join(os.path.dirname(directory), name)
