"""Which files of several machines are the same one, and how the input is cut into splits. Pure.

A path says nothing: on each machine it may be another file. A file is the same one on several
machines if path, inode, size, and the times of its last changes agree to the nanosecond: they have
it from one file system, and any of them may read it. Otherwise it is the one machine's own.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tonnage.run.two_pass.schedule import Split
from tonnage.run.two_pass.sizing import stride


class FileId(NamedTuple):
    """A file as a machine sees it; equal where it is the same one, as it was."""

    path: str
    inode: int
    bytes: int
    mtime_ns: int
    ctime_ns: int
    etag: str | None = None
    """What tells an object from any other of its name, if the store says."""


def file_id(path: str) -> FileId:
    """What this machine sees of a file.

    Raises:
        OSError: It is not there.
    """
    about = os.stat(path)
    return FileId(path, about.st_ino, about.st_size, about.st_mtime_ns, about.st_ctime_ns)


def object_id(url: str, size: int, etag: str | None = None) -> FileId:
    """An object, which all machines see alike."""
    return FileId(url, 0, size, 0, 0, etag)


def find_holders(files: Mapping[str, Sequence[FileId]]) -> dict[FileId, tuple[str, ...]]:
    """Who has each file, in the order of paths.

    Args:
        files: Of each node.
    """
    held: dict[FileId, list[str]] = {}
    for node in sorted(files):
        for each in files[node]:
            held.setdefault(each, []).append(node)
    return {each: tuple(held[each]) for each in sorted(held)}


def cut_splits(held: Mapping[FileId, tuple[str, ...]], record_bytes: int) -> list[Split]:
    """Cuts files at records into splits that are small enough to be shared out evenly.

    Args:
        held: As `holders` gives it; sizes are multiples of the record's.
        record_bytes: Size of a record.
    """
    nodes = {node for each in held.values() for node in each}
    length = stride(sum(each.bytes for each in held), len(nodes), record_bytes)
    return [
        Split(each.path, offset, min(length, each.bytes - offset), nodes_of, each.etag)
        for each, nodes_of in held.items()
        for offset in range(0, each.bytes, length)
    ]
