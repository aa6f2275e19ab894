"""Where an index lies: next to the data, in the directory or folder of which it is.

Of a single file or object it is in its directory or folder, by the file's name. Files have their
names there as that directory has them, so it is true however the directory is named.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from tonnage.base import core
from tonnage.base.records import write_atomically
from tonnage.run.formats import ChunkFormat, detect_chunk_format
from tonnage.run.reduce.index import NAME, Index, build_index, from_bytes, join_indexes, to_bytes
from tonnage.run.storage.object_store import ObjectFolder, ObjectStoreOptions, find_objects, is_url
from tonnage.run.storage.sources import InputFile, Sources

CHUNK_BYTES = 16 << 20
"""Of an index, which does not know who will use it."""
UPLOAD_BYTES = 32 << 20
"""Memory for uploading an index."""


def index_path(given: str, files: list[InputFile]) -> str:
    """Where the index of a file, a directory or a folder is.

    Args:
        given: What was named.
        files: What it means.
    """
    is_file = not is_url(given) and Path(given).is_file()
    if is_file or (len(files) == 1 and files[0].name == given):
        above, _, name = given.rpartition("/")
        return f"{above}/_{name}.index.parquet" if above else f"_{name}.index.parquet"
    return f"{given.rstrip('/')}/{NAME}"


def read_index(place: str, sources: Sources, object_store: ObjectStoreOptions) -> Index | None:
    """The index that is there; ``None`` if there is none.

    Raises:
        UsageError: What is there is no index.
    """
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
    """Writes it, whole or not at all.

    Raises:
        RunError: It cannot be written there.
    """
    if not is_url(place):
        files = [replace(each, name=os.path.basename(each.name)) for each in index.files]
        try:
            write_atomically(Path(place), to_bytes(replace(index, files=files)))
        except OSError as why:
            raise core.RunError(f"writing {place}: {why.strerror}", None, None, None) from why
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
    """What files are: as is said, else as their index says, else as they say themselves.

    Raises:
        UsageError: They are several things, or what their rows are is not known.
    """
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
    look: Callable[[int, int], None] = lambda *_: None,
) -> Index:
    """The chunks of what places mean: of the index next to them, as far as that is true.

    Args:
        places: Files, directories, objects, folders.
        volumes: How stores are reached.
        chunk_bytes: About how large chunks are; with it those of the index do not count.
        format: Of files; by default as the index or their names say.
        dtype: Of rows of a size.
        usual: How large chunks are that are in no index, by the bytes of all files.
        look: Called now and then with how many files were looked at that are in no index, and in
            how many chunks they are cut.

    Raises:
        UsageError: A file is in two of the places, or none of its format, or not as its index says.
    """
    sources = Sources(object_store, 1)
    found = {place: list(sources.find(place)) for place in places}
    files = [file for of_place in found.values() for file in of_place]
    _refuse_twice(found)
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
        files, wanted, chunk_bytes or default_chunk_bytes(total), sources, chunks, look
    )


def _refuse_otherwise(
    place: str, known: Index | None, files: Sequence[InputFile], wanted: ChunkFormat
) -> None:
    """An index says what rows are; whoever says something else may be wrong, and would not see it.

    Raises:
        UsageError: The index is of these files, and says something else.
    """
    if known is None or known.format == wanted or not {*known.files} & {*files}:
        return
    told, asked = (
        " ".join(filter(None, each.to_json().values())) for each in (known.format, wanted)
    )
    raise core.UsageError(
        f"--dtype, --input-format: {place} says that rows are {told}, and not {asked}: leave the flag "
        "out, or have tonnage index say it, too"
    )


def _refuse_twice(found: Mapping[str, Sequence[InputFile]]) -> None:
    """Rows that are in two places would count twice.

    Raises:
        UsageError: A file is, by whatever names.
    """
    of: dict[str, str] = {}
    for place, files in found.items():
        for file in files:
            name = file.name if is_url(file.name) else os.path.realpath(file.name)
            if (other := of.setdefault(name, place)) != place:
                raise core.UsageError(f"{file.name} is in {other} and in {place}: give it once")
