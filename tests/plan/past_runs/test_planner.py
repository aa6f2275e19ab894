"""Plans of jobs of which only past runs are known."""

from __future__ import annotations

import math

import numpy as np
import pytest

from support.data.copies import replace
from support.data.offers import catalog, offer
from tonnage.base.records.job import Job
from tonnage.base.records.past_run import PastRun, PastRuns, RunDemands
from tonnage.catalog import Catalog, Offer
from tonnage.plan.past_runs.clusters import FARTHEST, node_numbers, worthwhile
from tonnage.plan.past_runs.known_runs import KnownRuns, NoFinishedRun
from tonnage.plan.past_runs.next_run import propose_runs
from tonnage.plan.past_runs.planner import plan_past_runs, price_clusters
from tonnage.plan.past_runs.run_machines import Machines
from tonnage.plan.planner import PlanError, PlanRequest
from tonnage.plan.recommendations.current_cluster import Cluster
from tonnage.plan.resources.machines import Machine, priced_machine
from tonnage.plan.search import Limits

GB = 10**9
GIB = 1 << 30


def machine(name: str, usd: float, vcpus: int, gib: int, network: float = 1e9) -> Offer:
    alike = offer(name, usd, network=network, local_bytes=0)
    return replace(alike, vcpus=vcpus, cores=vcpus / 2, memory_bytes=gib * GIB)


WORLD = catalog(
    [
        machine("m.large", 0.1, 2, 8, 2e8),
        machine("m.4xlarge", 0.8, 16, 64),
        machine("dear.4xlarge", 1.2, 16, 64),
        machine("r.4xlarge", 1.0, 16, 128),
    ]
)


def run(nodes: int, seconds: float, machine_type: str = "m.4xlarge", **given: object) -> PastRun:
    return PastRun(
        job="nightly",
        machine_type=machine_type,
        nodes=nodes,
        seconds=seconds,
        **given,  # type: ignore[arg-type]
    )


def past(*runs: PastRun, **told: object) -> PastRuns:
    return PastRuns(job=runs[0].name, runs=list(runs), **told)  # type: ignore[arg-type]


def request(**given: object) -> PlanRequest:
    return PlanRequest(
        job=Job(name="nightly", phases=[], room=[]),
        size=0,
        limits=Limits(**given),  # type: ignore[arg-type]
    )


def priced(world: Catalog) -> list[Machine]:
    found = [
        priced_machine(world, each, False, "on-demand", at) for at, each in enumerate(world.offers)
    ]
    return [each for each in found if isinstance(each, Machine)]


def test_a_machine_that_another_beats_for_a_dollar_is_not_considered() -> None:
    kept = worthwhile(priced(WORLD), Machines([WORLD]))
    assert {each.offer.type for each in kept} == {"m.large", "m.4xlarge", "r.4xlarge"}


@pytest.mark.parametrize("vcpus", [2, 16, 96])
def test_clusters_are_not_far_from_those_of_the_runs(vcpus: int) -> None:
    nodes = node_numbers(machine("m", 1.0, vcpus, 8), (64, 128), 250)
    assert nodes == sorted({*nodes}) and nodes[-1] <= 250
    assert all(each * vcpus * 1.5 >= 64 / FARTHEST for each in nodes)
    assert all(each == 1 or each * vcpus <= 128 * FARTHEST for each in nodes)


def test_a_known_cluster_is_predicted_as_it_was_and_others_less_surely() -> None:
    made = plan_past_runs(
        replace(request(), all_sizes=True), past(run(8, 3_600), run(16, 2_100)), None, [WORLD]
    )
    same = [each for each in made.candidates if (each.offer, each.nodes) == ("m.4xlarge", 8)]
    widths = [each.seconds.high / each.seconds.low for each in made.candidates]
    for each in same:
        assert each.seconds.median == pytest.approx(3_600, rel=0.1)
    assert min(widths) < 1.6 < max(widths)
    costs = [each.cost_usd.median for each in made.candidates]
    assert costs[0] < 1.5 * min(costs)
    assert all(each.phases[0].bottleneck == "unknown" for each in made.candidates)
    assert any("times alone" in note for note in made.notes)


def test_todays_cluster_is_planned_beside_and_others_are_no_slower() -> None:
    now = Cluster(WORLD, WORLD.offers[2], 8)
    made = plan_past_runs(
        request(), past(run(8, 3_600, "dear.4xlarge")), None, [WORLD], now, runs_per_month=30
    )
    assert made.current is not None and made.current.saves_usd is not None
    assert made.current.seen_seconds == 3_600
    assert made.current.candidate.cost_usd.median == pytest.approx(8 * 1.2, rel=0.1)
    assert all(
        each.deadline_probability is not None and each.deadline_probability >= 0.75
        for each in made.candidates
    )
    saves = made.current.saves_usd
    assert saves.low <= saves.median <= saves.high


def test_a_stopped_run_makes_the_job_longer() -> None:
    """On half of the machines it had not ended after three hours."""
    alone = past(run(8, 3_600))
    stopped = past(run(8, 3_600), run(4, 10_800, outcome="timeout"))
    four = [(WORLD.offers[1], 4)]
    known = [
        KnownRuns(each, Machines([WORLD])).times(four, None).seconds[0] for each in (alone, stopped)
    ]
    assert known[1] > known[0]


def test_stated_memory_makes_clusters_without_it_slower() -> None:
    """A run whose 400 GB of cached data fitted into 16 x 64 GiB."""
    seen = run(16, 1_000, framework="spark")
    small = [(WORLD.offers[1], 6)]
    times = [
        KnownRuns(past(seen, cached_bytes=cached), Machines([WORLD])).times(small, None).seconds[0]
        for cached in (None, 400 * GB, 4 * GB)
    ]
    assert times[1] > 1.3 * times[0] and times[1] > 1.3 * times[2]


def test_told_demands_say_what_does_not_shrink() -> None:
    """Of an hour on 8 machines of 16 vCPUs, 50 min are the driver's, or none."""
    many = [(WORLD.offers[1], 64)]
    cores, serial = 8 * 16 * 600.0, 3_000.0
    told = [
        RunDemands(
            provider="aws",
            machine_type="m.4xlarge",
            core_seconds=of_cores,
            disk_bytes=0,
            network_bytes=0,
            serial_seconds=fixed,
        )
        for of_cores, fixed in ((cores, serial), (cores + 8 * 16 * serial, 0.0))
    ]
    seconds = [
        KnownRuns(past(run(8, 3_600), demands=its), Machines([WORLD])).times(many, None).seconds[0]
        for its in (told[0], None, told[1])
    ]
    assert seconds[0] > 1.3 * seconds[1] and seconds[1] > 1.05 * seconds[2]


def test_a_failed_run_makes_clusters_with_as_little_memory_slower() -> None:
    small = [(WORLD.offers[0], 4)]
    seen = [run(4, 3_600), run(4, 3_700, "r.4xlarge")]
    failed = run(4, 600, "m.large", outcome="failed")
    seconds = [
        KnownRuns(past(*runs), Machines([WORLD])).times(small, None).seconds[0]
        for runs in (seen, [*seen, failed])
    ]
    assert seconds[1] > 1.1 * seconds[0]
    made = plan_past_runs(replace(request(), all_sizes=True), past(*seen, failed), None, [WORLD])
    assert "left out are clusters with no more memory than 4 x m.large, where a run failed" in (
        made.notes
    )
    few = [each for each in made.candidates if each.offer == "m.large"]
    assert all(each.nodes > 4 for each in few)


def test_sizes_of_one_job_tell_how_it_grows() -> None:
    runs = [run(8, 1_000.0 * size, data_bytes=size * 100 * GB) for size in (1, 2)]
    known = KnownRuns(past(*runs), Machines([WORLD]))
    eight = [(WORLD.offers[1], 8)]
    assert known.times(eight, 400 * GB).seconds[0] == pytest.approx(4_000, rel=0.2)


def test_what_cannot_be_planned_is_refused() -> None:
    with pytest.raises(NoFinishedRun):
        plan_past_runs(request(), past(run(8, 9, outcome="failed")), None, [WORLD])
    with pytest.raises(PlanError, match="no machine"):
        plan_past_runs(replace(request(), arch="arm64"), past(run(8, 3_600)), None, [WORLD])


def test_the_next_run_tells_something_and_costs_something() -> None:
    known = past(run(8, 3_600, framework="spark"))
    found, _ = price_clusters(request(), known, None, [WORLD], None, [])
    proposed = propose_runs(found, 3_600.0, None)
    assert proposed and all(each.gain > 0 and each.usd > 0 for each in proposed)
    assert [each.gain for each in proposed] == sorted(
        (each.gain for each in proposed), reverse=True
    )
    assert np.isfinite(found.usd).all() and math.isfinite(found.usd_per_second.sum())


def test_many_nights_on_one_cluster_tell_no_more_of_others_than_one() -> None:
    nights = [run(8, 3_600.0 + each, repetition=each + 1) for each in range(200)]
    five = [(WORLD.offers[1], 5)]
    times = [
        KnownRuns(past(*some), Machines([WORLD])).times(five, None).seconds[0]
        for some in (nights[:1], nights)
    ]
    assert times[1] == pytest.approx(times[0], rel=0.05)


def test_runs_may_be_of_machines_that_are_no_candidates() -> None:
    elsewhere = replace(WORLD, offers=WORLD.offers[:1])
    made = plan_past_runs(request(), past(run(8, 3_600)), None, [elsewhere], known_machines=[WORLD])
    assert {each.offer for each in made.candidates} == {"m.large"}


def test_a_machine_with_local_disks_of_unknown_size_is_planned_with_volumes() -> None:
    sizes = {"none": 0, "unknown": None, "known": 10**12}
    world = catalog([offer(name, local_bytes=size) for name, size in sizes.items()])
    runs = [run(8, 3_600, machine_type=name) for name in sizes]
    made = plan_past_runs(request(), past(*runs), None, [world])
    layouts = {each.offer: (each.layout, each.own_disks) for each in made.candidates}
    assert layouts == {
        "none": ("volumes", False),
        "unknown": ("volumes", False),
        "known": ("local", True),
    }
