"""`tonnage run sort --cluster` on a real Ray cluster on this machine whose nodes fail."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.cli.command import Tonnage
from support.cli.processes import started
from support.cluster.ray_cluster import RayCluster, ray_cluster
from support.data.runs import RATES, disks, network, plan_of
from support.stores.disk import disk_dir
from tonnage.run.sort.gensort import generate, validate
from tonnage.run.sort.local import Layout

pytestmark = pytest.mark.slow

NODES = ("beta", "gamma")
ALL = ("beta", "gamma", "head")
RECORDS = 600_000


@pytest.fixture(scope="module")
def shared() -> Iterator[Path]:
    """A directory on a disk that all nodes see, for the file's tests."""
    with disk_dir("test-sort-ray-") as directory:
        yield directory


@pytest.fixture(scope="module")
def cluster(shared: Path) -> Iterator[RayCluster]:
    """Three nodes, and an input that all of them see."""
    with ray_cluster(shared, NODES) as made:
        (shared / "in").mkdir()
        generate(RECORDS, [shared / "in" / f"f{number}" for number in range(3)])
        yield made


def sort(cluster: RayCluster, shared: Path, disk: Path, *more: str) -> list[str]:
    """A sort into directories of this test that each node has of its own."""
    return [
        *("run", "sort", str(shared / "in")),
        *("--output", f"{disk}/{{node}}/out", "--scratch", f"{disk}/{{node}}/scratch"),
        *("--cluster", cluster.address, "--job-dir", str(disk / "job"), "--memory", "16MiB"),
        *("--timeout", "10s", "--json", *more),
    ]


def judged(shared: Path, disk: Path, stdout: str) -> dict[str, Any]:
    """The record of a sort that was right."""
    record: dict[str, Any] = json.loads(stdout)
    listed = json.loads((disk / "job" / "sorted.json").read_text())
    places = sorted({Path(each["path"]).parent for each in listed})
    found = validate(places, layout=Layout())
    given = validate([shared / "in"], layout=Layout())
    assert found["unordered"] == 0
    assert found["records"] == record["records"] == RECORDS
    assert found["checksum"] == given["checksum"] == record["checksum"]
    return record


@pytest.mark.real
def test_three_nodes_sort_together(
    tonnage: Tonnage, cluster: RayCluster, shared: Path, disk: Path
) -> None:
    done = tonnage.run(*sort(cluster, shared, disk), env=cluster.env, check=True)
    record = judged(shared, disk, done.stdout)
    assert [node["node"] for node in record["nodes"]] == list(ALL)
    assert all(node["lost"] is None and node["cpu_seconds"] > 0 for node in record["nodes"])
    for node in ALL:
        assert list((disk / node / "scratch").iterdir()) == []


def test_three_nodes_sort_a_table_together(
    tonnage: Tonnage, cluster: RayCluster, shared: Path, disk: Path
) -> None:
    (shared / "table").mkdir()
    rows = 300_000
    for number in range(3):
        values = [(7919 * row + number) % rows for row in range(rows)]
        table = pa.table({"k": values, "v": [f"value {value % 1000}" for value in values]})
        pq.write_table(table, shared / "table" / f"{number}.parquet", row_group_size=50_000)
    words = sort(cluster, shared, disk, "--by", "v,-k")
    words[2] = str(shared / "table")
    done = tonnage.run(*words, env=cluster.env, check=True)
    record = json.loads(done.stdout)
    assert (record["records"], record["written_records"]) == (3 * rows, 3 * rows)
    assert all(node["lost"] is None and node["written_bytes"] for node in record["nodes"])
    listed = json.loads((disk / "job" / "sorted.json").read_text())
    found = pa.concat_tables([pq.read_table(each["path"]) for each in listed])
    assert found.equals(found.sort_by([("v", "ascending"), ("k", "descending")]))
    assert found["k"].value_counts().field("counts").unique().to_pylist() == [3]
    refused = tonnage.run(*words, "--partition-by", "v", env=cluster.env)
    assert refused.returncode == 2
    assert "--partition-by: a cluster does not do this; sort on one machine" in refused.stderr


def test_two_nodes_find_the_first_rows_of_one_csv_file_as_planned(
    tonnage: Tonnage, cluster: RayCluster, shared: Path, disk: Path
) -> None:
    keys = [(7919 * row) % 100_003 for row in range(100_003)]
    (disk / "in.csv").write_text("k,v\n" + "".join(f'{key},"a\n{key}"\n' for key in keys))
    plan = plan_of(2, (disk / "in.csv").stat().st_size, "none", "small").write(disk / "plan.json")
    links = network(dict.fromkeys(NODES, 60e6)).write(disk / "links.json")
    rates = disks(dict.fromkeys(ALL, RATES)).write(disk / "disks.json")
    words = sort(cluster, shared, disk, "--by", "-k", "--limit", "5000", "--plan", str(plan))
    words[2] = str(disk / "in.csv")
    done = tonnage.run(*words, "--capacities", str(rates), str(links), env=cluster.env, check=True)
    record = json.loads(done.stdout)
    assert [node["node"] for node in record["nodes"]] == list(NODES)
    assert all(node["read_bytes"] for node in record["nodes"])
    assert (record["records"], record["written_records"]) == (len(keys), 5000)
    assert [each["name"] for each in record["compared"]["phases"]] == ["pass_one", "pass_two"]
    listed = json.loads((disk / "job" / "sorted.json").read_text())
    texts = [Path(each["path"]).read_text().removeprefix("k,v\n") for each in listed]
    expected = sorted(keys, reverse=True)[:5000]
    assert "".join(texts) == "".join(f'{key},"a\n{key}"\n' for key in expected)


def test_nodes_sort_as_planned_or_not_at_all(
    tonnage: Tonnage, cluster: RayCluster, shared: Path, disk: Path
) -> None:
    size = RECORDS * Layout().record_bytes
    rates = disks(dict.fromkeys(ALL, RATES)).write(shared / "disks.json")
    links = network(dict.fromkeys(NODES, 60e6)).write(shared / "links.json")

    def done(nodes: int) -> subprocess.CompletedProcess[str]:
        plan = plan_of(nodes, size, "replicated", "small").write(shared / "plan.json")
        more = ("--plan", str(plan), "--capacities", str(rates), str(links))
        return tonnage.run(*sort(cluster, shared, disk, *more), env=cluster.env)

    for nodes, said in (
        (4, "needs 4 nodes, but the cluster has 3; start more"),
        (3, "is for lab/small, but head is labelled machine-type=large"),
    ):
        refused = done(nodes)
        assert refused.returncode == 2 and said in refused.stderr
    whole = done(2)
    assert whole.returncode == 0, whole.stderr
    record = judged(shared, disk, whole.stdout)
    assert [node["node"] for node in record["nodes"]] == list(NODES)
    assert record["durability"] == "replicated"
    phases = record["compared"]["phases"]
    assert [(each["name"], each["planned_seconds"]) for each in phases] == [
        *(("pass_one", 25.0), ("pass_two", 17.0))
    ]
    assert all(each["limit_seconds"] > 0 and len(each["nodes"]) == 2 for each in phases)
    told = tonnage.run("report", str(disk / "job"), "--output", str(disk / "x.html"), check=True)
    assert "pass one: " in told.stdout and (disk / "x.html").exists()


def gathering(disk: Path, node: str) -> Callable[[], bool]:
    """Whether a node is in pass one."""
    return lambda: any((disk / node / "scratch").glob("tonnage-*/round-*.device"))


def sorting(disk: Path, node: str) -> Callable[[], bool]:
    """Whether a node is in pass two, or has done some of it."""
    return lambda: any((disk / node / "out").glob("part-*"))


@pytest.mark.parametrize("when", [gathering, sorting], ids=["pass one", "pass two"])
def test_an_agent_that_is_killed_is_done_without(
    tonnage: Tonnage,
    cluster: RayCluster,
    shared: Path,
    disk: Path,
    when: Callable[[Path, str], Callable[[], bool]],
) -> None:
    with started([tonnage.path, *sort(cluster, shared, disk)], env=cluster.env) as run:
        agent = cluster.agent("gamma", "TwoPassWorker")
        run.wait_until(when(disk, "gamma"))
        os.kill(agent, signal.SIGKILL)
        stdout, stderr = run.process.communicate(timeout=120)
    assert run.process.returncode == 0, stderr
    record = judged(shared, disk, stdout)
    lost = {node["node"]: node["lost"] for node in record["nodes"]}
    assert lost["beta"] is None and lost["head"] is None
    assert str(lost["gamma"]).startswith("died")


def test_an_agent_that_hangs_is_given_up_and_those_that_wait_for_it_go_on(
    tonnage: Tonnage, cluster: RayCluster, shared: Path, disk: Path
) -> None:
    command = [each if each != "10s" else "3s" for each in sort(cluster, shared, disk)]
    with started([tonnage.path, *command], env=cluster.env) as run:
        agent = cluster.agent("beta", "TwoPassWorker")
        run.wait_until(gathering(disk, "beta"))
        os.kill(agent, signal.SIGSTOP)
        try:
            stdout, stderr = run.process.communicate(timeout=120)
        finally:
            with suppress(ProcessLookupError):
                os.kill(agent, signal.SIGCONT)
    assert run.process.returncode == 0, stderr
    record = judged(shared, disk, stdout)
    lost = {node["node"]: node["lost"] for node in record["nodes"]}
    assert lost["gamma"] is None and lost["head"] is None
    assert str(lost["beta"]).startswith("hung: ")


@pytest.mark.parametrize("when", [gathering, sorting], ids=["pass one", "pass two"])
def test_a_node_that_is_gone_is_done_without(
    tonnage: Tonnage,
    cluster: RayCluster,
    shared: Path,
    disk: Path,
    when: Callable[[Path, str], Callable[[], bool]],
) -> None:
    cluster.add("delta", {})
    with started([tonnage.path, *sort(cluster, shared, disk)], env=cluster.env) as run:
        run.wait_until(when(disk, "delta"))
        cluster.kill("delta")
        stdout, stderr = run.process.communicate(timeout=120)
    assert run.process.returncode == 0, stderr
    judged(shared, disk, stdout)


def test_a_driver_that_is_killed_goes_on_without_a_node_that_is_gone(
    tonnage: Tonnage, cluster: RayCluster, shared: Path, disk: Path
) -> None:
    cluster.add("delta", {})
    command = sort(cluster, shared, disk)
    with started([tonnage.path, *command], env=cluster.env) as run:
        run.wait_until(gathering(disk, "delta"))
        run.end(signal.SIGKILL)
    cluster.kill("delta")
    done = tonnage.run(*command, env=cluster.env, check=True)
    record = judged(shared, disk, done.stdout)
    lost = {node["node"]: node["lost"] for node in record["nodes"]}
    assert lost.pop("delta") == "is not in the cluster any more"
    assert set(lost.values()) == {None}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_sort_goes_on(
    tonnage: Tonnage, cluster: RayCluster, shared: Path, disk: Path, number: signal.Signals
) -> None:
    command = sort(cluster, shared, disk)
    with started([tonnage.path, *command], env=cluster.env) as run:
        run.wait_until(gathering(disk, "beta"))
        code, stdout, stderr = run.end(number)
    assert (code, stdout) == (128 + number, "")
    stays = "finished rounds are kept, but the current round may be repeated"
    told = f"{stays}; to resume the job, run the same command with --job-dir {disk / 'job'}"
    assert stderr.endswith(f"tonnage: interrupted; {told}\n")
    done = tonnage.run(*command, env=cluster.env, check=True)
    record = judged(shared, disk, done.stdout)
    assert record["commands"] == 2
    assert len(record["rounds"]) == 1 and all(node["lost"] is None for node in record["nodes"])
    other = [each if each != "16MiB" else "32MiB" for each in command]
    refused = tonnage.run(*other, env=cluster.env)
    assert (
        refused.returncode == 2
        and "was started with memory 16777216, not 33554432" in refused.stderr
    )


def test_paths_of_a_fleet_begin_at_the_root_and_flags_of_one_are_refused_without(
    tonnage: Tonnage, disk: Path
) -> None:
    own = ("--output", "/o", "--scratch", "/s")
    for more, said in (
        (("in", *own, "--cluster", "auto"), "input: in must be an absolute path"),
        (("/{nod}/in", *own, "--cluster", "auto"), "unknown placeholder {nod}; only {node}"),
        (("/in", *own, "--connections", "2"), "--connections needs --cluster"),
        (("/in", *own, "--capacities", "x"), "--capacities needs --cluster"),
    ):
        done = tonnage.run("run", "sort", *more, cwd=disk)
        assert done.returncode == 2 and said in done.stderr
