"""The pool of chunks: which of them is next.

**Selective** (MATE-EC2, "Support for Threaded Retrieval and Selective Job Assignment"): from the
file with the fewest chunks in flight, in turn among equals, so that no object serves all requests.
**Sequential**: file after file as they are listed, for comparison.

Towards the end chunks become shorter, so that workers wait less for the last one. If its format can
be cut at any row, none is longer than a share of the rest (Polychronopoulos and Kuck, "Guided
Self-Scheduling", 1987).
"""

from collections import deque
from collections.abc import Callable, Iterable

from tonnage.run.formats.format import Chunk

SELECTIVE, SEQUENTIAL = "selective", "sequential"
ASSIGNMENTS = (SELECTIVE, SEQUENTIAL)
LEFT_SHARE = 2
"""The rest makes at least this many chunks for each worker."""
MIN_CHUNK_BYTES = 1 << 20
"""Shorter ones are not worth a request and a call."""


class ChunkPool:
    """Chunks that wait, and those in flight; for one thread.

    Files are on levels by their number of chunks in flight, and take turns on each level.

    Args:
        assignment: ``selective`` or ``sequential``.
        first_rows: Cuts a chunk after some rows (`ChunkFormat.first_rows`).
    """

    def __init__(
        self,
        chunks: Iterable[Chunk],
        assignment: str = SELECTIVE,
        workers: int = 1,
        first_rows: Callable[[Chunk, int], Chunk] = lambda chunk, _: chunk,
    ) -> None:
        self.chunks = list(chunks)
        self._workers, self._first_rows = workers, first_rows
        self._left_bytes = sum(chunk.bytes for chunk in self.chunks)
        self._left: dict[int, deque[int]] = {}
        for number, chunk in enumerate(self.chunks):
            self._left.setdefault(chunk.file, deque()).append(number)
        self._level = dict.fromkeys(self._left, 0)
        self._levels: list[dict[int, None]] = [dict.fromkeys(self._left)]
        self._lowest = 0
        self._climbs = int(assignment == SELECTIVE)  # Sequential files stay on their level.

    def next(self) -> int | None:
        """The number of the next chunk; ``None`` if there is none left."""
        while self._lowest < len(self._levels) and not self._levels[self._lowest]:
            self._lowest += 1
        if self._lowest == len(self._levels):
            return None
        file = next(iter(self._levels[self._lowest]))
        number = self._left[file].popleft()
        self._shorten(number)
        self._left_bytes -= self.chunks[number].bytes
        if self._climbs or not self._left[file]:
            self._move(file, self._climbs)
        return number

    @property
    def has_more(self) -> bool:
        return any(self._levels)

    @property
    def left_bytes(self) -> int:
        return self._left_bytes

    @property
    def remaining(self) -> list[Chunk]:
        return [self.chunks[number] for left in self._left.values() for number in left]

    def note_done(self, number: int) -> None:
        if self._climbs:
            self._move(self.chunks[number].file, -1)

    def put_back(self, number: int) -> None:
        """Let a chunk wait again: its worker is lost with its results."""
        file = self.chunks[number].file
        self._left[file].appendleft(number)
        self._left_bytes += self.chunks[number].bytes
        self._move(file, 0)

    def _shorten(self, number: int) -> None:
        """Cut a chunk that is long compared with the rest; what is cut off waits."""
        whole = self.chunks[number]
        most = max(self._left_bytes // (LEFT_SHARE * self._workers), MIN_CHUNK_BYTES)
        if whole.rows is None or whole.bytes <= most:
            return
        first = self._first_rows(whole, max(whole.rows * most // whole.bytes, 1))
        if first.rows is None or first.bytes == whole.bytes:
            return
        rest = whole._replace(
            offset=whole.offset + first.bytes,
            bytes=whole.bytes - first.bytes,
            rows=whole.rows - first.rows,
        )
        self.chunks[number] = first
        self.chunks.append(rest)
        self._left[whole.file].appendleft(len(self.chunks) - 1)

    def _move(self, file: int, by: int) -> None:
        """Move a file to the end of a level, if it has chunks that wait."""
        self._levels[self._level[file]].pop(file, None)
        level = self._level[file] = self._level[file] + by
        while level >= len(self._levels):
            self._levels.append({})
        if self._left[file]:
            self._levels[level][file] = None
            self._lowest = min(self._lowest, level)
