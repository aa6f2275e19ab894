"""How chunks are dealt to nodes, which are simulated here: all come to their end together, even if
one becomes slow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import cast

import pytest

from tonnage.cluster.protocol import Heartbeat, StepResult
from tonnage.cluster.worker_pool import WorkerPool
from tonnage.run.formats.format import Chunk
from tonnage.run.reduce.chunk_pool import SELECTIVE
from tonnage.run.reduce.cluster.assignment import IN_TRANSIT, ChunkAssignment
from tonnage.run.reduce.cluster.chunk_ledger import ChunkLedger
from tonnage.run.reduce.cluster.messages import (
    ChunkRetrieved,
    ChunksArrived,
    ChunksReturned,
    MoreChunks,
    News,
    Notice,
    NumberedChunk,
)

ROW_BYTES, MIB = 64, 1 << 20
TICK = 0.05
WAITING = 2
Rate = Callable[[float], float]


@dataclass
class Node:
    """A machine that fetches some chunks at once, as fast as its link is, and reduces for free."""

    rate: Rate
    at_once: int
    has: list[NumberedChunk] = field(default_factory=list)
    left: dict[int, float] = field(default_factory=dict)
    done: list[int] = field(default_factory=list)
    news: list[News] = field(default_factory=list)
    notices: list[Notice] = field(default_factory=list)
    received: float = 0.0
    is_last: bool = False
    ended_at: float | None = None
    lost: str | None = None

    def hears(self) -> None:
        """Takes what the driver said, a tick later."""
        notices, self.notices = self.notices, []
        for notice in notices:
            if isinstance(notice, MoreChunks):
                self.more(notice.start, notice.chunks, notice.last)
            else:
                self.give_back(notice.count)

    def more(self, start: int, chunks: Sequence[NumberedChunk], last: bool) -> None:
        """Takes what it does not have."""
        assert start <= len(self.has)
        for number, chunk in chunks[len(self.has) - start :]:
            self.has.append((number, chunk))
            self.left[number] = chunk.bytes
        self.is_last = last
        self.news.append(ChunksArrived(len(self.has), last))

    def give_back(self, count: int) -> None:
        """Gives chunks back, the last first."""
        numbers = [*self.left][::-1][:count]
        for number in numbers:
            del self.left[number]
        self.news.append(ChunksReturned(numbers))

    def goes_on(self, now: float) -> None:
        """What it does in a tick."""
        may = self.rate(now) * TICK
        while may > 1 and self.left:
            fetched = [*self.left][: self.at_once]
            each = min(may / len(fetched), *(self.left[number] for number in fetched))
            may -= each * len(fetched)
            self.received += each * len(fetched)
            for number in fetched:
                self.left[number] -= each
                if self.left[number] < 1:
                    del self.left[number]
                    self.done.append(number)
                    self.news.append(ChunkRetrieved(number, self.at_once + WAITING))
        if self.is_last and not self.left:
            self.ended_at = now

    def tells(self) -> Heartbeat:
        """How far it is."""
        news, self.news = self.news, []
        result = None if self.ended_at is None else StepResult()
        return Heartbeat(0, int(self.received), 0.0, tuple(news), result)


def ended(rates: Sequence[Rate], at_once: int = 8, total: int = 1024 * MIB) -> list[Node]:
    """The nodes when all of a round is reduced: each chunk once."""
    objects, chunk = 16, 8 * MIB
    each = total // objects
    chunks = [
        Chunk(file, offset, chunk, chunk // ROW_BYTES)
        for file in range(objects)
        for offset in range(0, each, chunk)
    ]

    def beginning(of: Chunk, rows: int) -> Chunk:
        return of._replace(bytes=rows * ROW_BYTES, rows=rows)

    ledger = ChunkLedger(chunks, [None] * objects, SELECTIVE, len(rates), beginning)
    nodes = {f"node-{place}": Node(rate, at_once) for place, rate in enumerate(rates)}
    pool = SimpleNamespace(
        workers=nodes, notify=lambda node, notice: nodes[node].notices.append(notice)
    )
    now = [0.0]
    dealing = ChunkAssignment(
        cast("WorkerPool", pool), ledger, [*nodes], IN_TRANSIT, lambda: None, lambda: now[0]
    )
    for name, asked in dealing.first_steps(0, b"").items():
        nodes[name].more(0, list(asked.chunks), asked.last)
    while any(node.ended_at is None for node in nodes.values()):
        now[0] += TICK
        assert now[0] < 1000, "it does not end"
        for node in nodes.values():
            node.hears()
        for name, node in nodes.items():
            if node.ended_at is None:
                node.goes_on(now[0])
                dealing.on_heartbeat(name, node.tells())
    assert ledger.is_complete and not ledger.remaining([*nodes])[0]
    for name, node in nodes.items():
        assert dealing.numbers(name) == {*node.done}
    return [*nodes.values()]


def seconds(nodes: Sequence[Node]) -> float:
    """When the last has ended."""
    return max(node.ended_at or 0.0 for node in nodes)


@pytest.mark.parametrize("at_once", [8, 16])
@pytest.mark.parametrize("large", [0, 2, 4, 6, 8])
def test_machines_of_two_kinds_end_together(large: int, at_once: int) -> None:
    rates = [20e6] * large + [10e6] * (8 - large)
    nodes = ended([lambda _, rate=rate: rate for rate in rates], at_once)  # type: ignore[misc]
    assert seconds(nodes) <= 1.05 * 1024 * MIB / sum(rates)


def test_who_becomes_slow_gives_chunks_back() -> None:
    def rate(now: float) -> float:
        return 20e6 if now < 2 else 0.2e6

    nodes = ended([rate, *[lambda _: 20e6] * 3])
    least = (1024 * MIB + 2 * -20e6) / 60e6
    assert seconds(nodes) <= 1.25 * least
    assert nodes[0].received < 80e6


def test_who_stands_still_from_the_beginning_has_nothing_to_itself() -> None:
    nodes = ended([lambda _: 0.0, *[lambda _: 20e6] * 3])
    assert nodes[0].done == []
    assert seconds(nodes) <= 1.25 * 1024 * MIB / 60e6
