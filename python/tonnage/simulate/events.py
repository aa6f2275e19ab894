"""Event simulation of a round of pass one, of pass two, and of copying the output.

Between two events all rates are constant (`flow`). A reader first fills its open blocks, half of
each on average before blocks are sent. Then it reads and sends, and finally it sends the rest of
the blocks. So the times of reading, of sending and of both match `model.two_pass` for one machine.
Events are the ends of these stages, node failures, and the ends of bursts: a resource with credit
has its burst rate, one without has its baseline (`model.token_bucket`). A failed node receives and
sends nothing from then on. Data for it is dropped, and the others continue, as in the core.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tonnage.simulate.cluster import PassLoads, SimulatedCluster
from tonnage.simulate.flow import Array, Flags, OutputFlows, ShuffleFlows, output_rates, shuffle

DONE = 1e-9  # Share of the largest amount that counts as zero


@dataclass(frozen=True)
class PassResult:
    seconds: float
    done: Array  # Bytes that each node had sent of its input; or had sorted. Shape ``(nodes,)``.
    complete: Flags  # Whether that was all
    alive: Flags  # Nodes that did not fail
    read_bytes: float
    sent_bytes: float  # From node to node
    written_bytes: float


class Credits:
    """What is left of the credit of each node's resources, as time passes.

    A bucket fills at the baseline rate, up to its full credit (`model.token_bucket`).
    """

    def __init__(self, cluster: SimulatedCluster) -> None:
        shape = cluster.pass_one.own.shape
        self._burst = np.ones(shape) if cluster.burst is None else cluster.burst
        self._full = np.zeros(shape) if cluster.credit is None else cluster.credit
        self._left = self._full.copy()
        self._bursts = bool(np.any(self._full > 0))
        self._constant = np.ones(shape)

    @property
    def capacity(self) -> Array:
        """The rate of each resource now, relative to its baseline."""
        if not self._bursts:
            return self._constant
        return np.where(self._left > 0, self._burst, 1.0)

    def until_spent(self, load: Array) -> float:
        """The seconds until the first of the resources has no credit left."""
        if not self._bursts:
            return np.inf
        spent = np.where(self._left > 0, load - 1, 0.0)
        return float(_transfer_seconds(self._left, spent).min(initial=np.inf))

    def pass_time(self, load: Array, seconds: float) -> None:
        if self._bursts:
            left = np.clip(self._left - (load - 1) * seconds, 0.0, self._full)
            self._left = np.where(left > DONE * self._full, left, 0.0)


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
    cluster: SimulatedCluster,
    credits: Credits,
    reads: Array,
    shares: Array,
    held: Array,
    deaths: Mapping[int, float],
) -> PassResult:
    """Simulate a round of pass one.

    By node: ``reads`` are bytes of input, ``shares`` are of all input that it receives, ``held`` is
    the average content of its open blocks, ``deaths`` are seconds from the start.
    """
    loads, own = cluster.pass_one, _Failures(cluster.nodes, deaths)
    remote = cluster.remote[:, None]
    drain = np.minimum(held, reads)
    fill, send = drain.copy(), reads.copy()
    little = DONE * float(reads.max(initial=0.0))
    now = read = sent = written = 0.0
    while True:
        until = own.until(now)
        filling = own.alive & (fill > 0)
        sending = own.alive & ~filling & (send > 0)
        if not (filling.any() or sending.any()):
            break
        reading = filling | (sending & (send > drain))
        coming = shares * own.alive
        leaves = np.maximum(coming.sum() - coming, 0.0)
        arriving = loads.arrived * coming
        flows = ShuffleFlows(
            loads.own * reading + (loads.sent * leaves - remote * arriving) * sending,
            arriving,
            reading,
            sending,
            loads.store,
        )
        rates = shuffle(flows, credits.capacity)
        load, _ = flows.usage(rates)
        filled, carried = np.where(filling, rates, 0.0), np.where(sending, rates, 0.0)
        ends = np.concatenate(
            [
                _transfer_seconds(fill, filled),
                _transfer_seconds(np.where(reading & sending, send - drain, send), carried),
            ]
        )
        step = min(float(ends.min()), until, credits.until_spent(load))
        now += step
        credits.pass_time(load, step)
        fill -= filled * step
        send -= carried * step
        read += step * float(rates[reading].sum())
        sent += step * float((carried * leaves).sum())
        written += step * float(carried.sum()) * float(coming.sum())
        fill[fill <= little] = 0.0
        send[send <= little] = 0.0
        np.copyto(send, drain, where=np.abs(send - drain) <= little)
    return PassResult(now, reads - send, send == 0, own.alive, read, sent, written)


def pass_two(
    cluster: SimulatedCluster,
    credits: Credits,
    sizes: Array,
    again: Array,
    first: Array,
    copies: bool,
    deaths: Mapping[int, float],
) -> PassResult:
    """Simulate pass two: all owners sort their partitions.

    By node: ``sizes`` are bytes to sort, ``again`` those in partitions that exceed memory,
    ``first`` is the partition that is read before anything is written. A node divides the
    partitions that exceed memory once more before it sorts any, as the core does. With ``copies``,
    each node replicates its output to the next one that is alive.
    """
    wait = np.minimum(first, sizes) * cluster.first_read
    return _write(cluster, cluster.pass_two, credits, sizes, again, wait, copies, deaths)


def copy_output(
    cluster: SimulatedCluster, credits: Credits, sizes: Array, deaths: Mapping[int, float]
) -> PassResult:
    """Simulate copying finished output, ``sizes`` bytes of each node, to the next alive node."""
    assert cluster.copying is not None
    none = np.zeros_like(sizes)
    return _write(cluster, cluster.copying, credits, sizes, none, none, True, deaths)


def _write(
    cluster: SimulatedCluster,
    loads: PassLoads,
    credits: Credits,
    sizes: Array,
    again: Array,
    wait: Array,
    copies: bool,
    deaths: Mapping[int, float],
) -> PassResult:
    """Each node divides ``again``, waits, and reads and writes its own bytes.

    With ``copies`` the next node writes them, too.
    """
    own, third = _Failures(cluster.nodes, deaths), cluster.third_pass
    left, divided = sizes.copy(), again.copy()
    waiting = np.where(sizes > 0, wait, 0.0)
    little = DONE * float(sizes.max(initial=0.0))
    now = read = sent = written = 0.0
    while True:
        until = own.until(now)
        moving = own.alive & (left > 0)
        if not moving.any():
            break
        dividing = moving & (divided > 0)
        idle = moving & ~dividing & (waiting > 0)
        writing = moving & ~dividing & ~idle
        copied = writing & (copies and int(own.alive.sum()) > 1)
        flows = OutputFlows(
            np.where(dividing, third.own, loads.own + loads.sent * copied),
            loads.arrived,
            copied,
            _next_alive(own.alive),
            loads.store * writing.astype(float),
        )
        rates = output_rates(flows, credits.capacity, dividing | writing)
        load = flows.usage(rates)
        ends = np.concatenate(
            [
                _transfer_seconds(divided, rates * dividing),
                _transfer_seconds(left, rates * writing),
                waiting[idle],
            ]
        )
        step = min(float(ends.min(initial=np.inf)), until, credits.until_spent(load))
        now += step
        credits.pass_time(load, step)
        divided -= rates * dividing * step
        left -= rates * writing * step
        waiting -= idle * step
        moved = float(rates.sum()) * step
        read += moved
        written += moved + float(rates[copied].sum()) * step
        sent += float(rates[copied].sum()) * step
        for amounts in (divided, left):
            amounts[amounts <= little] = 0.0
        waiting[waiting <= DONE * now] = 0.0
    return PassResult(now, sizes - left, left == 0, own.alive, read, sent, written)


def _transfer_seconds(amounts: Array, rates: Array) -> Array:
    """The time for each amount; infinite where nothing moves."""
    return np.divide(amounts, rates, out=np.full_like(amounts, np.inf), where=rates > 0)


def _next_alive(alive: Flags) -> npt.NDArray[np.int64]:
    """For each node the next one in the ring that is alive."""
    places = np.flatnonzero(alive)
    after = np.searchsorted(places, np.arange(len(alive)), side="right")
    return np.asarray(places[after % len(places)], dtype=np.int64)
