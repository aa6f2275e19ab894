"""`tonnage study --cluster`: the loop on machines of a Ray cluster, and what ends it early."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.cli.command import Tonnage
from support.cli.processes import patched_command, started
from support.cluster.ray_cluster import RayCluster, ray_cluster
from support.data.copies import replace
from support.data.runs import NODES as RUN_ON
from support.data.runs import pass_one, pass_two, plan_of, record
from support.stores.disk import disk_dir
from tonnage.base.records import FollowedPlan, RunRecord
from tonnage.base.records.cluster_study import STEPS, ClusterStudy
from tonnage.base.records.plan import Plan, Range
from tonnage.base.records.profile import Profile
from tonnage.model.run_comparison.plan_accuracy import plan_accuracy
from tonnage.model.run_comparison.two_pass import compare
from tonnage.plan.planner import FAR_BEYOND_RUN
from tonnage.provision.lab import catalog as offers
from tonnage.provision.lab.config import parse

pytestmark = pytest.mark.slow

NODES = ("beta", "gamma")
OFFERS = """
[lab]
name = "made-up"
[[machine]]
type = "small"
count = 2
price_usd_per_hour = 0.5
link_mb_per_s = 1000
disks = [{ size = "100GiB" }]
"""
"""What the cluster's small machines are offered as; of the large one there is none."""
QUICK = {"ROUNDS": 1, "DISK_SECONDS": 0.3, "NET_SECONDS": 0.3, "REHEARSALS": 1}
"""Trials too short to say anything, for studies whose figures are of no concern."""
SIZE = ("--data", "40MB", "--memory", "32MiB")


@pytest.fixture(scope="module")
def cluster() -> Iterator[RayCluster]:
    """Two machines of a type, and the head, which no catalog has."""
    with disk_dir("test-study-fleet-") as directory, ray_cluster(directory, ()) as made:
        for name in NODES:
            made.add(name, {"provider": "lab", "machine-type": "small"})
        yield made


@pytest.fixture
def catalog(disk: Path) -> Path:
    """Of the small machines."""
    (disk / "catalog").mkdir()
    return offers.write(disk / "catalog", parse(OFFERS, "made-up.toml"))


@pytest.fixture
def data(disk: Path) -> Path:
    """A directory of each machine's own."""
    for name in (*NODES, "head"):
        (disk / "data" / name).mkdir(parents=True)
    return disk / "data"


def asked(cluster: RayCluster, catalog: Path, data: Path, *more: str | Path) -> list[str | Path]:
    """A study of the small machines, quickly."""
    of = ("study", "--cluster", f"small@{cluster.address}", "--dir", f"{data}/{{node}}")
    return patched_command(
        QUICK, *of, *SIZE, "--catalog", str(catalog), *more, module="tonnage.study.cluster.steps"
    )


def done(
    cluster: RayCluster, command: list[str | Path], check: bool = True
) -> subprocess.CompletedProcess[str]:
    """What a command said to its end."""
    finished = subprocess.run(
        command, env=os.environ | cluster.env, capture_output=True, text=True, timeout=240
    )
    assert not check or finished.returncode == 0, finished.stderr
    return finished


def left(data: Path) -> list[Path]:
    """What lies on machines."""
    return [path for node in data.iterdir() for path in node.iterdir()]


@pytest.mark.timeout(300)
def test_a_study_stops_where_it_is_told_to_and_goes_on(
    cluster: RayCluster, catalog: Path, data: Path, disk: Path
) -> None:
    out = disk / "study"
    command = asked(cluster, catalog, data, "--output", out)
    first = done(cluster, [*command, "--until", "plan"])
    assert f"run the same command with --output {out}," in first.stdout
    assert "Remaining steps: run, report." in first.stdout
    planned = ClusterStudy.read(out / "study.json")
    assert [step.name for step in planned.steps] == list(STEPS[:4])
    assert left(data) == []

    study = ClusterStudy.from_json(json.loads(done(cluster, [*command, "--json"]).stdout))
    assert study == ClusterStudy.read(out / "study.json")
    assert [step.name for step in study.steps] == list(STEPS)
    assert study.steps[:4] == planned.steps and study.candidate == planned.candidate
    assert {each.node: each.type for each in study.machines} == {"beta": "small", "gamma": "small"}

    # Each of its commands is one that can be typed, and left what it names.
    for step in study.steps:
        assert all(line[0] == "tonnage" for line in step.commands)
    assert [line[1] for line in study.steps[1].commands] == ["measure", "measure", "run"]
    plan, run = Plan.read(out / "plan.json"), RunRecord.read(out / "sort" / "run.json")
    assert study.number is not None and plan.candidates[study.number - 1] == study.candidate
    assert run.bytes == 40_000_000 and len(run.nodes) == study.candidate.nodes == 2
    assert study.came == plan_accuracy(run)
    # The plan was calibrated by the rehearsal; what comes after it by the run as well.
    rehearsed = study.candidate.calibrated
    (made,) = Profile.read(out / "calibrated.json").offers
    assert rehearsed is not None and len(rehearsed.runs) == 1
    assert [len(each.runs) for each in made.calibrations] == [2]
    for name in ("report.html", "machines.html"):
        assert "<!doctype html>" in (out / name).read_text()[:100].lower()
    assert left(data) == []

    # What was killed after a step, before it was on record, tells it again and does what is left.
    replace(study, steps=study.steps[:4], came=None, report=None).write(out / "study.json")
    again = done(cluster, command)
    told = ClusterStudy.read(out / "study.json")
    assert told.came == study.came and told.report == study.report
    assert RunRecord.read(out / "sort" / "run.json") == run
    size = FAR_BEYOND_RUN * run.bytes
    assert "Result: " in again.stdout
    assert f"tonnage plan sort --data {size} --from local" in again.stdout
    other = done(cluster, [*command, "--durability", "replicated"], check=False)
    assert other.returncode == 2
    assert "(durability was none, now replicated); use the same settings" in other.stderr


@pytest.mark.timeout(300)
def test_what_ends_a_study_leaves_nothing_on_machines_and_it_goes_on(
    cluster: RayCluster, catalog: Path, data: Path, disk: Path
) -> None:
    out = disk / "study"
    command = asked(cluster, catalog, data, "--output", out, "--until", "measure")
    for number, code in ((signal.SIGINT, 130), (signal.SIGKILL, -9)):
        with started(command, env=cluster.env) as running:
            running.wait_until(lambda: any(path.name == "in" for path in _inside(data)))
            returncode, _, _ = running.end(number)
        assert returncode == code
        assert number == signal.SIGKILL or left(data) == []
    study = ClusterStudy.read(out / "study.json")
    assert [step.name for step in study.steps] == ["survey"]
    # What a killed study had begun holds its directory until it ends.
    (out / "disk-small" / "fleet.json").unlink()
    with started(command, env=cluster.env) as running:
        running.wait_until(lambda: children(running.pid) != [])
        (child,) = children(running.pid)
        os.kill(running.pid, signal.SIGKILL)
        running.process.wait()
        early = done(cluster, command, check=False)
    assert early.returncode == 2 and "another command is writing to " in early.stderr
    while Path(f"/proc/{child}").exists():
        time.sleep(0.1)
    done(cluster, command)
    assert [step.name for step in ClusterStudy.read(out / "study.json").steps][-1] == "measure"
    assert left(data) == []


@pytest.mark.timeout(300)
def test_who_joined_since_the_survey_is_not_taken_for_one_of_the_studys(
    cluster: RayCluster, catalog: Path, data: Path, disk: Path
) -> None:
    out = disk / "study"
    command = asked(cluster, catalog, data, "--output", out)
    done(cluster, [*command, "--until", "survey"])
    cluster.add("alpha", {"provider": "lab", "machine-type": "small"})
    (data / "alpha").mkdir()
    try:
        failed = done(cluster, command, check=False)
    finally:
        cluster.kill("alpha")
    assert failed.returncode == 1
    assert (
        "the first 2 nodes of type small are now alpha and beta, but the survey used beta and "
        "gamma; restore those nodes, or use another output directory; to resume the study, "
        f"run the same command with --output {out}"
    ) in failed.stderr
    assert left(data) == []


def children(pid: int) -> list[int]:
    """The processes that one has started, but Ray's."""
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [each for each in map(int, found) if b"tonnage" in _line(each)]


def _line(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""


def _inside(data: Path) -> Iterator[Path]:
    for place in left(data):
        if place.is_dir():
            yield from place.iterdir()


@pytest.mark.parametrize(
    ("address", "flags", "said"),
    [
        ("medium@{}", (), "no node has the label machine-type=medium; the nodes have large, small"),
        ("{}", (), "head has no labels for its provider and type"),
        ("small@{}", ("--data", "900TB"), r"beta has .* free in .*, but needs "),
        (
            "small@{}",
            ("--data", "1MB"),
            "each node would sort only 500 kB; use at least 2.00 MB",
        ),
        (
            "small@{}",
            ("--dir", "/nowhere/{node}"),
            "--dir: /nowhere/{node}: (beta|gamma): the directory does not exist",
        ),
    ],
)
def test_what_cannot_be_studied_is_refused_before_anything_is_done(
    cluster: RayCluster,
    catalog: Path,
    data: Path,
    disk: Path,
    tonnage: Tonnage,
    address: str,
    flags: tuple[str, ...],
    said: str,
) -> None:
    out = disk / "study"
    command = ["study", "--cluster", address.format(cluster.address), "--catalog", str(catalog)]
    command += [*flags] if "--dir" in flags else ["--dir", f"{data}/{{node}}", *flags]
    refused = tonnage.run(*command, "--output", out, env=cluster.env)
    assert refused.returncode == 2
    assert re.search(said.replace("{", r"\{"), refused.stderr), refused.stderr
    assert not out.exists() and left(data) == []


@pytest.mark.real
def test_how_near_a_plan_came_is_told_with_what_missed_most() -> None:
    took = record({node: [pass_one(6.0), pass_two(4.0)] for node in RUN_ON}, 10.0)
    near = plan_accuracy(compared_with_plan(took, 10.5))
    assert near.inside and near.missed is None
    assert near.error_fraction == pytest.approx(0.05)
    assert (near.usd, near.planned_usd) == (pytest.approx(40 / 3600), pytest.approx(42 / 3600))
    far = plan_accuracy(compared_with_plan(took, 5.0))
    assert not far.inside and far.missed == "pass two (the disk, reading)"
    assert far.error_fraction == pytest.approx(0.5)
    late = replace(took, seconds=30.0)
    assert plan_accuracy(compared_with_plan(late, 5.0)).missed == "start and end"


def compared_with_plan(took: RunRecord, seconds: float) -> RunRecord:
    """The run, compared to a plan of so many seconds of which pass two takes next to none."""
    found = compare(took)
    span = Range(low=0.9 * seconds, median=seconds, high=1.1 * seconds)
    phases = [
        replace(phase, planned_seconds=plan)
        for phase, plan in zip(found.phases, (5.0, 0.2), strict=True)
    ]
    planned = FollowedPlan(
        candidate=plan_of(nodes=4).candidates[0],
        made_at="",
        bytes=took.bytes,
        seconds=span,
        inside=span.low <= took.seconds <= span.high,
    )
    return replace(took, compared=replace(found, phases=phases, planned=planned))
