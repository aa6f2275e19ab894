"""Max-min fair rates of flows that share nodes, by progressive filling.

The fluid model of SimGrid's networks (Casanova and others, JPDC 2014; Velho and others, TOMACS
2013): a flow is a rate, a resource bounds the weighted sum of the rates of those that use it, and
rates are max-min fair. Filling raises all rates equally until a resource is full, fixes the flows
that use it, and continues with the others (Bertsekas and Gallager, Data Networks, section 6.5.2).

In a shuffle a reader is one flow: it sends to all owners in fixed shares, and its buffers are
bounded, so the slowest owner limits it. Every owner is used by every reader. So the first owner
that is full fixes all readers, and a filling of N nodes costs N log N instead of N^3.

Arrays of resources have the shape ``(resources, nodes)``: each node has one of each kind.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

FULL = 1e-9  # A resource is full if its load is within this of its capacity
FASTEST = 1e15  # The rate where nothing limits


@dataclass(frozen=True)
class ShuffleFlows:
    """One flow a node: what each takes of its own node, and of all nodes that it sends to."""

    own: Array  # Of the flow's own node, for each byte
    arriving: Array  # Of each node, for a byte that any flow sends
    reads: Flags
    sends: Flags
    store: float = 0.0  # Of what all readers share, for a byte that any of them reads

    def usage(self, rates: Array) -> tuple[Array, float]:
        """The load of each node's resources, and of what all share."""
        load = self.arriving * rates[self.sends].sum() + self.own * rates
        return load, self.store * float(rates[self.reads].sum())


def shuffle(flows: ShuffleFlows, capacity: Array) -> Array:
    """The rate of each flow, in bytes a second; shape ``(nodes,)``.

    ``capacity`` is of each node's resources; that of what all readers share is 1.
    """
    rates = np.zeros(capacity.shape[1])
    moving = flows.reads | flows.sends
    alone = np.where((flows.arriving == 0) & (flows.own > 0), capacity, np.inf)
    own = np.divide(alone, flows.own, out=np.full_like(alone, np.inf), where=flows.own > 0)
    most = np.minimum(own.min(axis=0, initial=FASTEST), FASTEST)
    while moving.any():
        level = _first_full(flows, capacity, rates, moving, most)
        rates = np.where(moving, np.minimum(most, level), rates)
        fixed = moving & ((most <= level) | _uses_full(flows, capacity, rates))
        if not fixed.any():
            break  # By rounding: a resource is full that the moving flows hardly use.
        moving &= ~fixed
    return rates


def _first_full(
    flows: ShuffleFlows, capacity: Array, rates: Array, moving: Flags, most: Array
) -> float:
    """How far the moving flows can be raised together until a resource is full."""
    limit = capacity * (1 + FULL)  # Those that are full already are not overfull by rounding.

    def usage(level: float) -> tuple[Array, float]:
        return flows.usage(np.where(moving, np.minimum(most, level), rates))

    def overfull(level: float) -> bool:
        load, store = usage(level)
        return store > 1 + FULL or bool(np.any(load > limit))

    steps = np.unique(most[moving])
    if not overfull(float(steps[-1])):
        return float(steps[-1])
    low, high = -1, len(steps) - 1  # Between two of these, loads grow linearly.
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if overfull(float(steps[middle])) else (middle, high)
    below, above = float(steps[low]) if low >= 0 else 0.0, float(steps[high])
    (began, began_store), (ended, ended_store) = usage(below), usage(above)
    full = ended > limit
    parts = (capacity[full] - began[full]) / (ended[full] - began[full])
    part = float(parts.min(initial=1.0))
    if ended_store > 1 + FULL:
        part = min(part, (1 - began_store) / (ended_store - began_store))
    return below + min(max(part, 0.0), 1.0) * (above - below)


def _uses_full(flows: ShuffleFlows, capacity: Array, rates: Array) -> Flags:
    """The flows that use a full resource. What a node keeps may not use its own link."""
    load, store = flows.usage(rates)
    full = load >= capacity * (1 - FULL)
    uses = np.any(full & (flows.own + flows.arriving * flows.sends > 0), axis=0)
    arriving = np.flatnonzero(np.any(full & (flows.arriving > 0), axis=0))
    if len(arriving):
        others = np.ones(len(rates), dtype=bool)
        if len(arriving) == 1:
            others[arriving] = False
        uses |= flows.sends & others
    if store >= 1 - FULL:
        uses |= flows.reads
    return np.asarray(uses)


@dataclass(frozen=True)
class OutputFlows:
    """One flow a node, which another node may copy."""

    own: Array  # Of the flow's own node, for each byte
    arriving: Array  # Of each node, for a byte that it copies for another
    copied: Flags  # The flows that are copied
    to: npt.NDArray[np.int64]  # The node that copies each node's flow
    store: Array  # Of what all share, for a byte of each flow: the same for all that use it

    def usage(self, rates: Array) -> Array:
        """The load of each node's resources."""
        arrived = np.bincount(self.to, rates * self.copied, len(rates))
        return np.asarray(self.own * rates + self.arriving * arrived)


def output_rates(flows: OutputFlows, capacity: Array, moving: Flags) -> Array:
    """The rate of each node's flow, if only some move.

    All resources that no neighbour fixes earlier are filled at once, with the same result.
    """
    rates = np.zeros(len(moving))
    if not np.any(flows.arriving[:, flows.to[moving & flows.copied]] > 0):
        most = _quotient(capacity, flows.own).min(axis=0, initial=FASTEST)
        return _share_store(np.where(moving, most, 0.0), flows.store)
    moving, left, to = moving.copy(), capacity.astype(float), flows.to
    while moving.any():
        copied = moving & flows.copied
        there = np.bincount(to, copied, len(moving))
        level = _quotient(left, flows.own * moving + flows.arriving * there)
        here = np.where(flows.own > 0, level, np.inf).min(axis=0)
        at_copies = np.where(flows.arriving > 0, level, np.inf).min(axis=0)[to]
        wanted = np.minimum(np.where(copied, np.minimum(here, at_copies), here), FASTEST)
        # A flow is fixed once no flow that shares a resource with it is limited to a lower rate.
        least = np.full_like(wanted, np.inf)
        np.minimum.at(least, np.flatnonzero(moving), wanted[moving])
        np.minimum.at(least, to[copied], wanted[copied])
        fixed = moving & (wanted <= least * (1 + FULL))
        fixed &= ~copied | (wanted <= least[to] * (1 + FULL))
        rates[fixed] = wanted[fixed]
        left = np.maximum(left - flows.usage(rates * fixed), 0.0)
        moving &= ~fixed
    return _share_store(rates, flows.store)


def _share_store(rates: Array, store: Array) -> Array:
    """The rates, of which the largest are lowered until what all share is not overfull."""
    used = store > 0
    if float(rates @ store) <= 1:
        return rates
    ordered = np.sort(rates[used])
    before = np.concatenate([[0.0], np.cumsum(ordered)[:-1]])
    # If all from here on have the same rate.
    levels = (1 / store[used].max() - before) / np.arange(len(ordered), 0, -1)
    level = levels[np.argmax(levels <= ordered)]
    return np.where(used, np.minimum(rates, level), rates)


def _quotient(amounts: Array, weights: Array) -> Array:
    """Amounts by weights; infinite where nothing is used."""
    return np.divide(amounts, weights, out=np.full_like(amounts, np.inf), where=weights > 0)
