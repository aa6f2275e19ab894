"""Max-min fair rates of flows that share nodes, by progressive filling.

The fluid model of SimGrid's networks (Casanova and others, JPDC 2014; Velho and others, TOMACS
2013): a flow is a rate, a resource bounds the weighted sum of the rates of those that use it, and
rates are max-min fair. Filling raises all rates equally until a resource is full, fixes the flows
that use it, and continues with the others (Bertsekas and Gallager, Data Networks, section 6.5.2).

In a shuffle a reader is one flow: it sends to all owners in fixed shares, and its buffers are
bounded, so the slowest owner limits it. Every owner is used by every reader. So the first owner
that is full fixes all readers, and a filling of N nodes costs N log N instead of N^3.
"""

import numpy as np
import numpy.typing as npt

from tonnage.simulate.cluster import Array

FULL = 1e-9  # A resource is full if its load is within this of its capacity


def shuffle(most: Array, shares: Array, network: Array, disk: Array, own: Array) -> Array:
    """The rate of each reader, in bytes a second; all arrays have shape ``(nodes,)``.

    ``most`` is each reader's rate if it were alone, ``shares`` are of all input that each receives,
    ``network`` is the maximum incoming rate in bytes a second, ``disk`` and ``own`` are seconds of
    a node's disk for a received byte and for one that it reads.
    """
    if not np.any(most > 0):
        return np.zeros_like(most)
    into = shares / network

    def usage(level: float) -> tuple[Array, Array]:
        rates = np.minimum(most, level)
        total = rates.sum()
        return into * (total - rates), shares * disk * total + own * rates

    def overfull(level: float) -> bool:
        return max(float(each.max()) for each in usage(level)) > 1

    steps = np.unique(most)
    if not overfull(float(steps[-1])):
        return most.copy()
    low, high = -1, len(steps) - 1  # Between two of these, loads grow linearly.
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if overfull(float(steps[middle])) else (middle, high)
    below, above = float(steps[low]) if low >= 0 else 0.0, float(steps[high])
    began, ended = np.concatenate(usage(below)), np.concatenate(usage(above))
    full = ended > 1
    parts = (1 - began[full]) / (ended[full] - began[full])
    level = below + float(np.clip(parts.min(), 0, 1)) * (above - below)
    rates = np.minimum(most, level)
    return _bounds_alone(rates, most, into, *usage(level), shares * disk, own)


def _bounds_alone(
    rates: Array, most: Array, into: Array, network: Array, disk: Array, from_all: Array, own: Array
) -> Array:
    """Raise the rate of the one reader whose own incoming link is the only full resource.

    A node's own input does not pass its link, so nothing fixes that flow yet.
    """
    full = np.flatnonzero(network > 1 - FULL)
    if len(full) != 1 or disk.max() > 1 - FULL:
        return rates
    one = int(full[0])
    others = np.arange(len(rates)) != one
    weights = np.concatenate([into[others], from_all + np.where(others, 0.0, own)])
    left = np.concatenate([1 - network[others], 1 - disk])
    room = np.min(left[weights > 0] / weights[weights > 0], initial=most[one] - rates[one])
    rates[one] += max(float(room), 0.0)
    return rates


def replication_rates(most: Array, own: Array, other: Array, to: npt.NDArray[np.int64]) -> Array:
    """The rate at which each node writes output that node ``to[i]`` replicates.

    ``most`` is each node's rate if it were alone, ``own`` and ``other`` are seconds of its disk for
    a byte of its own and for one replicated to it. All resources that no neighbour fixes earlier
    are filled at once, with the same result.
    """
    rates = np.zeros_like(most)
    moving = most > 0
    left = np.ones_like(most)
    while moving.any():
        weight = own * moving + np.bincount(to, other[to] * moving, len(most))
        level = np.divide(left, weight, out=np.full_like(left, np.inf), where=weight > 0)
        wanted = np.minimum(most, np.minimum(level, level[to]))
        # A flow is fixed once its bottleneck limits no other flow there to a lower rate.
        least = np.full_like(level, np.inf)
        np.minimum.at(least, np.arange(len(most))[moving], wanted[moving])
        np.minimum.at(least, to[moving], wanted[moving])
        fixed = moving & (wanted <= least * (1 + FULL)) & (wanted <= least[to] * (1 + FULL))
        rates[fixed] = wanted[fixed]
        left -= own * rates * fixed + np.bincount(to, other[to] * rates * fixed, len(most))
        left = np.maximum(left, 0.0)
        moving &= ~fixed
    return rates
