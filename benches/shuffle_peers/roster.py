"""The systems: what each starts on the nodes, its command, how it divides memory.

A node's memory limit is shared by all that runs there, including the page cache. Every system gets
the same budget, two fifths of the limit: Tonnage as `--memory`, Ray as its object store, Spark as
an executor's heap. The rest is for interpreters and their tasks' working memory, daemons, the page
cache, and on the first node the driver.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import clusters
from clusters import Site

HERE = Path(__file__).resolve().parent
BIN = HERE.parent / ".venv/bin"
PEERS = HERE / "peers"
JAR = HERE / ".tools/terasort.jar"
SORT_PEERS = HERE.parent / "sort_peers/peers"
"""Its `records.py` also reads and writes records for Ray Data here."""
BUDGET_SHARE = 0.4
MIN_STORE_BYTES = 80 << 20
"""Ray's smallest object store; Tonnage's bytes do not pass through it."""
SPARK_DRIVER_BYTES = 450 << 20
"""Spark's smallest heap."""
SPARK_DAEMON_BYTES = 96 << 20


@dataclass(frozen=True)
class Task:
    """One sort with all its settings."""

    site: Site
    tonnage: Path
    limit_bytes: int
    """Limit of each node's memory."""

    @property
    def budget_bytes(self) -> int:
        """A system's memory budget on each node."""
        return int(self.limit_bytes * BUDGET_SHARE)

    def write(self) -> Path:
        """Write the file that peers read."""
        file = self.site.room / "job.json"
        nodes = [
            {"name": node.name, "address": node.address, "input": str(node.input)}
            for node in self.site.node_set.nodes
        ]
        values = {"nodes": nodes, "slots": self.site.slots, "budget_bytes": self.budget_bytes}
        file.write_text(json.dumps(values))
        return file


@dataclass(frozen=True)
class Call:
    """A command for the first node."""

    command: list[str]
    environment: Mapping[str, str]


@dataclass(frozen=True)
class System:
    """One of the compared systems."""

    name: str
    ready: Callable[[Task], Call]
    """Starts what must run on the nodes before the clock starts; returns the timed command."""
    version: Callable[[Path], list[str]]
    """Returns the command that prints its version, given Tonnage's path."""

    def found_version(self, tonnage: Path) -> str | None:
        """Return its version, or None if it is not installed."""
        try:
            done = subprocess.run(self.version(tonnage), capture_output=True, text=True)
        except FileNotFoundError:
            return None
        found = re.search(r"\d+(\.\d+)+\S*", done.stdout)
        return found.group() if found and done.returncode == 0 else None


def tonnage(task: Task) -> Call:
    """Tonnage's sort on a cluster; its bytes go from endpoint to endpoint, not through Ray."""
    node_set = task.site.node_set
    known = clusters.ray(task.site, task.tonnage.parent / "ray", MIN_STORE_BYTES, {})
    command = [
        *(
            str(task.tonnage),
            "run",
            "sort",
            f"{node_set.disks}/input/{node_set.nodes[0].input.name}",
        ),
        *("--output", f"{node_set.disks}/output", "--scratch", f"{node_set.disks}/scratch"),
        *("--cluster", known["RAY_ADDRESS"], "--job-dir", str(task.site.room / "run")),
        *("--memory", str(task.budget_bytes)),
    ]
    return Call(command, known)


def ray_data(strategy: str) -> Callable[[Task], Call]:
    """Ray Data's sort by one of its shuffles."""

    def ready(task: Task) -> Call:
        return _on_ray(task, "ray_data_sort.py", strategy)

    return ready


def push_shuffle(task: Task) -> Call:
    """A push-based shuffle of Ray tasks."""
    return _on_ray(task, "push_shuffle_sort.py")


def spark(task: Task) -> Call:
    """TeraSort on Spark's own cluster."""
    home = subprocess.run(
        [BIN / "python", "-c", "import pyspark; print(pyspark.__path__[0])"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()
    nodes = len(task.site.node_set.nodes)
    properties = {
        "spark.executor.memory": f"{task.budget_bytes >> 20}m",
        "spark.executor.cores": f"{task.site.slots}",
        "spark.driver.memory": f"{SPARK_DRIVER_BYTES >> 20}m",
        "spark.log.level": "ERROR",
        "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
        # The benchmark's records are random: compression does not make them shorter.
        "spark.shuffle.compress": "false",
        "spark.shuffle.spill.compress": "false",
        # Nothing is cached, so most memory is for sorting.
        "spark.memory.fraction": "0.75",
        # With few large blocks to fetch, this keeps a link busy.
        "spark.reducer.maxSizeInFlight": "24m",
        # A slice is read on its own node only; partitions go wherever a slot is free.
        "spark.locality.wait": "1d",
        "spark.shuffle.reduceLocality.enabled": "false",
        # Slices begin when all nodes are there.
        "spark.scheduler.minRegisteredResourcesRatio": "1.0",
        "spark.scheduler.maxRegisteredResourcesWaitingTime": "120s",
        "spark.cores.max": f"{task.site.slots * nodes}",
    }
    known = clusters.spark(task.site, Path(home), task.budget_bytes, SPARK_DAEMON_BYTES, properties)
    submit = [f"{home}/bin/spark-submit", "--class", "TeraSort", str(JAR), str(task.write())]
    return Call(submit, known)


def _on_ray(task: Task, program: str, *arguments: str) -> Call:
    path = {"PYTHONPATH": f"{PEERS}:{SORT_PEERS}"}
    known = clusters.ray(task.site, BIN / "ray", task.budget_bytes, path)
    python = str(BIN / "python")
    return Call([python, str(PEERS / program), str(task.write()), *arguments], known)


def _python_version(package: str) -> Callable[[Path], list[str]]:
    code = f"from importlib.metadata import version; print(version({package!r}))"
    return lambda _: [str(BIN / "python"), "-c", code]


TONNAGE = "tonnage"
ROSTER = [
    System(TONNAGE, tonnage, lambda path: [str(path), "--version"]),
    System("push-shuffle", push_shuffle, _python_version("ray")),
    System("ray-data-push", ray_data("push"), _python_version("ray")),
    System("ray-data-v2", ray_data("v2"), _python_version("ray")),
    System("spark", spark, _python_version("pyspark")),
]
