"""Who is so slow at its partitions that the others would do the rest sooner, all over again.

All wait for the slowest node. What it has not finished can be given to others as after a loss: the
input is read again for it. That pays if the slow one needs longer than that takes, by far, since
both are estimates:

    left / rate > TIMES * (again + left / rate of all that are done)

Rates are those so far, as in LATE (Zaharia et al., OSDI 2008), which estimates when a task will end
instead of how far it is. While nobody is done nobody could help. Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

TIMES = 2.0
"""A node that needs so much longer is given up."""


def slow(
    wanted: Mapping[str, int],
    done: Mapping[str, int],
    ended: Collection[str],
    seconds: float,
    again_seconds: float,
) -> str | None:
    """The node that is to be given up, if there is one.

    Args:
        wanted: Bytes that each node is to sort.
        done: Bytes that each has sorted.
        ended: Who has sorted all.
        seconds: How long they have been at it.
        again_seconds: What it takes at most to bring partitions to other nodes.
    """
    there = sum(wanted[node] for node in ended if node in wanted)
    busy = [node for node in sorted(wanted) if node not in ended and wanted[node] > 0]
    if not there or not busy:
        return None
    left = {node: max(wanted[node] - done.get(node, 0), 0) for node in busy}
    needs = {node: left[node] * seconds / max(done.get(node, 0), 1) for node in busy}
    node = max(busy, key=lambda each: needs[each])
    others = again_seconds + left[node] * seconds / there
    return node if needs[node] > TIMES * others else None
