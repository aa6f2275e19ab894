"""Text whose lines are rows: what CSV, JSON lines and plain text have in common.

A line belongs to the split that it begins in, if it is not too long for memory. Chunks end where
lines end: at LF, or at CR in a file that has no LF in its beginning. Such a file's CRs become LFs
as soon as they are read.
"""

import itertools
import re
from abc import abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tonnage.base import core
from tonnage.run.formats.format import Chunk, ChunkFormat
from tonnage.run.formats.splittable import SplitFormat
from tonnage.run.storage.sources import LINE_BYTES, InputFile, Sources

UTF_8 = "utf-8"
LF, CR = b"\n", b"\r"
BEGINNING_BYTES = 1 << 20
"""The part of a file that tells the types of its columns."""
COUNTED_BYTES = 64 << 20
"""Lines are counted up to here; beyond, an error would take too long."""
TAIL_BYTES = 16 << 10
"""Read beyond a split in the same request: most lines end by then."""
ROW_NUMBER = re.compile(r"[Rr]ow #?(\d+)")
"""How Arrow's errors name a row."""
COMPRESSED = {
    "gzip": re.compile(rb"\x1f\x8b\x08"),
    "zstd": re.compile(rb"\x28\xb5\x2f\xfd"),
    "xz": re.compile(rb"\xfd7zXZ\x00"),
    "bzip2": re.compile(rb"BZh[1-9](1AY&SY|\x17rE8P\x90)"),  # A line may begin with BZh.
}
"""How compressed files begin."""


class LongLine(pa.ArrowInvalid):
    """A line is longer than a reader's memory."""


class LineChunks(ChunkFormat):
    """Text, cut where lines end."""

    def chunks(
        self, number: int, file: InputFile, chunk_bytes: int, sources: Sources
    ) -> Iterator[Chunk]:
        self.check_row_type(file, self.row_type(file, sources))
        begin, ends_with = self.first_row_offset(file, sources), line_end(file, sources)
        with sources.open(file) as opened:
            while begin < file.bytes:
                end = min(begin + chunk_bytes, file.bytes)
                if end < file.bytes:
                    opened.seek(end - 1)
                    end += sum(map(len, line_pieces(opened, ends_with))) - 1
                yield Chunk(number, begin, end - begin, None)
                begin = end

    def first_row_offset(self, file: InputFile, sources: Sources) -> int:
        return 0


class LineSplits(SplitFormat):
    encoding = UTF_8
    FIRST_ROW = 0
    """The number of the first row in Arrow's errors."""

    def batches(
        self, file: InputFile, begin: int, end: int, schema: Any, sources: Sources
    ) -> Iterator[pa.RecordBatch]:
        _, text = lines_in(file, begin, end, sources)
        if text:
            yield self.parse(self.to_utf8(text), schema)

    def to_utf8(self, text: bytes) -> bytes:
        if self.encoding == UTF_8:
            return text
        try:
            return text.decode(self.encoding).encode()
        except UnicodeDecodeError as why:
            raise pa.ArrowInvalid(f"the text is not {self.encoding}: {why.reason}") from why

    @abstractmethod
    def parse(self, text: bytes, schema: Any) -> pa.RecordBatch:
        """Lines as a batch."""

    def locate(self, error: str, file: InputFile, begin: int, end: int, sources: Sources) -> str:
        if begin > COUNTED_BYTES:
            return error
        try:
            offset, text = lines_in(file, begin, end, sources)
        except pa.ArrowInvalid:  # The line is too long, or the file is compressed.
            return error
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
        try:
            offset, text = lines_in(file, begin, end, sources)
        except pa.ArrowInvalid:  # The line is too long, or the file is compressed.
            return error
        for number, line in enumerate(text.split(b"\n"), 1):
            try:
                line.decode()
            except UnicodeDecodeError:
                return f"{error} (line {lines_before(file, offset, sources) + number} of the file)"
        return error


def lines_in(file: InputFile, begin: int, end: int, sources: Sources) -> tuple[int, bytes]:
    """The lines that begin in a span, each ended by LF, and the offset of the first.

    Raises:
        LongLine: The last one is longer than the memory of a reader.
    """
    # With the byte before: if it ends a line, the next line begins with the span.
    before = min(begin, 1)
    start, length = begin - before, end - begin + before
    with sources.open(file) as opened:
        opened.seek(start)
        text = opened.read(length + TAIL_BYTES)
        if not begin and (why := compression(text)):
            raise pa.ArrowInvalid(f"the file {why}")
        ends_with = LF if LF in text or CR not in text else line_end(file, sources)
        text = text.replace(ends_with, LF)
        first = text.find(b"\n") + 1 if before else 0
        if first >= length or (before and not first):
            return end, b""
        if last := text.find(b"\n", length - 1) + 1:
            return start + first, text[first:last]
        pieces, size = [text[first:]], 0
        for piece in line_pieces(opened, ends_with):
            pieces.append(piece.replace(ends_with, LF))
            size += len(piece)
            if size > sources.reader_bytes:
                raise LongLine(
                    f"a line has more than {sources.reader_bytes} bytes, which is all that a "
                    "thread has memory for; use more memory or fewer workers"
                )
    return start + first, b"".join(pieces)


def line_pieces(opened: BinaryIO, ends_with: bytes) -> Iterator[bytes]:
    """A line from here on, piece by piece; it may extend to the end of the file."""
    while piece := opened.read(LINE_BYTES):
        end = piece.find(ends_with) + 1
        yield piece[:end] if end else piece
        if end:
            return


def line_end(file: InputFile, sources: Sources) -> bytes:
    """The byte that ends a file's lines, by its beginning."""
    return sources.cached(file, _line_end)


def _line_end(file: InputFile, sources: Sources) -> bytes:
    with sources.open(file) as opened:
        beginning = opened.read(LINE_BYTES)
    return CR if CR in beginning[:-1] and LF not in beginning else LF


def with_lf(text: bytes, file: InputFile, sources: Sources) -> bytes:
    """Lines, each ended by LF."""
    return text.replace(line_end(file, sources), LF) if CR in text else text


def compression(beginning: bytes) -> str | None:
    """What is wrong with a file that begins so, if it is compressed."""
    for name, magic in COMPRESSED.items():
        if magic.match(beginning):
            return f"is compressed with {name}; decompress it first"
    return None


def lines_before(file: InputFile, offset: int, sources: Sources) -> int:
    ends_with = line_end(file, sources)
    with sources.open(file) as opened:
        parts = range(0, offset, BEGINNING_BYTES)
        return sum(opened.read(min(BEGINNING_BYTES, offset - at)).count(ends_with) for at in parts)


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
