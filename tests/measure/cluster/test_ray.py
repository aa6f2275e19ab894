"""`tonnage measure ... --cluster` on a real Ray cluster on this machine whose nodes fail."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.cli.command import Tonnage
from support.cli.processes import started
from support.cluster.ray_cluster import RayCluster, ray_cluster
from support.data.copies import replace
from support.data.measurements import ENVIRONMENT, PHASE, measurement
from support.stores.disk import disk_dir
from tonnage.base.records import (
    ClusterMeasurement,
    ClusterNode,
    Latency,
    Measurement,
    Metric,
    Source,
    Trial,
)
from tonnage.base.records.find_measurements import (
    find_measurements,
    load_measurement,
    load_measurements,
)
from tonnage.base.stats.histograms import merge_histograms, percentile
from tonnage.cluster import clock_sync, version_check
from tonnage.cluster.version_check import InstalledVersion
from tonnage.measure.cluster.aggregate import aggregate_nodes
from tonnage.measure.cluster.store import node_directory
from tonnage.model.analysis.analyse import analyse

pytestmark = pytest.mark.slow

NODES = ("beta", "gamma")
ALL = ("beta", "gamma", "head")
LATE = 1.0


@pytest.fixture(scope="module")
def shared() -> Iterator[Path]:
    """A directory on a disk that stays for the file's tests."""
    with disk_dir("test-fleet-") as directory:
        yield directory


@pytest.fixture(scope="module")
def cluster(shared: Path) -> Iterator[RayCluster]:
    """Three nodes; each has a directory of its own name."""
    with ray_cluster(shared, NODES) as made:
        for name in (*ALL, "delta"):
            (shared / name).mkdir()
        yield made


def asked(cluster: RayCluster, shared: Path, out: Path, *more: str) -> list[str]:
    """A measurement of operations on every node."""
    of_fleet = ("--cluster", cluster.address, "--dir", f"{shared}/{{node}}", "--output", str(out))
    return ["measure", "ops", "--operation", "read4k", "--file-size", "4MB", *of_fleet, *more]


def short(rounds: int = 2, seconds: float = 0.3) -> tuple[str, ...]:
    """Trials of this length."""
    return ("--queue-depth", "1", "4", "--repetitions", str(rounds), "--seconds", str(seconds))


def begun(out: Path, node: str, trials: int) -> bool:
    """Whether a node has so many trials on file."""
    return len(list((out / node).glob("trial-*.json"))) >= trials


def left_behind(shared: Path) -> list[Path]:
    """Files that were laid out to be measured, and are still there."""
    return [path for name in ALL for path in (shared / name).iterdir()]


def until(happened: Any, seconds: float = 30.0) -> None:
    """Waits until it has happened."""
    deadline = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.real
def test_every_node_measures_with_the_others_and_in_its_own_order(
    tonnage: Tonnage, cluster: RayCluster, shared: Path, disk: Path
) -> None:
    out = disk / "out"
    command = asked(cluster, shared, out, *short(), "--label", "campaign=one", "--json")
    done = tonnage.run(*command, env=cluster.env, check=True)
    said = json.loads(done.stdout)
    assert said["schema"] == "tonnage.fleet/1"
    rows = {row["node"]: row for row in said["nodes"]}
    assert sorted(rows) == sorted(ALL)
    for name, row in rows.items():
        assert row["ok"] and row["why"] is None and row["together"] == 3
        assert 0 <= row["skew_seconds"] < LATE and 0 < row["clock_error_seconds"] < LATE
        assert row["type"] == row["machine_type"] == ("large" if name == "head" else "small")
        zone = "a" if name == "head" else "b"
        assert row["labels"] == {"machine-type": row["type"], "zone": zone, "campaign": "one"}
        # What one machine's command would have printed.
        assert len(row["trials"]) == 4 and row["kind"] == "ops" and row["figures"]
        assert row["settings"]["directory"] == str((shared / name).resolve())
    skews = [row["skew_seconds"] for row in rows.values()]
    assert said["skew_seconds"] == pytest.approx(max(skews) - min(skews))
    took = [row["seconds"] for row in rows.values()]
    assert said["tail_seconds"] == pytest.approx(max(took) - min(took))
    assert len({row["settings"]["seed"] for row in rows.values()}) == 3
    # On one host their names still differ.
    hosts = {row["host"] for row in rows.values()}
    assert len(hosts) == 3 and all(re.search(r"/(beta|gamma|head)$", host) for host in hosts)
    assert left_behind(shared) == []

    _check_across(said, rows)
    kept = ClusterMeasurement.read(out / "fleet.json")
    found = [each for place in find_measurements(out) for each in load_measurements(place)]
    assert sorted(each.id for each in found) == sorted(row["id"] for row in rows.values())
    assert load_measurements(out / "fleet.json") == kept.measurements
    alone = kept.write(disk / "elsewhere" / "any.json")
    assert [load_measurements(place) for place in find_measurements(alone.parent)] == [
        kept.measurements
    ]

    # The same again finds all done, and asks nobody.
    again = json.loads(tonnage.run(*command, env=cluster.env, check=True).stdout)
    assert again["nodes"] == said["nodes"]
    other = [each if each != "4MB" else "5MB" for each in command]
    refused = tonnage.run(*other, env=cluster.env)
    assert refused.returncode == 2 and "was started with" in refused.stderr


def _check_across(said: dict[str, Any], rows: dict[str, Any]) -> None:
    """Histograms are those of all nodes' operations, and the slowest node is named."""
    assert [each["name"] for each in said["across"]] == ["read4k x1", "read4k x4"]
    for each in said["across"]:
        trials = {
            name: [trial for trial in row["trials"] if trial["name"] == each["name"]]
            for name, row in rows.items()
        }
        readings = [trial["reading"] for of_node in trials.values() for trial in of_node]
        counts: dict[float, int] = {}
        for reading in readings:
            for edge, count in reading["bins"]:
                counts[edge] = counts.get(edge, 0) + count
        assert {edge: count for edge, count in each["bins"]} == counts
        latency = each["latency_seconds"]
        assert latency["count"] == sum(counts.values())
        assert latency["max"] == max(reading["latency_seconds"]["max"] for reading in readings)
        rates = {
            name: sum(trial["bytes_per_second"] for trial in of_node) / len(of_node)
            for name, of_node in trials.items()
        }
        assert each["slowest_node"] == min(rates, key=lambda name: rates[name])
        assert each["low_bytes_per_second"] == pytest.approx(min(rates.values()))
        assert each["sum_bytes_per_second"] == pytest.approx(sum(rates.values()))


def test_who_dies_hangs_or_has_another_version_is_named_and_the_others_go_on(
    tonnage: Tonnage, cluster: RayCluster, shared: Path, disk: Path
) -> None:
    other = disk / "other"
    (other / "tonnage").mkdir(parents=True)
    (other / "tonnage" / "__init__.py").write_text('__version__ = "0.0.1"\n')
    cluster.add("delta", {"machine-type": "small"}, python_path=other)
    out = disk / "out"
    command = asked(cluster, shared, out, *short(4, 0.4), "--timeout", "3s")
    with started([tonnage.path, *command], env=cluster.env) as run:
        run.wait_until(lambda: all(begun(out, name, 2) for name in ALL))
        hung = cluster.agent("gamma")
        os.kill(hung, signal.SIGSTOP)
        before = sorted((out / "beta").glob("trial-*.json"))[:2]
        content = [path.read_bytes() for path in before]
        cluster.kill("beta")
        stdout, stderr = run.process.communicate(timeout=60)
    assert run.process.returncode == 1
    assert "3 of 4 nodes did not return all results: beta, delta and gamma\n" in stderr
    assert "head: done in" in stdout
    assert re.search(r"^Missing: beta: died: ", stdout, re.MULTILINE)
    assert re.search(r"^Missing: gamma: hung: no answer for 3 s", stdout, re.MULTILINE)
    assert re.search(
        r"^Missing: delta: has Tonnage 0\.0\.1, but this machine ", stdout, re.MULTILINE
    )
    whole = ClusterMeasurement.read(out / "fleet.json")
    rows = {row.node: row for row in whole.nodes}
    assert {name: row.ok for name, row in rows.items()} == {
        "beta": False,
        "delta": False,
        "gamma": False,
        "head": True,
    }
    # Its trials are kept, but do not count in the cluster's figures.
    died = rows["beta"].measurement
    assert died and 2 <= len(died.trials) < 8 and rows["delta"].measurement is None
    assert {(each.nodes, each.slowest_node) for each in whole.across} == {(1, "head")}

    # Back again, it resumes after its last trial; finished nodes are not measured again.
    cluster.add("beta", {"machine-type": "small"})
    done = tonnage.run(*command, "--json", env=cluster.env)
    assert (done.returncode, "1 of 4 nodes" in done.stderr) == (1, True)
    rows = {row["node"]: row for row in json.loads(done.stdout)["nodes"]}
    assert [name for name, row in rows.items() if not row["ok"]] == ["delta"]
    assert rows["head"]["together"] == 4 - 1 and rows["beta"]["together"] == 2
    assert [path.read_bytes() for path in before] == content
    assert len(rows["beta"]["trials"]) == len(rows["gamma"]["trials"]) == 8
    cluster.kill("delta")


def test_a_driver_that_is_killed_or_told_to_end_keeps_what_came(
    tonnage: Tonnage, cluster: RayCluster, shared: Path, disk: Path
) -> None:
    out = disk / "out"
    command = asked(cluster, shared, out, *short(2, 0.4), "--one-at-a-time")
    with started([tonnage.path, *command], env=cluster.env) as run:
        run.wait_until(lambda: (out / "beta" / "node.json").exists() and begun(out, "gamma", 1))
        run.end(signal.SIGKILL)
    first = load_measurement(out / "beta")
    assert not (out / "fleet.json").exists() and not (out / "head" / "begun.json").exists()
    assert len(find_measurements(out)) == 2
    with started([tonnage.path, *command], env=cluster.env) as run:
        run.wait_until(lambda: begun(out, "gamma", 2))
        code, _, stderr = run.end(signal.SIGTERM)
    assert (code, stderr.splitlines()[-1]) == (
        143,
        "tonnage: interrupted; unfinished output was removed",
    )
    until(lambda: left_behind(shared) == [])
    done = tonnage.run(*command, "--json", env=cluster.env, check=True)
    rows = {row["node"]: row for row in json.loads(done.stdout)["nodes"]}
    assert [(row["ok"], row["together"]) for row in rows.values()] == [(True, 1)] * 3
    assert load_measurement(out / "beta") == first
    began = {name: row["began_at"] for name, row in rows.items()}
    assert began["beta"] <= began["gamma"] <= began["head"]


def test_what_cannot_be_is_refused_in_a_line(
    tonnage: Tonnage, cluster: RayCluster, shared: Path, disk: Path
) -> None:
    def refused(*command: str, env: dict[str, str] | None = None) -> str:
        done = tonnage.run(*command, env=cluster.env if env is None else env)
        assert done.returncode == 2 and done.stdout == "", done.stderr
        (line,) = done.stderr.splitlines()
        return line

    command = asked(cluster, shared, disk / "out", *short())
    assert "45 nodes were requested, but the cluster has only 3" in refused(
        *command, "--nodes", "45"
    )
    assert not (disk / "out").exists()
    token = refused(*command, env={"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "b" * 64})
    assert "the cluster requires a token" in token and "b" * 64 not in token
    nowhere = [each if each != cluster.address else "127.0.0.1:9" for each in command]
    assert "127.0.0.1:9: no cluster answers at this address" in refused(*nowhere)
    auto = [each if each != cluster.address else "auto" for each in command]
    gone = {"RAY_ADDRESS": "127.0.0.1:9"}  # As on a node of a lab whose head is gone.
    said = refused(*auto, env=gone)
    assert "--cluster: auto (RAY_ADDRESS=127.0.0.1:9): no cluster answers at this address" in said
    here = [each if "{node}" not in each else "here" for each in command]
    assert "with --cluster, use an absolute path" in refused(*here)


def test_no_machine_that_measured_is_a_failure(
    tonnage: Tonnage, cluster: RayCluster, disk: Path
) -> None:
    command = asked(cluster, disk / "none", disk / "out", *short(), "--json")
    done = tonnage.run(*command, env=cluster.env)
    assert done.returncode == 1
    assert "no node returned results: beta " in done.stderr
    for command_of_it, name in (("report", "page.html"), ("profile", "profile.json")):
        nothing = tonnage.run(command_of_it, disk / "out", "--output", disk / name)
        assert nothing.returncode == 2 and "no finished measurement of a machine" in nothing.stderr
    assert [row["ok"] for row in json.loads(done.stdout)["nodes"]] == [False] * 3


def test_without_ray_the_command_says_how_to_have_it(disk: Path) -> None:
    hidden = "import sys; sys.modules['ray'] = None; from tonnage.cli.main import main; main()"
    args = ["measure", "ops", "--dir", str(disk), "--cluster", "auto"]
    done = subprocess.run(
        [sys.executable, "-c", hidden, *args], capture_output=True, text=True, cwd=disk
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert (
        done.stderr
        == "tonnage: --cluster needs Ray; install it with pip install 'tonnage[cluster]'\n"
    )


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--nodes", "2"), "--nodes needs --cluster"),
        (("--one-at-a-time",), "--one-at-a-time needs --cluster"),
        (("--label", "region"), "--label region: use NAME=VALUE"),
        (("--label", "=east"), "--label =east: use NAME=VALUE"),
        (
            ("--cluster", "auto", "--dir", "/x/{nod}"),
            "{nod} is not replaced; use {node}",
        ),
        (("--dir", "/x/{node}"), "{node} needs --cluster; add --cluster"),
    ],
)
def test_options_that_say_nothing_are_refused(
    tonnage: Tonnage, disk: Path, flags: Sequence[str], said: str
) -> None:
    done = tonnage.run("measure", "ops", "--dir", disk, *flags, cwd=disk)
    assert done.returncode == 2 and said in done.stderr


def test_labels_are_kept_of_one_machine_too(tonnage: Tonnage, disk: Path) -> None:
    command = ["measure", "disk", "--dir", disk, "--mode", "headroom", "--repetitions", "1"]
    command += ["--seconds", "0.2", "--size", "8MB", "--json", "--output", disk / "out"]
    labels = ["--label", "region=east", "zone=b", "--label", "machine-type=m5d.large"]
    done = tonnage.run(*command, *labels, check=True)
    environment = Measurement.from_json(json.loads(done.stdout)).environment
    assert environment and environment.machine_type == "m5d.large"
    assert environment.labels == {"region": "east", "zone": "b", "machine-type": "m5d.large"}


VALUES = st.lists(st.integers(1, 10**6).map(lambda value: value / 1e9), max_size=40)


@pytest.mark.real
@given(several=st.lists(VALUES, min_size=1, max_size=5), share=st.floats(0, 1))
@settings(derandomize=True)
def test_merged_histograms_are_the_histogram_of_all_values(
    several: list[list[float]], share: float
) -> None:
    def histogram(values: list[float]) -> list[tuple[float, int]]:
        return sorted({value: values.count(value) for value in values}.items())

    together = [value for values in several for value in values]
    found = merge_histograms(map(histogram, several))
    assert found == histogram(together)
    if together:
        below = sum(count for edge, count in found if edge < percentile(found, share))
        at_most = sum(count for edge, count in found if edge <= percentile(found, share))
        rank = share * len(together)
        assert below < max(rank, 1) + 1e-6 * len(together) and at_most >= rank - 1e-6 * len(
            together
        )
    else:
        with pytest.raises(ValueError, match="no values"):
            percentile(found, share)


@pytest.mark.real
def test_a_percentile_of_all_is_none_of_the_nodes_and_not_their_mean() -> None:
    # One node has all that is slow: 1 % of its operations, 0.5 % of all.
    quick, slow = [(0.001, 1000)], [(0.001, 980), (1.0, 20)]
    rows = [
        ClusterNode(node=name, ok=True, measurement=_with_bins(name, bins))
        for name, bins in (("a", quick), ("b", slow))
    ]
    rows.append(
        ClusterNode(node="c", ok=False, why="died", measurement=_with_bins("c", [(9.0, 9)]))
    )
    (found,) = aggregate_nodes(rows)
    assert found.bins == [(0.001, 1980), (1.0, 20)]
    assert (found.nodes, found.latency_seconds.count) == (2, 2000)
    # The mean of both nodes' would be 0.5 s.
    assert (found.latency_seconds.p99, found.latency_seconds.p999) == (0.001, 1.0)
    assert found.latency_seconds.mean == pytest.approx(0.01099)


def _with_bins(name: str, bins: list[tuple[float, int]]) -> Measurement:
    count = sum(each for _, each in bins)
    mean = sum(edge * each for edge, each in bins) / count
    reading = Metric(
        source=Source(tool="test"),
        operation="randread",
        latency_seconds=Latency(count=count, mean=mean, max=bins[-1][0]),
        bins=bins,
    )
    made = measurement(name, {})
    trial = Trial(
        name="read4k x1",
        bytes_per_second=1.0,
        cpu_seconds_per_byte=0.0,
        warm_up_seconds=0.0,
        rates=[],
        phase=PHASE,
        reading=reading,
    )
    made.trials.append(trial)
    return made


@pytest.mark.real
@given(
    ahead=st.floats(-1e6, 1e6),
    trips=st.lists(st.tuples(st.floats(1e-5, 1.0), st.floats(1e-5, 1.0)), min_size=8, max_size=8),
)
@settings(derandomize=True)
def test_a_clock_is_known_to_within_its_error(
    ahead: float, trips: list[tuple[float, float]]
) -> None:
    now = 1000.0
    left = iter(trips)

    def show() -> float:
        nonlocal now
        there, back = next(left)
        now += there
        shown = now + ahead
        now += back
        return shown

    clock = clock_sync.compare_clock(show, lambda: now)
    assert abs(clock.ahead_seconds - ahead) <= clock.error_seconds + 1e-9 * max(abs(ahead), 1)
    assert clock.error_seconds == pytest.approx(min(map(sum, trips)) / 2, abs=1e-9)
    assert clock.to_remote(now) == pytest.approx(now + clock.ahead_seconds)


def test_what_differs_between_machines_is_told_with_what_mends_it() -> None:
    here = InstalledVersion("here", "1.2.0", "abc")
    assert version_check.difference(here, InstalledVersion("there", "1.2.0", "abc")) is None
    assert version_check.difference(here, InstalledVersion("there", None, None)) == (
        "has no Tonnage; install it on the node (pip install tonnage==1.2.0)"
    )
    assert "has Tonnage 1.1.0, but this machine has 1.2.0" in str(
        version_check.difference(here, InstalledVersion("there", "1.1.0", "abc"))
    )
    assert version_check.difference(here, InstalledVersion("there", "1.2.0", "abd")) == (
        "has another build of Tonnage 1.2.0; install the same wheel on the node"
    )
    assert InstalledVersion(*version_check.installed_version()).core is not None


@pytest.mark.parametrize(
    ("node", "name"), [("10.0.0.1", "10.0.0.1"), ("::1", "__1"), ("../up", "_up"), ("..", "node")]
)
def test_a_nodes_directory_lies_in_the_fleets(node: str, name: str) -> None:
    assert node_directory(node) == name


def test_labels_are_compared_side_by_side() -> None:
    made = []
    for number, (region, rate) in enumerate([("east", 100.0), ("west", 50.0)] * 4):
        (trial,) = _with_bins(f"m{number}", [(0.001, 10)]).trials
        assert trial.reading
        reading = replace(trial.reading, bandwidth_bytes_per_second=rate + number, concurrency=1)
        environment = replace(ENVIRONMENT, host=f"h{number}", labels={"region": region})
        each = replace(measurement(f"m{number}", {}), environment=environment)
        made.append(replace(each, trials=[replace(trial, reading=reading)]))
    (found,) = analyse(made).labels
    assert (found.way, found.than) == ("region west", "east")
    assert found.ratio.value == pytest.approx(0.52, abs=0.01)


def streamed(cluster: RayCluster, directory: str, out: Path, *more: str) -> list[str]:
    """Files on one directory, from every node at once."""
    of_fleet = ["--cluster", cluster.address, "--dir", directory, "--output", str(out)]
    return ["measure", "stream", "--shared-dir", "--block", "4MiB", *of_fleet, *more]


def test_nodes_stream_on_one_directory_in_step(
    tonnage: Tonnage, cluster: RayCluster, shared: Path, disk: Path
) -> None:
    common = shared / "common"
    common.mkdir()
    command = streamed(cluster, str(common), disk / "out", "--shared", "--repetitions", "1")
    said = json.loads(tonnage.run(*command, "--json", env=cluster.env, check=True).stdout)
    rows = {row["node"]: row for row in said["nodes"]}
    assert sorted(rows) == sorted(ALL) and all(row["ok"] for row in rows.values())
    for name, row in rows.items():
        write, read = (trial["reading"]["details"] for trial in row["trials"])
        assert write["nodes"] == read["nodes"] == 3 and read["read_of"] != name
        assert max(write["began_late_seconds"], read["began_late_seconds"]) < LATE
    for each in said["across"]:
        assert each["together_bytes_per_second"] <= 1.001 * each["sum_bytes_per_second"]
    assert list(common.iterdir()) == []
    page = tonnage.run(*command, env=cluster.env, check=True).stdout
    assert re.search(r"^read x1: .* in total, from the first start to the last end", page, re.M)

    elsewhere = tonnage.run(
        *streamed(cluster, f"{shared}/{{node}}", disk / "apart"), env=cluster.env
    )
    assert elsewhere.returncode == 1
    assert "that beta created in it is not visible to gamma, head" in elsewhere.stderr


def test_a_node_that_dies_in_step_holds_up_nobody_and_leaves_nothing(
    tonnage: Tonnage, cluster: RayCluster, shared: Path, disk: Path
) -> None:
    common, out = shared / "with-the-dead", disk / "out"
    common.mkdir()
    command = streamed(cluster, str(common), out, "--repetitions", "4")
    with started([tonnage.path, *command], env=cluster.env) as run:
        run.wait_until(lambda: begun(out, "beta", 2))
        os.kill(cluster.agent("beta"), signal.SIGKILL)  # The first by name, which made the files.
        stdout, stderr = run.process.communicate(timeout=60)
    assert run.process.returncode == 1 and "1 of 3 nodes did not return all results" in stderr
    assert re.search(r"^Missing: beta: died: ", stdout, re.MULTILINE)
    whole = ClusterMeasurement.read(out / "fleet.json")
    rows = {row.node: row for row in whole.nodes}
    nodes = [t.reading.details["nodes"] for t in measured_by(rows["head"]).trials if t.reading]
    assert nodes[0] == 3 and nodes[-1] == 2 and sorted(nodes, reverse=True) == nodes
    assert list(common.iterdir()) == []
    before = {path: path.read_bytes() for path in out.glob("*/trial-*.json")}

    # With all again, what beta lacks is done by all; what they had stays.
    done = tonnage.run(*command, "--json", env=cluster.env, check=True)
    again = json.loads(done.stdout)["nodes"]
    assert [(row["ok"], row["together"], len(row["trials"])) for row in again] == [(True, 3, 8)] * 3
    assert {path: path.read_bytes() for path in before} == before
    assert again[0]["trials"][-1]["reading"]["details"]["nodes"] == 3


def measured_by(row: ClusterNode) -> Measurement:
    """What a node measured, which it has."""
    assert row.measurement is not None
    return row.measurement


def test_screening_looks_at_every_machines_disks_and_then_at_the_network(
    tonnage: Tonnage, cluster: RayCluster, shared: Path, disk: Path
) -> None:
    out = disk / "out"
    command = ["measure", "screen", "--cluster", cluster.address, "--dir", f"{shared}/{{node}}"]
    command += ["--size", "8MB", "--seconds", "0.2", "--output", str(out), "--json"]
    command += ["--job", "sort", "--data", "1GB"]
    done = tonnage.run(*command, env=cluster.env, check=True)
    assert "3 nodes (1 large and 2 small); needs at least 5 nodes" in done.stderr
    said = json.loads(done.stdout)
    whys = [row["why"] for part in ("disk", "net") for row in said[part]["nodes"]]
    assert whys == [None] * 6
    assert said["suspects"] == said["decommission"] == []
    assert set(said["not_judged"]) == set(ALL)
    assert [len(row["trials"]) for row in said["disk"]["nodes"]] == [6, 6, 6]
    # Each sends and receives alone, and all to all.
    assert [len(row["trials"]) for row in said["net"]["nodes"]] == [4, 4, 4]
    assert [each["node"] for each in said["net"]["links"]] == sorted(ALL)
    assert [each["nodes"] for each in said["net"]["sizes"]] == [3]
    # Nobody is left out, and of these machines no catalog knows a price.
    gain = said["gain"]
    assert gain["with_all"] == gain["without"] and gain["seconds"] == 0
    assert gain["with_all"]["seconds"] > 0 and gain["with_all"]["usd"] is gain["usd"] is None
    assert sorted(path.name for path in out.iterdir()) == ["disk", "net"]

    # The same again finds both parts done, and says the same in words.
    command.remove("--json")
    again = tonnage.run(*command, env=cluster.env, check=True)
    assert "done in" not in again.stdout
    unlike = "Not judged: head. Reason: fewer than 3 "
    assert unlike in again.stdout and "Suspect" not in again.stdout
    assert re.search(r"^A sort of 1\.00 GB: .+, price unknown, on 3 nodes$", again.stdout, re.M)


def network(cluster: RayCluster, out: Path, *more: str) -> list[str]:
    """A measurement of the network between all nodes."""
    command = ["measure", "net", "--cluster", cluster.address, "--connections", "1"]
    return [*command, "--seconds", "0.3", "--output", str(out), "--json", *more]


def test_the_network_is_measured_between_nodes_and_who_dies_meanwhile_is_missing(
    tonnage: Tonnage, cluster: RayCluster, disk: Path
) -> None:
    out = disk / "out"
    command = network(cluster, out, "--repetitions", "1")
    with started([tonnage.path, *command], env=cluster.env) as run:
        run.wait_until(lambda: begun(out, "beta", 3))
        os.kill(cluster.agent("beta", "NetworkWorker"), signal.SIGKILL)
        stdout, stderr = run.process.communicate(timeout=120)
    assert run.process.returncode == 1 and "1 of 3 nodes did not return all results" in stderr
    said = json.loads(stdout)
    rows = {row["node"]: row for row in said["nodes"]}
    assert {name: row["ok"] for name, row in rows.items()} == {
        "beta": False,
        "gamma": True,
        "head": True,
    }
    assert rows["beta"]["error"]  # All that Ray knows of it.
    assert rows["beta"]["why"].startswith("died: ") and len(rows["beta"]["trials"]) >= 3
    # The others continued without it, and its earlier trials are kept.
    others = ["gamma", "head"]
    two = [size for size in said["sizes"] if size["nodes"] == 2]
    assert [sorted(each["node"] for each in size["per_node"]) for size in two] == [others]
    assert {*others} <= {each["node"] for each in said["links"]}
    before = {path: path.read_bytes() for path in (out / "beta").glob("trial-*.json")}

    # It is there again, and the same command resumes with all of them.
    said = json.loads(tonnage.run(*command, env=cluster.env, check=True).stdout)
    assert [row["ok"] for row in said["nodes"]] == [True] * 3
    assert all(path.read_bytes() == content for path, content in before.items())
    assert [size["nodes"] for size in said["sizes"]] == [2, 3]
    assert [each["node"] for each in said["links"]] == sorted(ALL)
    assert {*ALL} == {name for first, second, _ in said["pairs"] for name in (first, second)}
    assert all(size["slowest_bytes_per_second"] > 0 for size in said["sizes"])
    assert len({row["host"] for row in said["nodes"]}) == 3
