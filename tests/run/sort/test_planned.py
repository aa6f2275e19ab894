"""`run sort --cluster --plan`: run as planned, or refused; then compared to the plan."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from support.cli.command import Tonnage
from support.cluster.sorters import SortMachines, Trouble, directories
from support.data.copies import replace
from support.data.records import blob
from support.data.runs import RATES, disks, network, plan_of
from tonnage.base import core
from tonnage.base.records import RunRecord
from tonnage.base.records.environment import MACHINE_TYPE, PROVIDER
from tonnage.base.records.plan import Plan
from tonnage.cli.options.cluster import ShuffleOptions
from tonnage.cli.options.option_groups import flattened
from tonnage.cli.options.plan_file import SelectedPlan, refuse_other_cluster, selected_plan
from tonnage.cli.run import sort as command
from tonnage.cluster import ray_adapter as clusters
from tonnage.model.jobs.mapreduce import mapreduce_job, sort_job

NODES = ("a", "b", "c")
SIZE = 3_000_000


def kept(room: Path, plan: Plan) -> Path:
    """The plan's file."""
    return plan.write(room / "the-plan.json")


def selected(
    plan: Path,
    candidate: int | None = None,
    nodes: int | None = None,
    durability: str | None = None,
) -> SelectedPlan:
    """What a sort with these options follows of the plan there."""
    options = ShuffleOptions(plan=plan, candidate=candidate, nodes=nodes)
    found = selected_plan("sort", options, durability)
    assert found is not None
    return found


@pytest.fixture
def attach(monkeypatch: pytest.MonkeyPatch) -> Callable[[SortMachines], None]:
    """Has the command attach to machines that are threads."""

    def attach(machines: SortMachines) -> None:
        monkeypatch.setattr(clusters, "connect", lambda _: nullcontext(machines))
        monkeypatch.setattr(command, "refuse_without_ray", lambda: None)

    attach(SortMachines(*NODES, "d"))
    return attach


Attach = Callable[[SortMachines], None]


def sort(room: Path, **more: Any) -> RunRecord:
    """Sorts 3 MB by the command's own function; gives what it has kept."""
    if not (room / "in").exists():
        (room / "in").write_bytes(blob(1, SIZE))
    usual: dict[str, Any] = {
        "inputs": [str(room / "in")],
        "output": [*directories(room, "out")],
        "scratch": [Path(each) for each in directories(room, "scratch")],
        "record_bytes": 100,
        "memory": 16 << 20,
        "cluster": "auto",
        "job_dir": room / "job",
        "timeout": 5.0,
    }
    flattened(command.run_sort)(**usual | more)
    return RunRecord.read(room / "job" / "run.json")


def test_a_plan_is_done_as_it_says_and_stands_beside_what_came(
    disk: Path, attach: Attach, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = kept(disk, plan_of(3, SIZE, "replicated"))
    of_disks = disks(dict.fromkeys(NODES, RATES)).write(disk / "disks" / "fleet.json")
    of_links = network(dict.fromkeys(NODES, 60e6)).write(disk / "links" / "fleet.json")
    record = sort(disk, plan=plan, capacities=[of_disks.parent, of_links.parent])
    assert [node.node for node in record.nodes] == list(NODES)
    assert record.durability == "replicated"
    found = record.compared
    assert found and found.planned and found.limit
    assert found.planned.candidate == plan_of(3).candidates[0]
    assert [phase.name for phase in found.phases] == ["pass_one", "pass_two"]
    for phase, planned in zip(found.phases, (25.0, 17.0), strict=True):
        assert phase.planned_seconds == planned and phase.limit_seconds
        assert phase.efficiency == phase.limit_seconds / phase.seconds
        assert {use.resource for node in phase.nodes for use in node.uses if use.seconds} == {
            *("disk: read", "disk: write", "network: send", "network: receive")
        }
    assert found.notes == []
    said = capsys.readouterr()
    assert "As planned: 3 x n (local), 3.00 MB in 42.0 s (40.0 – 51.0 s)." in said.err
    assert (
        "A, b and c have no machine-type label, so it is unknown whether they are n, as planned."
    ) in said.err
    one, whole = (
        next(line for line in said.out.splitlines() if line.startswith(begin))
        for begin in ("pass one: ", "all phases: ")
    )
    assert (
        "; limit 0." in one
        and "; planned 25.0 s, limited by network " in one
        and "limited by " in one
    )
    assert "including start and end" in whole
    assert "planned: 42.0 s (40.0 – 51.0 s) on 3 x n; " in said.out
    # The same command once the job is done: nothing runs again, and the record is printed again.
    assert sort(disk, plan=plan, capacities=[of_disks.parent, of_links.parent]) == record


def test_a_sort_without_a_plan_has_its_phases_and_its_bottlenecks(
    disk: Path, attach: Attach
) -> None:
    record = sort(disk)
    assert record.compared and record.compared.limit is None
    assert [phase.limit for phase in record.compared.phases] == [None, None]
    assert all(phase.bottleneck and phase.bottleneck_node for phase in record.compared.phases)
    assert len(record.compared.phases[0].nodes) == 4


def test_a_planned_sort_goes_on_with_fewer_machines(disk: Path, attach: Attach) -> None:
    plan = kept(disk, plan_of(3, SIZE))
    troubles = {node: [Trouble("pass_two", "dies", wipes=node == "b")] for node in NODES}
    attach(SortMachines(*NODES, troubles=troubles))
    with pytest.raises(core.RunError, match="no remaining node can store data"):
        sort(disk, plan=plan)
    attach(SortMachines("a", "c"))
    record = sort(disk, plan=plan)
    assert record.bytes == SIZE and record.compared and record.compared.planned


def test_what_contradicts_a_plan_is_refused(disk: Path) -> None:
    plan = kept(disk, plan_of(4))

    def refused(said: str, path: Path = plan, *given: Any) -> None:
        with pytest.raises(core.UsageError, match=said):
            selected(path, *given)

    refused("--nodes 3 conflicts with --plan .*the-plan.json, which uses 4 nodes", plan, None, 3)
    refused(
        "--durability replicated conflicts with --plan .* uses none", plan, None, None, "replicated"
    )
    refused("--candidate 2 does not exist; --plan .* has 1 candidate", plan, 2)
    refused("No such file", disk / "nowhere.json")
    (disk / "other.json").write_text("{}")
    refused("use the output of tonnage plan sort --json", disk / "other.json")
    other = replace(plan_of(4), job=mapreduce_job())
    refused(
        "is a plan for mapreduce; use the output of tonnage plan sort --json",
        other.write(disk / "mapreduce.json"),
    )
    empty = replace(plan_of(4), candidates=[])
    refused("has no candidate", empty.write(disk / "empty.json"))
    assert selected(plan, 1, 4, "none").nodes == 4
    on_volumes = replace(plan_of(4), job=sort_job(read_from="volumes", written_to="volumes")).write(
        disk / "volumes.json"
    )
    assert selected(on_volumes).durability == "none"
    assert selected(on_volumes, None, None, "none")
    refused(
        "--durability replicated conflicts with --plan .* uses none",
        on_volumes,
        None,
        None,
        "replicated",
    )


def test_another_cluster_than_planned_is_refused(disk: Path) -> None:
    plan = selected(kept(disk, plan_of(3)))
    labels = {PROVIDER: "lab", MACHINE_TYPE: "n"}
    cluster = [(node, labels) for node in NODES]
    assert refuse_other_cluster(plan, cluster) is None
    with pytest.raises(core.UsageError, match="needs 3 nodes, but the cluster has 2; start more"):
        refuse_other_cluster(plan, cluster[:2])
    for wrong, said in (
        (labels | {MACHINE_TYPE: "m"}, "lab/n, but b is labelled machine-type=m"),
        ({PROVIDER: "aws"}, "lab/n, but b is labelled provider=aws"),
    ):
        with pytest.raises(core.UsageError, match=said):
            refuse_other_cluster(plan, [cluster[0], ("b", wrong), cluster[2]])
    # More than planned are not looked at.
    assert refuse_other_cluster(plan, [*cluster, ("d", {PROVIDER: "aws"})]) is None
    silent = [cluster[0], ("b", {}), cluster[2]]
    told = refuse_other_cluster(plan, silent)
    assert told and "b has no machine-type label" in told


def test_flags_of_a_plan_are_a_fleets(tonnage: Tonnage, disk: Path) -> None:
    own = ("/in", "--output", "/o", "--scratch", "/s")
    for more, said in (
        (("--plan", "x"), "--plan needs --cluster; add --cluster"),
        (("--candidate", "2"), "--candidate needs --cluster; add --cluster"),
        (("--candidate", "2", "--cluster", "auto"), "--candidate 2 needs --plan"),
        (("--plan", "x", "--cluster", "auto"), "--plan x: No such file"),
        (
            ("--capacities", "x", "y", "--cluster", "auto"),
            "--capacities x and y contain no finished measurement of nodes'",
        ),
    ):
        done = tonnage.run("run", "sort", *own, *more, cwd=disk)
        assert done.returncode == 2 and said in done.stderr, done.stderr


def test_the_plan_that_is_printed_is_one_to_follow(tonnage: Tonnage, disk: Path) -> None:
    asked = ("--data", "100TB", "--from", "local", "--nodes", "178", "--json")
    asked += ("--catalog", "aws-us-east-1-2014")
    printed = tonnage.run("plan", "sort", *asked, check=True).stdout
    (disk / "plan.json").write_text(printed)
    assert "survey" in json.loads(printed)
    assert selected(disk / "plan.json").nodes == 178
