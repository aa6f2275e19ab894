"""Chunks dealt to the nodes of a fleet while they reduce: each gets more as it needs them.

Towards the end a node has less ahead: no more than what it will be the one to do of what is left,
as fast as it was so far, so that all come to their end at the same time.

A node's list of chunks only grows. Whenever it tells how far it is, it is sent what it does not
have yet of its list; so what is lost on the way is sent again, and what comes twice is taken once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from tonnage.fleet.crew import Crew
from tonnage.fleet.sorter import Told
from tonnage.run.reduce.ledger import Ledger
from tonnage.run.reduce.round import Numbered

ON_THE_WAY = 4
"""Chunks that a node has reduced before it can be sent others."""
EARLY = 8
"""A node's part of so much of what there is is counted as if all were equally fast."""
FEWEST = 2
"""Chunks that a node has at least: one that is fetched, and the next."""


class Dealing:
    """One step ``reduce`` of all nodes.

    Args:
        crew: Whose.
        ledger: Who has what.
        nodes: Who takes part.
        ahead: How many chunks a node has at first.
        on_came: Called when chunks have come.
    """

    def __init__(
        self,
        crew: Crew,
        ledger: Ledger,
        nodes: Sequence[str],
        ahead: int,
        on_came: Callable[[], None],
    ) -> None:
        self._crew, self._ledger, self._on_came = crew, ledger, on_came
        self._ahead = dict.fromkeys(nodes, ahead)
        """How many a node has that have not come to be reduced: as many as it asks for at once, and
        some for the way."""
        self._dealt: dict[str, list[Numbered]] = {node: [] for node in nodes}
        self._came = dict.fromkeys(nodes, 0)
        self._dealt_bytes = dict.fromkeys(nodes, 0)
        self._came_bytes = dict.fromkeys(nodes, 0)
        self._received_bytes = dict.fromkeys(nodes, 0)
        """Of chunks that are not whole yet as well: how fast a node is shows early."""
        self._has = {node: (0, False) for node in nodes}
        """How many of its chunks a node has, and whether it knows that there are no more."""
        self._least = max(ledger.left_bytes // (EARLY * len(self._came)), 1)
        self._kept: dict[str, dict[int, tuple[bytes, list[int]]]] = {}
        self._ends = False
        self.ended_at: dict[str, float] = {}

    def asked(self, number: int, known: bytes) -> dict[str, dict[str, Any]]:
        """What nodes are asked: the first chunks go along, dealt one by one, so that all have some.

        Args:
            number: Of the round.
            known: What the one before came to, packed.
        """
        for _ in range(max(self._ahead.values(), default=0)):
            for node in self._dealt:
                self._deal(node)
        return {
            node: {
                "round": number,
                "known": known,
                "chunks": dealt,
                "last": self._is_last(node),
            }
            for node, dealt in self._dealt.items()
        }

    def told(self, node: str, told: Told) -> None:
        """Hears how far a node is, and sends it what it needs."""
        self._received_bytes[node] = told.done_bytes
        for line in told.finished:
            if "came" in line:
                self._ledger.came(line["came"])
                self._came[node] += 1
                self._came_bytes[node] += self._ledger.out[line["came"]].chunk.bytes
                self._ahead[node] = line["ahead"] + ON_THE_WAY
            elif "given" in line:
                self._has[node] = (line["given"], line["last"])
            else:
                _, numbers = self._kept.setdefault(node, {}).get(line["worker"], (b"", []))
                self._kept[node][line["worker"]] = line["kept"], [*numbers, *line["chunks"]]
        self._on_came()
        if told.ended:
            self.ended_at[node] = time.monotonic()
            return
        # Who is lost can take part again, if all come to an end first.
        members = self._crew.members
        self._ends = self._ends or any(members[each].gone is not None for each in self._dealt)
        while self._wants(node) and self._deal(node):
            pass
        has, knows = self._has[node]
        last = self._is_last(node)
        if has < len(self._dealt[node]) or last != knows:
            more = self._dealt[node][has:]
            members[node].ask("more", told.number, has, more, last)

    def numbers(self, node: str) -> set[int]:
        """The numbers of all chunks that a node was dealt."""
        return {number for number, _ in self._dealt[node]}

    def kept(self, node: str) -> list[bytes]:
        """The objects that a node has sent; what is in them is not to be reduced again."""
        found = self._kept.pop(node, {}).values()
        for _, numbers in found:
            self._ledger.kept(numbers)
        return [whole for whole, _ in found]

    def _wants(self, node: str) -> bool:
        """Whether it has fewer chunks than it is to have."""
        have = len(self._dealt[node]) - self._came[node]
        if have < FEWEST:
            return True
        # Before much was received all are as fast as each other.
        share = (self._received_bytes[node] + self._least) / (
            sum(self._received_bytes.values()) + len(self._received_bytes) * self._least
        )
        under_way = self._dealt_bytes[node] - self._came_bytes[node]
        return have < self._ahead[node] and under_way < share * self._ledger.left_bytes

    def _deal(self, node: str) -> bool:
        if self._ends or (dealt := self._ledger.next(node)) is None:
            return False
        self._dealt[node].append(dealt)
        self._dealt_bytes[node] += dealt[1].bytes
        return True

    def _is_last(self, node: str) -> bool:
        """Whether there is nothing more for a node, nor will be."""
        return self._ends or not self._ledger.has_for(node)
