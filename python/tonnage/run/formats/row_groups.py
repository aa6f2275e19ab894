"""Row groups of Parquet files, each decoded out of its own bytes, which are in memory already.

Arrow is not left to read ahead (``pre_buffer``): its threads would read memory without any gain,
and let go of it when they get to it, which may be while the interpreter ends: the process aborts.
"""

from __future__ import annotations

import io
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq


def span(about: pq.FileMetaData, number: int) -> tuple[int, int]:
    """Where the bytes of a row group begin in the file, and how many they are.

    Args:
        about: The file's footer.
        number: Of a row group that has rows: another may have no pages.
    """
    group = about.row_group(number)
    columns = [group.column(each) for each in range(group.num_columns)]
    begin = min(map(_begin, columns))
    return begin, max(_begin(each) + each.total_compressed_size for each in columns) - begin


def opened(about: pq.FileMetaData, file_bytes: int, begin: int, data: Any) -> pq.ParquetFile:
    """The file as if all of it were there; to be closed.

    Args:
        about: The file's footer.
        file_bytes: The file's length.
        begin: Where a row group begins.
        data: Its bytes.
    """
    window = pa.PythonFile(_Window(memoryview(data), begin, file_bytes), "r")
    return pq.ParquetFile(window, metadata=about, pre_buffer=False)


class _Window(io.RawIOBase):
    """A file of which only a span is there."""

    def __init__(self, data: memoryview, begin: int, length: int) -> None:
        self._data, self._begin, self._length, self._at = data, begin, length, begin

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = 0) -> int:
        self._at = (0, self._at, self._length)[whence] + offset
        return self._at

    def read(self, size: int | None = -1) -> bytes:
        begin = self._at - self._begin
        end = len(self._data) if size is None or size < 0 else begin + size
        if begin < 0 or end > len(self._data):
            raise OSError(f"bytes {self._at} to {self._begin + end} are outside of the row group")
        self._at += end - begin
        return bytes(self._data[begin:end])


def _begin(column: Any) -> int:
    """Where a column's part of a row group begins."""
    pages = [column.data_page_offset, column.dictionary_page_offset]
    return min(int(page) for page in pages if page)
