"""The job of a Python peer, and the nodes of its Ray cluster."""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

RECORD_BYTES = 100
TIMEOUT_SECONDS = 60.0


@dataclass(frozen=True)
class Slice:
    """Records of a node's input, which are read on that node."""

    node: str
    path: str
    first: int
    count: int


@dataclass(frozen=True)
class Job:
    """The file that the bench writes for each peer."""

    inputs: dict[str, str]
    """Each node's, by its name."""
    slots: int
    """Tasks that a node does at once."""
    budget_bytes: int
    """Of each node: its object store."""

    @classmethod
    def read(cls, path: str) -> Job:
        """The job of a file."""
        said: dict[str, Any] = json.loads(Path(path).read_bytes())
        inputs = {node["name"]: node["input"] for node in said["nodes"]}
        return cls(inputs, said["slots"], said["budget_bytes"])

    @property
    def input_bytes(self) -> int:
        """Of all nodes."""
        return sum(Path(path).stat().st_size for path in self.inputs.values())

    def slices(self, most_bytes: int) -> dict[str, list[Slice]]:
        """Each node's input, in nearly equal parts of no more than so many bytes."""
        found = {}
        for node, path in self.inputs.items():
            records = Path(path).stat().st_size // RECORD_BYTES
            parts = max(self.slots, -(-records * RECORD_BYTES // most_bytes))
            edges = [records * part // parts for part in range(parts + 1)]
            found[node] = [Slice(node, path, at, to - at) for at, to in pairwise(edges)]
        return found


def connect(job: Job) -> dict[str, NodeAffinitySchedulingStrategy]:
    """Joins the cluster and waits until all nodes have: what binds a task to each, by its name."""
    ray.init(address=os.environ["RAY_ADDRESS"], log_to_driver=False)
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while True:
        alive = {node["NodeName"]: node["NodeID"] for node in ray.nodes() if node["Alive"]}
        if alive.keys() >= job.inputs.keys():
            return {
                name: NodeAffinitySchedulingStrategy(alive[name], soft=False) for name in job.inputs
            }
        if time.monotonic() > deadline:
            raise RuntimeError(f"only {', '.join(alive)} joined in {TIMEOUT_SECONDS:g} s")
        time.sleep(0.1)


def refuse_elsewhere(node: str) -> None:
    """Who reads a node's input from another one reads past that node's throttle.

    Raises:
        RuntimeError: This process is on another node.
    """
    here = os.environ["SHUFFLE_PEERS_NODE"]
    if here != node:
        raise RuntimeError(f"a slice of {node} was to be read on {here}")


def output() -> Path:
    """Where the node that this process is on writes."""
    return Path(os.environ["SHUFFLE_PEERS_OUTPUT"])
