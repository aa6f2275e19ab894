"""The chunk index: files and objects in chunks of whole rows, stored next to the data.

A chunk is logical: a span of a file, and its number of rows (MATE-EC2, "Data Organization"). The
format tells how to cut a file (`formats`). The index is a Parquet file with a row for each chunk. A
file whose length and ETag or time of change are the same keeps its chunks; others are cut again, as
are objects whose store tells no ETag.
"""

import io
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tonnage.base import core
from tonnage.base.records.base import RecordError, Struct, decode
from tonnage.run.formats import ChunkFormat, chunk_format
from tonnage.run.formats.format import Chunk
from tonnage.run.reduce import index_checks
from tonnage.run.storage.object_store import is_url
from tonnage.run.storage.sources import InputFile, Sources

NAME = "_tonnage.index"
"""In the directory or folder: a hidden name, and not one that others read as data."""
SCHEMA: pa.Schema = pa.schema(
    [  # type: ignore[arg-type]
        ("name", pa.string()),
        ("bytes", pa.int64()),
        ("version", pa.string()),
        ("offset", pa.int64()),
        ("length", pa.int64()),
        ("rows", pa.int64()),
        ("part", pa.int32()),
    ]
)
KEY = b"tonnage.index/1"
DIGEST = b"tonnage.index.digest"


class RowType(Struct, frozen=True):
    """What the index says of its files' rows."""

    name: str
    dtype: str | None


@dataclass(frozen=True)
class Index:
    """Files and their chunks; the chunks of ``known`` files were taken from an earlier index."""

    format: ChunkFormat
    files: Sequence[InputFile]
    chunks: Sequence[Chunk]
    known: int = 0

    @property
    def bytes(self) -> int:
        return sum(chunk.bytes for chunk in self.chunks)

    @property
    def object_bytes(self) -> int:
        """The bytes of chunks of objects."""
        return sum(chunk.bytes for chunk in self.chunks if is_url(self.files[chunk.file].name))

    @property
    def rows(self) -> int | None:
        """The rows of all chunks; ``None`` if counting them takes reading them."""
        counts = [chunk.rows for chunk in self.chunks]
        return None if None in counts else sum(count or 0 for count in counts)


def build_index(
    files: Sequence[InputFile],
    format: ChunkFormat,
    chunk_bytes: int,
    sources: Sources,
    before: Index | None = None,
    on_progress: Callable[[int, int], None] = lambda *_: None,
) -> Index:
    """Cut files into chunks of about ``chunk_bytes``, except those in the index ``before``.

    ``on_progress`` is called with the number of files that were cut, and of their chunks.
    `UsageError` if a file is not of the format.
    """
    reused: dict[InputFile, list[Chunk]] = {}
    if before is not None and before.format == format:
        for chunk in before.chunks:
            reused.setdefault(before.files[chunk.file], []).append(chunk)
        for file in before.files:
            reused.setdefault(file, [])
        # Without an ETag an object may have changed.
        reused = {file: chunks for file, chunks in reused.items() if file.version is not None}

    chunks_so_far: dict[int, list[Chunk]] = {}

    def cut_file(place: int) -> list[Chunk]:
        chunks_so_far[place] = []
        chunks_so_far[place].extend(format.chunks(place, files[place], chunk_bytes, sources))
        return chunks_so_far[place]

    def report(files: int) -> None:
        on_progress(files, sum(map(len, [*chunks_so_far.values()])))

    new = [place for place, file in enumerate(files) if file not in reused]
    made = (
        sources.map_parallel(new, cut_file, report) if format.READS_TO_CUT else map(cut_file, new)
    )
    cuts = dict(zip(new, made, strict=True))
    chunks: list[Chunk] = []
    for place, file in enumerate(files):
        if place in cuts:
            chunks += cuts[place]
        else:
            chunks += [chunk._replace(file=place) for chunk in reused[file]]
    return Index(format, files, chunks, len(files) - len(new))


def join_indexes(indexes: Sequence[Index]) -> Index | None:
    """The indexes of the first one's format, as one; ``None`` if there are none."""
    if not indexes:
        return None
    files: list[InputFile] = []
    chunks: list[Chunk] = []
    for index in indexes:
        if index.format == indexes[0].format:
            chunks += [chunk._replace(file=chunk.file + len(files)) for chunk in index.chunks]
            files += index.files
    return Index(indexes[0].format, files, chunks)


def to_bytes(index: Index) -> bytes:
    of_chunks = [(index.files[chunk.file], chunk) for chunk in index.chunks]
    empty = {*range(len(index.files))} - {chunk.file for chunk in index.chunks}
    rows: list[tuple[Any, ...]] = [
        (file.name, file.bytes, file.version, chunk.offset, chunk.bytes, chunk.rows, chunk.part)
        for file, chunk in of_chunks
    ]
    # An empty file has no chunks, but is known.
    rows += [
        (file.name, file.bytes, file.version, None, None, None, None)
        for file in (index.files[place] for place in sorted(empty))
    ]
    columns = list(zip(*rows, strict=True)) or [()] * len(SCHEMA)
    arrays = [pa.array(column, of.type) for column, of in zip(columns, SCHEMA, strict=True)]
    said = json.dumps(index.format.to_json()).encode()
    table = pa.Table.from_arrays(arrays, schema=SCHEMA)
    table = table.replace_schema_metadata({KEY: said, DIGEST: index_checks.digest(table)})
    sink = io.BytesIO()
    pq.write_table(table, sink)
    return sink.getvalue()


def from_bytes(content: bytes, where: str) -> Index:
    """The index that `to_bytes` wrote; `UsageError` if it is not an index, or it is damaged."""
    try:
        table = pq.ParquetFile(pa.BufferReader(content), pre_buffer=False).read(use_threads=False)
        table.validate(full=True)
        metadata = table.schema.metadata or {}
        row_type = decode(metadata[KEY], RowType, where)
    except (pa.ArrowException, KeyError, OSError, RecordError) as why:
        raise core.UsageError(
            f"{where} is not an index, or has a different version; remove it and index again"
        ) from why
    if not table.schema.equals(SCHEMA):
        raise _damaged(where, f"expected columns {', '.join(SCHEMA.names)} of their types")
    if metadata.get(DIGEST, digest := index_checks.digest(table)) != digest:
        raise _damaged(where, "the file was changed after it was written")
    try:
        format = chunk_format(row_type.name, row_type.dtype)
    except core.UsageError as why:
        raise _damaged(where, str(why)) from why
    places: dict[InputFile, int] = {}
    chunks = []
    for name, size, version, *chunk in zip(
        *(table[each].to_pylist() for each in SCHEMA.names), strict=True
    ):
        place = places.setdefault(InputFile(name, size, version), len(places))
        if chunk[0] is not None:
            if None in (name, size, chunk[1], chunk[3]):
                raise _damaged(where, f"{name}: a value of a chunk is missing")
            chunks.append(Chunk(place, *chunk))
    if mistake := index_checks.first_mistake(format.NAME, list(places), chunks):
        raise _damaged(where, mistake)
    return Index(format, list(places), chunks)


def _damaged(where: str, why: str) -> core.UsageError:
    return core.UsageError(f"{where}: {why}; remove it and index again")
