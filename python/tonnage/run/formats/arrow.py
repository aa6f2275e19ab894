"""Arrow's files: record batches one after another, and where they are at the end.

A chunk is a record batch, or several that follow one another and are small. The footer says where
batches begin (Apache Arrow, "Columnar Format", "IPC File Format"), but PyArrow does not tell: its
list of blocks is read here. It is a FlatBuffer: a table's fields are where a table of their offsets
says, and a vector is a number and so many structs.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from io import BufferedIOBase
from typing import Any, NamedTuple

import pyarrow as pa

from tonnage.base import core
from tonnage.run.formats.format import Chunk, Format, Rows, describe_columns, to_batch
from tonnage.run.storage.sources import InputFile, Sources

MAGIC = b"ARROW1"
HEAD_BYTES = 8
"""The magic at the beginning, padded."""
TAIL = struct.Struct("<i6s")
"""How long the footer is, and the magic."""
TAIL_BYTES = 64 << 10
"""Read at once: most footers are shorter."""
DICTIONARIES, BATCHES = 2, 3
"""Fields of the footer."""


class Block(NamedTuple):
    """A message: where it is, how long it is, and the data after it."""

    offset: int
    about_bytes: int
    body_bytes: int

    @property
    def end(self) -> int:
        """Where the next one may begin."""
        return self.offset + self.about_bytes + self.body_bytes


@dataclass(frozen=True)
class About:
    """What a file says of all its batches.

    Attributes:
        schema: Their columns.
        batches: Where they are.
        before: What a stream of them begins with, if there are dictionaries.
    """

    schema: pa.Schema
    batches: list[Block]
    before: bytes


class Arrow(Format):
    """Arrow's files: record batches, which are not decoded."""

    NAME = "arrow"
    SHORTER = "write files with shorter record batches"

    @classmethod
    def row_of(cls, file: InputFile, sources: Sources) -> str:
        """Its columns."""
        return describe_columns(sources.cached(file, _about).schema)

    def cut(
        self, place: int, file: InputFile, chunk_bytes: int, sources: Sources
    ) -> Iterator[Chunk]:
        """Cuts where batches begin."""
        about = sources.cached(file, _about)
        self.refuse_others(file, describe_columns(about.schema))
        first = 0
        for number, block in enumerate(about.batches):
            begin, after = about.batches[first].offset, about.batches[number + 1 : number + 2]
            if after and after[0].offset == block.end and after[0].end - begin <= chunk_bytes:
                continue
            yield Chunk(place, begin, block.end - begin, None)
            first = number + 1

    def rows(self, data: Any, file: InputFile, chunk: Chunk, sources: Sources) -> Rows:
        """The batches in one: a view of the bytes, if it is one batch without dictionaries."""
        about = sources.cached(file, _about)
        if about.before:
            stream = pa.BufferReader(about.before + bytes(data))
            return to_batch(pa.ipc.open_stream(stream).read_all())
        reader, batches = pa.BufferReader(pa.py_buffer(data)), []
        while reader.tell() < chunk.bytes:
            message = pa.ipc.read_message(reader)
            batches.append(pa.ipc.read_record_batch(message, about.schema))
        return batches[0] if len(batches) == 1 else to_batch(pa.Table.from_batches(batches))

    def extract(
        self,
        chunks: Sequence[Chunk],
        file: InputFile,
        sources: Sources,
        into: BufferedIOBase,
        moved: Callable[[int], None],
    ) -> None:
        """Writes them as batches, without compression."""
        schema = sources.cached(file, _about).schema
        with (
            sources.open(file) as opened,
            pa.ipc.new_file(into, schema) as writer,
        ):
            for chunk in chunks:
                opened.seek(chunk.offset)
                writer.write_batch(self.rows(opened.read(chunk.bytes), file, chunk, sources))
                moved(chunk.bytes)


def _about(file: InputFile, sources: Sources) -> About:
    """What a file says of itself.

    Raises:
        UsageError: It is none.
    """
    try:
        with sources.open(file) as opened:
            begin = max(file.bytes - TAIL_BYTES, 0)
            opened.seek(begin)
            tail = opened.read(file.bytes - begin)
            length, magic = TAIL.unpack(tail[-TAIL.size :])
            if magic != MAGIC or not 0 < length <= file.bytes - HEAD_BYTES - TAIL.size:
                raise ValueError("it does not end as one")
            ends = file.bytes - TAIL.size
            if length + TAIL.size > len(tail):
                opened.seek(ends - length)
                tail = opened.read(length + TAIL.size)
            footer = tail[-TAIL.size - length : -TAIL.size]
            dictionaries, batches = _blocks(footer, DICTIONARIES), _blocks(footer, BATCHES)
            first = min([ends - length, *(each.offset for each in [*dictionaries, *batches])])
            if any(each.offset < HEAD_BYTES or each.end > ends for each in batches):
                raise ValueError("it says that batches are beyond its end")
            opened.seek(HEAD_BYTES)
            before = opened.read(first - HEAD_BYTES)
            schema = pa.ipc.read_schema(pa.py_buffer(before))
            for block in dictionaries:
                opened.seek(block.offset)
                before += opened.read(block.end - block.offset)
    except (pa.ArrowException, struct.error, ValueError, OSError) as why:
        raise core.UsageError(f"input {file.name} is no whole Arrow file: {why}") from why
    return About(schema, batches, before if dictionaries else b"")


def _blocks(footer: bytes, field: int) -> list[Block]:
    """The blocks that a field of the footer lists."""
    (table,) = struct.unpack_from("<I", footer)
    fields = table - struct.unpack_from("<i", footer, table)[0]
    (known,) = struct.unpack_from("<H", footer, fields)
    place = 4 + 2 * field
    offset = struct.unpack_from("<H", footer, fields + place)[0] if place < known else 0
    if not offset:
        return []
    vector = table + offset + struct.unpack_from("<I", footer, table + offset)[0]
    (count,) = struct.unpack_from("<I", footer, vector)
    block = struct.Struct("<qi4xq")
    return [Block(*block.unpack_from(footer, vector + 4 + n * block.size)) for n in range(count)]
