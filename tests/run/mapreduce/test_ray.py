"""`tonnage run mapreduce --cluster` on a real Ray cluster, with faults of its nodes."""

from __future__ import annotations

import collections
import json
import os
import random
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from support.cli.command import Tonnage
from support.cli.processes import started
from support.cluster.ray_cluster import RayCluster, ray_cluster
from support.stores.disk import ROOT, disk_dir

pytestmark = pytest.mark.slow

NODES = ("beta", "gamma")
ALL = ("beta", "gamma", "head")


@pytest.fixture(scope="module")
def shared() -> Iterator[Path]:
    """A directory on a disk that all nodes see, for the file's tests."""
    with disk_dir("test-map-ray-") as directory:
        yield directory


@pytest.fixture(scope="module")
def cluster(shared: Path) -> Iterator[RayCluster]:
    """Three nodes, and text that all of them see."""
    with ray_cluster(shared, NODES) as made:
        (shared / "in").mkdir()
        draw = random.Random(1)
        for number in range(3):
            lines = (
                " ".join(f"word{int(50_000 * draw.random() ** 2)}" for _ in range(12))
                for _ in range(70_000)
            )
            (shared / "in" / f"{number}.txt").write_text("\n".join(lines))
        yield made


def count(cluster: RayCluster, shared: Path, disk: Path, job: Path | None = None) -> list[str]:
    """A word count into directories of this test that each node has of its own."""
    job = job or ROOT / "examples" / "word_count.py"
    return [
        *("run", "mapreduce", f"{job}:JOB", str(shared / "in")),
        *("--output", f"{disk}/{{node}}/out", "--scratch", f"{disk}/{{node}}/scratch"),
        *("--cluster", cluster.address, "--job-dir", str(disk / "job"), "--memory", "64MiB"),
        *("--timeout", "10s", "--json"),
    ]


def judged(shared: Path, disk: Path, stdout: str) -> dict[str, Any]:
    """The record of a word count that was right."""
    record: dict[str, Any] = json.loads(stdout)
    files = json.loads((disk / "job" / "reduced.json").read_text())
    rows = [row for each in files for row in pq.read_table(each["path"]).to_pylist()]
    found = {row["key"]: row["n"] for row in rows}
    texts = (path.read_text() for path in (shared / "in").iterdir())
    assert len(found) == len(rows)
    assert found == collections.Counter(word for text in texts for word in text.split())
    assert record["records"] == 210_000 and record["written_records"] == len(rows)
    return record


@pytest.mark.real
def test_three_nodes_count_words_by_a_file_that_only_one_has(
    tonnage: Tonnage, cluster: RayCluster, shared: Path, disk: Path
) -> None:
    done = tonnage.run(*count(cluster, shared, disk), env=cluster.env, check=True)
    record = judged(shared, disk, done.stdout)
    assert [node["node"] for node in record["nodes"]] == list(ALL)
    assert all(node["lost"] is None and node["cpu_seconds"] > 0 for node in record["nodes"])
    for node in ALL:
        assert list((disk / node / "scratch").iterdir()) == []
    assert "earlier command" not in done.stderr
    again = tonnage.run(*count(cluster, shared, disk), env=cluster.env, check=True)
    assert json.loads(again.stdout) == record
    assert again.stderr.endswith("the job had already finished; this is its record\n")


@pytest.mark.parametrize("where", ["scratch/tonnage-*/round-*.device", "out/part-*"])
def test_an_agent_that_is_killed_is_done_without(
    tonnage: Tonnage, cluster: RayCluster, shared: Path, disk: Path, where: str
) -> None:
    with started([tonnage.path, *count(cluster, shared, disk)], env=cluster.env) as run:
        agent = cluster.agent("gamma", "TwoPassWorker")
        run.wait_until(lambda: any((disk / "gamma").glob(where)))
        os.kill(agent, signal.SIGKILL)
        stdout, stderr = run.process.communicate(timeout=120)
    assert run.process.returncode == 0, stderr
    lost = {node["node"]: node["lost"] for node in judged(shared, disk, stdout)["nodes"]}
    assert lost["beta"] is None and lost["head"] is None
    assert str(lost["gamma"]).startswith("died")


def test_a_function_that_fails_is_told_with_its_node(
    tonnage: Tonnage, cluster: RayCluster, shared: Path, disk: Path
) -> None:
    job = disk / "failing.py"
    job.write_text(
        "from tonnage import MapReduce\n\n\n"
        "def broken(batch):\n    return batch.column('none')\n\n\n"
        "JOB = MapReduce(map=broken)\n"
    )
    done = tonnage.run(*count(cluster, shared, disk, job), env=cluster.env)
    assert done.returncode == 1
    assert "map (broken) failed for" in done.stderr and "in/" in done.stderr
    assert any(f"{node}: map" in done.stderr for node in ALL)
    assert "resumes" not in done.stderr and not list((disk / "job").glob("*"))
