"""Phases of tasks: waves of as many as there are slots, the longest task, and speeds of cores."""

from __future__ import annotations

import math

import pytest

from support.data.copies import replace
from support.data.offers import catalog, offer
from tonnage.base.records.job import Demand, Job, JobPhase
from tonnage.base.records.plan import Candidate
from tonnage.catalog import OFFER_KINDS, Offer
from tonnage.model.profiles.repository import index_profiles
from tonnage.plan.explain import explain
from tonnage.plan.planner import PlanRequest, plan
from tonnage.plan.search import Limits

SIZE = 10**12
KNOWN = index_profiles([])
CORE_SECONDS, WAITS = 8_000.0, 2_000.0
COMPUTING = Demand(resource="cpu", per_byte=CORE_SECONDS / SIZE, source="seen")
WAITING = Demand(resource="task wait", per_byte=WAITS / SIZE, source="seen")


def job(*phases: JobPhase, core_speed: float | None = None) -> Job:
    return Job(name="tasks", phases=list(phases), room=[], core_speed=core_speed)


def planned(wanted: Job, nodes: int, machine: Offer | None = None) -> Candidate:
    limits = Limits(min_nodes=nodes, max_nodes=nodes)
    request = PlanRequest(job=wanted, size=SIZE, limits=limits, include=frozenset(OFFER_KINDS))
    (candidate,) = plan(request, [catalog([machine or offer("m")])], KNOWN).candidates
    return candidate


@pytest.mark.parametrize(("nodes", "slots"), [(1, 8), (2, 16), (3, 24), (12, 96), (13, 104)])
def test_tasks_run_in_whole_waves(nodes: int, slots: int) -> None:
    phase = JobPhase(name="map", demands=[COMPUTING, WAITING], tasks=100)
    candidate = planned(job(phase), nodes)
    waves = math.ceil(100 / slots)
    assert candidate.seconds.median == pytest.approx(waves * (CORE_SECONDS + WAITS) / 100)
    assert candidate.phases[0].bottleneck == "task slots"


def test_without_a_number_of_tasks_work_is_divided_evenly() -> None:
    candidate = planned(job(JobPhase(name="map", demands=[COMPUTING, WAITING])), 13)
    assert candidate.seconds.median == pytest.approx((CORE_SECONDS + WAITS) / 104)


def test_no_number_of_nodes_goes_below_the_longest_task() -> None:
    phase = JobPhase(name="join", demands=[COMPUTING], longest_task_per_byte=300 / SIZE)
    few, many = (planned(job(phase), nodes) for nodes in (2, 200))
    assert few.seconds.median == pytest.approx(CORE_SECONDS / 16)
    assert (many.seconds.median, many.phases[0].bottleneck) == (300, "longest task")


def test_faster_cores_shorten_computing_and_the_longest_task_but_no_wait() -> None:
    """Where a vCPU did half of what the reference's core does."""
    phase = JobPhase(name="map", demands=[COMPUTING, WAITING])
    skewed = JobPhase(name="join", demands=[COMPUTING], longest_task_per_byte=9_000 / SIZE)
    # Four cores of unknown speed count as the reference's: half a core a vCPU.
    alike = offer("m")
    fast = replace(alike, cores=8.0)
    for machine, speed in ((alike, 1), (fast, 2)):
        found = planned(job(phase, core_speed=0.5), 10, machine)
        assert found.seconds.median == pytest.approx((CORE_SECONDS / speed + WAITS) / 80)
        found = planned(job(skewed, core_speed=0.5), 10, machine)
        assert found.seconds.median == pytest.approx(9_000 / speed)


def test_slots_with_a_part_of_a_vcpu_take_longer_for_the_longest_task_and_to_warm_up() -> None:
    """A quarter of a vCPU that bursts, of each of two, and a machine of a quarter of one."""
    phase = JobPhase(name="join", demands=[], longest_task_per_byte=30 / SIZE, warm_up_seconds=4)
    wanted = job(phase, core_speed=0.5)
    whole = replace(offer("m"), vcpus=2, cores=1)
    burst = replace(offer("t3.m"), vcpus=2, cores=1, baseline_vcpus=0.5)
    quarter = replace(whole, vcpus=0.25, cores=0.125)
    seconds = [planned(wanted, 1, each).seconds.median for each in (whole, burst, quarter)]
    assert seconds == pytest.approx([30, 120, 120], rel=0.02)


def test_how_fast_other_cores_are_is_uncertain() -> None:
    phase = JobPhase(name="map", demands=[COMPUTING, WAITING])
    seconds = planned(job(phase, core_speed=0.5), 10).seconds
    assert 1.1 < seconds.high / seconds.low < 1.5


def test_machines_with_less_memory_for_a_task_are_left_out() -> None:
    """Of 64 GiB and eight vCPUs."""
    phase = JobPhase(name="map", demands=[COMPUTING])
    for least, count in ((8 << 30, 1), ((8 << 30) + 1, 0)):
        request = PlanRequest(job=replace(job(phase), least_memory_per_vcpu=least), size=SIZE)
        made = plan(request, [catalog([offer("m")])], KNOWN)
        assert len(made.candidates) == count
    assert "less memory per vCPU" in made.excluded[0].why


def test_the_arithmetic_is_explained() -> None:
    phase = JobPhase(
        name="map",
        demands=[COMPUTING, WAITING],
        tasks=100,
        longest_task_per_byte=50 / SIZE,
    )
    request = PlanRequest(
        job=job(phase, core_speed=0.5), size=SIZE, limits=Limits(min_nodes=3, max_nodes=3)
    )
    explained = explain(request, [catalog([offer("m")])], KNOWN, "m")
    slots = [term for term in explained.terms if term.limit == "task slots"]
    assert [term.resource for term in slots] == ["cpu", "task wait"]
    assert sum(term.seconds for term in slots) == pytest.approx(
        explained.candidate.phases[0].seconds
    )
    assert "longest task" in [term.resource for term in explained.terms]


def test_skew_and_idle_slots_are_noted() -> None:
    skewed = JobPhase(name="join", demands=[COMPUTING], longest_task_per_byte=3_000 / SIZE)
    few = JobPhase(name="map", demands=[COMPUTING, WAITING], tasks=100)
    one, two = planned(job(skewed), 20), planned(job(few), 20)
    assert any("single long tasks" in note for note in one.notes)
    assert any("1 of its phases have fewer tasks than the 160 vCPUs" in note for note in two.notes)
    assert not any("tasks" in note for note in planned(job(few), 10).notes)


def test_how_runs_vary_is_in_the_interval_and_not_in_the_median() -> None:
    phase = JobPhase(name="map", demands=[WAITING], fixed_seconds=100.0)
    sure, unsure = (planned(replace(job(phase), spread=each), 10).seconds for each in (0.0, 0.1))
    assert sure.low == sure.high == sure.median == unsure.median
    assert unsure.high / unsure.low == pytest.approx(math.exp(2 * 1.645 * 0.1), rel=0.02)


def test_warm_up_does_not_grow_with_the_data_or_the_nodes() -> None:
    phase = JobPhase(name="warm-up", demands=[], warm_up_seconds=30.0)
    for nodes in (1, 20):
        candidate = planned(job(phase), nodes)
        assert candidate.phases[0].bottleneck == "warm-up"
        assert candidate.seconds.median == pytest.approx(30.0)
