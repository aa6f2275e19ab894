"""Formats whose files are read in splits: by offsets, or by units such as row groups."""

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar

import pyarrow as pa

from tonnage.run.formats.format import Format
from tonnage.run.storage.sources import InputFile, Sources


class SplitFormat(Format):
    """A format whose files are read in splits, each from ``begin`` to ``end``.

    Both are numbers of a file's units (row groups, batches), or offsets in bytes without units.
    """

    UNIT: ClassVar[str | None] = None
    row_bytes: int = 1
    """Splits begin at multiples of it."""

    def check(self, file: InputFile, sources: Sources) -> int:
        """Refuse a file that is not of this format; gives its approximate size in memory."""
        return file.bytes

    def splits(
        self, file: InputFile, span: tuple[int, int], split_bytes: int, sources: Sources
    ) -> list[tuple[int, int]]:
        """The splits that begin in a span of a file's bytes.

        Spans that cover a file give each split once; they begin at multiples of ``row_bytes``.
        """
        begin, end = span
        step = max(split_bytes // self.row_bytes, 1) * self.row_bytes
        return [(at, min(at + step, end)) for at in range(begin, end, step)]

    def shortened(self, begin: int, end: int, split_bytes: int) -> int:
        """The end of a split that is cut to about this size, if it can be."""
        if self.UNIT is not None:
            return end
        return min(begin + max(split_bytes // self.row_bytes, 1) * self.row_bytes, end)

    def schema(self, file: InputFile, given: pa.Schema | None, sources: Sources) -> Any:
        """The columns of a text file, as given or by its beginning; ``None`` of other files."""
        return None

    @abstractmethod
    def batches(
        self, file: InputFile, begin: int, end: int, schema: Any, sources: Sources
    ) -> Iterator[pa.RecordBatch]:
        """The rows of a split."""

    def locate(self, error: str, file: InputFile, begin: int, end: int, sources: Sources) -> str:
        """An error of reading a split, with the file's line if that is known."""
        return error


class UnitFormat(SplitFormat):
    """A format whose files list their units."""

    @abstractmethod
    def units(self, file: InputFile, sources: Sources) -> int:
        """How many units a file has."""

    def splits(
        self, file: InputFile, span: tuple[int, int], split_bytes: int, sources: Sources
    ) -> list[tuple[int, int]]:
        """Each unit; of ``n`` units one is taken to begin at each ``n``-th of the file's bytes."""
        count, (begin, end) = self.units(file, sources), span
        numbers = [each for each in range(count) if begin <= each * file.bytes // count < end]
        return [(each, each + 1) for each in numbers]
