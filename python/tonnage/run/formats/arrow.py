"""Arrow IPC files: chunks are record batches, or several small ones that are adjacent.

The footer lists where batches are (Apache Arrow, "Columnar Format", "IPC File Format"). PyArrow
reads that list but does not expose it, and asking it for each batch reads all of the file. So the
list is parsed here, out of the one read that fetches the footer: it is a FlatBuffer, whose tables
hold offsets of their fields, and whose vectors are a count and as many structs.
"""

import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from io import BufferedIOBase
from typing import Any, NamedTuple

import pyarrow as pa

from tonnage.run.formats.format import (
    Chunk,
    ChunkFormat,
    OutputFormat,
    Rows,
    describe_columns,
    invalid_file,
    to_batch,
)
from tonnage.run.formats.splittable import UnitFormat
from tonnage.run.storage.sources import InputFile, Sources

MAGIC = b"ARROW1"
HEAD_BYTES = 8
"""The magic at the beginning, padded."""
TAIL = struct.Struct("<i6s")
"""The footer's length, and the magic."""
TAIL_BYTES = 64 << 10
"""Read at once: most footers are shorter."""
DICTIONARIES, BATCHES = 2, 3
"""Fields of the footer."""
HEADER, BUFFERS, COMPRESSION = 2, 2, 3
"""Fields of a message, and of the record batch that it has."""
BATCH_BUFFERS = 4
"""What a batch may have of a reader's memory: it has as much again for the batch's parts."""


class Block(NamedTuple):
    """A message in the file: metadata, then the data."""

    offset: int
    metadata_bytes: int
    body_bytes: int

    @property
    def end(self) -> int:
        return self.offset + self.metadata_bytes + self.body_bytes


@dataclass(frozen=True)
class Footer:
    """A footer; ``stream_head`` begins a stream of its batches if there are dictionaries."""

    schema: pa.Schema
    batches: list[Block]
    stream_head: bytes


class Arrow(ChunkFormat, UnitFormat, OutputFormat):
    NAME = "arrow"
    SUFFIXES = (".arrow", ".feather", ".ipc")
    OUTPUT_SUFFIX = ".arrow"
    SMALLER_CHUNKS = "write files with shorter record batches"
    UNIT = "batch"

    @classmethod
    def row_type(cls, file: InputFile, sources: Sources) -> str:
        return describe_columns(_checked_footer(file, sources).schema)

    def chunks(
        self, number: int, file: InputFile, chunk_bytes: int, sources: Sources
    ) -> Iterator[Chunk]:
        footer = _checked_footer(file, sources)
        self.check_row_type(file, describe_columns(footer.schema))
        first = 0
        for place, block in enumerate(footer.batches):
            begin, after = footer.batches[first].offset, footer.batches[place + 1 : place + 2]
            if after and after[0].offset == block.end and after[0].end - begin <= chunk_bytes:
                continue
            yield Chunk(number, begin, block.end - begin, None)
            first = place + 1

    def decode(self, data: Any, file: InputFile, chunk: Chunk, sources: Sources) -> Rows:
        """The rows: a view of the bytes if they are one batch without dictionaries."""
        return _decode(data, _checked_footer(file, sources))

    def write_chunks(
        self,
        chunks: Sequence[Chunk],
        file: InputFile,
        sources: Sources,
        output: BufferedIOBase,
        on_progress: Callable[[int], None],
    ) -> None:
        """Write them as batches, without compression."""
        schema = sources.cached(file, _footer).schema
        with sources.open(file) as opened, pa.ipc.new_file(output, schema) as writer:
            for chunk in chunks:
                opened.seek(chunk.offset)
                writer.write_batch(self.decode(opened.read(chunk.bytes), file, chunk, sources))
                on_progress(chunk.bytes)

    def check(self, file: InputFile, sources: Sources) -> int:
        _checked_footer(file, sources)
        return file.bytes

    def units(self, file: InputFile, sources: Sources) -> int:
        return len(sources.cached(file, _footer).batches)

    def batches(
        self, file: InputFile, begin: int, end: int, schema: Any, sources: Sources
    ) -> Iterator[pa.RecordBatch]:
        footer = sources.cached(file, _footer)
        block = footer.batches[begin]
        most = BATCH_BUFFERS * sources.reader_bytes
        self._check_size(block.body_bytes, most)
        with sources.open(file) as opened:
            opened.seek(block.offset)
            data = opened.read(block.end - block.offset)
        self._check_size(_decoded_bytes(data), most)
        yield _decode(data, footer)

    def _check_size(self, size: int, most: int) -> None:
        if size > most:
            raise pa.ArrowInvalid(
                f"a record batch has {size} bytes, and a thread has memory for one of {most}; use "
                f"more memory or fewer workers, or {self.SMALLER_CHUNKS}"
            )

    @staticmethod
    def writer(file: Any, schema: pa.Schema) -> Any:
        return pa.ipc.new_file(file, schema)


def _decode(data: Any, footer: Footer) -> pa.RecordBatch:
    if footer.stream_head:
        stream = pa.BufferReader(footer.stream_head + bytes(data))
        return to_batch(pa.ipc.open_stream(stream).read_all())
    buffer = pa.py_buffer(data)
    reader, batches = pa.BufferReader(buffer), []
    while reader.tell() < buffer.size:
        message = pa.ipc.read_message(reader)
        batches.append(pa.ipc.read_record_batch(message, footer.schema))
    return batches[0] if len(batches) == 1 else to_batch(pa.Table.from_batches(batches))


def _checked_footer(file: InputFile, sources: Sources) -> Footer:
    try:
        return sources.cached(file, _footer)
    except (pa.ArrowException, OSError) as why:
        raise invalid_file(file, Arrow.NAME, why) from why


def _footer(file: InputFile, sources: Sources) -> Footer:
    try:
        with sources.open(file) as opened:
            begin = max(file.bytes - TAIL_BYTES, 0)
            opened.seek(begin)
            tail = opened.read(file.bytes - begin)
            length, magic = TAIL.unpack(tail[-TAIL.size :])
            if magic != MAGIC or not 0 < length <= file.bytes - HEAD_BYTES - TAIL.size:
                raise ValueError("the file has no footer at its end")
            end = file.bytes - TAIL.size
            if length + TAIL.size > len(tail):
                opened.seek(end - length)
                tail = opened.read(length + TAIL.size)
            footer = tail[-TAIL.size - length : -TAIL.size]
            dictionaries, batches = _blocks(footer, DICTIONARIES), _blocks(footer, BATCHES)
            first = min([end - length, *(each.offset for each in [*dictionaries, *batches])])
            if any(each.offset < HEAD_BYTES or each.end > end for each in batches):
                raise ValueError("the footer lists batches past the end of the file")
            opened.seek(HEAD_BYTES)
            head = opened.read(first - HEAD_BYTES)
            schema = pa.ipc.read_schema(pa.py_buffer(head))
            for block in dictionaries:
                opened.seek(block.offset)
                head += opened.read(block.end - block.offset)
    except (struct.error, ValueError) as why:
        raise pa.ArrowInvalid(str(why)) from why
    return Footer(schema, batches, head if dictionaries else b"")


def _decoded_bytes(data: bytes) -> int:
    """The bytes of a record batch as it is and, if it is compressed, decompressed.

    Each buffer of a compressed one begins with the length that it has then.
    """
    message = pa.ipc.read_message(pa.py_buffer(data))
    body = b"" if message.body is None else memoryview(message.body)
    try:
        metadata = message.metadata.to_pybytes()
        header = _pointed(metadata, struct.unpack_from("<I", metadata)[0], HEADER)
        if header is None or _pointed(metadata, header, COMPRESSION) is None:
            return len(body)
        buffers = _structs(metadata, header, BUFFERS, struct.Struct("<qq"))
        lengths = [
            struct.unpack_from("<q", body, offset)[0] for offset, length in buffers if length
        ]
    except struct.error as why:
        raise pa.ArrowInvalid(f"the record batch is damaged: {why}") from why
    return len(body) + int(sum(max(length, 0) for length in lengths))


def _blocks(footer: bytes, field: int) -> list[Block]:
    root = struct.unpack_from("<I", footer)[0]
    return [Block(*each) for each in _structs(footer, root, field, struct.Struct("<qi4xq"))]


def _structs(data: bytes, table: int, field: int, kind: struct.Struct) -> list[tuple[int, ...]]:
    """The elements of a field that is a vector."""
    vector = _pointed(data, table, field)
    if vector is None:
        return []
    (count,) = struct.unpack_from("<I", data, vector)
    return [kind.unpack_from(data, vector + 4 + number * kind.size) for number in range(count)]


def _pointed(data: bytes, table: int, field: int) -> int | None:
    """Where a field is that is a vector or a table; None if there is none."""
    fields = table - struct.unpack_from("<i", data, table)[0]
    (fields_bytes,) = struct.unpack_from("<H", data, fields)
    place = 4 + 2 * field
    offset = struct.unpack_from("<H", data, fields + place)[0] if place < fields_bytes else 0
    if not offset:
        return None
    return int(table + offset + struct.unpack_from("<I", data, table + offset)[0])
