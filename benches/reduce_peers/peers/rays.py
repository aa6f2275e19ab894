"""Ray on this machine, for one peer: a slot for each of its cores, and no dashboard."""

from __future__ import annotations

import os

import ray
from task import Task

STORE_BYTES = 2 << 30


def started(task: Task) -> None:
    """Start Ray; it ends with this process."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    ray.init(
        address="local",
        num_cpus=task.workers,
        include_dashboard=False,
        log_to_driver=False,
        object_store_memory=STORE_BYTES,
        _temp_dir=task.scratch,
    )
