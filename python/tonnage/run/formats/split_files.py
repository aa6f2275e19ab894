"""Split a large file into several of whole rows, so that workers get equal shares.

MATE-EC2 lays data out in a multiple of the workers ("Data Organization"). A file is cut as for an
index, into chunks that are much smaller than a part; adjacent chunks make a part, as even as chunks
allow. The directory gets all parts, or does not appear.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import pyarrow as pa

from tonnage.base import core
from tonnage.base.records import fsync_directory
from tonnage.run.formats import ChunkFormat, detect_chunk_format
from tonnage.run.formats.format import Chunk
from tonnage.run.storage.object_store import is_url
from tonnage.run.storage.sources import InputFile, Sources

PIECES = 64
"""Chunks of a part: its size is off by at most half of one if the format can be cut anywhere."""
UNFINISHED = ".tonnage-split-"
"""Begins the name of a directory whose parts are incomplete. The next split removes it if no
process writes to it."""
PART_BYTES = 256 << 20
"""The longest part if the number of workers is given."""


@dataclass(frozen=True)
class Part:
    """A file that was written; ``rows`` is ``None`` if counting them takes reading them."""

    name: str
    bytes: int
    rows: int | None


def parts_for(workers: int, total: int) -> int:
    """How many parts to make of ``total`` bytes: the smallest multiple of the workers."""
    return workers * max(-(-total // (workers * PART_BYTES)), 1)


def group_chunks(chunks: Sequence[Chunk], parts: int) -> list[Sequence[Chunk]]:
    """Group adjacent chunks into parts of about the same size, each of one chunk at least."""
    if not 0 < parts <= len(chunks):
        raise ValueError(f"{len(chunks)} chunks cannot be divided into {parts} parts")
    total, moved, begin = sum(chunk.bytes for chunk in chunks), 0, 0
    groups = []
    for number in range(1, parts + 1):
        end, last = begin + 1, len(chunks) - (parts - number)
        moved += chunks[begin].bytes
        # A chunk belongs to the part that its middle is in.
        while end < last and (moved + chunks[end].bytes / 2) * parts <= total * number:
            moved += chunks[end].bytes
            end += 1
        groups.append(chunks[begin:end])
        begin = end
    return groups


def split(
    file: InputFile,
    output: Path,
    parts: int,
    sources: Sources,
    format: str | None = None,
    dtype: str | None = None,
    on_progress: Callable[[int], None] = lambda _: None,
) -> tuple[ChunkFormat, list[Part]]:
    """Write a file as several; gives its format and the parts.

    ``output`` is a new or empty directory; ``on_progress`` gets the bytes of each written piece.
    `UsageError` if the file cannot be cut into so many parts, or the directory is in use or its
    device full; `RunError` if the file changes, or cannot be read or written.
    """
    of = detect_chunk_format([file], format, dtype, sources)
    chunks = list(of.chunks(0, file, max(file.bytes // (parts * PIECES), 1), sources))
    if len(chunks) < parts:
        raise core.UsageError(
            f"{file.name} can be split into at most {len(chunks)} parts, at row, row-group or "
            "batch boundaries; use fewer parts",
            setting="parts",
        )
    try:
        if output.exists() and (not output.is_dir() or any(output.iterdir())):
            raise core.UsageError(f"{output} already exists; use a new directory", setting="output")
        output.parent.mkdir(parents=True, exist_ok=True)
    except OSError as why:
        raise core.UsageError(
            f"{output}: {why.strerror}; use another directory", setting="output"
        ) from why
    with core.workspace("output", output.absolute().parent, UNFINISHED) as room:
        core.require_free_space([(room, file.bytes)], "the output")
        try:
            written = _written(group_chunks(chunks, parts), of, file, room, sources, on_progress)
            _refuse_changed(file, sources)
            fsync_directory(room)
            room.rename(output)
            fsync_directory(output.absolute().parent)
        except (OSError, pa.ArrowException) as why:
            error = getattr(why, "strerror", None) or why
            message = f"splitting {file.name} into {output}: {error}"
            raise core.RunError(message, "split", file.name) from why
    return of, written


def _written(
    groups: Sequence[Sequence[Chunk]],
    of: ChunkFormat,
    file: InputFile,
    room: Path,
    sources: Sources,
    on_progress: Callable[[int], None],
) -> list[Part]:
    suffix = PurePosixPath(file.name).suffix
    written = []
    for number, group in enumerate(groups):
        path = room / f"part-{number:05}{suffix}"
        with path.open("wb") as into:
            of.write_chunks(group, file, sources, into, on_progress)
            into.flush()
            os.fsync(into.fileno())
        counts = [chunk.rows for chunk in group]
        rows = None if None in counts else sum(count or 0 for count in counts)
        written.append(Part(path.name, path.stat().st_size, rows))
    return written


def _refuse_changed(file: InputFile, sources: Sources) -> None:
    """Refuse a file that has changed; requests for an object demand its etag."""
    if not is_url(file.name) and list(sources.find(file.name)) != [file]:
        raise core.RunError("the file was changed while it was read", "read", file.name)
