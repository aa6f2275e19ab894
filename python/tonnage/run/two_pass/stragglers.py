"""Finds nodes that are so slow in pass two that others would finish their partitions sooner.

All wait for the slowest node. What it has not finished can be reassigned as after a loss: its input
is read again. That pays if the straggler needs much longer than that takes, since both are
estimates:

    left / rate > TIMES * (again + left / rate of all that are done)

Rates are those so far, as in LATE (Zaharia et al., OSDI 2008), which estimates when a task will end
instead of how far it is. While no node is done, none could help.

Bytes count as done when they are written; before the first, a whole partition was read and sorted.
So the rate of a node that has not finished a partition is unknown: even a fast node has done almost
nothing. Its share may be one partition, which a single node would do again at its own pace. So it
is given up only when it took much longer than the slowest node that is done would need for all of
that share, with the input read again:

    seconds > TIMES * (again + wanted / rate of the slowest that is done)

It has no clock, and each answer costs the same however many nodes there are.
"""

from collections.abc import Mapping, Sequence

TIMES = 2.0
"""A node that needs so many times as long is given up."""


class StragglerDetector:
    """Compares the nodes' rates.

    Args:
        shares: Sizes in bytes of the partitions of each node that may be given up.
        again_seconds: How long it takes, at most, to bring partitions to other nodes.
    """

    def __init__(
        self, shares: Mapping[str, Sequence[int]] | None = None, again_seconds: float = 0.0
    ) -> None:
        self._wanted = {node: sum(sizes) for node, sizes in (shares or {}).items()}
        self._largest = {node: max(sizes, default=0) for node, sizes in (shares or {}).items()}
        self._again = again_seconds
        self._total_rate = 0.0  # bytes a second of all nodes that are done
        self._lowest_rate = float("inf")  # of one of them
        self._given_up: dict[str, int] = {}  # the bytes that were left of each

    def note_ended(self, node: str, seconds: float) -> None:
        if wanted := self._wanted.pop(node, 0):
            self._total_rate += wanted / seconds
            self._lowest_rate = min(self._lowest_rate, wanted / seconds)

    def is_straggler(self, node: str, done: int, seconds: float) -> bool:
        """Whether a node, which has done so many bytes in so long, is given up for good."""
        if node in self._given_up:
            return True
        wanted = self._wanted.get(node, 0)
        left = wanted - done
        if left <= 0 or not self._total_rate:
            return False
        if done < self._largest[node]:
            needs, others = seconds, wanted / self._lowest_rate
        else:
            all_left = left + sum(self._given_up.values())
            needs, others = left * seconds / done, all_left / self._total_rate
        if needs <= TIMES * (self._again + others):
            return False
        self._given_up[node] = left
        return True
