"""Chunks dealt to the nodes of a fleet while they reduce: each gets more as it needs them.

Towards the end a node has less ahead: no more than what it will be the one to do of what is left,
as fast as it was so far, so that all come to their end at the same time. Who has become slow since,
and would keep the others waiting, gives chunks back that it has not come to, and gets no more.

A node's list of chunks only grows. Whenever it tells how far it is, it is sent what it does not
have yet of its list; so what is lost on the way is sent again, and what comes twice is taken once.
What it has given back it says itself: either it has reduced a chunk, or another one may.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tonnage.cluster.protocol import Heartbeat
from tonnage.cluster.worker_pool import WorkerPool
from tonnage.run.reduce.cluster.chunk_ledger import ChunkLedger
from tonnage.run.reduce.cluster.messages import (
    ChunkRetrieved,
    ChunksArrived,
    ChunksReturned,
    MoreChunks,
    Reduce,
    ReturnChunks,
)
from tonnage.run.reduce.local_round import NumberedChunk

IN_TRANSIT = 4
"""Chunks that a node has reduced before it can be sent others."""
EARLY = 8
"""A node's part of so much of what there is is counted as if all were equally fast."""
MIN_PENDING = 2
"""Chunks that a node has at least: one that is fetched, and the next."""
SOON_SECONDS = 1.0
"""Nobody gives back what it will have done by then, or says so little of how fast it is."""
RETURN_FACTOR = 2.0
"""Who gives back would take so many times as long as the one that is to help."""
KNOWN_SECONDS = 0.3
"""From then on it is known how fast a node is; who has ended before is not waited for by others."""
RECENT_SECONDS = 5.0
"""So long ago says how fast a node is now."""


@dataclass
class NodeQueue:
    """What a node has of a step.

    Attributes:
        ahead: How many chunks it has that have not come to be reduced: as many as it asks for at
            once, and some for the way.
        began: When.
    """

    ahead: int
    began: float
    assigned: list[NumberedChunk] = field(default_factory=list)
    assigned_bytes: int = 0
    retrieved: int = 0
    retrieved_bytes: int = 0
    returned: set[int] = field(default_factory=set)
    """The numbers of chunks that it gave back."""
    returned_bytes: int = 0
    arrived: int = 0
    """How many of those that it was dealt have arrived there."""
    knows_last: bool = False
    """It has heard that there are no more."""
    is_last: bool = False
    """It was told so."""
    is_returning: bool = False
    """It was asked to give chunks back; it gets no more."""
    return_asked_at: float | None = None
    """When, as long as it has not answered."""
    received: deque[tuple[float, int]] = field(default_factory=deque)
    """Bytes by then, lately: of chunks that are not whole yet as well."""
    progressed_at: float = 0.0
    """When it last had received more than before."""

    @property
    def received_bytes(self) -> int:
        """So far."""
        return self.received[-1][1] if self.received else 0

    @property
    def pending(self) -> int:
        """Chunks that have not come to be reduced."""
        return len(self.assigned) - self.retrieved - len(self.returned)

    @property
    def pending_bytes(self) -> int:
        """Of these."""
        return self.assigned_bytes - self.retrieved_bytes - self.returned_bytes

    def can_return(self, now: float) -> bool:
        """Whether it has something to give back, and was not just asked for that."""
        return self.pending > 0 and (
            self.return_asked_at is None or self.return_asked_at < now - RECENT_SECONDS
        )

    def note_received(self, now: float, received: int) -> None:
        """It has received so many bytes."""
        if received > self.received_bytes:
            self.progressed_at = now
        self.received.append((now, received))
        while self.received[0][0] < now - RECENT_SECONDS and len(self.received) > 1:
            self.received.popleft()

    def seconds_for(self, bytes_: int) -> float:
        """What it would take for so many more, as fast as while it received some."""
        passed = self.progressed_at - self.began
        return bytes_ * passed / self.received_bytes if self.received_bytes else float("inf")

    def seconds_left(self, now: float) -> float:
        """What it will take for what it has, as fast as lately; nothing while that is unknown."""
        if now - self.began < KNOWN_SECONDS or not self.pending:
            return 0.0
        missing = self.assigned_bytes - self.returned_bytes - self.received_bytes
        if missing > 0:
            then, before = self.received[0] if len(self.received) > 1 else (self.began, 0)
            moved, of = self.received_bytes - before, missing
            passed = now - then
        else:  # All is there, and is to be reduced.
            moved, of, passed = self.retrieved_bytes, self.pending_bytes, now - self.began
        return of * passed / moved if moved else float("inf")


class ChunkAssignment:
    """One step ``reduce`` of all nodes.

    Args:
        crew: Whose.
        ledger: Who has what.
        nodes: Who takes part.
        ahead: How many chunks a node has at first.
        on_came: Called when chunks have come.
        clock: Seconds since some moment.
    """

    def __init__(
        self,
        crew: WorkerPool,
        ledger: ChunkLedger,
        nodes: Sequence[str],
        ahead: int,
        on_came: Callable[[], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._pool, self._ledger, self._on_came = crew, ledger, on_came
        self._clock = clock
        self._queues = {node: NodeQueue(ahead, clock()) for node in nodes}
        self._least = max(ledger.left_bytes // (EARLY * len(self._queues)), 1)
        self._checkpoints: dict[str, dict[int, tuple[bytes, list[int]]]] = {}
        self._is_ending = False
        self.ended_at: dict[str, float] = {}

    def first_steps(self, number: int, known: bytes) -> dict[str, Reduce]:
        """What nodes are asked: the first chunks go along, dealt one by one, so that all have some.

        Args:
            number: Of the round.
            known: What the one before came to, packed.
        """
        for _ in range(max((share.ahead for share in self._queues.values()), default=0)):
            for node in self._queues:
                self._assign(node)
        return {
            node: Reduce(number, known, share.assigned, self._update_is_last(node))
            for node, share in self._queues.items()
        }

    def on_heartbeat(self, node: str, told: Heartbeat) -> None:
        """Hears how far a node is, and sends it what it needs."""
        share, now = self._queues[node], self._clock()
        share.note_received(now, told.done_bytes)
        before = len(share.returned)
        for news in told.news:
            match news:
                case ChunkRetrieved(number, ahead):
                    self._ledger.note_retrieved(number)
                    share.retrieved += 1
                    share.retrieved_bytes += self._ledger.handed_out[number].chunk.bytes
                    share.ahead = ahead + IN_TRANSIT
                case ChunksArrived(count, last):
                    share.arrived, share.knows_last = count, last
                case ChunksReturned(numbers):
                    self._note_returned(share, numbers)
                case _:
                    of_node = self._checkpoints.setdefault(node, {})
                    _, before_it = of_node.get(news.worker, (b"", []))
                    of_node[news.worker] = news.content, [*before_it, *news.chunks]
        self._on_came()
        if told.result:
            self.ended_at[node] = now
            return
        # Who is lost can take part again, if all come to an end first.
        members = self._pool.workers
        self._is_ending = self._is_ending or any(
            members[each].lost is not None for each in self._queues
        )
        self._serve(node, now)
        if len(share.returned) > before:  # Others wait for these.
            for other in self._queues.keys() - {node} - self.ended_at.keys():
                if members[other].lost is None:
                    self._serve(other, now)

    def numbers(self, node: str) -> set[int]:
        """The numbers of all chunks that a node was dealt, and has not given back."""
        share = self._queues[node]
        return {number for number, _ in share.assigned} - share.returned

    def take_checkpoints(self, node: str) -> list[bytes]:
        """The objects that a node has sent; what is in them is not to be reduced again."""
        found = self._checkpoints.pop(node, {}).values()
        for _, numbers in found:
            self._ledger.note_checkpointed(numbers)
        return [whole for whole, _ in found]

    def _serve(self, node: str, now: float) -> None:
        """Sends a node what it needs."""
        share = self._queues[node]
        while self._wants(node) and self._assign(node):
            pass
        if self._wants(node):
            self._rebalance(node, now)
        last = self._update_is_last(node)
        if share.arrived < len(share.assigned) or last != share.knows_last:
            more = share.assigned[share.arrived :]
            self._pool.notify(node, MoreChunks(share.arrived, more, last))

    def _wants(self, node: str) -> bool:
        """Whether it has fewer chunks than it is to have."""
        share = self._queues[node]
        if share.is_last or share.is_returning:
            return False
        if share.pending < MIN_PENDING:
            return True
        # Before much was received all are as fast as each other.
        part = (share.received_bytes + self._least) / sum(
            each.received_bytes + self._least for each in self._queues.values()
        )
        return share.pending < share.ahead and share.pending_bytes < part * self._ledger.left_bytes

    def _assign(self, node: str) -> bool:
        if self._is_ending or (dealt := self._ledger.next(node)) is None:
            return False
        share = self._queues[node]
        share.assigned.append(dealt)
        share.assigned_bytes += dealt[1].bytes
        return True

    def _rebalance(self, node: str, now: float) -> None:
        """Asks who will take longest to give half of that back, if this one is much faster."""
        others = {
            each: share.seconds_left(now)
            for each, share in self._queues.items()
            if each != node and share.can_return(now) and self._pool.workers[each].lost is None
        }
        slowest = max(others, key=lambda each: others[each], default=node)
        share = self._queues[slowest]
        if self._is_ending or slowest == node:
            return
        own = self._queues[node].seconds_for(share.assigned[-1][1].bytes)
        if others[slowest] > max(SOON_SECONDS, RETURN_FACTOR * own):
            share.is_returning, share.return_asked_at = True, now
            self._pool.notify(slowest, ReturnChunks((share.pending + 1) // 2))

    def _note_returned(self, share: NodeQueue, numbers: Sequence[int]) -> None:
        """A node has given chunks back: others may have them."""
        share.return_asked_at = None
        for number in numbers:
            self._ledger.note_returned(number)
            share.returned.add(number)
            share.returned_bytes += self._ledger.handed_out[number].chunk.bytes

    def _update_is_last(self, node: str) -> bool:
        """Whether there is nothing more for a node, nor will be."""
        share, now = self._queues[node], self._clock()
        others = (each for each in self._queues.values() if each is not share)
        share.is_last = (
            share.is_last
            or self._is_ending
            or share.is_returning
            or not (
                self._ledger.has_for(node)
                or any(other.seconds_left(now) > SOON_SECONDS for other in others)
            )
        )
        return share.is_last
