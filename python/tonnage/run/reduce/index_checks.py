"""What has to be true of an index, so that no row of its files is left out or read twice."""

import hashlib
from collections.abc import Iterator, Sequence

import msgspec
import pyarrow as pa

from tonnage.run.formats.format import Chunk
from tonnage.run.storage.sources import InputFile

SEAMLESS = {"rows", "npy", "csv", "json"}
"""Formats whose chunks follow one another up to the end of the file."""
HEADLESS = {"rows"}
"""Of these, the ones whose first row begins where the file does."""


def digest(table: pa.Table) -> bytes:
    columns = [table[name].to_pylist() for name in table.column_names]
    return hashlib.sha256(msgspec.json.encode(columns)).hexdigest().encode()


def first_mistake(
    format_name: str, files: Sequence[InputFile], chunks: Sequence[Chunk]
) -> str | None:
    """Describe what is wrong with an index; ``None`` if nothing is."""
    for file in files:
        if not file.name or file.bytes < 0:
            return f"{file.name or 'a file'}: expected a name and a size >= 0, got {file.bytes}"
    by_file: dict[int, list[Chunk]] = {}
    for chunk in chunks:
        by_file.setdefault(chunk.file, []).append(chunk)
    for place, file in enumerate(files):
        of_file = sorted(by_file.get(place, ()), key=lambda chunk: chunk.offset)
        if why := next(_mistakes(format_name, file, of_file), None):
            return f"{file.name}: {why}"
    return None


def _mistakes(format_name: str, file: InputFile, chunks: Sequence[Chunk]) -> Iterator[str]:
    end = 0
    for chunk in chunks:
        if chunk.offset < 0 or chunk.bytes <= 0 or chunk.offset + chunk.bytes > file.bytes:
            yield (
                f"a chunk of {chunk.bytes} bytes from {chunk.offset} on is not within its "
                f"{file.bytes} bytes"
            )
        if chunk.rows is not None and chunk.rows < 0:
            yield f"the chunk from {chunk.offset} on has {chunk.rows} rows"
        if chunk.part is not None and chunk.part < 0:
            yield f"the chunk from {chunk.offset} on is part {chunk.part}"
        if chunk.offset < end:
            yield f"two chunks have the bytes from {chunk.offset} on"
        is_first = chunk is chunks[0]
        if format_name in SEAMLESS and chunk.offset != end and not is_first:
            yield f"no chunk has the bytes from {end} to {chunk.offset}"
        end = chunk.offset + chunk.bytes
    if format_name in HEADLESS and file.bytes and (not chunks or chunks[0].offset):
        yield "no chunk has its first bytes"
    if format_name in SEAMLESS and chunks and end != file.bytes:
        yield f"no chunk has its last {file.bytes - end} bytes"
    parts = [chunk.part for chunk in chunks]
    if format_name == "parquet" and len({*parts}) != len(parts):
        yield "two chunks are one row group"
