"""What happens in a round of pass one and in a pass two, event by event.

Between two events all rates stay as they are (`flow`). A reader first fills its open blocks, half
of each on average before blocks begin to leave; then it reads and sends; then it sends what the
blocks still hold: so reading, sending and both add up to what `model.two_pass` says of one machine.
Events are the ends of these, and deaths. A node that dies takes and sends nothing from then on;
what was meant for it goes nowhere, and the others go on, as they do in the core.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tonnage.simulate.cluster import Array, SimulatedCluster
from tonnage.simulate.flow import copied, shuffle

DONE = 1e-9
"""Of the largest amount: less than this is nothing."""
FASTEST = 1e15
"""Where nothing limits."""


@dataclass(frozen=True)
class PassResult:
    """What came of a round, or of a pass two."""

    seconds: float
    done: Array
    """Bytes that each node had sent of what it read; or had sorted. Shape ``(nodes,)``."""
    whole: npt.NDArray[np.bool_]
    """Whether that was all."""
    alive: npt.NDArray[np.bool_]
    """Who came to the end."""
    read_bytes: float
    sent_bytes: float
    """From node to node."""
    written_bytes: float


class _Deaths:
    """Who is alive, and who dies next."""

    def __init__(self, nodes: int, deaths: Mapping[int, float]) -> None:
        self._left = sorted(((at, node) for node, at in deaths.items()), reverse=True)
        self.alive = np.ones(nodes, dtype=bool)

    def until(self, now: float) -> float:
        """Takes who is dead by now; gives how long nobody else dies."""
        while self._left and self._left[-1][0] <= now:
            self.alive[self._left.pop()[1]] = False
        return self._left[-1][0] - now if self._left else np.inf


def pass_one(
    fleet: SimulatedCluster, reads: Array, shares: Array, held: Array, deaths: Mapping[int, float]
) -> PassResult:
    """A round.

    Args:
        fleet: The nodes.
        reads: Bytes that each reads.
        shares: Which share of what any reads comes to each.
        held: What each one's open blocks hold, on average.
        deaths: When nodes die, in seconds from the beginning.
    """
    disks, own = fleet.disks, _Deaths(fleet.nodes, deaths)
    alone = np.minimum(fleet.partition, 1 / disks.read)
    drain = np.minimum(held, reads)
    fill, send = drain.copy(), reads.copy()
    little = DONE * float(reads.max(initial=0.0))
    now = read = sent = written = 0.0
    while True:
        until = own.until(now)
        filling = own.alive & (fill > 0)
        flowing = own.alive & ~filling & (send > 0)
        if not (filling.any() or flowing.any()):
            break
        reading = flowing & (send > drain)
        coming = shares * own.alive
        leaves = np.maximum(coming.sum() - coming, 0.0)
        most = np.where(reading, alone, FASTEST)
        np.minimum(
            most, np.divide(fleet.network, leaves, out=most.copy(), where=leaves > 0), out=most
        )
        also = np.where(reading, disks.read, 0.0) if disks.apart else np.zeros_like(most)
        rates = shuffle(np.where(flowing, most, 0.0), coming, fleet.network, disks.write, also)
        total = float(rates.sum())
        filled = np.where(filling, alone, 0.0)
        if disks.apart:
            filled *= np.clip(1 - disks.write * coming * total, 0.0, 1.0)
        ends = np.concatenate(
            [
                _over(fill, filled),
                _over(np.where(reading, send - drain, send), rates),
            ]
        )
        step = min(float(ends.min()), until)
        now += step
        fill -= filled * step
        send -= rates * step
        read += step * float(filled.sum() + rates[reading].sum())
        sent += step * float((rates * leaves).sum())
        written += step * total * float(coming.sum())
        fill[fill <= little] = 0.0
        send[send <= little] = 0.0
        np.copyto(send, drain, where=np.abs(send - drain) <= little)
    return PassResult(now, reads - send, send == 0, own.alive, read, sent, written)


def pass_two(
    fleet: SimulatedCluster,
    sizes: Array,
    again: Array,
    first: Array,
    copies: bool,
    deaths: Mapping[int, float],
) -> PassResult:
    """All owners sort what they have.

    Args:
        fleet: The nodes.
        sizes: Bytes that each has to sort.
        again: Of these, bytes of partitions that do not fit in memory: they are divided once more.
        first: Bytes of a partition: the first one is read before anything is written.
        copies: Whether each writes a copy of its output on the next node that is alive.
        deaths: When nodes die, in seconds from the beginning.
    """
    disks, own = fleet.disks, _Deaths(fleet.nodes, deaths)
    own.until(0.0)
    often = 1 + np.divide(again, sizes, out=np.zeros_like(sizes), where=sizes > 0)
    busy = often * (disks.read + disks.write if disks.apart else disks.write)
    wait = np.minimum(first, sizes) * (0.0 if disks.apart else 1.0) * disks.read
    left, little = sizes.copy(), DONE * float(sizes.max(initial=0.0))
    now = read = sent = written = 0.0
    while True:
        until = own.until(now)
        moving = own.alive & (left > 0)
        if not moving.any():
            break
        writing = moving & (wait <= now)
        to = _next_alive(own.alive)
        most = np.minimum(fleet.sort, FASTEST)
        copied_now = copies and int(own.alive.sum()) > 1
        if copied_now:
            most = np.minimum(most, np.minimum(fleet.network, fleet.network[to]))
        other = disks.write if copied_now else np.zeros_like(busy)
        rates = copied(np.where(writing, most, 0.0), busy, other, to)
        waiting = moving & ~writing
        starts = np.min(wait[waiting] - now, initial=np.inf)
        step = min(float(_over(left, rates).min()), float(starts), until)
        now += step
        left -= rates * step
        moved, twice = float(rates.sum()) * step, float((rates * often).sum()) * step
        read += twice
        written += twice + (moved if copied_now else 0.0)
        sent += moved if copied_now else 0.0
        left[left <= little] = 0.0
    return PassResult(now, sizes - left, left == 0, own.alive, read, sent, written)


def _over(amounts: Array, rates: Array) -> Array:
    """How long each takes; never, where nothing moves."""
    return np.divide(amounts, rates, out=np.full_like(amounts, np.inf), where=rates > 0)


def _next_alive(alive: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """The next node in a ring that is alive, of each node."""
    places = np.flatnonzero(alive)
    after = np.searchsorted(places, np.arange(len(alive)), side="right")
    return np.asarray(places[after % len(places)], dtype=np.int64)
