"""Rows of a size, one after another: files of nothing else, and NumPy's own."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tonnage.base import core
from tonnage.run.formats.format import Chunk, Format, Rows
from tonnage.run.storage.sources import InputFile, Sources

NAMED = re.compile(r",(?=[^,:()]+:)")
"""Between fields of a row that have names."""


class FixedWidth(Format):
    """Rows of a size, one after another.

    Args:
        row: Their type, like ``8f8``.
    """

    NAME = "rows"
    LOOKS = False

    def __init__(self, row: str | None) -> None:
        if row is None:
            raise core.UsageError("--dtype: say what a row is, like 8f8: eight numbers of 64 bits")
        self.dtype = parse_dtype(row)
        super().__init__(dtype_text(self.dtype))

    def cut(
        self, place: int, file: InputFile, chunk_bytes: int, sources: Sources
    ) -> Iterator[Chunk]:
        """Cuts at multiples of a row."""
        return self._from(place, file, 0, chunk_bytes)

    def beginning(self, chunk: Chunk, rows: int) -> Chunk:
        """So many of its rows."""
        length = min(chunk.bytes, rows * self.dtype.itemsize)
        return chunk._replace(bytes=length, rows=length // self.dtype.itemsize)

    def rows(self, data: Any, file: InputFile, chunk: Chunk, sources: Sources) -> Rows:
        """A view of them."""
        return np.frombuffer(data, self.dtype)

    def _from(self, place: int, file: InputFile, begin: int, chunk_bytes: int) -> Iterator[Chunk]:
        length = self.dtype.itemsize
        count, rest = divmod(file.bytes - begin, length)
        if rest:
            raise core.UsageError(
                f"input {file.name}: its {file.bytes} bytes are no multiple of the row's {length}; "
                f"after the last whole row, at offset {begin + count * length}, {rest} bytes are "
                "left: cut the file there, or mend --dtype"
            )
        most = max(chunk_bytes // length, 1)
        for first in range(0, count, most):
            here = min(most, count - first)
            yield Chunk(place, begin + first * length, here * length, here)


class Npy(FixedWidth):
    """NumPy's own files: rows of a size after a header, which says it."""

    NAME = "npy"
    LOOKS = True

    @classmethod
    def row_of(cls, file: InputFile, sources: Sources) -> str:
        """The type that its header says."""
        return dtype_text(npy_rows(file, sources)[0])

    def cut(
        self, place: int, file: InputFile, chunk_bytes: int, sources: Sources
    ) -> Iterator[Chunk]:
        """Cuts after the header, which has to say the same type as the others'."""
        dtype, begin = npy_rows(file, sources)
        self.refuse_others(file, dtype_text(dtype))
        return self._from(place, file, begin, chunk_bytes)

    def head(self, chunks: Sequence[Chunk], file: InputFile, sources: Sources) -> bytes:
        """A header that says how many rows there are."""
        count = sum(chunk.rows or 0 for chunk in chunks)
        base, shape = self.dtype.base, self.dtype.shape
        said = {
            "descr": np.lib.format.dtype_to_descr(base),
            "fortran_order": False,
            "shape": (count, *shape),
        }
        header = io.BytesIO()
        np.lib.format.write_array_header_2_0(header, said)
        return header.getvalue()


def parse_dtype(text: str) -> np.dtype[Any]:
    """The type of a row, like ``8f8`` or ``i4,i4`` or ``seconds:f8,user:i8``.

    Raises:
        UsageError: It is none, or one whose rows are objects.
    """
    # Names, if there are any, stand before: each begins a field, which may have commas itself.
    named = [each.split(":", 1) for each in NAMED.split(text)] if ":" in text else None
    try:
        found = np.dtype([(name.strip(), of) for name, of in named] if named else text)
    except (TypeError, ValueError, SyntaxError) as why:
        raise core.UsageError(
            f"--dtype {text}: it is no type of NumPy's ({why}); write it like 8f8, i4,i4 or "
            "seconds:f8,user:i8"
        ) from why
    if found.hasobject or not found.itemsize:
        raise core.UsageError(f"--dtype {text}: its rows have no size; write it like 8f8 or i4,i4")
    return found


def dtype_text(dtype: np.dtype[Any]) -> str:
    """What `dtype_of` makes the type of again."""
    if dtype.names is not None:
        usual = dtype.names == tuple(f"f{place}" for place in range(len(dtype.names)))
        parts = [("" if usual else f"{name}:") + dtype_text(dtype[name]) for name in dtype.names]
        return ",".join(parts)
    base, shape = dtype.base, dtype.shape
    return f"{shape if len(shape) > 1 else shape[0]}{base.str}" if shape else base.str


def npy_rows(file: InputFile, sources: Sources) -> tuple[np.dtype[Any], int]:
    """The type of a row of a file of NumPy's, and where rows begin.

    Raises:
        UsageError: It is none, or its rows are not one after another.
    """
    read = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    try:
        with sources.open(file) as opened:
            head = io.BytesIO(opened.read(min(file.bytes, 1 << 16)))
        version = np.lib.format.read_magic(head)
        shape, fortran, dtype = read[version](head)
    except (ValueError, KeyError) as why:
        raise core.UsageError(f"input {file.name} is no whole npy file: {why}") from why
    if dtype.hasobject or (fortran and len(shape) > 1) or not shape:
        raise core.UsageError(
            f"input {file.name}: its rows are not one after another: save it in C order, as numbers"
        )
    row = np.dtype((dtype, shape[1:])) if len(shape) > 1 else dtype
    if parse_dtype(dtype_text(row)) != row:
        raise core.UsageError(
            f"input {file.name}: between its fields is room, or they have fields themselves: save "
            "it with fields of numbers, packed"
        )
    if head.tell() + shape[0] * row.itemsize != file.bytes:
        raise core.UsageError(
            f"input {file.name} is no whole npy file: it has {file.bytes} bytes, and its header "
            f"says {head.tell() + shape[0] * row.itemsize}"
        )
    return row, head.tell()
