"""Who has the chunks of a round on a fleet: nobody yet, a machine, or an object that is kept. Pure.

A chunk is in exactly one of these at a time, so each is in the round's result once. What a machine
that is lost had goes back, but what is in objects that it had sent before. Chunks of files that
fewest machines can read come first, so each machine does what is near to it, and helps with the
rest when that is done (MATE-EC2's successor: Bicer, Chiu and Agrawal, "A Framework for
Data-Intensive Computing with Cloud Bursting", 2011).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

from tonnage.run.formats.format import Chunk
from tonnage.run.reduce.chunk_pool import SELECTIVE, ChunkPool


@dataclass
class HandedOut:
    """A chunk that was handed out.

    Attributes:
        chunk: Which.
        node: To whom.
        came: Whether it was retrieved there.
        kept: Whether it is in an object that outlives the machine.
        back: Whether it was given back: the machine was lost, or is slow.
    """

    chunk: Chunk
    node: str
    _pool: ChunkPool
    _number: int
    retrieved: bool = False
    checkpointed: bool = False
    returned: bool = False


class ChunkLedger:
    """The chunks of a round.

    Args:
        chunks: All of them.
        holders: Of each file, by its place, the machines that can read it; ``None`` for all.
        assignment: ``selective`` or ``sequential``.
        takers: How many reduce chunks, on all machines.
        beginning: Gives the beginning of a chunk (`Pool`).
    """

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
        """All that were handed out, by the numbers that they have there."""
        self._of: dict[str, list[int]] = {}
        self.retrieved_bytes = 0
        """Of chunks that were retrieved, and are not to be again."""

    def has_for(self, node: str) -> bool:
        """Whether there is a chunk for this machine now."""
        return any(pool.has_more for of, pool in self._pools if of is None or node in of)

    def next(self, node: str) -> tuple[int, Chunk] | None:
        """Hands out a chunk, with its number; ``None`` if there is none for this machine now."""
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
        """Of chunks that nobody has."""
        return sum(pool.left_bytes for _, pool in self._pools)

    def note_retrieved(self, number: int) -> None:
        """A chunk was retrieved."""
        out = self.handed_out[number]
        if not (out.retrieved or out.returned):
            out.retrieved = True
            self.retrieved_bytes += out.chunk.bytes
            out._pool.done(out._number)

    def note_checkpointed(self, numbers: Iterable[int]) -> None:
        """These chunks are in an object that outlives the machine that reduced them."""
        for number in numbers:
            assert not self.handed_out[number].returned
            self.handed_out[number].checkpointed = True

    def note_returned(self, number: int) -> None:
        """A machine will not reduce this chunk, which has not come; twice is as good as once."""
        out = self.handed_out[number]
        assert not (out.retrieved or out.checkpointed)
        if not out.returned:
            out._pool.done(out._number)
            out.returned = True
            out._pool.put_back(out._number)

    def note_lost(self, node: str) -> list[Chunk]:
        """What a machine had that is lost is handed out again; gives it."""
        found = []
        for number in self._of.pop(node, []):
            out = self.handed_out[number]
            if out.checkpointed or out.returned:
                continue
            if out.retrieved:
                self.retrieved_bytes -= out.chunk.bytes
            else:
                out._pool.done(out._number)
            out.returned = True
            out._pool.put_back(out._number)
            found.append(out.chunk)
        return found

    def chunks_of(self, node: str) -> list[int]:
        """The numbers of the chunks that a machine has."""
        return [number for number in self._of.get(node, ()) if not self.handed_out[number].returned]

    def remaining(self, nodes: Collection[str]) -> tuple[bool, list[Chunk]]:
        """Whether these machines have chunks to be handed out, and those that none can read."""
        there, unread = False, []
        for of, pool in self._pools:
            if of is None or of.intersection(nodes):
                there = there or pool.has_more
            else:
                unread += pool.left
        return there, unread

    @property
    def is_complete(self) -> bool:
        """Whether each byte of the input is with a machine, or in an object that is kept, once."""
        return sum(out.chunk.bytes for out in self.handed_out if not out.returned) == self._bytes
