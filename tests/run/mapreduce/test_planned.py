"""`run mapreduce --cluster --plan`: the plan is followed, and compared with the run."""

from __future__ import annotations

import json
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from support.cli.command import Tonnage
from support.cluster.sorters import SortMachines, Trouble
from support.data.copies import replace
from support.data.runs import plan_of
from tonnage.base import core, formatting
from tonnage.base.records import RunRecord
from tonnage.base.records.environment import MACHINE_TYPE
from tonnage.base.records.plan import Plan
from tonnage.cli.options.cluster import ShuffleOptions
from tonnage.cli.options.option_groups import flattened
from tonnage.cli.options.plan_file import selected_plan
from tonnage.cli.run import mapreduce as command
from tonnage.cluster import ray_adapter as clusters
from tonnage.cluster.ray_adapter import Machine
from tonnage.model.jobs.mapreduce import mapreduce_job

NODES = ("a", "b", "c", "d")
COUNT = """
import pyarrow.compute as pc
import pyarrow as pa
import tonnage

def words(batch):
    found = pc.list_flatten(pc.utf8_split_whitespace(batch.column("line")))
    return pa.record_batch({"key": found, "n": pa.repeat(1, len(found))})

JOB = tonnage.MapReduce(map=words, reduce=tonnage.sums("n"))
"""


def planned(nodes: int, size: int, durability: str = "none", **shares: float) -> Plan:
    """A plan of a MapReduce on so many machines."""
    job = mapreduce_job(durability, **shares)  # type: ignore[arg-type]
    return replace(plan_of(nodes, size), job=job)


def count(
    room: Path, monkeypatch: pytest.MonkeyPatch, machines: SortMachines, **more: Any
) -> RunRecord:
    """Counts words by the command's own function; gives what it has kept."""
    monkeypatch.setattr(clusters, "connect", lambda _: nullcontext(machines))
    (room / "counted.py").write_text(COUNT)
    usual: dict[str, Any] = {
        "output": f"{room}/{{node}}/out",
        "scratch": [Path(f"{room}/{{node}}/scratch")],
        "memory": 16 << 20,
        "workers": 1,
        "cluster": "auto",
        "job_dir": room / "job",
        "timeout": 5.0,
    }
    job = f"{room / 'counted.py'}:JOB"
    run = flattened(command.run_mapreduce)
    run(job=job, inputs=[str(room / "in.txt")], **usual | more)
    return RunRecord.read(room / "job" / "run.json")


@pytest.fixture
def text(disk: Path) -> int:
    """Bytes of the input, which is there."""
    return (disk / "in.txt").write_text("to be or not to be\n" * 20_000)


def test_a_plan_is_done_as_it_says_and_stands_beside_what_came(
    disk: Path, text: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = planned(3, 2 * text, "replicated", map_share=0.5).write(disk / "plan.json")
    record = count(disk, monkeypatch, SortMachines(*NODES), plan=plan)
    assert [node.node for node in record.nodes] == [*NODES[:3]]
    assert record.durability == "replicated" and record.bytes == text
    found = record.compared
    assert found and found.planned
    assert {each.name: each.planned_seconds for each in found.phases} == {
        "pass_one": 12.5,
        "pass_two": 8.5,
        "copy": None,
    }
    *_, size, copies, mapped, reduced = found.notes
    assert size.startswith("the plan was for 760 kB")
    assert copies == "replication after pass two is planned and compared as part of pass two"
    one, two, copying = found.phases
    assert one.came_seconds == one.seconds and copying.came_seconds is None
    assert two.came_seconds == two.seconds + copying.seconds
    assert record.shuffled_bytes and record.written_bytes
    made = {
        "a map share of 0.5": record.shuffled_bytes / text,
        "a reduce share of 1": record.written_bytes / record.shuffled_bytes,
    }
    for said, (planned_as, share) in zip((mapped, reduced), made.items(), strict=True):
        assert said.startswith(f"the plan assumed {planned_as}, but the actual one is ")
        assert formatting.significant(share) in said
    said = capsys.readouterr()
    assert "As planned: 3 x n (local), 760 kB in 42.0 s (40.0 – 51.0 s)." in said.err
    assert (
        "A, b and c have no machine-type label, so it is unknown whether they are n, as planned."
    ) in said.err
    assert "planned: 21.0 s (20.0 – 25.5 s) on 3 x n; " in said.out
    # The same command, when all is done: nothing runs again, and all is printed again.
    assert count(disk, monkeypatch, SortMachines(*NODES), plan=plan) == record


def test_other_machines_than_planned_are_refused_before_anything_is_done(
    disk: Path, text: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = planned(3, text).write(disk / "plan.json")
    machines = SortMachines(*NODES)
    labels = {MACHINE_TYPE: "m"}
    machines.machines[1] = Machine("b", labels, "127.0.0.1", "b")
    with pytest.raises(core.UsageError, match="for lab/n, but b is labelled machine-type=m"):
        count(disk, monkeypatch, machines, plan=plan)
    with pytest.raises(core.UsageError, match="needs 3 nodes, but the cluster has 2"):
        count(disk, monkeypatch, SortMachines("a", "b"), plan=plan)
    assert not machines.sorters and not (disk / "job").exists() and not (disk / "a").exists()


def test_one_that_was_begun_goes_on_with_who_is_there(
    disk: Path, text: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = planned(3, text).write(disk / "plan.json")
    troubles = {node: [Trouble("pass_two", "dies", wipes=node == "b")] for node in NODES[:3]}
    with pytest.raises(core.RunError, match="no remaining node can store data"):
        count(disk, monkeypatch, SortMachines(*NODES[:3], troubles=troubles), plan=plan)
    record = count(disk, monkeypatch, SortMachines("a", "c"), plan=plan)
    assert record.bytes == text and record.compared and record.compared.planned


def test_flags_of_a_plan_are_a_fleets_and_do_not_contradict_it(
    tonnage: Tonnage, disk: Path
) -> None:
    own = ("words.py:JOB", "/in", "--output", "/o", "--scratch", "/s")
    planned(4, 100).write(disk / "plan.json")
    plan_of(4).write(disk / "sort.json")
    cluster = ("--cluster", "auto")
    for more, said in (
        (("--plan", "x"), "--plan needs --cluster; add --cluster"),
        (("--candidate", "2"), "--candidate needs --cluster; add --cluster"),
        (("--candidate", "2", *cluster), "--candidate 2 needs --plan; add --plan FILE"),
        (("--plan", "x", *cluster), "--plan x: No such file"),
        (
            ("--plan", "sort.json", *cluster),
            "--plan sort.json is a plan for sort; use the output of tonnage plan mapreduce --json",
        ),
        (("--plan", "plan.json", "--candidate", "2", *cluster), "plan.json has 1 candidate"),
        (
            ("--plan", "plan.json", "--nodes", "3", *cluster),
            "--nodes 3 conflicts with --plan plan.json, which uses 4 nodes; remove one",
        ),
        (
            ("--plan", "plan.json", "--durability", "replicated", *cluster),
            "--durability replicated conflicts with --plan plan.json, which uses none; remove",
        ),
    ):
        done = tonnage.run("run", "mapreduce", *own, *more, cwd=disk)
        assert done.returncode == 2 and said in done.stderr, done.stderr


def test_the_plan_that_is_printed_is_one_to_follow(tonnage: Tonnage, disk: Path) -> None:
    asked = ("--data", "1TB", "--from", "local", "--nodes", "20", "--json")
    asked += ("--catalog", "aws-us-east-1-2014")
    shares = ("--map-share", "0.3", "--reduce-share", "0.1", "--durability", "replicated")
    printed = tonnage.run("plan", "mapreduce", *asked, *shares, check=True).stdout
    (disk / "plan.json").write_text(printed)
    found = selected_plan("mapreduce", ShuffleOptions(plan=disk / "plan.json"))
    assert found and (found.nodes, found.durability) == (20, "replicated")
    assert json.loads(printed)["job"]["settings"]["map_share"] == 0.3
