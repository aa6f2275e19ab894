"""Reductions of objects on a real Ray cluster, whose processes are killed."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from support.cli.command import Tonnage
from support.cli.processes import PATIENCE_SECONDS, started
from support.cluster.ray_cluster import RayCluster, ray_cluster
from support.stores.disk import disk_dir
from support.stores.s3 import BUCKET, KEYS, Bucket, server

pytestmark = pytest.mark.slow

ALL = ("beta", "gamma", "head")
COLUMNS, OBJECTS, ROWS = 4, 6, 20_000

SLOW = '''
import time
from dataclasses import dataclass

import numpy as np

import tonnage


@dataclass
class Sums:
    """A class of the user, which no machine has."""

    columns: np.ndarray
    rows: int


class Means(tonnage.Reduction):
    """Means, slowly: there is time to kill a worker."""

    def begin(self, known):
        return Sums(np.zeros(4), 0)

    def local(self, rows, into):
        time.sleep(0.02)
        into.columns += rows.sum(axis=0)
        into.rows += len(rows)
        return into

    def merge(self, one, other):
        assert isinstance(one, Sums) and isinstance(other, Sums)
        return Sums(one.columns + other.columns, one.rows + other.rows)

    def finish(self, whole, known):
        return {"mean": (whole.columns / whole.rows).tolist(), "rows": whole.rows}

    def until(self, result, known, rounds):
        return rounds == 4
'''


@pytest.fixture(scope="module")
def s3() -> Iterator[Bucket]:
    """A bucket; nodes have its keys from the environment."""
    before = dict(os.environ)
    os.environ.update(KEYS)
    try:
        with server() as running:
            yield Bucket(running)
    finally:
        os.environ.clear()
        os.environ.update(before)


@pytest.fixture(scope="module")
def rows(s3: Bucket) -> npt.NDArray[np.float64]:
    """Whole numbers, in objects: their sums are the same in any order."""
    draw = np.random.default_rng(5)
    parts = [draw.integers(-99, 99, (ROWS, COLUMNS)).astype(float) for _ in range(OBJECTS)]
    for number, part in enumerate(parts):
        s3.put(f"in/{number}", part.tobytes())
    return np.concatenate(parts)


@pytest.fixture(scope="module")
def cluster(s3: Bucket) -> Iterator[RayCluster]:
    """Three nodes."""
    with disk_dir("test-reduce-ray-") as shared, ray_cluster(shared, ALL[:2]) as made:
        yield made


def command(job: str, out: Path, cluster: RayCluster, s3: Bucket, *more: str) -> list[str]:
    """What reduces the objects."""
    return [
        *("run", "reduce", job, f"s3://{BUCKET}/in/", "--dtype", f"{COLUMNS}f8", *more),
        *("--endpoint-url", s3.endpoint, "--chunk-size", "16KiB", "--workers", "2"),
        *("--cluster", cluster.address, "--job-dir", str(out), "--json"),
    ]


def test_one_of_ones_own_comes_to_the_same_although_agents_are_killed_and_it_is_interrupted(
    tonnage: Tonnage, cluster: RayCluster, s3: Bucket, rows: npt.NDArray[np.float64], disk: Path
) -> None:
    (disk / "means.py").write_text(SLOW)
    run_it = command(f"{disk}/means.py:Means", disk / "job", cluster, s3)
    with started([tonnage.path, *run_it], env=cluster.env) as run:
        run.wait_until((disk / "job" / "round.msgpack").exists)
        os.kill(cluster.agent("beta", "ReduceWorker"), signal.SIGKILL)
        before = (disk / "job" / "round.msgpack").stat().st_mtime_ns
        run.wait_until(lambda: (disk / "job" / "round.msgpack").stat().st_mtime_ns != before)
        code, _, stderr = run.end(signal.SIGINT)
    assert code == 130 and "to resume the job, run the same command" in stderr
    done = json.loads(tonnage.run(*run_it, env=cluster.env, check=True).stdout)
    assert done["result"] == {"mean": rows.mean(axis=0).tolist(), "rows": len(rows)}
    assert (done["rounds"], done["rows"], done["lost"]) == (4, len(rows), {})
    assert 0 < done["rounds_here"] < 4
    assert {worker["node"] for worker in done["workers"]} == {*ALL}


def test_k_means_goes_on_although_a_machine_is_gone(
    tonnage: Tonnage, cluster: RayCluster, s3: Bucket, rows: npt.NDArray[np.float64], disk: Path
) -> None:
    flags = ["--k", "5", "--iterations", "60"]
    run_it = command("kmeans", disk / "job", cluster, s3, *flags)
    with started([tonnage.path, *run_it], env=cluster.env) as run:
        run.wait_until((disk / "job" / "round.msgpack").exists)
        cluster.kill("gamma")
        stdout, stderr = run.process.communicate(timeout=PATIENCE_SECONDS)
        assert run.process.returncode == 0, stderr
    done = json.loads(stdout)
    assert done["rounds"] == 60 or done["result"]["moved"] == 0
    assert sum(done["result"]["rows"]) == len(rows)
    assert [*done["lost"]] == ["gamma"]
