"""``tonnage index``."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from tonnage.base import core, formatting
from tonnage.cli.options.chunks import ChunkOptions
from tonnage.cli.options.object_store import EndpointUrl, Inputs, locations, refuse_endpoint
from tonnage.cli.options.types import Json
from tonnage.cli.output import print_result

if TYPE_CHECKING:
    from tonnage.run.reduce.index import Index


def index(
    *,
    inputs: Inputs,
    chunks: ChunkOptions,
    endpoint: EndpointUrl = None,
    as_json: Json = False,
) -> None:
    """Divide files and objects into chunks of whole rows, and store the index next to the data.

    tonnage run reduce finds the index there. Only data that has changed since the last index is
    read again.

    Examples:
        tonnage index s3://bucket/points/ --dtype 8f8 --chunk-size 16MiB
    """
    from tonnage.run.reduce import index_store
    from tonnage.run.reduce.index import build_index
    from tonnage.run.storage.object_store import ObjectStoreOptions
    from tonnage.run.storage.sources import Sources, with_content

    refuse_endpoint(endpoint)
    locations(inputs)
    chunk_bytes = chunks.chunk_bytes
    store = ObjectStoreOptions(endpoint=endpoint)
    sources = Sources(store, 1)
    for given in inputs:
        files = with_content(sources.find(given))
        place = index_store.index_path(given, files)
        before = index_store.read_index(place, sources, store)
        format = index_store.choose_format(
            files, before, chunks.input_format, chunks.dtype, sources
        )
        known = None if chunk_bytes else before
        with core.Progress("indexing") as progress:
            made = build_index(
                files,
                format,
                chunk_bytes or index_store.CHUNK_BYTES,
                sources,
                known,
                partial(_advance, progress, len(files)),
            )
        index_store.write_index(place, made, store)
        print_result(_values(place, made), [_line(place, made)], as_json)


def _advance(progress: core.Progress, files: int, done: int, _: int) -> None:
    progress(done, files)


def _values(place: str, made: Index) -> dict[str, object]:
    return {
        "index": place,
        "format": made.format.to_json(),
        "files": len(made.files),
        "known": made.known,
        "chunks": len(made.chunks),
        "bytes": made.bytes,
        "rows": made.rows,
    }


def _line(place: str, made: Index) -> str:
    rows = "" if made.rows is None else f", {made.rows} rows"
    return (
        f"{place}: {formatting.several(len(made.files), 'file')} ({made.known} unchanged), "
        f"{formatting.several(len(made.chunks), 'chunk')}, {formatting.size(made.bytes)}{rows}"
    )
