"""Which files of several nodes are the same one, and how the input is cut into splits.

A path is not enough: it may be another file on each node. Files of several nodes are the same one
if path, inode, size, and the times of the last changes agree to the nanosecond: then the nodes
share a file system, and any of them can read it. Otherwise each node has a file of its own.
"""

import os
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tonnage.run.two_pass.schedule import Split
from tonnage.run.two_pass.sizing import stride


class FileId(NamedTuple):
    """Identifies a file and its version: equal on all nodes that see the same one, unchanged."""

    path: str
    inode: int
    bytes: int
    mtime_ns: int
    ctime_ns: int
    etag: str | None = None
    """An object's version, if the store says."""


def file_id(path: str) -> FileId:
    """Identifies a file of this node; `OSError` if it is not there."""
    about = os.stat(path)
    return FileId(path, about.st_ino, about.st_size, about.st_mtime_ns, about.st_ctime_ns)


def object_id(url: str, size: int, etag: str | None = None) -> FileId:
    return FileId(url, 0, size, 0, 0, etag)


def find_holders(files: Mapping[str, Sequence[FileId]]) -> dict[FileId, tuple[str, ...]]:
    """The nodes that have each file, in the order of paths, given the files of each node."""
    held: dict[FileId, list[str]] = {}
    for node in sorted(files):
        for each in files[node]:
            held.setdefault(each, []).append(node)
    return {each: tuple(held[each]) for each in sorted(held)}


def cut_splits(held: Mapping[FileId, tuple[str, ...]], record_bytes: int) -> list[Split]:
    """Cut files, with the nodes that have each, into splits of whole records that divide evenly."""
    nodes = {node for each in held.values() for node in each}
    length = stride(sum(each.bytes for each in held), len(nodes), record_bytes)
    return [
        Split(each.path, offset, min(length, each.bytes - offset), nodes_of, each.etag, each.bytes)
        for each, nodes_of in held.items()
        for offset in range(0, each.bytes, length)
    ]
