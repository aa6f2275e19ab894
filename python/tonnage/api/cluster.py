"""Where a job runs that does not run on this machine alone."""

import importlib.util
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tonnage.base import core

NodeLabels = Sequence[tuple[str, Mapping[str, str]]]
"""Names of nodes, each with its labels."""


@dataclass(frozen=True)
class Cluster:
    """The nodes of a Ray cluster, for one job.

    Args:
        job_dir: A directory for the job's state and results. A job that was started there resumes.
        address: HOST:PORT of the cluster, or ``auto`` for the one that this machine belongs to.
        nodes: How many nodes run the job; by default all.
        timeout_seconds: A node that does not answer for this long is lost (3 s suffice if its peers
            report broken connections). So is a node that a MapReduce awaits twice as long without
            any progress; set more than a function needs for one batch.
        connections: From each node to each other; by default as many in all as a node has cores
            (MapReduce only).
        weights: Each node's share of the partitions; equal by default (MapReduce only).
        durability: What protects the output from the loss of a node (MapReduce only). ``none``:
            its share is computed again while the job runs, and is gone afterwards. ``replicated``:
            another node keeps a copy of each file. ``volumes``: the output is in object storage,
            which is the default if it is a url.
        on_nodes: Called with the cluster's nodes before the job starts (reductions only).
    """

    job_dir: Path | str
    address: str = "auto"
    nodes: int | None = None
    timeout_seconds: float = 60.0
    connections: int | None = None
    weights: Mapping[str, float] | None = None
    durability: str | None = None
    on_nodes: Callable[[NodeLabels], None] = lambda _: None


def refuse_without_ray() -> None:
    if importlib.util.find_spec("ray") is None:
        raise core.UsageError("a cluster needs Ray; install it with pip install 'tonnage[cluster]'")
