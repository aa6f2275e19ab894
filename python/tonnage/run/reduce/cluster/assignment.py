"""Assigns chunks to the nodes of a cluster while they reduce: each gets more as it needs them.

Towards the end a node has fewer chunks ahead: its share of the rest, at its speed so far, so that
all nodes end at the same time. A node that has become slow, so that the others would wait for it,
returns chunks that it has not begun, and gets no more.

A node's list of chunks only grows. With each heartbeat it is sent what it does not have yet of its
list: messages that were lost are repeated, and repetitions are ignored. The node itself tells which
chunks it returns, so each is reduced either there or elsewhere.
"""

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tonnage.cluster.protocol import Heartbeat
from tonnage.cluster.worker_pool import WorkerPool
from tonnage.run.reduce.cluster import messages
from tonnage.run.reduce.cluster.chunk_ledger import ChunkLedger
from tonnage.run.reduce.local_round import NumberedChunk

IN_TRANSIT = 4
"""Chunks that a node reduces while others are on their way to it."""
EARLY = 8
"""The first part of the input, one in so many, for which all nodes are assumed equally fast."""
MIN_PENDING = 2
"""The minimum of a node's chunks: one in flight, and the next."""
SOON_SECONDS = 1.0
"""Chunks that will be done sooner are not returned."""
RETURN_FACTOR = 2.0
"""Chunks are returned if the node would take so many times as long as the one that takes over."""
KNOWN_SECONDS = 0.3
"""The time until a node's speed is known."""
RECENT_SECONDS = 5.0
"""The window for a node's current speed."""


@dataclass
class NodeQueue:
    """A node's chunks in a step.

    Attributes:
        ahead: The number of chunks to have there and not reduced, including those in transit.
        returned: The numbers of chunks that the node has given back.
        arrived: How many of the assigned chunks the node has confirmed.
        knows_last: The node has confirmed that there are no more.
        is_last: There are no more chunks for the node, as the driver tells it.
        is_returning: The node was asked to return chunks, and gets no more.
        return_asked_at: When it was asked, until it answers.
        received: Recent times, each with the bytes received by then, including parts of chunks.
    """

    ahead: int
    began: float
    assigned: list[NumberedChunk] = field(default_factory=list)
    assigned_bytes: int = 0
    retrieved: int = 0
    retrieved_bytes: int = 0
    returned: set[int] = field(default_factory=set)
    returned_bytes: int = 0
    arrived: int = 0
    knows_last: bool = False
    is_last: bool = False
    is_returning: bool = False
    return_asked_at: float | None = None
    received: deque[tuple[float, int]] = field(default_factory=deque)
    progressed_at: float = 0.0

    @property
    def received_bytes(self) -> int:
        return self.received[-1][1] if self.received else 0

    @property
    def pending(self) -> int:
        """The number of chunks that are not retrieved yet."""
        return len(self.assigned) - self.retrieved - len(self.returned)

    @property
    def pending_bytes(self) -> int:
        return self.assigned_bytes - self.retrieved_bytes - self.returned_bytes

    def can_return(self, now: float) -> bool:
        """Whether it has chunks to return, and was not asked recently."""
        return self.pending > 0 and (
            self.return_asked_at is None or self.return_asked_at < now - RECENT_SECONDS
        )

    def note_received(self, now: float, received: int) -> None:
        if received > self.received_bytes:
            self.progressed_at = now
        self.received.append((now, received))
        while self.received[0][0] < now - RECENT_SECONDS and len(self.received) > 1:
            self.received.popleft()

    def seconds_for(self, bytes_: int) -> float:
        """The time for more bytes, at the speed while it received some."""
        passed = self.progressed_at - self.began
        return bytes_ * passed / self.received_bytes if self.received_bytes else float("inf")

    def seconds_left(self, now: float) -> float:
        """The time for the node's chunks at its recent speed; 0 while that is unknown."""
        if now - self.began < KNOWN_SECONDS or not self.pending:
            return 0.0
        missing = self.assigned_bytes - self.returned_bytes - self.received_bytes
        if missing > 0:
            then, before = self.received[0] if len(self.received) > 1 else (self.began, 0)
            moved, of = self.received_bytes - before, missing
            passed = now - then
        else:  # All have arrived, and are being reduced.
            moved, of, passed = self.retrieved_bytes, self.pending_bytes, now - self.began
        return of * passed / moved if moved else float("inf")


class ChunkAssignment:
    """The assignment during a step ``reduce`` of all nodes, with ``ahead`` chunks each at first."""

    def __init__(
        self,
        pool: WorkerPool,
        ledger: ChunkLedger,
        nodes: Sequence[str],
        ahead: int,
        on_retrieved: Callable[[], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._pool, self._ledger, self._on_retrieved = pool, ledger, on_retrieved
        self._clock = clock
        self._queues = {node: NodeQueue(ahead, clock()) for node in nodes}
        self._least = max(ledger.left_bytes // (EARLY * len(self._queues)), 1)
        self._checkpoints: dict[str, dict[int, tuple[bytes, list[int]]]] = {}
        self._is_ending = False
        self.ended_at: dict[str, float] = {}

    def first_steps(self, number: int, known: bytes) -> dict[str, messages.Reduce]:
        """The requests that start the step, with the first chunks, one at a time for each node.

        ``number`` is the round's, ``known`` the previous round's result, pickled.
        """
        for _ in range(max((queue.ahead for queue in self._queues.values()), default=0)):
            for node in self._queues:
                self._assign(node)
        return {
            node: messages.Reduce(number, known, queue.assigned, self._update_is_last(node))
            for node, queue in self._queues.items()
        }

    def on_heartbeat(self, node: str, heartbeat: Heartbeat) -> None:
        queue, now = self._queues[node], self._clock()
        queue.note_received(now, heartbeat.done_bytes)
        before = len(queue.returned)
        for news in heartbeat.news:
            match news:
                case messages.ChunkRetrieved(number, ahead):
                    self._ledger.note_retrieved(number)
                    queue.retrieved += 1
                    queue.retrieved_bytes += self._ledger.handed_out[number].chunk.bytes
                    queue.ahead = ahead + IN_TRANSIT
                case messages.ChunksArrived(count, last):
                    queue.arrived, queue.knows_last = count, last
                case messages.ChunksReturned(numbers):
                    self._note_returned(queue, numbers)
                case _:
                    of_node = self._checkpoints.setdefault(node, {})
                    _, before_it = of_node.get(news.worker, (b"", []))
                    of_node[news.worker] = news.content, [*before_it, *news.chunks]
        self._on_retrieved()
        if heartbeat.result:
            self.ended_at[node] = now
            return
        # A lost node can take part again, once all have ended.
        members = self._pool.workers
        self._is_ending = self._is_ending or any(
            members[each].lost is not None for each in self._queues
        )
        self._serve(node, now)
        if len(queue.returned) > before:  # Other nodes wait for these.
            for other in self._queues.keys() - {node} - self.ended_at.keys():
                if members[other].lost is None:
                    self._serve(other, now)

    def numbers(self, node: str) -> set[int]:
        """The numbers of all chunks that a node was assigned and has not returned."""
        queue = self._queues[node]
        return {number for number, _ in queue.assigned} - queue.returned

    def take_checkpoints(self, node: str) -> list[bytes]:
        """The objects that a lost node had sent: their chunks are not reduced again."""
        checkpoints = self._checkpoints.pop(node, {}).values()
        for _, numbers in checkpoints:
            self._ledger.note_checkpointed(numbers)
        return [content for content, _ in checkpoints]

    def _serve(self, node: str, now: float) -> None:
        queue = self._queues[node]
        while self._wants(node) and self._assign(node):
            pass
        if self._wants(node):
            self._rebalance(node, now)
        last = self._update_is_last(node)
        if queue.arrived < len(queue.assigned) or last != queue.knows_last:
            more = queue.assigned[queue.arrived :]
            self._pool.notify(node, messages.MoreChunks(queue.arrived, more, last))

    def _wants(self, node: str) -> bool:
        queue = self._queues[node]
        if queue.is_last or queue.is_returning:
            return False
        if queue.pending < MIN_PENDING:
            return True
        # At first all are assumed equally fast.
        part = (queue.received_bytes + self._least) / sum(
            each.received_bytes + self._least for each in self._queues.values()
        )
        return queue.pending < queue.ahead and queue.pending_bytes < part * self._ledger.left_bytes

    def _assign(self, node: str) -> bool:
        if self._is_ending or (chunk := self._ledger.next(node)) is None:
            return False
        queue = self._queues[node]
        queue.assigned.append(chunk)
        queue.assigned_bytes += chunk[1].bytes
        return True

    def _rebalance(self, node: str, now: float) -> None:
        """Ask the slowest node to return half of its chunks, if this one is much faster."""
        others = {
            each: queue.seconds_left(now)
            for each, queue in self._queues.items()
            if each != node and queue.can_return(now) and self._pool.workers[each].lost is None
        }
        slowest = max(others, key=lambda each: others[each], default=node)
        queue = self._queues[slowest]
        if self._is_ending or slowest == node:
            return
        own = self._queues[node].seconds_for(queue.assigned[-1][1].bytes)
        if others[slowest] > max(SOON_SECONDS, RETURN_FACTOR * own):
            queue.is_returning, queue.return_asked_at = True, now
            self._pool.notify(slowest, messages.ReturnChunks((queue.pending + 1) // 2))

    def _note_returned(self, queue: NodeQueue, numbers: Sequence[int]) -> None:
        """Let other nodes have the chunks that a node has returned."""
        queue.return_asked_at = None
        for number in numbers:
            self._ledger.note_returned(number)
            queue.returned.add(number)
            queue.returned_bytes += self._ledger.handed_out[number].chunk.bytes

    def _update_is_last(self, node: str) -> bool:
        queue, now = self._queues[node], self._clock()
        others = (each for each in self._queues.values() if each is not queue)
        queue.is_last = (
            queue.is_last
            or self._is_ending
            or queue.is_returning
            or not (
                self._ledger.has_for(node)
                or any(other.seconds_left(now) > SOON_SECONDS for other in others)
            )
        )
        return queue.is_last
