"""Clusters that are ruled out because a run failed with as much memory."""

from __future__ import annotations

import numpy as np
import pytest

from support.data.copies import replace
from support.data.offers import catalog, offer
from tonnage.base.records.past_run import Outcome, PastRun
from tonnage.plan.past_runs.failed_runs import FailedRuns
from tonnage.plan.past_runs.run_machines import Machines
from tonnage.plan.past_runs.runs_of_job import RunsOfJob

GIB = 1 << 30
SMALL, WIDE, LARGE = (
    replace(offer(name, 1.0, local_bytes=0), vcpus=vcpus, memory_bytes=gib * GIB)
    for name, vcpus, gib in (("small", 4, 8), ("wide", 16, 32), ("large", 4, 32))
)
MACHINES = Machines([catalog([SMALL, WIDE, LARGE])])


def run(machine_type: str, nodes: int, outcome: Outcome = "ok", size: int = 100) -> PastRun:
    return PastRun(
        job="nightly",
        machine_type=machine_type,
        nodes=nodes,
        seconds=100.0,
        outcome=outcome,
        data_bytes=size,
    )


def ruled_out(runs: list[PastRun], size: float = 100.0) -> list[bool]:
    """Of 4, 8 and 16 small machines, two wide ones, which have as much as eight, and two large."""
    some = [(SMALL, 4), (SMALL, 8), (SMALL, 16), (WIDE, 2), (LARGE, 2)]
    failed = FailedRuns.of_job(RunsOfJob(runs, MACHINES))
    return list(map(bool, failed.rule_out(MACHINES.clusters(some), size)))


def test_no_more_memory_for_each_vcpu_and_in_all_is_ruled_out() -> None:
    found = ruled_out([run("large", 8), run("small", 8, "failed")])
    assert found == [True, True, False, True, False]


def test_a_run_that_finished_with_as_little_shows_another_reason() -> None:
    failed = run("small", 8, "failed")
    assert not any(ruled_out([run("small", 4), failed]))
    # With less data it shows nothing.
    assert any(ruled_out([run("small", 4, size=10), failed]))


@pytest.mark.parametrize(("size", "expected"), [(50.0, False), (200.0, True)])
def test_less_data_may_fit(size: float, expected: bool) -> None:
    assert np.any(ruled_out([run("large", 8), run("small", 8, "failed")], size)) == expected
