"""The start of a cluster: as long as its slowest machine, paid for, and no part of the run."""

import json

import pytest

from support.data.copies import replace
from support.data.offers import catalog, distribution, offer, profile
from tonnage.base.records.plan import START_UP, Candidate, Plan
from tonnage.catalog.published.start_times import start_seconds
from tonnage.model.jobs.mapreduce import sort_job
from tonnage.model.profiles.repository import ProfileIndex, index_profiles
from tonnage.plan.explain import explain
from tonnage.plan.planner import PlanRequest, plan
from tonnage.plan.resources.startup import (
    INSTALL_SECONDS,
    SCREEN_SECONDS,
    Startup,
    default_startup,
    fixed_startup,
)
from tonnage.plan.search import Limits

TB = 10**12


def known(spread: float = 0.0) -> ProfileIndex:
    laws = [distribution("local both", 1e9, spread, 1_000_000)]
    return index_profiles([profile({"m": laws})])


def planned(startup: Startup, nodes: int = 10, size: int = TB, spread: float = 0.0) -> Candidate:
    request = PlanRequest(
        job=sort_job(),
        size=size,
        limits=Limits(min_nodes=nodes, max_nodes=nodes),
        network="infinite",
        startup=startup,
    )
    (found,) = plan(request, [catalog([offer("m")], ())], known(spread)).candidates
    return found


def test_a_start_is_a_phase_of_its_own_and_is_paid_for() -> None:
    without, found = planned({}), planned(fixed_startup(60.0))
    assert without.seconds.median == pytest.approx(200) and without.run_seconds is None
    assert found.seconds.median == pytest.approx(260)
    assert found.run_seconds is not None
    assert found.run_seconds.median == pytest.approx(200)
    assert (found.phases[0].name, found.phases[0].bottleneck) == (START_UP, "start")
    assert found.job_phases == without.phases
    # $1 an hour for each of 10 nodes.
    assert found.cost_usd.median == pytest.approx(10 * 260 / 3600)
    # It is no figure of the offer's.
    assert found.evidence == without.evidence == "measured"


def test_a_cluster_starts_as_slowly_as_its_slowest_machine() -> None:
    startup = {provider: (boot,) for provider, (boot, *_) in default_startup().items()}
    few, many = (planned(startup, nodes, size=1_000 * nodes) for nodes in (2, 500))
    starts = start_seconds("aws")
    assert len(starts) > 60
    first, last = (each.phases[0].seconds for each in (few, many))
    assert min(starts) < first < max(starts) < 1.5 * last
    assert last > 1.3 * first
    assert first < few.seconds.high


def test_machines_are_installed_and_screened_before_the_job_begins() -> None:
    """Both take as long on any number of machines, and are paid for."""
    boots = {provider: (boot,) for provider, (boot, *_) in default_startup().items()}
    for nodes in (1, 300):
        booted, ready = (
            planned(steps, nodes, size=1_000 * nodes) for steps in (boots, default_startup())
        )
        more = ready.seconds.median - booted.seconds.median
        assert more == pytest.approx(INSTALL_SECONDS + SCREEN_SECONDS)
        # $1 an hour for each node.
        assert ready.cost_usd.median == pytest.approx(nodes * ready.seconds.median / 3600)
        assert ready.job_phases == booted.job_phases


def test_a_start_is_uncertain_and_the_run_is_not() -> None:
    found = planned(default_startup())
    assert found.run_seconds is not None
    assert found.seconds.high > found.seconds.median + 1
    assert found.run_seconds.high == pytest.approx(found.run_seconds.low, rel=0.01)


def test_more_start_up_never_favours_more_machines() -> None:
    """The cheapest cluster has no more nodes if the machines take longer to start.

    Without a deadline, of which the start leaves less.
    """
    before = 1_000
    for seconds in (0, 10, 60, 300, 1_000):
        request = PlanRequest(
            job=sort_job(),
            size=100 * TB,
            limits=Limits(max_nodes=1_000),
            startup=fixed_startup(seconds),
        )
        laws = [distribution("local both", 1e9, 0.1), distribution("network", 1e9, 0.1)]
        some = index_profiles([profile({"m": laws}, scaling=[(2, 1.0), (100, 0.7)])])
        world = catalog([replace(offer("m"), disks=offer("m", local_bytes=10**14).disks)], ())
        (best, *_) = plan(request, [world], some).candidates
        assert best.nodes <= before
        before = best.nodes


def test_every_provider_has_its_own_starts_and_a_lab_none() -> None:
    startup = default_startup()
    assert startup.keys() == {"aws", "gcp", "azure"}
    for provider, (law, *_) in startup.items():
        starts = start_seconds(provider)
        assert f"{len(starts):,} starts" in law.source
        usual = max(law.modes, key=lambda mode: mode.instances)
        assert 20 < 1 / usual.median < 60
    assert fixed_startup(0) == {}


def test_the_arithmetic_and_the_plans_file_have_the_start() -> None:
    startup = default_startup()
    request = PlanRequest(
        job=sort_job(),
        size=TB,
        limits=Limits(min_nodes=4, max_nodes=4),
        network="infinite",
        startup=startup,
    )
    world = [catalog([offer("m")], ())]
    terms = explain(request, world, known(), "m").terms
    steps = [term for term in terms if term.phase == START_UP]
    made = plan(request, world, known())
    assert [(step.resource, step.demand) for step in steps] == [
        *(("start", 4), ("install", 4), ("screen", 4))
    ]
    assert sum(step.seconds for step in steps) == pytest.approx(
        made.candidates[0].phases[0].seconds
    )
    boot, install, screen = (step.capacity_source for step in steps)
    assert "SpareCores" in boot and "Tonnage's own" in install and "tonnage launch" in screen
    assert Plan.from_json(json.loads(json.dumps(made.to_json()))) == made
    # A plan of before has no such figure, and is still read.
    old = made.to_json()
    for each in old["candidates"]:
        del each["run_seconds"]
    assert Plan.from_json(old).candidates[0].run_seconds is None
