"""`run reduce --cluster --plan`: as many nodes as planned, and the plan next to the run."""

from __future__ import annotations

import json
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.cluster.machines import Machines
from support.data.copies import replace
from support.data.reductions import record
from support.data.runs import plan_of
from tonnage.base import core
from tonnage.base.records import ReductionRecord
from tonnage.base.records.plan import Plan
from tonnage.cli.options.option_groups import flattened
from tonnage.cli.run import reduce as command
from tonnage.cluster import ray_adapter as clusters
from tonnage.model.analysis.reduction_sweep import summarise_sweep
from tonnage.model.jobs.reduce import job_from_reduction, reduce_job
from tonnage.model.run_comparison.reduction import ROUNDS, compare_reduction
from tonnage.report.reductions import render

NODES = ("a", "b", "c")
ROWS, COLUMNS = 4_000, 4


def planned(nodes: int, size: int, rounds: int = 1) -> Plan:
    """A plan of a reduction on so many machines: 42 s, 25 s of its first pass by the network."""
    return replace(plan_of(nodes, size), job=reduce_job(rounds))


def test_rounds_stand_beside_their_plan() -> None:
    made = record(["s3://b/in"], 8_000_000_000, 48.0, None, None)
    plan = planned(2, 4_000_000_000)
    found = compare_reduction(made, plan, plan.candidates[0]).compared
    assert found and found.planned
    assert (found.planned.seconds.low, found.planned.seconds.median) == (80.0, 84.0)
    assert not found.planned.inside
    (phase,) = found.phases
    assert (phase.name, phase.planned_bottleneck, phase.as_planned) == (ROUNDS, "network", False)
    assert phase.bottleneck == "object get" and phase.median_seconds == 36.0
    assert found.notes == ["the plan was for 4.00 GB; its seconds are scaled to 8.00 GB"]


def test_what_was_planned_otherwise_is_told() -> None:
    made = record(["/in"], 4_000_000_000, 48.0, None, None)
    job = job_from_reduction(replace(made, job="pca"))
    plan = replace(planned(2, 4_000_000_000), job=job)
    notes = compare_reduction(made, plan, plan.candidates[0]).compared
    assert notes and [each.split(":")[0] for each in notes.notes] == [
        "the plan was for pca {}, but the run used kmeans {}",
        "the plan assumed object storage, but the input was on the nodes' disks",
    ]
    plan = planned(2, 4_000_000_000, rounds=2)
    compared = compare_reduction(made, plan, plan.candidates[0]).compared
    assert compared and compared.planned and compared.planned.seconds.median == 21.0
    assert "the plan was for 2 rounds" in compared.notes[0]


def test_the_page_has_the_plan_beside_the_reduction() -> None:
    made = record(["s3://b/in"], 4_000_000_000, 48.0, None, None)
    plan = planned(2, 4_000_000_000)
    page = render(summarise_sweep([compare_reduction(made, plan, plan.candidates[0])]))
    assert "Each reduction and its plan" in page and "2 x n" in page and "inside" in page
    assert "and its plan" not in render(summarise_sweep([made]))


@pytest.fixture
def points(tmp_path: Path) -> Path:
    """Rows that every machine has."""
    path = tmp_path / "points.npy"
    np.save(path, np.random.default_rng(7).random((ROWS, COLUMNS)))
    return path


def run(
    room: Path, points: Path, plan: Plan, machines: Machines, patch: pytest.MonkeyPatch, **more: Any
) -> ReductionRecord:
    """Reduces by the command's own function; gives what it has kept."""
    patch.setattr(clusters, "connect", lambda _: nullcontext(machines))
    patch.setattr(command, "refuse_without_ray", lambda: None)
    usual: dict[str, Any] = {
        "components": 2,
        "memory": 16 << 20,
        "workers": 1,
        "cluster": "auto",
        "job_dir": room / "job",
        "timeout": 60.0,
        "plan": plan.write(room / "the-plan.json"),
    }
    flattened(command.run_reduce)(job="pca", inputs=[str(points)], **usual | more)
    return ReductionRecord.read(room / "job" / "reduction.json")


def test_it_is_done_as_planned(
    tmp_path: Path,
    points: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    machines = Machines(*NODES)
    size = points.stat().st_size
    found = run(tmp_path, points, planned(2, size), machines, monkeypatch)
    assert {each.node for each in found.workers} <= {"a", "b"}
    assert found.compared and found.compared.planned
    assert found.compared.planned.candidate.nodes == 2
    said = capsys.readouterr()
    assert "As planned: 2 x n (local)" in said.err and "planned: 4" in said.out
    assert "rounds: " in said.out and "planned" in said.out
    # The same command, when all is done, tells the same.
    assert run(tmp_path, points, planned(2, size), machines, monkeypatch) == found
    capsys.readouterr()
    run(tmp_path, points, planned(2, size), machines, monkeypatch, as_json=True)
    assert json.loads(capsys.readouterr().out)["compared"]["planned"]["bytes"] == size


def test_what_contradicts_the_plan_is_refused(
    tmp_path: Path, points: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machines = Machines(*NODES)
    plan = planned(5, 1000)
    with pytest.raises(core.UsageError, match="needs 5 nodes, but the cluster has 3"):
        run(tmp_path, points, plan, machines, monkeypatch)
    with pytest.raises(core.UsageError, match="--nodes 2"):
        run(tmp_path, points, plan, machines, monkeypatch, nodes=2)
    with pytest.raises(core.UsageError, match="is a plan for sort"):
        run(tmp_path, points, plan_of(2), machines, monkeypatch)
    with pytest.raises(core.UsageError, match="--plan"):
        run(tmp_path, points, plan, machines, monkeypatch, cluster=None, job_dir=None, timeout=None)
