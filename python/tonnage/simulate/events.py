"""Event simulation of a round of pass one, and of pass two.

Between two events all rates are constant (`flow`). A reader first fills its open blocks, half of
each on average before blocks are sent. Then it reads and sends, and finally it sends the rest of
the blocks. So the times of reading, of sending and of both match `model.two_pass` for one machine.
Events are the ends of these stages, and node failures. A failed node receives and sends nothing
from then on. Data for it is dropped, and the others continue, as in the core.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tonnage.simulate.cluster import Array, SimulatedCluster
from tonnage.simulate.flow import replication_rates, shuffle

DONE = 1e-9  # Share of the largest amount that counts as zero
FASTEST = 1e15  # The rate where nothing limits


@dataclass(frozen=True)
class PassResult:
    seconds: float
    done: Array  # Bytes that each node had sent of its input; or had sorted. Shape ``(nodes,)``.
    complete: npt.NDArray[np.bool_]  # Whether that was all
    alive: npt.NDArray[np.bool_]  # Nodes that did not fail
    read_bytes: float
    sent_bytes: float  # From node to node
    written_bytes: float


class _Failures:
    def __init__(self, nodes: int, deaths: Mapping[int, float]) -> None:
        self._left = sorted(((at, node) for node, at in deaths.items()), reverse=True)
        self.alive = np.ones(nodes, dtype=bool)

    def until(self, now: float) -> float:
        """Mark nodes that have failed by now; return the time until the next failure."""
        while self._left and self._left[-1][0] <= now:
            self.alive[self._left.pop()[1]] = False
        return self._left[-1][0] - now if self._left else np.inf


def pass_one(
    cluster: SimulatedCluster, reads: Array, shares: Array, held: Array, deaths: Mapping[int, float]
) -> PassResult:
    """Simulate a round of pass one.

    By node: ``reads`` are bytes of input, ``shares`` are of all input that it receives, ``held`` is
    the average content of its open blocks, ``deaths`` are seconds from the start.
    """
    disks, own = cluster.disks, _Failures(cluster.nodes, deaths)
    alone = np.minimum(cluster.partition, 1 / disks.read)
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
            most, np.divide(cluster.network, leaves, out=most.copy(), where=leaves > 0), out=most
        )
        also = np.where(reading, disks.read, 0.0) if disks.apart else np.zeros_like(most)
        rates = shuffle(np.where(flowing, most, 0.0), coming, cluster.network, disks.write, also)
        total = float(rates.sum())
        filled = np.where(filling, alone, 0.0)
        if disks.apart:
            filled *= np.clip(1 - disks.write * coming * total, 0.0, 1.0)
        ends = np.concatenate(
            [
                _transfer_seconds(fill, filled),
                _transfer_seconds(np.where(reading, send - drain, send), rates),
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
    cluster: SimulatedCluster,
    sizes: Array,
    again: Array,
    first: Array,
    copies: bool,
    deaths: Mapping[int, float],
) -> PassResult:
    """Simulate pass two: all owners sort their partitions.

    By node: ``sizes`` are bytes to sort, ``again`` those in partitions that exceed memory and are
    partitioned once more, ``first`` is the partition that is read before anything is written.
    With ``copies``, each node replicates its output to the next one that is alive.
    """
    disks, own = cluster.disks, _Failures(cluster.nodes, deaths)
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
        most = np.minimum(cluster.sort, FASTEST)
        copied_now = copies and int(own.alive.sum()) > 1
        if copied_now:
            most = np.minimum(most, np.minimum(cluster.network, cluster.network[to]))
        other = disks.write if copied_now else np.zeros_like(busy)
        rates = replication_rates(np.where(writing, most, 0.0), busy, other, to)
        waiting = moving & ~writing
        starts = np.min(wait[waiting] - now, initial=np.inf)
        step = min(float(_transfer_seconds(left, rates).min()), float(starts), until)
        now += step
        left -= rates * step
        moved, twice = float(rates.sum()) * step, float((rates * often).sum()) * step
        read += twice
        written += twice + (moved if copied_now else 0.0)
        sent += moved if copied_now else 0.0
        left[left <= little] = 0.0
    return PassResult(now, sizes - left, left == 0, own.alive, read, sent, written)


def _transfer_seconds(amounts: Array, rates: Array) -> Array:
    """The time for each amount; infinite where nothing moves."""
    return np.divide(amounts, rates, out=np.full_like(amounts, np.inf), where=rates > 0)


def _next_alive(alive: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """For each node the next one in the ring that is alive."""
    places = np.flatnonzero(alive)
    after = np.searchsorted(places, np.arange(len(alive)), side="right")
    return np.asarray(places[after % len(places)], dtype=np.int64)
