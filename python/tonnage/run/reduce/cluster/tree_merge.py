"""The objects of all nodes, merged two by two, from node to node; the last comes to the driver.

::

    merge    each node: its own objects of the round, and those that it was given, into one
    hand     half of the nodes give theirs to the others; both again, until one node is left

To merge is a step as any other is: who merges answers meanwhile, however long it takes. What a node
has of its own stays there until the round ends. So if one is lost, and it had been given others'
objects, it is only its own chunks that are reduced again, and merging begins anew.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tonnage.base import core, formatting
from tonnage.cluster.failures import Failure
from tonnage.cluster.protocol import FetchObject, StepResult, StoreObject
from tonnage.cluster.worker_pool import WorkerPool
from tonnage.run.reduce.cluster.messages import MERGE, Merge

MAX_ATTEMPTS = 5
"""A machine that dies whenever it likes seldom does while objects are merged, which takes moments.
If so many mergings of a round have lost one, merging is what it dies of,"""
ATTEMPTS_SECONDS = 120.0
"""unless that was all within so long: who dies every few seconds spares a merging in the end."""


def tree_merge(
    crew: WorkerPool, nodes: Sequence[str], more: Sequence[bytes], attempt: int
) -> bytes | dict[str, StepResult[Any]]:
    """The objects of these nodes, and more of them, in one; or who was lost meanwhile, and why.

    Args:
        crew: Whose.
        nodes: Those that have some.
        more: Objects of others, which these nodes merge.
        attempt: Which merging of all it is.
    """
    for place, each in enumerate(more):
        node = nodes[place % len(nodes)]
        crew.ask({node: StoreObject(attempt)}, len(each), {node: each})
    left = list(nodes)
    while not (lost := _gone(crew, nodes)):
        ended = crew.run_step(MERGE, {node: Merge(attempt) for node in left})
        if failed := {node: end for node, end in ended.items() if end.failure is not None}:
            return failed | _gone(crew, nodes)
        longest = max(end.value.bytes for end in ended.values() if end.value)
        if len(left) == 1:
            answer = crew.ask({left[0]: FetchObject(attempt)}, longest)
            if left[0] in answer:
                whole: bytes = answer[left[0]]
                return whole
            continue
        half = (len(left) + 1) // 2
        crew.transfer(dict(zip(left, left[half:], strict=False)), attempt, longest)
        left = left[:half]
    return lost


def _gone(crew: WorkerPool, nodes: Sequence[str]) -> dict[str, StepResult[Any]]:
    """Those who are not there any more."""
    gone = {node: crew.workers[node].lost for node in nodes}
    return {
        node: StepResult(failure=Failure.LOST, reason=why)
        for node, why in gone.items()
        if why is not None
    }


@dataclass
class MergeAttempts:
    """Those of a round that have lost somebody.

    Attributes:
        number: Of the round, from 1 on.
    """

    number: int
    failed: list[float] = field(default_factory=list)
    """When."""

    def note_failure(self, lost: str) -> None:
        """Merging is to begin anew.

        Args:
            lost: The node that was lost, and why.

        Raises:
            RunError: It was, too often.
        """
        self.failed.append(time.monotonic())
        took = self.failed[-1] - self.failed[0]
        if len(self.failed) < MAX_ATTEMPTS or took < ATTEMPTS_SECONDS:
            return
        done = formatting.several(self.number - 1, "round")
        raise core.RunError(
            f"each of {len(self.failed)} mergings of round {self.number} has lost a machine, the "
            f"last {lost}: what {done} came to stays; two objects have to fit a machine's memory "
            "beside the chunks: give machines with more, less --memory or fewer --workers, or "
            "smaller objects"
        )
