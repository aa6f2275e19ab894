"""Who is so slow at its partitions that the others would do the rest sooner, all over again.

All wait for the slowest node. What it has not finished can be given to others as after a loss: the
input is read again for it. That pays if the slow one needs longer than that takes, by far, since
both are estimates:

    left / rate > TIMES * (again + left / rate of all that are done)

Rates are those so far, as in LATE (Zaharia et al., OSDI 2008), which estimates when a task will end
instead of how far it is. While nobody is done nobody could help.

Bytes count as done when they are written; before the first, a whole partition was read and put in
order. So the rate of a node that has not done one is not known: next to nothing is done of it while
it is as fast as any. It may have all of its share in one partition, which one node does again at
its own pace. So it is given up only when it was at it for longer, by far, than the slowest of those
that are done would need for all of that share, with the input read again:

    seconds > TIMES * (again + wanted / rate of the slowest that is done)

It has no clock, and each answer costs the same however many nodes there are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

TIMES = 2.0
"""A node that needs so much longer is given up."""


class StragglerDetector:
    """How fast nodes are.

    Args:
        shares: Of each node that may be given up, the bytes of the partitions that it has to do.
        again_seconds: What it takes at most to bring partitions to other nodes.
    """

    def __init__(
        self, shares: Mapping[str, Sequence[int]] | None = None, again_seconds: float = 0.0
    ) -> None:
        self._wanted = {node: sum(sizes) for node, sizes in (shares or {}).items()}
        self._largest = {node: max(sizes, default=0) for node, sizes in (shares or {}).items()}
        self._again = again_seconds
        self._together = 0.0  # bytes a second of all that are done
        self._slowest = float("inf")  # of one of them
        self._given_up: dict[str, int] = {}  # with the bytes that are left of each

    def ended(self, node: str, seconds: float) -> None:
        """Takes that a node has done its share in so long."""
        if wanted := self._wanted.pop(node, 0):
            self._together += wanted / seconds
            self._slowest = min(self._slowest, wanted / seconds)

    def is_straggler(self, node: str, done: int, seconds: float) -> bool:
        """Whether a node is given up; then it stays so.

        Args:
            node: Who has just told how far it is.
            done: Bytes that it has done.
            seconds: How long it has been at it.
        """
        if node in self._given_up:
            return True
        wanted = self._wanted.get(node, 0)
        left = wanted - done
        if left <= 0 or not self._together:
            return False
        if done < self._largest[node]:
            needs, others = seconds, wanted / self._slowest
        else:
            all_left = left + sum(self._given_up.values())
            needs, others = left * seconds / done, all_left / self._together
        if needs <= TIMES * (self._again + others):
            return False
        self._given_up[node] = left
        return True
