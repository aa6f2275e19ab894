"""Who is compared: what each has standing on the nodes, how each is called, how it divides memory.

A node's memory is its limit, which all that runs there shares, page cache too. Everyone is told the
same budget, two fifths of that: Tonnage as `--memory`, Ray as its object store, Spark as an
executor's heap. The rest is for what each takes beside it: interpreters and what their tasks have
in their hands, daemons, the page cache; and on the first node for the driver.
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
"""Its `records.py` reads and writes records for Ray Data here too."""
BUDGET_SHARE = 0.4
LEAST_STORE_BYTES = 80 << 20
"""Ray takes no smaller object store; Tonnage's bytes do not go through it."""
SPARK_DRIVER_BYTES = 450 << 20
"""Spark takes no smaller heap."""
SPARK_DAEMON_BYTES = 96 << 20


@dataclass(frozen=True)
class Task:
    """One sort, fully said."""

    site: Site
    tonnage: Path
    limit_bytes: int
    """Of each node's memory."""

    @property
    def budget_bytes(self) -> int:
        """What a system is told that it may use on each node."""
        return int(self.limit_bytes * BUDGET_SHARE)

    def write(self) -> Path:
        """The file that peers read."""
        file = self.site.room / "job.json"
        nodes = [
            {"name": node.name, "address": node.address, "input": str(node.input)}
            for node in self.site.node_set.nodes
        ]
        told = {"nodes": nodes, "slots": self.site.slots, "budget_bytes": self.budget_bytes}
        file.write_text(json.dumps(told))
        return file


@dataclass(frozen=True)
class Call:
    """A command for the first node."""

    command: list[str]
    environment: Mapping[str, str]


@dataclass(frozen=True)
class System:
    """One of those that are compared."""

    name: str
    ready: Callable[[Task], Call]
    """Starts what has to stand on the nodes before the clock starts; gives what is timed."""
    version: Callable[[Path], list[str]]
    """What prints its version, given Tonnage's path."""

    def found_version(self, tonnage: Path) -> str | None:
        """Its version, or None where it is not installed."""
        try:
            done = subprocess.run(self.version(tonnage), capture_output=True, text=True)
        except FileNotFoundError:
            return None
        found = re.search(r"\d+(\.\d+)+\S*", done.stdout)
        return found.group() if found and done.returncode == 0 else None


def tonnage(task: Task) -> Call:
    """Tonnage's sort on a cluster; its bytes go from endpoint to endpoint, past Ray."""
    node_set = task.site.node_set
    known = clusters.ray(task.site, task.tonnage.parent / "ray", LEAST_STORE_BYTES, {})
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
        # The benchmark's records are random: they come out of a compressor as long as they went in.
        "spark.shuffle.compress": "false",
        "spark.shuffle.spill.compress": "false",
        # Nothing is cached, so all but a little is for sorting.
        "spark.memory.fraction": "0.75",
        # With few large blocks to fetch, this much at once keeps a link busy.
        "spark.reducer.maxSizeInFlight": "24m",
        # A slice is read on its own node or not at all; partitions go wherever a slot is free.
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
