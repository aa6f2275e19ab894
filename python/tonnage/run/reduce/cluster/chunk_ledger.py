"""Which chunks of a round wait, are at a node, or are in an object that was checkpointed. Pure.

A chunk is in exactly one of these states at a time, so each is in the round's result once. The
chunks of a lost node wait again, except those in its checkpoints. Chunks of files that the fewest
nodes can read come first, so each node reduces what is near to it, and then helps with the rest
(MATE-EC2's successor: Bicer, Chiu and Agrawal, "A Framework for Data-Intensive Computing with Cloud
Bursting", 2011).
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

from tonnage.run.formats.format import Chunk
from tonnage.run.reduce.chunk_pool import SELECTIVE, ChunkPool


@dataclass
class HandedOut:
    """A chunk that was handed out to a node.

    Attributes:
        checkpointed: Whether it is in an object that outlives the node.
        returned: Whether it waits again: the node was lost, or was slow.
    """

    chunk: Chunk
    node: str
    _pool: ChunkPool
    _number: int
    retrieved: bool = False
    checkpointed: bool = False
    returned: bool = False


class ChunkLedger:
    """The chunks of a round; ``holders`` can read each file, by its number (``None``: all)."""

    def __init__(
        self,
        chunks: Iterable[Chunk],
        holders: Sequence[Collection[str] | None],
        assignment: str = SELECTIVE,
        workers: int = 1,
        first_rows: Callable[[Chunk, int], Chunk] = lambda chunk, _: chunk,
    ) -> None:
        groups: dict[frozenset[str] | None, list[Chunk]] = {}
        for chunk in chunks:
            of = holders[chunk.file]
            groups.setdefault(None if of is None else frozenset(of), []).append(chunk)
        self._bytes = sum(chunk.bytes for group in groups.values() for chunk in group)
        self._pools = [
            (of, ChunkPool(groups[of], assignment, workers, first_rows))
            for of in sorted(groups, key=lambda of: (of is None, len(of or ()), sorted(of or ())))
        ]
        self.handed_out: list[HandedOut] = []
        """All chunks that were handed out, by the numbers that nodes use."""
        self._of: dict[str, list[int]] = {}
        self.retrieved_bytes = 0
        """Of chunks that were retrieved and need not be again."""

    def has_for(self, node: str) -> bool:
        return any(pool.has_more for of, pool in self._pools if of is None or node in of)

    def next(self, node: str) -> tuple[int, Chunk] | None:
        """Hand out a chunk, with its number; ``None`` if none waits for this node."""
        for of, pool in self._pools:
            if of is not None and node not in of:
                continue
            if (number := pool.next()) is not None:
                out = HandedOut(pool.chunks[number], node, pool, number)
                self.handed_out.append(out)
                self._of.setdefault(node, []).append(len(self.handed_out) - 1)
                return len(self.handed_out) - 1, out.chunk
        return None

    @property
    def left_bytes(self) -> int:
        return sum(pool.left_bytes for _, pool in self._pools)

    def note_retrieved(self, number: int) -> None:
        out = self.handed_out[number]
        if not (out.retrieved or out.returned):
            out.retrieved = True
            self.retrieved_bytes += out.chunk.bytes
            out._pool.note_done(out._number)

    def note_checkpointed(self, numbers: Iterable[int]) -> None:
        """Note that chunks are in an object that outlives the node that reduced them."""
        for number in numbers:
            assert not self.handed_out[number].returned
            self.handed_out[number].checkpointed = True

    def note_returned(self, number: int) -> None:
        """Let a chunk wait again that a node has not retrieved; repetitions are ignored."""
        out = self.handed_out[number]
        assert not (out.retrieved or out.checkpointed)
        if not out.returned:
            out._pool.note_done(out._number)
            out.returned = True
            out._pool.put_back(out._number)

    def note_lost(self, node: str) -> list[Chunk]:
        """Let the chunks of a lost node wait again; gives them."""
        found = []
        for number in self._of.pop(node, []):
            out = self.handed_out[number]
            if out.checkpointed or out.returned:
                continue
            if out.retrieved:
                self.retrieved_bytes -= out.chunk.bytes
            else:
                out._pool.note_done(out._number)
            out.returned = True
            out._pool.put_back(out._number)
            found.append(out.chunk)
        return found

    def chunks_of(self, node: str) -> list[int]:
        return [number for number in self._of.get(node, ()) if not self.handed_out[number].returned]

    def remaining(self, nodes: Collection[str]) -> tuple[bool, list[Chunk]]:
        """Whether chunks wait for these nodes, and the chunks that none of them can read."""
        there, unread = False, []
        for of, pool in self._pools:
            if of is None or of.intersection(nodes):
                there = there or pool.has_more
            else:
                unread += pool.remaining
        return there, unread

    @property
    def is_complete(self) -> bool:
        """Whether each byte of the input is at a node or in a checkpoint, once."""
        return sum(out.chunk.bytes for out in self.handed_out if not out.returned) == self._bytes
