"""`tonnage launch` whole: moto rents, the lab's nodes are the machines, a sort runs, all ends.

One machine fails to start, one has a slow disk: both are replaced. Nothing here depends on how fast
this machine is but that the slow one is found, which is four times slower than the others.
"""

import json
import os
import signal
import sys
import sysconfig
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

import tonnage
from support.aws.ec2 import REGION, Cloud, cloud
from support.aws.launches import candidate, plan
from support.cli.command import Tonnage
from support.lab.checks import needs_lab
from support.stores.disk import ROOT
from tonnage.base.records.launch import Launch
from tonnage.run.sort.gensort import generate

pytestmark = pytest.mark.slow

LAB = "test-launch"
NODES, SPARES = 5, 4
"""It takes five to judge any."""
FILE = f"""
[lab]
name = "{LAB}"
[[machine]]
type = "node"
count = {NODES + SPARES - 1}
price_usd_per_hour = 1
link_mb_per_s = 20
disks = [{{ size = "128MiB", read_mb_per_s = 20, write_mb_per_s = 20, fs = "ext4" }}]
"""
SLOW = "node-1"
RECORDS = 200_000
MINUTES = 15
SSH = ROOT / "tests" / "support" / "lab" / "ssh.sh"


@pytest.fixture
def server() -> Iterator[Cloud]:
    """EC2."""
    with cloud() as running:
        running.reset()
        yield running


def wheel(room: Path) -> Path:
    """A wheel that has the command of the Tonnage that is tested, which nodes find here."""
    made, info = room / "tonnage-0.1.0+lab-py3-none-any.whl", "tonnage-0.1.0+lab.dist-info"
    with zipfile.ZipFile(made, "w") as file:
        metadata = "Metadata-Version: 2.1\nName: tonnage\nVersion: 0.1.0+lab\n"
        file.writestr(f"{info}/METADATA", metadata)
        pure = "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        file.writestr(f"{info}/WHEEL", pure)
        file.writestr(
            f"{info}/entry_points.txt", "[console_scripts]\ntonnage = tonnage.cli.main:main\n"
        )
        file.writestr(f"{info}/RECORD", "")
    return made


def tools(room: Path) -> Path:
    """A python3 for nodes whose environments have no pip of their own, which takes long to make."""
    directory = room / "tools"
    directory.mkdir()
    python = directory / "python3"
    python.write_text(
        f'#!/bin/bash\n[ "$1 $2" = "-m venv" ] && set -- -m venv --without-pip "$3"\n'
        f'exec "{sys.executable}" "$@"\n'
    )
    python.chmod(0o755)
    return directory


@pytest.fixture
def machines(tonnage: Tonnage, disk: Path) -> Iterator[dict[str, str]]:
    """The lab, one of its disks slow; gives what makes its nodes machines."""
    (disk / "lab.toml").write_text(FILE)
    room = disk / "m"
    (room / "homes").mkdir(parents=True)
    names = [f"node-{number}" for number in range(NODES + SPARES - 1)]
    (room / "free").write_text("".join(f"{name}\n" for name in names))
    try:
        tonnage.run("lab", "up", disk / "lab.toml", check=True)
        tonnage.run("lab", "fault", "--lab", LAB, SLOW, "slow-disk", "--factor", "4", check=True)
        yield {
            "LAB": LAB,
            "MACHINES": str(room),
            "TONNAGE": str(tonnage.path),
            "NODE_PATH": f"{tools(room)}:{tonnage.path.parent}:{os.environ['PATH']}",
            "NODE_PYTHONPATH": f"{SOURCES}:{sysconfig.get_path('purelib')}",
        }
    finally:
        tonnage.run("lab", "down", "--lab", LAB, check=True)


SOURCES = Path(tonnage.__file__).parents[1]


def switch_off(machines: dict[str, str], server: Cloud) -> None:
    """What EC2 has ended is a machine that is off."""
    for each in server.instances():
        file = Path(machines["MACHINES"]) / each.get("PrivateIpAddress", "none")
        if each["State"]["Name"] == "terminated" and file.is_file():
            with suppress(ProcessLookupError):
                os.kill(int(file.read_text().split()[1]), signal.SIGKILL)


def screened(disk: Path) -> list[object]:
    """What screenings said of machines that did not measure, and of suspects."""
    found = map(json.loads, (file.read_text() for file in disk.glob("launch/screening-*.json")))
    return [
        (each["suspects"], [node.get("why") for node in each["disk"]["nodes"]]) for each in found
    ]


@needs_lab
@pytest.mark.timeout(60 * MINUTES)
def test_a_fleet_is_launched_screened_used_and_ended(
    tonnage: Tonnage,
    server: Cloud,
    machines: dict[str, str],
    disk: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (disk / "in").mkdir()
    generate(RECORDS, [disk / "in" / "records"])
    chosen = candidate(NODES, volumes=None)
    server.after["RunInstances"] = lambda: server.end(server.running()[2]["InstanceId"])
    server.after["TerminateInstances"] = lambda: switch_off(machines, server)
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    aws = {
        "AWS_ENDPOINT_URL": server.endpoint,
        "AWS_ACCESS_KEY_ID": "tester",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    }
    sort = ["tonnage", "run", "sort", str(disk / "in"), "--output", "/var/tmp/out"]
    sort += ["--scratch", "/var/tmp/scratch", "--cluster", "auto", "--memory", "16MiB", "--json"]
    sort += ["--job-dir", str(disk / "job")]
    done = tonnage.run(
        *("launch", plan(disk / "plan.json", chosen), "--image", server.image()),
        *("--subnet", server.subnet(), "--key-pair", "mine", "--ssh-from", "10.0.0.0/8"),
        *("--ssh", str(SSH), "--private", "--wheel", wheel(disk), "--output", disk / "launch"),
        *("--size", "20MB", "--seconds", "2", "--replacements", str(SPARES)),
        *("--timeout", "10min", "--", *sort),
        env=machines | aws,
        cwd=disk,
        timeout=60 * MINUTES,
    )
    assert done.returncode == 0, f"{done.stderr}\n{screened(disk)}"
    record = Launch.read(disk / "launch" / "launch.json")
    on = {
        file.name: file.read_text().split()[0]
        for file in Path(machines["MACHINES"]).iterdir()
        if file.name.startswith("172.")
    }
    whys = {on.get(each.inside or ""): each.why for each in record.nodes if each.why}
    # One was never there, one is slow.
    assert (whys[None] or "").startswith("AWS terminated it: ")
    assert (whys[SLOW] or "").endswith("of the median node")
    first = json.loads((disk / "launch" / "screening-0.json").read_text())
    slow = {each["node"] for each in first["suspects"]}
    assert slow >= {each.instance for each in record.nodes if on.get(each.inside or "") == SLOW}

    sorted_by = json.loads(done.stdout)
    assert sorted_by["records"] == RECORDS and len(sorted_by["nodes"]) == NODES
    used = {each["node"] for each in sorted_by["nodes"]}
    assert used == {each.instance for each in record.nodes if each.why is None}

    assert server.left() == {} and record.step == "down" and record.rented == []
    assert all(each.ended_at for each in record.nodes) and record.cost_usd > 0
    assert record.region == REGION
