"""`tonnage plan APPLICATION --now CLUSTER`: what it costs today, and what another cluster saves."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.cli.command import Tonnage
from support.data.applications import GB, application, stage
from tonnage.base.records.plan import Plan
from tonnage.cli.plan.current_cluster import parse_cluster

FEW = ("--provider", "aws", "--arch", "x86_64", "--max-nodes", "30")
"""Clusters that are planned quickly."""
NOW = ("--now", "20 x r5.4xlarge", *FEW)


@pytest.fixture
def nightly(tmp_path: Path) -> str:
    """Two hours on 20 machines of 16 vCPUs, whose log names no executors."""
    scan = stage(
        *(0, 60, 3_600, 4_000),
        task_seconds=3_500.0 * 320,
        read_bytes={"objects": 900 * GB},
        shuffle_written_bytes=400 * GB,
    )
    join = stage(
        *(1, 3_660, 3_500, 2_000),
        task_seconds=3_400.0 * 320,
        shuffle_remote_bytes=380 * GB,
        shuffle_local_bytes=20 * GB,
        written_bytes={"objects": 100 * GB},
    )
    some = application(scan, join, seconds=7_200.0, executors=[])
    file = tmp_path / "nightly.json"
    some.write(file)
    return str(file)


def test_what_it_costs_today_and_what_another_cluster_saves(tonnage: Tonnage, nightly: str) -> None:
    command = ("plan", nightly, *NOW, "--per-month", "30")
    made = Plan.from_json(json.loads(tonnage.run(*command, "--json", check=True).stdout))
    assert made.current is not None and made.current.saves_usd is not None
    now, best, saves = made.current.candidate, made.candidates[0], made.current.saves_usd
    assert (made.bytes, made.current.seen_seconds) == (900 * GB, 7_200)
    assert (now.offer, now.nodes) == ("r5.4xlarge", 20)
    assert now.run_seconds is not None
    assert now.run_seconds.median == pytest.approx(7_200, rel=0.03)
    assert saves.median == pytest.approx(now.cost_usd.median - best.cost_usd.median)
    assert 0 < saves.low < saves.median < saves.high
    most = now.seconds.median * (1 + 1e-9)
    assert all(each.seconds.median <= most for each in made.candidates)
    text = tonnage.run(*command, check=True).stdout
    assert "Today: 20 x r5.4xlarge" in text and "a month of 30 runs" in text
    assert "the run that was seen took 2.0 h" in text
    assert " a run (" in text and " % of what it costs today)" in text
    assert "no slower" in text and "deadline" not in text.replace("--deadline", "")


def test_the_job_reproduces_its_run_whatever_machines_it_is_said_to_have_run_on(
    tonnage: Tonnage, nightly: str
) -> None:
    for cluster in ("20 x m5.4xlarge", "10 x m6i.8xlarge"):
        said = tonnage.run("plan", nightly, "--now", cluster, *FEW, "--json", check=True).stdout
        current = Plan.from_json(json.loads(said)).current
        assert current is not None and current.candidate.run_seconds is not None
        assert current.candidate.run_seconds.median == pytest.approx(7_200, rel=0.03)


def test_idle_vcpus_of_todays_cluster_are_noted(tonnage: Tonnage, tmp_path: Path) -> None:
    """Four slots, as its log has them, on a machine of 16 vCPUs."""
    file = tmp_path / "idle.json"
    application(stage(0, 0, 3_600, 400), seconds=3_600.0).write(file)
    command = ("plan", file, "--now", "1 x m5.4xlarge", *FEW, "--json")
    made = Plan.from_json(json.loads(tonnage.run(*command, check=True).stdout))
    assert made.current is not None and made.current.candidate.run_seconds is not None
    assert made.current.candidate.run_seconds.median == pytest.approx(3_600, rel=0.03)
    assert any("4 slots for tasks on 16 vCPUs" in each for each in made.current.candidate.notes)


def test_the_start_of_todays_machines_is_told_apart(tonnage: Tonnage, tmp_path: Path) -> None:
    file = tmp_path / "short.json"
    application(stage(0, 0, 100, 400), seconds=109.0).write(file)
    command = ("plan", file, "--now", "2 x m5.xlarge", *FEW)
    today = "is the start of its machines (--startup 0 if they stay up); the run that was seen"
    assert today in tonnage.run(*command, check=True).stdout
    assert today not in tonnage.run(*command, "--startup", "0", check=True).stdout


def test_slower_clusters_are_planned_on_request(tonnage: Tonnage, nightly: str) -> None:
    given = ("plan", nightly, *NOW, "--json", "--deadline")
    slow = Plan.from_json(json.loads(tonnage.run(*given, "10h", check=True).stdout))
    assert slow.current is not None
    assert slow.candidates[0].seconds.median > slow.current.candidate.seconds.median


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--now", "twenty r5.4xlarge"), "is not a cluster"),
        (("--now", "0 x r5.4xlarge"), "is not a cluster"),
        (("--now", "20 x r5.5xlarge"), "--now: unknown offer r5.5xlarge"),
        (("--per-month", "30"), "add --now"),
        (("--now", "20 x r5.4xlarge", "--per-month", "0"), "is not a number"),
        (("--passes", "3"), "--passes applies only to reduce"),
        (("--divisible",), "a job that was observed"),
        (("--from", "tape"), "--from tape"),
    ],
)
def test_mistakes_are_refused_in_one_line(
    tonnage: Tonnage, nightly: str, arguments: tuple[str, ...], words: str
) -> None:
    done = tonnage.run("plan", nightly, *arguments)
    assert done.returncode == 2 and words in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_a_size_is_asked_for_where_nothing_states_it(tonnage: Tonnage) -> None:
    done = tonnage.run("plan", "sort")
    assert done.returncode == 2
    assert "--data is missing" in done.stderr


@pytest.mark.parametrize(
    ("text", "nodes", "machine_type"),
    [
        ("20 x r5.4xlarge", 20, "r5.4xlarge"),
        ("20xr5.4xlarge", 20, "r5.4xlarge"),
        ("3*aws/m5d.large", 3, "aws/m5d.large"),
        ("4 n2-standard-8", 4, "n2-standard-8"),
        ("Standard_D8s_v5", 1, "Standard_D8s_v5"),
    ],
)
def test_clusters_are_written_as_people_write_them(
    text: str, nodes: int, machine_type: str
) -> None:
    found = parse_cluster(text)
    assert (found.nodes, found.machine_type) == (nodes, machine_type)


def test_an_unfinished_application_is_planned_with_a_warning(
    tonnage: Tonnage, tmp_path: Path
) -> None:
    file = tmp_path / "half.json"
    application(stage(0, 0, 600, 400), seconds=600.0, ended=False, failed_jobs=2).write(file)
    text = tonnage.run("plan", file, "--now", "1 x m5.xlarge", *FEW, check=True)
    assert "had not ended when its log was written" in text.stdout
    assert "2 of the application's jobs failed" in text.stdout


def test_a_discount_is_on_both_sides_of_a_saving(tonnage: Tonnage, nightly: str) -> None:
    command = ("plan", nightly, *NOW, "--json")
    whole, half = (
        Plan.from_json(json.loads(tonnage.run(*command, *more, check=True).stdout)).current
        for more in ((), ("--discount", "50"))
    )
    assert whole is not None and half is not None
    assert whole.saves_usd is not None and half.saves_usd is not None
    assert half.saves_usd.high < 0.75 * whole.saves_usd.high
    assert half.saves_usd.low < whole.saves_usd.low


def test_moving_to_spot_machines_is_compared_with_todays_price(
    tonnage: Tonnage, nightly: str
) -> None:
    command = ("plan", nightly, *NOW, "--purchase", "spot", "--json")
    made = Plan.from_json(json.loads(tonnage.run(*command, check=True).stdout))
    on_demand = Plan.from_json(json.loads(tonnage.run("plan", nightly, *NOW, "--json").stdout))
    assert made.current is not None and on_demand.current is not None
    assert made.current.candidate.cost_usd == on_demand.current.candidate.cost_usd
    assert made.current.saves_usd is not None and on_demand.current.saves_usd is not None
    assert made.current.saves_usd.median > on_demand.current.saves_usd.median
