"""The pool of chunks: which of them is asked for next.

**Selective** (MATE-EC2, "Support for Threaded Retrieval and Selective Job Assignment"): of the file
from which fewest chunks are under way, and among equals of the one whose turn it is, so that no
object has to serve all who ask. **Sequential**: file after file, as they are listed, to compare.

Towards the end chunks become shorter, so that nobody waits long for who has the last: none is
longer than a share of what is left (Polychronopoulos and Kuck, "Guided Self-Scheduling", 1987),
where its format can be cut at any row.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable

from tonnage.run.formats.format import Chunk

SELECTIVE, SEQUENTIAL = "selective", "sequential"
ASSIGNMENTS = (SELECTIVE, SEQUENTIAL)
LEFT_SHARE = 2
"""What is left makes so many chunks for each who takes them, at least."""
MIN_CHUNK_BYTES = 1 << 20
"""Shorter ones are not made: a request is to be worth it, and so is the call that reduces them."""


class ChunkPool:
    """Chunks that nobody has yet, and those that are under way. One thread's.

    Files wait on levels, by how many of their chunks are under way, on each in turn.

    Args:
        chunks: All of them, by number.
        assignment: ``selective`` or ``sequential``.
        takers: How many reduce chunks.
        beginning: Gives the beginning of a chunk, of so many rows, or all of it if it cannot be cut
            (`ChunkFormat.first_rows`).
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
        self._climbs = int(assignment == SELECTIVE)  # Else files stay where they are.

    def next(self) -> int | None:
        """The number of the chunk to ask for; ``None`` if there is none left."""
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
        """Whether there is one left."""
        return any(self._levels)

    @property
    def left_bytes(self) -> int:
        """Of chunks that nobody has."""
        return self._left_bytes

    @property
    def left(self) -> list[Chunk]:
        """Chunks that nobody has."""
        return [self.chunks[number] for left in self._left.values() for number in left]

    def done(self, number: int) -> None:
        """A chunk has come, or is nobody's any more: one fewer is under way from its file."""
        if self._climbs:
            self._move(self.chunks[number].file, -1)

    def put_back(self, number: int) -> None:
        """Whoever had it is lost, with what was made of it: it is to be done again."""
        file = self.chunks[number].file
        self._left[file].appendleft(number)
        self._left_bytes += self.chunks[number].bytes
        self._move(file, 0)

    def _shorten(self, number: int) -> None:
        """Cuts a chunk that is long for what is left; its rest is a chunk that nobody has."""
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
        """Moves a file up or down, to the end of a level, if it has chunks left."""
        self._levels[self._level[file]].pop(file, None)
        level = self._level[file] = self._level[file] + by
        while level >= len(self._levels):
            self._levels.append({})
        if self._left[file]:
            self._levels[level][file] = None
            self._lowest = min(self._lowest, level)
