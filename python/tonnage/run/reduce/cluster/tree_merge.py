"""Merge the objects of all nodes in a tree, from node to node; the driver gets the last one.

::

    merge      each node merges its own objects of the round and those it has received
    transfer   half of the nodes send theirs to the others; repeated until one node is left

Merging is a step: nodes still answer, however long it takes. A node keeps its own objects until
the round ends. So if a node is lost that had received others' objects, only its own chunks are
reduced again, and merging starts again.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tonnage.base import core, formatting
from tonnage.cluster.failure_kinds import Failure
from tonnage.cluster.protocol import FetchObject, StepResult, StoreObject
from tonnage.cluster.time_limits import MERGE_FAILURE_SECONDS
from tonnage.cluster.worker_pool import WorkerPool
from tonnage.run.reduce.cluster.messages import MERGE, Merge

MAX_ATTEMPTS = 5
"""Merging takes moments, so a node seldom dies during it by chance. If so many attempts in a round
have lost a node, merging is the cause, unless all were within `MERGE_FAILURE_SECONDS`: a node that
dies every few seconds lets one attempt succeed."""


def tree_merge(
    pool: WorkerPool, nodes: Sequence[str], orphans: Sequence[bytes], attempt: int
) -> bytes | dict[str, StepResult[Any]]:
    """The merged object of these nodes and of lost ones' ``orphans``; or who was lost, and why."""
    for place, each in enumerate(orphans):
        node = nodes[place % len(nodes)]
        pool.ask({node: StoreObject(attempt)}, len(each), {node: each})
    left = list(nodes)
    while not (lost := _lost_nodes(pool, nodes)):
        ended = pool.run_step(MERGE, {node: Merge(attempt) for node in left})
        if failed := {node: end for node, end in ended.items() if end.failure is not None}:
            return failed | _lost_nodes(pool, nodes)
        longest = max(end.value.bytes for end in ended.values() if end.value)
        if len(left) == 1:
            answer = pool.ask({left[0]: FetchObject(attempt)}, longest)
            if left[0] in answer:
                whole: bytes = answer[left[0]]
                return whole
            continue
        half = (len(left) + 1) // 2
        pool.transfer(dict(zip(left, left[half:], strict=False)), attempt, longest)
        left = left[:half]
    return lost


def _lost_nodes(pool: WorkerPool, nodes: Sequence[str]) -> dict[str, StepResult[Any]]:
    gone = {node: pool.workers[node].lost for node in nodes}
    return {
        node: StepResult(failure=Failure.LOST, reason=why)
        for node, why in gone.items()
        if why is not None
    }


@dataclass
class MergeAttempts:
    """The times of a round's attempts to merge that have lost a node."""

    number: int
    failed: list[float] = field(default_factory=list)

    def note_failure(self, lost: str) -> None:
        """Note that an attempt has lost these nodes; `RunError` if there were too many attempts."""
        self.failed.append(time.monotonic())
        took = self.failed[-1] - self.failed[0]
        if len(self.failed) < MAX_ATTEMPTS or took < MERGE_FAILURE_SECONDS:
            return
        done = formatting.several(self.number - 1, "round")
        raise core.RunError(
            f"{len(self.failed)} attempts to merge the reduction objects of round {self.number} "
            "have each "
            f"lost a node (last: {lost}); the results of {done} are saved. Two reduction "
            "objects must fit "
            "into a node's memory in addition to the chunks; use nodes with more memory, less "
            "memory for "
            "chunks, fewer workers or smaller objects"
        )
