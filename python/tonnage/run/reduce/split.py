"""A large file as several, of whole rows, so that workers come out even.

MATE-EC2 lays data out as a multiple of the workers ("Data Organization"). A file is cut as for an
index, in pieces that are much shorter than a part; those that follow one another are a part, as
even as pieces allow. All parts are in the directory, or none.
"""

from __future__ import annotations

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
"""Of a part: it is off by half of one at most, unless the format cuts in few places only."""
UNFINISHED = ".tonnage-split-"
"""What a directory's name begins with whose parts are not all there; the next split removes it, if
nobody writes to it any more."""
PART_BYTES = 256 << 20
"""The longest part, where it is said for how many workers they are."""


@dataclass(frozen=True)
class Part:
    """A file that was written.

    Attributes:
        name: Its name.
        bytes: Its length.
        rows: How many it has; ``None`` where that takes reading them.
    """

    name: str
    bytes: int
    rows: int | None


def parts_for(workers: int, total: int) -> int:
    """How many parts: the smallest multiple of the workers of which none is too long.

    Args:
        workers: How many there are.
        total: Bytes of the file.
    """
    return workers * max(-(-total // (workers * PART_BYTES)), 1)


def group_chunks(chunks: Sequence[Chunk], parts: int) -> list[Sequence[Chunk]]:
    """Chunks that follow one another in so many groups, of about the same bytes, none empty.

    Raises:
        ValueError: There are fewer chunks.
    """
    if not 0 < parts <= len(chunks):
        raise ValueError(f"{len(chunks)} chunks are no {parts} parts")
    total, moved, begin = sum(chunk.bytes for chunk in chunks), 0, 0
    groups = []
    for number in range(1, parts + 1):
        end, last = begin + 1, len(chunks) - (parts - number)
        moved += chunks[begin].bytes
        # A chunk goes where its middle is.
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
    moved: Callable[[int], None] = lambda _: None,
) -> tuple[ChunkFormat, list[Part]]:
    """Writes a file as several, and gives its format and what was written.

    Args:
        file: Which; it stays as it is.
        output: A directory that is not there yet, or empty.
        parts: How many.
        sources: What opens the file.
        format: What it is; by default by its name.
        dtype: What a row is, of rows of a size.
        moved: Called with bytes of the file that are written, again and again.

    Raises:
        UsageError: It is none of its format, or cannot be cut in so many parts; or the directory is in
            use, or its device has no room.
        RunError: It cannot be read or written, or was changed meanwhile.
    """
    of = detect_chunk_format([file], format, dtype, sources)
    chunks = list(of.cut(0, file, max(file.bytes // (parts * PIECES), 1), sources))
    if len(chunks) < parts:
        raise core.UsageError(
            f"--parts {parts}: {file.name} can be cut in {len(chunks)} at most, where its rows, "
            "row groups or batches begin: give fewer"
        )
    try:
        if output.exists() and (not output.is_dir() or any(output.iterdir())):
            raise core.UsageError(f"--output {output}: it is there already: give a new directory")
        output.parent.mkdir(parents=True, exist_ok=True)
    except OSError as why:
        raise core.UsageError(f"--output {output}: {why.strerror}: give another directory") from why
    with core.workspace("output", output.absolute().parent, UNFINISHED) as room:
        core.require_free_space([(room, file.bytes)], "the output")
        try:
            written = _written(group_chunks(chunks, parts), of, file, room, sources, moved)
            _refuse_changed(file, sources)
            fsync_directory(room)
            room.rename(output)
            fsync_directory(output.absolute().parent)
        except (OSError, pa.ArrowException) as why:
            said = f"splitting {file.name} into {output}: {getattr(why, 'strerror', None) or why}"
            raise core.RunError(said, "split", file.name, None) from why
    return of, written


def _written(
    groups: Sequence[Sequence[Chunk]],
    of: ChunkFormat,
    file: InputFile,
    room: Path,
    sources: Sources,
    moved: Callable[[int], None],
) -> list[Part]:
    """Writes a part for each group of chunks, into a directory."""
    suffix = PurePosixPath(file.name).suffix
    written = []
    for number, group in enumerate(groups):
        path = room / f"part-{number:05}{suffix}"
        with path.open("wb") as into:
            of.write_chunks(group, file, sources, into, moved)
            into.flush()
            os.fsync(into.fileno())
        counts = [chunk.rows for chunk in group]
        rows = None if None in counts else sum(count or 0 for count in counts)
        written.append(Part(path.name, path.stat().st_size, rows))
    return written


def _refuse_changed(file: InputFile, sources: Sources) -> None:
    """A file that was changed is not what its parts are; of an object each request looks."""
    if not is_url(file.name) and list(sources.find(file.name)) != [file]:
        raise core.RunError("it was changed while it was read", "read", file.name, None)
