"""Names in the output of a cluster, in directories and in object storage: parts, and their folders.

Folders below the output are those of `run sort --partition-by`; replicas are in the same ones.
"""

import os
import re
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from tonnage.run.storage.object_store import HIDDEN

UNFINISHED_PREFIX = ".tonnage-unfinished-"
MANIFEST = "_tonnage.json"
COPIES = "_copies"
"""The directory, in a node's output, for copies of other nodes' files."""
PART = re.compile(r"part-(\d{5,})(?:-\d{5,})*(?:\.[a-z][a-z0-9]*)*")


def is_part(name: str, only: Collection[int] | None = None, but: Collection[int] = ()) -> bool:
    """Whether it is a partition's file: of these only, if given, and of none of the others."""
    found = PART.fullmatch(os.path.basename(name))
    number = int(found[1]) if found else None
    return number is not None and number not in but and (only is None or number in only)


def partition_of(path: str) -> int:
    found = PART.fullmatch(os.path.basename(path))
    assert found, path
    return int(found[1])


def adopted_path(copy: str) -> str:
    """The path of a copy once it is the node's own output."""
    output, _, name = copy.rpartition(f"/{COPIES}/")
    return os.path.join(output, name)


def name_below(path: str, outputs: Iterable[str]) -> str:
    """The name, with its folders, of a file below one of these outputs; a copy's is the same."""
    whole = os.path.normpath(path)
    above = (os.path.normpath(each) + os.sep for each in outputs)
    output = max((each for each in above if whole.startswith(each)), key=len)
    return whole.removeprefix(output).removeprefix(f"{COPIES}/")


def part_files(directory: Path) -> Iterator[Path]:
    """The files of partitions in a directory and its folders, unfinished ones, too; no copies."""
    for place, names in _places(directory):
        yield from (place / name for name in names if is_part(name))


def remove_empty_folders(directory: Path) -> None:
    """Removes what folders of a directory have no files any more."""
    for place, _ in reversed([*_places(directory)][1:]):
        with suppress(OSError):
            place.rmdir()


def _places(directory: Path) -> Iterator[tuple[Path, list[str]]]:
    for place, folders, names in os.walk(directory):
        folders[:] = [each for each in folders if not each.startswith(HIDDEN)]
        yield Path(place), names
