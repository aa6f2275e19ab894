"""Rows of a fixed width: files of nothing else, NumPy's own files, and records of MapReduce."""

import io
import re
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from tonnage.base import core
from tonnage.run.formats.format import Chunk, ChunkFormat, Rows, invalid_file
from tonnage.run.formats.splittable import SplitFormat
from tonnage.run.storage.sources import InputFile, Sources

FIELD_END = re.compile(r",(?=[^,:()]+:)")
"""Between fields with names."""
PARSER = threading.Lock()
"""Held while NumPy parses a header: before 3.12, Python's `ast` fails when two threads use it."""


class FixedWidth(ChunkFormat):
    """Rows of a NumPy type, like ``8f8``, one after another."""

    NAME = "rows"
    READS_TO_CUT = False

    def __init__(self, row: str | None) -> None:
        if row is None:
            raise core.UsageError(
                "specify the type of a row, for example 8f8 for eight 64-bit floats",
                setting="dtype",
            )
        self.dtype = parse_dtype(row)
        super().__init__(dtype_text(self.dtype))

    def chunks(
        self, number: int, file: InputFile, chunk_bytes: int, sources: Sources
    ) -> Iterator[Chunk]:
        return self._cut_from(number, file, 0, chunk_bytes)

    def first_rows(self, chunk: Chunk, rows: int) -> Chunk:
        length = min(chunk.bytes, rows * self.dtype.itemsize)
        return chunk._replace(bytes=length, rows=length // self.dtype.itemsize)

    def decode(self, data: Any, file: InputFile, chunk: Chunk, sources: Sources) -> Rows:
        return np.frombuffer(data, self.dtype)

    def _cut_from(
        self, number: int, file: InputFile, begin: int, chunk_bytes: int
    ) -> Iterator[Chunk]:
        length = self.dtype.itemsize
        refuse_partial_row(file, begin, length)
        count = (file.bytes - begin) // length
        most = max(chunk_bytes // length, 1)
        for first in range(0, count, most):
            here = min(most, count - first)
            yield Chunk(number, begin + first * length, here * length, here)


class Npy(FixedWidth):
    """NumPy's own files: the header tells the type of the rows."""

    NAME = "npy"
    SUFFIXES = (".npy",)
    READS_TO_CUT = True

    @classmethod
    def row_type(cls, file: InputFile, sources: Sources) -> str:
        return dtype_text(npy_header(file, sources)[0])

    def chunks(
        self, number: int, file: InputFile, chunk_bytes: int, sources: Sources
    ) -> Iterator[Chunk]:
        dtype, begin = npy_header(file, sources)
        self.check_row_type(file, dtype_text(dtype))
        return self._cut_from(number, file, begin, chunk_bytes)

    def header(self, chunks: Sequence[Chunk], file: InputFile, sources: Sources) -> bytes:
        count = sum(chunk.rows or 0 for chunk in chunks)
        base, shape = self.dtype.base, self.dtype.shape
        fields = {
            "descr": np.lib.format.dtype_to_descr(base),
            "fortran_order": False,
            "shape": (count, *shape),
        }
        header = io.BytesIO()
        np.lib.format.write_array_header_2_0(header, fields)
        return header.getvalue()


class Records(SplitFormat):
    """Records of a number of bytes each: a column ``record``."""

    NAME = "records"

    def __init__(self, row_bytes: int) -> None:
        self.row_bytes = row_bytes

    def check(self, file: InputFile, sources: Sources) -> int:
        refuse_partial_row(file, 0, self.row_bytes)
        return file.bytes

    def batches(
        self, file: InputFile, begin: int, end: int, schema: Any, sources: Sources
    ) -> Iterator[pa.RecordBatch]:
        with sources.open(file) as opened:
            opened.seek(begin)
            data = opened.read(end - begin)
        buffers = [None, pa.py_buffer(data)]
        length = self.row_bytes
        column = pa.Array.from_buffers(pa.binary(length), len(data) // length, buffers)
        yield pa.record_batch({"record": column})


def refuse_partial_row(file: InputFile, begin: int, row_bytes: int) -> None:
    if rest := (file.bytes - begin) % row_bytes:
        raise core.UsageError(
            f"input {file.name}: its size ({file.bytes} bytes) is not a multiple of the row "
            f"size ({row_bytes}): {rest} extra bytes at offset {file.bytes - rest}"
        )


def parse_dtype(text: str) -> np.dtype[Any]:
    """The type of a row, like ``8f8`` or ``seconds:f8,user:i8``; `UsageError` if it is none."""
    # A name begins a field; the field's type may contain commas.
    named = [each.split(":", 1) for each in FIELD_END.split(text)] if ":" in text else None
    try:
        dtype = np.dtype([(name.strip(), of) for name, of in named] if named else text)
    except (TypeError, ValueError, SyntaxError) as why:
        raise core.UsageError(
            f"{text} is not a NumPy type ({why}); write it like 8f8, i4,i4 or seconds:f8,user:i8",
            setting="dtype",
        ) from why
    if dtype.hasobject or not dtype.itemsize:
        raise core.UsageError(
            f"{text}: its rows have no fixed width; write it like 8f8 or i4,i4", setting="dtype"
        )
    return dtype


def dtype_text(dtype: np.dtype[Any]) -> str:
    """The text that `parse_dtype` reads."""
    if dtype.names is not None:
        usual = dtype.names == tuple(f"f{place}" for place in range(len(dtype.names)))
        parts = [("" if usual else f"{name}:") + dtype_text(dtype[name]) for name in dtype.names]
        return ",".join(parts)
    base, shape = dtype.base, dtype.shape
    return f"{shape if len(shape) > 1 else shape[0]}{base.str}" if shape else base.str


def npy_header(file: InputFile, sources: Sources) -> tuple[np.dtype[Any], int]:
    """A row's type in a NumPy file, and the first one's offset; rows have to be contiguous."""
    read = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    try:
        with sources.open(file) as opened:
            head = io.BytesIO(opened.read(min(file.bytes, 1 << 16)))
        version = np.lib.format.read_magic(head)
        with PARSER:
            shape, fortran, dtype = read[version](head)
    except (ValueError, KeyError) as why:
        raise invalid_file(file, Npy.NAME, why) from why
    for is_unusable, problem in (
        (dtype.hasobject, "it contains Python objects; save it as numbers"),
        (not shape, "it is a single value; save an array of rows"),
        (fortran and len(shape) > 1, "it is in Fortran order; save numpy.ascontiguousarray of it"),
    ):
        if is_unusable:
            raise core.UsageError(f"input {file.name}: {problem}")
    row = np.dtype((dtype, shape[1:])) if len(shape) > 1 else dtype
    if parse_dtype(dtype_text(row)) != row:
        raise core.UsageError(
            f"input {file.name}: its fields are padded or nested; save it with packed fields of "
            "numbers"
        )
    if head.tell() + shape[0] * row.itemsize != file.bytes:
        told = head.tell() + shape[0] * row.itemsize
        raise invalid_file(file, Npy.NAME, f"it has {file.bytes} bytes, but its header says {told}")
    return row, head.tell()
