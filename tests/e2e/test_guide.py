"""The guide's scripts are what its pages show, and do what those say."""

import json
import os
import re
import statistics
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.cli.command import Tonnage
from support.lab.checks import needs_lab, untouched
from support.stores.disk import ROOT
from support.stores.s3 import BUCKET, Bucket
from tonnage.base.records import ClusterMeasurement, ReductionRecord, RunRecord
from tonnage.provision.lab.config import MachineType, parse
from tonnage.provision.lab.nodes import lab_nodes

pytestmark = pytest.mark.slow

GUIDE = ROOT / "docs" / "guide"
SCRIPT, LAB = GUIDE / "cluster-in-a-lab.sh", GUIDE / "cluster-in-a-lab.toml"
OBJECTS, CLICKS = GUIDE / "data-in-objects.sh", GUIDE / "clicks.py"
WITHIN = 0.06
"""Of what is set: trials are of seconds, and the kernel holds disks back in slices of 100 ms. A
busy host takes from some trials, and gives what it held back to others, so only the median of a
measurement's is looked at."""
MINUTES = 6
WAYS = ("send", "receive")


def read(machine: MachineType) -> float:
    """What the disk of a machine reads, bytes a second."""
    return machine.disks[0].read_bytes_per_second or 0


def write(machine: MachineType) -> float:
    """What it writes."""
    return machine.disks[0].write_bytes_per_second or 0


def read_4k(machine: MachineType) -> float:
    """What it reads in operations of 4 KiB."""
    return 4096 * (machine.disks[0].read_operations_per_second or 0)


def link(machine: MachineType) -> float:
    """What its link carries each way; the others' carry more in all."""
    return machine.link_bytes_per_second or 0


WANTED: dict[str, dict[str, Callable[[MachineType], float]]] = {
    "disk": {"ro": read, "wo": write, "rw": lambda machine: min(read(machine), write(machine))},
    "ops": {"read4k x16": read_4k},
    "stream": {"read x1": read, "write x1": write},
}
"""What the lab's file sets, by measurement and trial."""


def ran(tonnage: Tonnage, out: Path, **more: str) -> subprocess.CompletedProcess[str]:
    """Run the guide's script for a cluster in a lab."""
    path = f"{tonnage.path.parent}:{os.environ['PATH']}"
    return subprocess.run(
        [SCRIPT, out],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env=os.environ | {"PATH": path} | more,
        timeout=60 * MINUTES,
    )


def assert_held(shares: dict[tuple[str, str], float]) -> None:
    """Most trials of machines are as fast as the lab lets them be, of which these are shares."""
    assert 1 - WITHIN < statistics.median(shares.values()) < 1 + WITHIN, shares


@pytest.mark.real
@pytest.mark.parametrize(
    ("page", "shown"),
    [
        ("cluster-in-a-lab.md", {"bash": SCRIPT, "toml": LAB}),
        ("data-in-objects.md", {"bash": OBJECTS, "python": CLICKS}),
    ],
)
def test_the_page_shows_what_is_run(page: str, shown: dict[str, Path]) -> None:
    text = (GUIDE / page).read_text()
    found = dict(re.findall(r"^```(\w+)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))
    assert found == {kind: path.read_text() for kind, path in shown.items()}


def test_data_in_objects_is_reduced_and_added_up(
    tonnage: Tonnage, disk: Path, s3: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{tonnage.path.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("AWS_ENDPOINT_URL", s3.endpoint)
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    out = disk / "out"
    subprocess.run([OBJECTS, f"s3://{BUCKET}/clicks", out], check=True, timeout=60 * MINUTES)
    stored = s3.content("clicks")
    assert "_tonnage.index" in stored
    rows = pa.concat_tables(
        pq.read_table(pa.BufferReader(content))
        for name, content in stored.items()
        if not name.startswith("_")
    )
    seconds = np.sort(rows["seconds"].to_numpy())
    clicks = ReductionRecord.read(out / "clicks.json")
    assert clicks.result["clicks"] == len(rows) == 800_000
    assert clicks.result["slowest"] == seconds[:-4:-1].tolist()
    assert ReductionRecord.read(out / "seconds.json").rows == len(rows)
    wanted = rows.group_by("page").aggregate([("seconds", "count"), ("seconds", "sum")])
    found = pq.read_table(out / "pages").sort_by("page")
    assert found["page"].to_pylist() == sorted(wanted["page"].to_pylist())
    wanted = wanted.sort_by("page")
    assert found["clicks"].to_pylist() == wanted["seconds_count"].to_pylist()
    assert found["seconds"].to_numpy() == pytest.approx(wanted["seconds_sum"].to_numpy())


@needs_lab
@pytest.mark.timeout(60 * MINUTES)
def test_a_fleet_in_a_lab_is_as_fast_as_was_set(tonnage: Tonnage, disk: Path) -> None:
    with untouched():
        done = ran(tonnage, disk / "out")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("Lab guide was stopped.\n")
    assert (disk / "out" / "report.html").exists()
    lab = parse(LAB.read_text(), LAB.name)
    machines = {node.name: node.machine for node in lab_nodes(lab, 0, Path())}
    for kind, trials in WANTED.items():
        shares = {}
        whole = ClusterMeasurement.read(disk / "out" / kind / "fleet.json")
        assert [node.ok for node in whole.nodes] == [True] * len(machines), whole.missing
        for node in whole.nodes:
            machine = machines[node.node]
            assert node.measurement and (node.provider, node.machine_type) == ("lab", machine.type)
            rates = {each.name: each.bytes_per_second for each in node.measurement.trials}
            assert rates.keys() == trials.keys(), (kind, node.node)
            for name, rate in trials.items():
                shares[node.node, name] = rates[name] / rate(machine)
        assert_held(shares)
    record = RunRecord.read(disk / "out" / "sort" / "run.json")
    assert record.bytes == 200_000_000 and record.compared and record.compared.limit
    assert {node.node for node in record.nodes} == {*machines}
    assert (disk / "out" / "sort.html").exists()
    (printed,) = re.findall(r"^\{.*\}$", done.stdout, re.MULTILINE)
    links = json.loads(printed)["links"]
    assert_held(
        {
            (each["node"], way): each[f"{way}_bytes_per_second"] / link(machines[each["node"]])
            for each in links
            for way in WAYS
        }
    )


@needs_lab
def test_a_step_that_fails_takes_the_lab_down(tonnage: Tonnage, disk: Path) -> None:
    with untouched():
        done = ran(tonnage, disk / "out", TONNAGE_RAY="/no/ray")
    assert done.returncode == 2 and "TONNAGE_RAY=/no/ray: program not found" in done.stderr
    assert done.stdout.endswith("Lab guide was stopped.\n")
