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
from typing import Any

from tonnage.cluster.step_worker import Heartbeat
from tonnage.cluster.worker_pool import WorkerPool
from tonnage.run.reduce.cluster.chunk_ledger import ChunkLedger
from tonnage.run.reduce.local_round import NumberedChunk

ON_THE_WAY = 4
"""Chunks that a node has reduced before it can be sent others."""
EARLY = 8
"""A node's part of so much of what there is is counted as if all were equally fast."""
FEWEST = 2
"""Chunks that a node has at least: one that is fetched, and the next."""
SOON_SECONDS = 1.0
"""Nobody gives back what it will have done by then, or says so little of how fast it is."""
SOONER = 2.0
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
    dealt: list[NumberedChunk] = field(default_factory=list)
    dealt_bytes: int = 0
    came: int = 0
    came_bytes: int = 0
    back: set[int] = field(default_factory=set)
    """The numbers of chunks that it gave back."""
    back_bytes: int = 0
    has: int = 0
    """How many of those that it was dealt have arrived there."""
    knows: bool = False
    """It has heard that there are no more."""
    is_last: bool = False
    """It was told so."""
    gives: bool = False
    """It was asked to give chunks back; it gets no more."""
    asked_at: float | None = None
    """When, as long as it has not answered."""
    received: deque[tuple[float, int]] = field(default_factory=deque)
    """Bytes by then, lately: of chunks that are not whole yet as well."""
    moved_at: float = 0.0
    """When it last had received more than before."""

    @property
    def received_bytes(self) -> int:
        """So far."""
        return self.received[-1][1] if self.received else 0

    @property
    def have(self) -> int:
        """Chunks that have not come to be reduced."""
        return len(self.dealt) - self.came - len(self.back)

    @property
    def under_way_bytes(self) -> int:
        """Of these."""
        return self.dealt_bytes - self.came_bytes - self.back_bytes

    def may_give(self, now: float) -> bool:
        """Whether it has something to give back, and was not just asked for that."""
        return self.have > 0 and (self.asked_at is None or self.asked_at < now - RECENT_SECONDS)

    def saw(self, now: float, received: int) -> None:
        """It has received so many bytes."""
        if received > self.received_bytes:
            self.moved_at = now
        self.received.append((now, received))
        while self.received[0][0] < now - RECENT_SECONDS and len(self.received) > 1:
            self.received.popleft()

    def seconds_for(self, bytes_: int) -> float:
        """What it would take for so many more, as fast as while it received some."""
        passed = self.moved_at - self.began
        return bytes_ * passed / self.received_bytes if self.received_bytes else float("inf")

    def seconds_left(self, now: float) -> float:
        """What it will take for what it has, as fast as lately; nothing while that is unknown."""
        if now - self.began < KNOWN_SECONDS or not self.have:
            return 0.0
        missing = self.dealt_bytes - self.back_bytes - self.received_bytes
        if missing > 0:
            then, before = self.received[0] if len(self.received) > 1 else (self.began, 0)
            moved, of = self.received_bytes - before, missing
            passed = now - then
        else:  # All is there, and is to be reduced.
            moved, of, passed = self.came_bytes, self.under_way_bytes, now - self.began
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
        self._crew, self._ledger, self._on_came = crew, ledger, on_came
        self._clock = clock
        self._shares = {node: NodeQueue(ahead, clock()) for node in nodes}
        self._least = max(ledger.left_bytes // (EARLY * len(self._shares)), 1)
        self._kept: dict[str, dict[int, tuple[bytes, list[int]]]] = {}
        self._ends = False
        self.ended_at: dict[str, float] = {}

    def asked(self, number: int, known: bytes) -> dict[str, dict[str, Any]]:
        """What nodes are asked: the first chunks go along, dealt one by one, so that all have some.

        Args:
            number: Of the round.
            known: What the one before came to, packed.
        """
        for _ in range(max((share.ahead for share in self._shares.values()), default=0)):
            for node in self._shares:
                self._deal(node)
        return {
            node: {
                "round": number,
                "known": known,
                "chunks": share.dealt,
                "last": self._say_last(node),
            }
            for node, share in self._shares.items()
        }

    def told(self, node: str, told: Heartbeat) -> None:
        """Hears how far a node is, and sends it what it needs."""
        share, now = self._shares[node], self._clock()
        share.saw(now, told.done_bytes)
        before = len(share.back)
        for line in told.news:
            if "came" in line:
                self._ledger.came(line["came"])
                share.came += 1
                share.came_bytes += self._ledger.out[line["came"]].chunk.bytes
                share.ahead = line["ahead"] + ON_THE_WAY
            elif "given" in line:
                share.has, share.knows = line["given"], line["last"]
            elif "back" in line:
                self._take_back(share, line["back"])
            else:
                _, numbers = self._kept.setdefault(node, {}).get(line["worker"], (b"", []))
                self._kept[node][line["worker"]] = line["kept"], [*numbers, *line["chunks"]]
        self._on_came()
        if told.result:
            self.ended_at[node] = now
            return
        # Who is lost can take part again, if all come to an end first.
        members = self._crew.workers
        self._ends = self._ends or any(members[each].gone is not None for each in self._shares)
        self._serve(node, told.number, now)
        if len(share.back) > before:  # Others wait for these.
            for other in self._shares.keys() - {node} - self.ended_at.keys():
                if members[other].gone is None:
                    self._serve(other, told.number, now)

    def numbers(self, node: str) -> set[int]:
        """The numbers of all chunks that a node was dealt, and has not given back."""
        share = self._shares[node]
        return {number for number, _ in share.dealt} - share.back

    def kept(self, node: str) -> list[bytes]:
        """The objects that a node has sent; what is in them is not to be reduced again."""
        found = self._kept.pop(node, {}).values()
        for _, numbers in found:
            self._ledger.kept(numbers)
        return [whole for whole, _ in found]

    def _serve(self, node: str, number: int, now: float) -> None:
        """Sends a node what it needs."""
        share = self._shares[node]
        while self._wants(node) and self._deal(node):
            pass
        if self._wants(node):
            self._have_it_helped(node, number, now)
        last = self._say_last(node)
        if share.has < len(share.dealt) or last != share.knows:
            more = share.dealt[share.has :]
            self._crew.workers[node].ask("more", number, share.has, more, last)

    def _wants(self, node: str) -> bool:
        """Whether it has fewer chunks than it is to have."""
        share = self._shares[node]
        if share.is_last or share.gives:
            return False
        if share.have < FEWEST:
            return True
        # Before much was received all are as fast as each other.
        part = (share.received_bytes + self._least) / sum(
            each.received_bytes + self._least for each in self._shares.values()
        )
        return share.have < share.ahead and share.under_way_bytes < part * self._ledger.left_bytes

    def _deal(self, node: str) -> bool:
        if self._ends or (dealt := self._ledger.next(node)) is None:
            return False
        share = self._shares[node]
        share.dealt.append(dealt)
        share.dealt_bytes += dealt[1].bytes
        return True

    def _have_it_helped(self, node: str, number: int, now: float) -> None:
        """Asks who will take longest to give half of that back, if this one is much faster."""
        others = {
            each: share.seconds_left(now)
            for each, share in self._shares.items()
            if each != node and share.may_give(now) and self._crew.workers[each].gone is None
        }
        slowest = max(others, key=lambda each: others[each], default=node)
        share = self._shares[slowest]
        if self._ends or slowest == node:
            return
        own = self._shares[node].seconds_for(share.dealt[-1][1].bytes)
        if others[slowest] > max(SOON_SECONDS, SOONER * own):
            share.gives, share.asked_at = True, now
            self._crew.workers[slowest].ask("give_back", number, (share.have + 1) // 2)

    def _take_back(self, share: NodeQueue, numbers: Sequence[int]) -> None:
        """A node has given chunks back: others may have them."""
        share.asked_at = None
        for number in numbers:
            self._ledger.given_back(number)
            share.back.add(number)
            share.back_bytes += self._ledger.out[number].chunk.bytes

    def _say_last(self, node: str) -> bool:
        """Whether there is nothing more for a node, nor will be."""
        share, now = self._shares[node], self._clock()
        others = (each for each in self._shares.values() if each is not share)
        share.is_last = (
            share.is_last
            or self._ends
            or share.gives
            or not (
                self._ledger.has_for(node)
                or any(other.seconds_left(now) > SOON_SECONDS for other in others)
            )
        )
        return share.is_last
