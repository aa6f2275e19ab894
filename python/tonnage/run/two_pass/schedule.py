"""What a job on a cluster does next: which node reads what, and which owns which partition.

A split is a part of the input, and has holders: the nodes that can read it. A partition has an
owner, which has to receive the records of every split once. What is missing is a set of partitions
for each split. Splits that the same partitions miss make one round of pass one: one of its holders
reads each, and only those partitions are gathered. When nothing is missing, owners sort.

After a loss the missing cells (split, partition) form few rectangles: what the lost node was to
read is missing everywhere, what all others have read is missing where it was the owner. A rectangle
is a round, so no record is read again without need, and no cell is filled twice. This is the
re-execution of MapReduce (Dean and Ghemawat, OSDI 2004) for data that was pushed to its reducers.

A job may want the first partitions only, and more of them once it knows what these have: cells of
others stay missing until then.

Where copies are kept, a partition is done when its owner has finished it and another node has a
copy. The nodes with copies become the owners of a lost node's finished partitions, of which nothing
is read or sent again.

A reader reports how much it read of all its splits together. So a round never mixes splits that
were counted with splits that were not: the sum of first reads is the input.

The schedule has no clock and does no I/O: a driver, or a simulation, reports the events, and the
same events replayed make the same schedule.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

TRIES = 2
"""A link, or a node without a reason, that fails so often is given up."""


class InputLost(Exception):
    """A part of the input that no node can read any more."""


class NoNodeLeft(Exception):
    """There is no node that could own a partition."""


@dataclass(frozen=True)
class Split:
    """A part of an input file or object: ``bytes`` from ``offset`` on, in whole records."""

    path: str
    offset: int
    bytes: int
    holders: tuple[str, ...]
    etag: str | None = None
    """An object's version, if the store says."""
    file_bytes: int = 0
    """Of the whole file or object, where its reader has to know."""

    def __str__(self) -> str:
        end = self.offset + self.bytes
        return f"bytes {self.offset} to {end} of {self.path} on {', '.join(self.holders)}"


@dataclass(frozen=True)
class Total:
    """Records, their bytes, and the sum of their CRC-32s."""

    records: int = 0
    bytes: int = 0
    checksum: int = 0

    def __add__(self, other: Total) -> Total:
        return Total(
            self.records + other.records, self.bytes + other.bytes, self.checksum + other.checksum
        )

    def __sub__(self, other: Total) -> Total:
        return Total(
            self.records - other.records, self.bytes - other.bytes, self.checksum - other.checksum
        )


@dataclass(frozen=True)
class Round:
    """One run of pass one."""

    number: int
    reads: Mapping[str, Sequence[int]]
    """The splits that each node reads."""
    owners: Mapping[int, str]
    """Of the partitions that are gathered."""

    @property
    def nodes(self) -> list[str]:
        """The nodes that take part, in the order of endpoints."""
        return sorted({*self.reads, *self.owners.values()})


@dataclass(frozen=True)
class Outcome:
    """What a node reported at the end of its part in a round."""

    read: Total = Total()
    lost: tuple[str, ...] = ()
    """The nodes that it did not receive everything from."""
    partitions: Mapping[int, int] = field(default_factory=dict)
    """Bytes that it received of each partition."""


@dataclass(frozen=True)
class Finished:
    path: str
    total: Total


@dataclass(frozen=True)
class Copy:
    """A partition's files as another node than its owner has them."""

    node: str
    paths: tuple[str, ...]
    """In the order of the owner's."""


class Schedule:
    """The state of a job, and what follows from it.

    Args:
        weights: Each node's share of the partitions, relative to the sum; other nodes own none.
        copies: Whether each partition is to have a copy on another node.
    """

    def __init__(
        self,
        splits: Sequence[Split],
        partitions: int,
        weights: Mapping[str, float],
        *,
        copies: bool = False,
    ) -> None:
        self.splits, self.partitions = list(splits), partitions
        self.wanted = partitions
        """So many partitions are gathered and finished, the first."""
        self.input_bytes = sum(split.bytes for split in splits)
        self.weights = dict(weights)
        self.readers = {node for split in splits for node in split.holders} | set(weights)
        """The nodes that can read."""
        self.keepers = set(weights)
        """The nodes that can own partitions."""
        self.owner: list[str] = [""] * partitions
        self.bytes_of = [self.input_bytes / max(partitions, 1)] * partitions
        """Size of each partition: what its last owner received, or an even share."""
        self.received = [0] * partitions
        """Bytes of each partition that its owner has received."""
        self.received_bytes = 0
        self.finished: dict[int, list[Finished]] = {}
        self.written = Total()
        self.copies: dict[int, Copy] | None = {} if copies else None
        """Complete copies of finished partitions; None if no copies are kept."""
        self.rounds = 0
        """The number of the next round."""
        self.scratch: dict[str, list[int]] = {node: [] for node in self.readers}
        """The rounds whose received data on each node is still needed."""
        self.read = Total()
        """The totals of all splits that were counted."""
        self._uncounted = set(range(len(self.splits)))
        # The partitions that miss each split, as the number of a mask with a bit a partition: there
        # are many splits, and few different masks.
        self._masks = [(1 << partitions) - 1]
        self._missing = [0] * len(self.splits)
        self._failed_pairs: dict[frozenset[str], int] = {}
        self._failures: dict[str, int] = {}
        self._give(range(partitions))

    # What to do next.

    def next_round(self) -> Round | None:
        """The round that moves most bytes; None if all records are with their owners.

        `InputLost` if it needs a split that no node can read, `NoNodeLeft` if a partition has no
        owner.
        """
        if not all(self.owner):
            raise NoNodeLeft("no remaining node can store data")
        wanted = (1 << self.wanted) - 1
        masks = [mask & wanted for mask in self._masks]
        alike: dict[int, int] = {}
        same = [alike.setdefault(mask, number) for number, mask in enumerate(masks)]
        groups: dict[tuple[int, bool], list[int]] = {}
        for number, history in enumerate(self._missing):
            key = same[history], number in self._uncounted
            groups.setdefault(key, []).append(number)
        groups = {key: groups[key] for key in groups if masks[key[0]] or key[1]}
        if not groups:
            return None

        def carries(item: tuple[tuple[int, bool], list[int]]) -> tuple[int, int]:
            (history, _), splits = item
            size = sum(self.splits[number].bytes for number in splits)
            return size * masks[history].bit_count(), -splits[0]

        (history, _), splits = max(groups.items(), key=carries)
        owners = {place: self.owner[place] for place in _bits(masks[history])}
        return Round(self.rounds, assign_splits(self.splits, splits, self.readers), owners)

    def to_sort(self) -> dict[str, list[int]]:
        left: dict[str, list[int]] = {}
        for place, node in enumerate(self.owner[: self.wanted]):
            if place not in self.finished:
                left.setdefault(node, []).append(place)
        return left

    def to_copy(self) -> dict[int, str]:
        """The finished partitions without a copy, and who is to keep it; `NoNodeLeft` if none."""
        if self.copies is None:
            return {}
        return self.assign_copies(
            [place for place, files in self.finished.items() if files and place not in self.copies]
        )

    def assign_copies(self, places: Iterable[int]) -> dict[int, str]:
        """Each copy's keeper: the node with least for its weight, other than the owner."""
        held = self._bytes_held()
        for place, copy in (self.copies or {}).items():
            held[copy.node] = held.get(copy.node, 0.0) + self.bytes_of[place]
        turns = [(held.get(node, 0.0) / self.weights[node], node) for node in self._weighty()]
        heapq.heapify(turns)
        found = {}
        for place in places:
            own = [heapq.heappop(turns)] if turns and turns[0][1] == self.owner[place] else []
            if not turns:
                raise NoNodeLeft("no second node remains that could store a copy of the output")
            has, node = turns[0]
            found[place] = node
            heapq.heapreplace(turns, (has + self.bytes_of[place] / self.weights[node], node))
            for turn in own:
                heapq.heappush(turns, turn)
        return found

    # What happened.

    def round_ended(
        self,
        each: Round,
        outcomes: Mapping[str, Outcome],
        blames: Mapping[str, Collection[str]] | None = None,
    ) -> list[str]:
        """Takes the results of a round.

        Args:
            each: The round.
            outcomes: Reports of the nodes that ended their part. A node without one has received
                nothing; what it read has reached the nodes that report it complete.
            blames: Of the nodes that failed but answer, the nodes that they blame.

        Returns:
            Nodes that answer and are to be lost (`lose`) all the same, since others repeatedly
            could not exchange data with them.
        """
        self.rounds = each.number + 1
        owned: dict[str, int] = {}
        for place, node in each.owners.items():
            owned[node] = owned.get(node, 0) | 1 << place
        told = {node: owned[node] for node in owned if node in outcomes}
        for node in told:
            self.scratch.setdefault(node, []).append(each.number)
            for place, came in outcomes[node].partitions.items():
                if each.owners.get(place) == node:
                    self.received[place] += came
                    self.received_bytes += came
        everybody = 0
        for mask in told.values():
            everybody |= mask
        failed: dict[str, int] = {}  # the partitions that miss what a node read
        for node, mask in told.items():
            for source in outcomes[node].lost:
                failed[source] = failed.get(source, 0) | mask
        masks: dict[int, int] = {}
        for reader, splits in each.reads.items():
            arrived = everybody & ~failed.get(reader, 0)
            after: dict[int, int] = {}
            for number in splits:
                before = self._missing[number]
                if before not in after:
                    left = self._masks[before] & ~arrived
                    if left not in masks:
                        masks[left] = len(self._masks)
                        self._masks.append(left)
                    after[before] = masks[left]
                self._missing[number] = after[before]
            if reader in outcomes and self._uncounted.issuperset(splits):
                self._uncounted.difference_update(splits)
                self.read += outcomes[reader].read
        blames = blames or {}
        for node in blames:
            if not set(blames[node]) - {node}:
                self._failures[node] = self._failures.get(node, 0) + 1
        pairs = {
            frozenset((node, source))
            for node, outcome in outcomes.items()
            for source in outcome.lost
            if source in outcomes
        } | {frozenset((node, other)) for node in blames for other in blames[node]}
        return self.links_failed(pairs, {*outcomes, *blames})

    def partition_finished(self, place: int, files: Iterable[Finished]) -> None:
        before = self.finished.get(place, [])
        now = self.finished[place] = list(files)
        self.written += _total(now) - _total(before)

    def copy_finished(self, place: int, copy: Copy) -> None:
        assert self.copies is not None
        self.copies[place] = copy

    def lose(
        self,
        node: str,
        *,
        reads: bool = False,
        keeps: Collection[int] = (),
        joins: bool = False,
        new_owners: Mapping[int, tuple[str, Sequence[Finished]]] | None = None,
    ) -> None:
        """Loses a node: what it held for others is missing again, and gets other owners.

        Args:
            reads: Whether it can still read its input.
            keeps: Its finished partitions that are not lost with it.
            joins: Whether it takes part again from now on, with nothing but what it keeps.
            new_owners: Nodes with a copy of its finished partitions, which becomes the output.
        """
        if not reads and not joins:
            self.readers.discard(node)
        if joins:
            self.readers.add(node)
            self.keepers.add(node)
            # A node that was not there when weights were given has an average one.
            usual = sum(self.weights.values()) / max(len(self.weights), 1) or 1.0
            self.weights.setdefault(node, usual)
        else:
            self.keepers.discard(node)
        self.scratch[node] = []
        self._failures.pop(node, None)
        self._failed_pairs = {
            pair: times for pair, times in self._failed_pairs.items() if node not in pair
        }
        adopted = new_owners or {}
        for place, (owner, files) in adopted.items():
            self.owner[place] = owner
            self.partition_finished(place, files)
        if self.copies is not None:
            self.copies = {
                place: copy
                for place, copy in self.copies.items()
                if copy.node != node and place not in adopted
            }
        gone = [
            place
            for place, owner in enumerate(self.owner)
            if owner in (node, "") and not (place in self.finished and place in keeps)
        ]
        mask = 0
        for place in gone:
            self.written -= _total(self.finished.pop(place, []))
            if self.copies is not None:
                self.copies.pop(place, None)
            self.bytes_of[place] = max(self.received[place], self.bytes_of[place])
            self.received_bytes -= self.received[place]
            self.received[place] = 0
            mask |= 1 << place
        if mask:
            self._masks = [missing | mask for missing in self._masks]
            self._give(gone)

    def links_failed(self, pairs: Iterable[Collection[str]], well: Collection[str]) -> list[str]:
        """Take links that failed, and nodes that ended well all the same; gives nodes to lose."""
        for pair in {frozenset(pair) for pair in pairs}:
            if len(pair) == 2 and pair <= set(well):
                self._failed_pairs[pair] = self._failed_pairs.get(pair, 0) + 1
        blamed = {node for node, times in self._failures.items() if times >= TRIES}
        links: dict[str, set[str]] = {}
        for pair, times in self._failed_pairs.items():
            if times >= TRIES and not pair & blamed:
                one, other = pair
                links.setdefault(one, set()).add(other)
                links.setdefault(other, set()).add(one)
        held = self._bytes_held()
        while any(links.values()):
            worst = max(links, key=lambda node: (len(links[node]), -held.get(node, 0.0), node))
            blamed.add(worst)
            for other in links.pop(worst):
                links[other].discard(worst)
        return sorted(blamed)

    # Assignment.

    def _bytes_held(self) -> dict[str, float]:
        held: dict[str, float] = {}
        for place, node in enumerate(self.owner):
            if node:
                held[node] = held.get(node, 0.0) + self.bytes_of[place]
        return held

    def _weighty(self) -> list[str]:
        return sorted(node for node in self.keepers if self.weights.get(node, 0.0) > 0)

    def _give(self, places: Iterable[int]) -> None:
        """Assigns owners in the order of keys, each time the node with least for its weight.

        So neighbours have different owners, and sorted input goes to all nodes at any time.
        """
        places = list(places)
        for place in places:
            self.owner[place] = ""
        weighty = self._weighty()
        if not weighty:
            return  # A node that joins gets them.
        held = self._bytes_held()
        # As if it had half of a usual one already (Sainte-Laguë): a small weight comes late.
        usual = self.input_bytes / max(self.partitions, 1) or 1.0
        turns = [((held.get(node, 0.0) + usual / 2) / self.weights[node], node) for node in weighty]
        heapq.heapify(turns)
        for place in places:
            has, node = turns[0]
            self.owner[place] = node
            more = (self.bytes_of[place] or usual) / self.weights[node]
            heapq.heapreplace(turns, (has + more, node))


def assign_splits(
    splits: Sequence[Split], numbers: Iterable[int], readers: Collection[str]
) -> dict[str, list[int]]:
    """Divides splits evenly among their holders.

    Splits with few holders come first: the others can go elsewhere. Splits with as many holders
    are in turn those of each, so that no node is full before its neighbour had a choice. Each goes
    to the holder with least so far.

    Args:
        splits: All there are.
        numbers: Those to divide.
        readers: The nodes that can read.

    Raises:
        InputLost: One of them has no holder that can read.
    """
    together: dict[tuple[str, ...], list[int]] = {}
    for number in numbers:
        together.setdefault(splits[number].holders, []).append(number)
    load: dict[str, int] = {}
    # The first in a heap may have got more since: that is checked when it is used.
    turns: dict[tuple[str, ...], list[tuple[int, str]]] = {}
    for holders, of_them in together.items():
        turns[holders] = sorted((0, node) for node in holders if node in readers)
        if not turns[holders]:
            raise InputLost(f"no remaining node can read {splits[of_them[0]]}")
    order = sorted(
        (len(turns[holders]), place, number)
        for holders, of_them in together.items()
        for place, number in enumerate(of_them)
    )
    reads: dict[str, list[int]] = {}
    for _, _, number in order:
        of_holders = turns[splits[number].holders]
        while (least := of_holders[0])[0] != load.get(least[1], 0):
            heapq.heapreplace(of_holders, (load[least[1]], least[1]))
        node = least[1]
        load[node] = least[0] + splits[number].bytes
        reads.setdefault(node, []).append(number)
        heapq.heapreplace(of_holders, (load[node], node))
    return {node: sorted(mine) for node, mine in reads.items()}


def _total(files: Iterable[Finished]) -> Total:
    return sum((file.total for file in files), Total())


def _bits(mask: int) -> list[int]:
    """The positions of a number's bits, in order."""
    return [place for place, bit in enumerate(reversed(bin(mask)[2:])) if bit == "1"]
