"""Sort and MapReduce from object storage to object storage, on a real Ray cluster."""

from __future__ import annotations

import collections
import io
import json
import os
import random
import signal
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from support.cli.command import Tonnage
from support.cli.processes import started
from support.cluster.ray_cluster import RayCluster, ray_cluster
from support.data.records import blob
from support.stores.disk import ROOT, disk_dir
from support.stores.s3 import BUCKET, KEYS, Bucket, server

pytestmark = pytest.mark.slow

RECORDS = 300_000
ALL = ("beta", "gamma", "head")


@pytest.fixture(scope="module")
def s3() -> Iterator[Bucket]:
    """A bucket with an input; nodes have its keys from the environment."""
    before = dict(os.environ)
    os.environ.update(KEYS)
    try:
        with server() as running:
            bucket = Bucket(running)
            for number in range(3):
                bucket.put(f"in/{number}", blob(number, 100 * RECORDS // 3))
            yield bucket
    finally:
        os.environ.clear()
        os.environ.update(before)


@pytest.fixture(scope="module")
def cluster(s3: Bucket) -> Iterator[RayCluster]:
    """Three nodes."""
    with disk_dir("test-sort-volumes-ray-") as shared, ray_cluster(shared, ALL[:2]) as made:
        yield made


def test_a_fleet_sorts_from_bucket_to_bucket_and_an_interrupted_one_goes_on(
    tonnage: Tonnage, cluster: RayCluster, s3: Bucket, disk: Path
) -> None:
    command = [
        *("run", "sort", f"s3://{BUCKET}/in/", "--output", f"s3://{BUCKET}/out"),
        *(
            "--scratch",
            f"{disk}/{{node}}/scratch",
            "--endpoint-url",
            s3.endpoint,
            "--requests",
            "4",
        ),
        *(
            "--cluster",
            cluster.address,
            "--job-dir",
            str(disk / "job"),
            "--memory",
            "64MiB",
            "--json",
        ),
    ]
    with started([tonnage.path, *command], env=cluster.env) as run:
        run.wait_until(lambda: any((disk / "beta" / "scratch").glob("tonnage-*/round-*.device")))
        code, _, stderr = run.end(signal.SIGINT)
    assert code == 130 and f"run the same command with --job-dir {disk / 'job'}" in stderr
    assert s3.uploads() == []

    done = tonnage.run(*command, env=cluster.env, check=True)
    record = json.loads(done.stdout)
    assert [node["node"] for node in record["nodes"]] == list(ALL)
    assert all(node["lost"] is None for node in record["nodes"])
    assert (record["durability"], record["records"]) == ("none", RECORDS)
    assert record["requests"]["requests"] > 10
    content = s3.content("out")
    assert sorted(content) == sorted(
        [*json.loads(content["_tonnage.json"])["parts"], "_tonnage.json"]
    )
    assert s3.uploads() == []

    judged = tonnage.run("valsort", f"s3://{BUCKET}/out", "--endpoint-url", s3.endpoint, check=True)
    assert judged.stdout.splitlines()[0] == f"Records: {RECORDS}"
    assert judged.stdout.splitlines()[-1] == "SUCCESS: all records are in order"
    kept = "".join(path.read_text() for path in (disk / "job").iterdir())
    assert not any(secret in kept + done.stdout for secret in KEYS.values())


def test_a_fleet_counts_the_words_of_objects_although_a_node_is_killed(
    tonnage: Tonnage, cluster: RayCluster, s3: Bucket, disk: Path
) -> None:
    draw, words = random.Random(1), collections.Counter[str]()
    for number in range(3):
        drawn = [[f"w{int(50_000 * draw.random() ** 2)}" for _ in range(12)] for _ in range(70_000)]
        words.update(word for line in drawn for word in line)
        s3.put(f"texts/{number}.txt", "\n".join(map(" ".join, drawn)).encode())
    command = [
        *("run", "mapreduce", f"{ROOT}/examples/word_count.py:JOB", f"s3://{BUCKET}/texts/"),
        *("--output", f"s3://{BUCKET}/words", "--scratch", f"{disk}/{{node}}/scratch"),
        *("--endpoint-url", s3.endpoint, "--requests", "4", "--memory", "64MiB", "--json"),
        *("--cluster", cluster.address, "--job-dir", str(disk / "job"), "--timeout", "10s"),
    ]
    with started([tonnage.path, *command], env=cluster.env) as run:
        agent = cluster.agent("gamma", "TwoPassWorker")
        run.wait_until(lambda: any((disk / "gamma" / "scratch").glob("tonnage-*/round-*.device")))
        os.kill(agent, signal.SIGKILL)
        stdout, stderr = run.process.communicate(timeout=120)
    assert run.process.returncode == 0, stderr
    record = json.loads(stdout)
    lost = {node["node"]: node["lost"] for node in record["nodes"]}
    assert str(lost.pop("gamma")).startswith("died") and not any(lost.values())
    assert (record["durability"], record["records"]) == ("none", 210_000)
    content = s3.content("words")
    parts = json.loads(content.pop("_tonnage.json"))["parts"]
    assert sorted(content) == parts and s3.uploads() == []
    rows = [row for part in parts for row in pq.read_table(io.BytesIO(content[part])).to_pylist()]
    found = {row["key"]: row["n"] for row in rows}
    assert len(found) == len(rows) and found == words
