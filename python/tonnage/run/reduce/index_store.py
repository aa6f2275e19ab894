"""Where an index is stored: next to the data, in the indexed directory or folder.

The index of a single file is next to it, under the file's name. Files in it are named relative to
their directory, so that the directory can be moved.
"""

import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from tonnage.base import core
from tonnage.base.records import write_atomically
from tonnage.run.formats import ChunkFormat, detect_chunk_format
from tonnage.run.reduce.index import NAME, Index, build_index, from_bytes, join_indexes, to_bytes
from tonnage.run.storage.object_store import ObjectFolder, ObjectStoreOptions, find_objects, is_url
from tonnage.run.storage.sources import InputFile, Sources, refuse_twice, with_content

CHUNK_BYTES = 16 << 20
"""Of chunks in an index, whose users are not known."""
UPLOAD_BYTES = 32 << 20
"""Memory for uploading an index."""


def index_path(given: str, files: list[InputFile]) -> str:
    """The path or url of the index of an input, which consists of these files."""
    is_file = not is_url(given) and Path(given).is_file()
    if is_file or (len(files) == 1 and files[0].name == given):
        above, _, name = given.rpartition("/")
        return f"{above}/_{name}.index" if above else f"_{name}.index"
    return f"{given.rstrip('/')}/{NAME}"


def read_index(place: str, sources: Sources, object_store: ObjectStoreOptions) -> Index | None:
    """The index at a path or url; ``None`` if there is none; `UsageError` if it is not an index."""
    if not is_url(place):
        path = Path(place)
        if not path.is_file():
            return None
        found = from_bytes(path.read_bytes(), place)
        here = [replace(each, name=str(path.parent / each.name)) for each in found.files]
        return replace(found, files=here)
    try:
        (about,) = find_objects([place], object_store)
    except (core.UsageError, ValueError):
        return None
    with sources.open(InputFile(place, about.bytes, about.etag)) as opened:
        return from_bytes(opened.read(), place)


def write_index(place: str, index: Index, object_store: ObjectStoreOptions) -> None:
    """Write an index atomically; `RunError` if it cannot be written there."""
    if not is_url(place):
        directory = os.path.dirname(place) or "."
        files = [replace(each, name=os.path.relpath(each.name, directory)) for each in index.files]
        try:
            write_atomically(Path(place), to_bytes(replace(index, files=files)))
        except OSError as why:
            raise core.RunError(f"cannot write {place}: {why.strerror}", None, None, None) from why
        return
    folder, _, name = place.rpartition("/")
    with tempfile.TemporaryDirectory(prefix="tonnage-") as directory:
        path = Path(directory) / name
        path.write_bytes(to_bytes(index))
        ObjectFolder(folder, object_store).upload(path, name, UPLOAD_BYTES, 2)


def choose_format(
    files: Sequence[InputFile],
    before: Index | None,
    format: str | None,
    dtype: str | None,
    sources: Sources,
) -> ChunkFormat:
    """The format of files: given, else as their index tells, else as they do; or `UsageError`."""
    if before is None or format is not None or dtype is not None:
        return detect_chunk_format(files, format, dtype, sources)
    if files and files[0] in before.files:
        return before.format
    return detect_chunk_format(files, before.format.NAME, before.format.row, sources)


def find_chunks(
    places: Sequence[str],
    object_store: ObjectStoreOptions,
    chunk_bytes: int | None = None,
    format: str | None = None,
    dtype: str | None = None,
    default_chunk_bytes: Callable[[int], int] = lambda _: CHUNK_BYTES,
    on_progress: Callable[[int, int], None] = lambda *_: None,
) -> Index:
    """The chunks of inputs: from the index next to them, as far as it is up to date.

    Args:
        chunk_bytes: Approximate size of chunks; if given, the index's chunks are not used.
        format: Of the files; by default as the index or their names tell.
        default_chunk_bytes: The size of chunks that are in no index, by the bytes of all files.
        on_progress: Called with the numbers of files and chunks that were not in an index.

    Raises:
        UsageError: A file is in two of the places, or not of its format, or its index says that its
            rows are of another type.
    """
    sources = Sources(object_store, 1)
    found = {place: with_content(sources.find(place)) for place in places}
    files = [file for of_place in found.values() for file in of_place]
    refuse_twice(places, list(found.values()))
    at = {each: index_path(each, found[each]) for each in places}
    known = {place: read_index(place, sources, object_store) for place in at.values()}
    before = join_indexes([each for each in known.values() if each is not None])
    wanted = choose_format(files, before, format, dtype, sources)
    if format is not None or dtype is not None:
        for place, each in known.items():
            _refuse_otherwise(place, each, files, wanted)
    total = sum(file.bytes for file in files)
    chunks = None if chunk_bytes else before
    return build_index(
        files, wanted, chunk_bytes or default_chunk_bytes(total), sources, chunks, on_progress
    )


def _refuse_otherwise(
    place: str, known: Index | None, files: Sequence[InputFile], wanted: ChunkFormat
) -> None:
    """Refuse a format that contradicts the index of these files: nobody would notice a mistake."""
    if known is None or known.format == wanted or not {*known.files} & {*files}:
        return
    indexed, given = (
        " ".join(filter(None, each.to_json().values())) for each in (known.format, wanted)
    )
    raise core.UsageError(
        f"{place} was made for {indexed}, not {given}; omit the format and the rows' type, "
        "or index again with them",
        setting="input_format",
    )
