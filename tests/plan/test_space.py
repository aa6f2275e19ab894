"""What a job stores on disks and keeps in memory, each with what its machines have of it."""

from __future__ import annotations

import pytest

from support.data.copies import replace
from support.data.offers import STEADY, catalog, distribution, offer, profile
from tonnage.base.records.job import Demand, Job, JobPhase, SpaceDemand
from tonnage.base.records.plan import Candidate, SpaceFit
from tonnage.cli.output.plan import explanation_lines
from tonnage.model.profiles.repository import index_profiles
from tonnage.plan.explain import explain
from tonnage.plan.planner import PlanRequest, plan
from tonnage.plan.search import Limits

GIB = 1 << 30
WORLD = catalog([replace(offer("m", local_bytes=0), memory_bytes=64 * GIB)], (STEADY,))
KNOWN = index_profiles([profile({}, shares=[distribution("volume write", 0.9, 0.1, 4)])])


def request(stored: float, remembered: float) -> PlanRequest:
    """Of a job that shuffles and keeps so many GiB, on two nodes."""
    demands = [Demand(resource="volume write", per_byte=stored, source="seen")]
    room = [
        SpaceDemand(where="volume", what="shuffled data", per_byte=stored),
        SpaceDemand(where="memory", what="cached data", per_byte=remembered),
    ]
    return PlanRequest(
        job=Job(name="job", phases=[JobPhase(name="map", demands=demands)], room=room),
        size=GIB,
        limits=Limits(min_nodes=2, max_nodes=2),
    )


def planned(stored: float, remembered: float) -> Candidate:
    return plan(request(stored, remembered), [WORLD], KNOWN).candidates[0]


def test_disks_and_memory_are_not_added() -> None:
    found = planned(1.0, 64.0)
    assert found.volumes is not None
    volumes = 2 * found.volumes.count * found.volumes.gib_each * GIB
    assert found.capacity == SpaceFit(needed_bytes=GIB, have_bytes=volumes)
    assert found.memory == SpaceFit(needed_bytes=64 * GIB, have_bytes=128 * GIB)
    assert planned(1.0, 0.0).memory is None


@pytest.mark.parametrize(("remembered", "full"), [(127.0, True), (64.0, False)])
def test_a_note_says_that_memory_is_full(remembered: float, full: bool) -> None:
    notes = planned(1_000.0, remembered).notes
    assert any("fills its memory to 99 %" in note for note in notes) == full
    assert not any("fills its disks" in note for note in notes)


def test_the_explanation_names_each() -> None:
    lines = explanation_lines(explain(request(1.0, 64.0), [WORLD], KNOWN, "m"))
    (disks,) = (line for line in lines if line.startswith("Disk space"))
    assert disks.startswith("Disk space: 1.07 GB needed, ") and "GiB" not in disks
    assert "Memory for data: 64 GiB needed, 128 GiB available" in lines
