"""Text whose lines are rows: what CSV, JSON lines and plain text have in common.

A line belongs to the split that it begins in, however long it is. Chunks end where lines end.
"""

import itertools
import re
from abc import abstractmethod
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tonnage.base import core
from tonnage.run.formats.format import Chunk, ChunkFormat
from tonnage.run.formats.splittable import SplitFormat
from tonnage.run.storage.sources import InputFile, Sources

BEGINNING_BYTES = 1 << 20
"""The part of a file that tells the types of its columns."""
COUNTED_BYTES = 64 << 20
"""Lines are counted up to here; beyond, an error would take too long."""
TAIL_BYTES = 16 << 10
"""Read beyond a split in the same request: most lines end by then."""
ROW_NUMBER = re.compile(r"[Rr]ow #?(\d+)")
"""How Arrow's errors name a row."""


class LineChunks(ChunkFormat):
    """Text, cut where lines end."""

    def chunks(
        self, number: int, file: InputFile, chunk_bytes: int, sources: Sources
    ) -> Iterator[Chunk]:
        self.check_row_type(file, self.row_type(file, sources))
        begin = self.first_row_offset(file, sources)
        with sources.open(file) as opened:
            while begin < file.bytes:
                end = min(begin + chunk_bytes, file.bytes)
                if end < file.bytes:
                    opened.seek(end - 1)
                    end += len(opened.readline()) - 1
                yield Chunk(number, begin, end - begin, None)
                begin = end

    def first_row_offset(self, file: InputFile, sources: Sources) -> int:
        return 0


class LineSplits(SplitFormat):
    FIRST_ROW = 0
    """The number of the first row in Arrow's errors."""

    def batches(
        self, file: InputFile, begin: int, end: int, schema: Any, sources: Sources
    ) -> Iterator[pa.RecordBatch]:
        _, text = lines_in(file, begin, end, sources)
        if text:
            yield self.parse(text, schema)

    @abstractmethod
    def parse(self, text: bytes, schema: Any) -> pa.RecordBatch:
        """Lines as a batch."""

    def locate(self, error: str, file: InputFile, begin: int, end: int, sources: Sources) -> str:
        if begin > COUNTED_BYTES:
            return error
        offset, text = lines_in(file, begin, end, sources)
        return add_line(error, text, lines_before(file, offset, sources), self.FIRST_ROW)


class Lines(LineSplits):
    """Plain text: a column ``line``."""

    NAME = "lines"
    SUFFIXES = (".log", ".text", ".txt")

    def parse(self, text: bytes, schema: Any) -> pa.RecordBatch:
        ends = np.flatnonzero(np.frombuffer(text, np.uint8) == ord("\n")) + 1
        if not text.endswith(b"\n"):
            ends = np.append(ends, len(text))
        offsets = np.concatenate([[0], ends]).astype(np.int64)
        buffers = [None, pa.py_buffer(offsets.tobytes()), pa.py_buffer(text)]
        with_ends = pa.Array.from_buffers(pa.large_binary(), len(ends), buffers)
        lines = with_ends.cast(pa.large_string()).cast(pa.string())  # This checks that it is UTF-8.
        return pa.record_batch({"line": pc.ascii_rtrim(lines, characters="\r\n")})

    def locate(self, error: str, file: InputFile, begin: int, end: int, sources: Sources) -> str:
        """An error with the first line that is not UTF-8."""
        if begin > COUNTED_BYTES:
            return error
        offset, text = lines_in(file, begin, end, sources)
        for number, line in enumerate(text.split(b"\n"), 1):
            try:
                line.decode()
            except UnicodeDecodeError:
                return f"{error} (line {lines_before(file, offset, sources) + number} of the file)"
        return error


def lines_in(file: InputFile, begin: int, end: int, sources: Sources) -> tuple[int, bytes]:
    """The lines that begin in a span, and the offset of the first."""
    # With the byte before: if it ends a line, the next line begins with the span.
    before = min(begin, 1)
    start, length = begin - before, end - begin + before
    with sources.open(file) as opened:
        opened.seek(start)
        text = opened.read(length + TAIL_BYTES)
        first = text.find(b"\n") + 1 if before else 0
        if first >= length or (before and not first):
            return end, b""
        last = text.find(b"\n", length - 1) + 1
        lines = text[first:last] if last else text[first:] + opened.readline()
    return start + first, lines


def lines_before(file: InputFile, offset: int, sources: Sources) -> int:
    with sources.open(file) as opened:
        parts = range(0, offset, BEGINNING_BYTES)
        return sum(opened.read(min(BEGINNING_BYTES, offset - at)).count(b"\n") for at in parts)


def beginning_schema(
    file: InputFile, sources: Sources, parse: Callable[[bytes], pa.Schema], first_row: int
) -> pa.Schema:
    """The columns by the beginning of a file; `ArrowInvalid` names a line that cannot be parsed."""
    _, text = lines_in(file, 0, BEGINNING_BYTES, sources)
    try:
        return parse(text)
    except pa.ArrowInvalid as why:
        raise pa.ArrowInvalid(add_line(str(why), text, 0, first_row)) from why


def beginning_error(file: InputFile, why: Exception) -> core.RunError:
    """What to tell of a file whose beginning cannot be read, whichever split is read."""
    return core.RunError(f"cannot read {file.name}: {why}", "read", file.name, 0)


def add_line(error: str, text: bytes, before: int, first_row: int) -> str:
    """Add the line in the file to an error that names a row of ``text``.

    ``before`` lines end before the text; Arrow does not count blank ones.
    """
    found = ROW_NUMBER.search(error)
    if found is None:
        return error
    row = int(found[1]) - first_row
    lines = (number for number, line in enumerate(text.split(b"\n"), 1) if line.strip())
    line = next(itertools.islice(lines, max(row, 0), None), None)
    return error if line is None else f"{error} (line {before + line} of the file)"
