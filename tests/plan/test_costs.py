"""A plan's costs and limits besides its demands: credits, spot prices, excluded offers."""

from __future__ import annotations

import datetime
import math
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.data.copies import replace
from support.data.offers import BURSTING, STEADY, STORE, catalog, distribution, offer, profile
from tonnage.base.records.job import Demand, Job, JobPhase, RequestDemand, SpaceDemand
from tonnage.base.records.plan import NO_CORES, Plan
from tonnage.catalog import Catalog, Grant, Price, Spot
from tonnage.model.jobs.mapreduce import sort_job
from tonnage.model.profiles.repository import index_profiles
from tonnage.plan.explain import explain
from tonnage.plan.planner import PlanRequest, plan
from tonnage.plan.resources.block_volumes import BlockVolumes
from tonnage.plan.resources.machines import PURCHASES, Purchase
from tonnage.plan.search import Limits

MIB, GIB, TB = 1 << 20, 1 << 30, 10**12
SHARES = [distribution(f"volume {way}", 1.0, 0.0, 1_000_000) for way in ("read", "write")]
KNOWN = index_profiles([profile({}, shares=SHARES)])
READ = Job(
    name="read",
    phases=[
        JobPhase(
            name="read",
            demands=[Demand(resource="volume read", per_byte=1.0, source="made up")],
        )
    ],
    room=[SpaceDemand(where="volume", what="input", per_byte=1.0)],
)


def planned(
    world: Catalog,
    size: int,
    job: Job = READ,
    nodes: int = 1,
    purchase: Purchase = "on-demand",
) -> Plan:
    limits = Limits(min_nodes=nodes, max_nodes=nodes)
    return plan(PlanRequest(job=job, size=size, limits=limits, purchase=purchase), [world], KNOWN)


def seconds(world: Catalog, size: int, nodes: int = 1) -> float:
    return planned(world, size, nodes=nodes).candidates[0].seconds.median


def test_a_short_job_has_the_links_burst_and_a_long_one_what_lasts() -> None:
    """Half an hour a day at 1 GB/s, else 100 MB/s; volumes of 2 GB/s do not matter."""
    fast = replace(STEADY, throughput=Grant(included=2e9))
    world = catalog([offer("m", link=1e8, link_most=1e9)], [fast])
    assert seconds(world, 1 * TB) == pytest.approx(1_000)
    # 1.8 TB go in half an hour at 1 GB/s; 0.18 TB of them would have gone anyway.
    assert seconds(world, 10 * TB) == pytest.approx(1_800 + 8.2e12 / 1e8)
    assert seconds(world, 10 * TB, nodes=10) == pytest.approx(1_000)
    without = catalog([offer("m", link=1e8)], [fast])
    assert seconds(without, 1 * TB) == pytest.approx(10_000)


def test_volumes_burst_until_their_bucket_is_empty() -> None:
    """As gp2 is documented: 5.4 million operations, 3,000 a second, 128 MiB/s at most."""
    volumes = BlockVolumes(BURSTING, 2, 200 * GIB, 730)
    bucket = volumes.bucket(np.array([1.0]))
    # 100 GiB each: 300 operations a second of 256 KiB.
    assert bucket.baseline[0] == pytest.approx(2 * 75 * MIB)
    assert bucket.burst[0] == pytest.approx(2 * 128 * MIB)
    assert bucket.credit[0] == pytest.approx(2 * 5_400_000 * 256 * 1024)
    # Of 1 TiB, 250 MiB/s last: more than the burst of small ones.
    large = BlockVolumes(BURSTING, 1, 1024 * GIB, 730).bucket(np.array([1.0]))
    assert (large.baseline[0], large.credit[0]) == (250 * MIB, 0)
    assert large.burst[0] == large.baseline[0]
    unknown = replace(BURSTING, operations=replace(BURSTING.operations, credit=None))
    steady = BlockVolumes(unknown, 2, 200 * GIB, 730).bucket(np.array([1.0]))
    assert steady.burst[0] == steady.baseline[0] == bucket.baseline[0]


@given(st.integers(10**9, 10**15), st.floats(1, 50), st.integers(1, 50))
@settings(max_examples=25, deadline=None)
def test_with_credits_more_data_never_costs_less(size: int, more: float, nodes: int) -> None:
    world = catalog([offer("m", link=2e8, link_most=1e9)], [BURSTING])
    less, much = (planned(world, each, nodes=nodes) for each in (size, int(size * more)))
    if much.candidates:
        assert less.candidates[0].cost_usd.median <= much.candidates[0].cost_usd.median * (1 + 1e-9)


def test_spot_prices_are_a_range() -> None:
    spot = Spot(
        low_usd_per_hour=0.2, typical_usd_per_hour=0.3, high_usd_per_hour=0.6, date=None, source="x"
    )
    untimely = replace(spot, typical_usd_per_hour=None)
    offers = [offer("a", spot=spot), offer("b", spot=untimely), offer("c")]
    found = planned(catalog(offers), TB, purchase="spot")
    costs = {each.offer: each for each in found.candidates}
    assert costs.keys() == {"a", "b"}
    machines = {name: each.usd_per_hour for name, each in costs.items()}
    assert machines["b"] - machines["a"] == pytest.approx((0.2 * 0.6) ** 0.5 - 0.3)
    bought = planned(catalog(offers), TB).candidates[0]
    hours, paid = costs["a"].seconds.median / 3600, costs["a"].cost_usd
    assert bought.cost_usd.median - paid.median == pytest.approx(0.7 * hours)
    assert paid.low == pytest.approx(paid.median - 0.1 * hours, rel=1e-2)
    assert paid.high == pytest.approx(paid.median + 0.3 * hours, rel=1e-2)
    assert ("c", "its spot price is unknown") in [(e.offer, e.why) for e in found.excluded]


def test_requests_and_what_is_taken_out_are_paid_for() -> None:
    job = replace(READ, requests=[RequestDemand(kind="get", per_byte=1e-6)], taken_out_per_byte=0.5)
    world = catalog([offer("m")], [STEADY], store=STORE)
    more = planned(world, TB, job).candidates[0].cost_usd.median
    less = planned(world, TB).candidates[0].cost_usd.median
    assert more - less == pytest.approx(1e6 / 1_000 * 0.0004 + 500 * 0.09)
    (why,) = planned(catalog([offer("m")], [STEADY]), TB, job).excluded
    assert why.why == "made-up has no price for object storage requests"
    taken = replace(READ, taken_out_per_byte=0.5)
    (why,) = planned(catalog([offer("m")], [STEADY]), TB, taken).excluded
    assert why.why == "made-up has no price for egress"


SPOT = Spot(
    low_usd_per_hour=0.2, typical_usd_per_hour=0.3, high_usd_per_hour=0.6, date=None, source="x"
)


def test_each_machine_pays_for_its_public_address() -> None:
    """As long as for the machine, its least time included; spot and volumes do not change that."""
    address = Price(usd_per_hour=0.3, date="2026-01-01", source="an address")
    world = catalog([offer("m", 2.0, spot=SPOT)], [STEADY], least_seconds=600, address=address)
    for purchase, size in (("on-demand", 10 * TB), ("on-demand", 1000), ("spot", 10 * TB)):
        request = PlanRequest(
            *(READ, size, Limits(min_nodes=3, max_nodes=3)),
            purchase=purchase,  # type: ignore[arg-type]
        )
        without = plan(request, [world], KNOWN).candidates[0]
        best = plan(replace(request, public_addresses=True), [world], KNOWN).candidates[0]
        hours = 3 * max(best.seconds.median, 600) / 3600
        costs = {each.item: each.usd for each in best.costs}
        assert costs["public addresses"] == pytest.approx(0.3 * hours)
        assert "public addresses" not in {each.item for each in without.costs}
        assert best.cost_usd.median == pytest.approx(without.cost_usd.median + 0.3 * hours)
        assert best.usd_per_hour == pytest.approx(without.usd_per_hour + 0.3)
        assert sum(costs.values()) == pytest.approx(best.cost_usd.median)
    told = explain(replace(request, public_addresses=True), [world], KNOWN, "m")
    assert "0.3 USD an hour for its public address (an address, 2026-01-01)" in told.prices


def test_old_prices_are_marked() -> None:
    """Of the catalog in the plan; of spot machines, which have a date of their own, there."""
    old = replace(SPOT, date="2025-05-28", caution="it is rounded")
    world = catalog([offer("m", spot=old), offer("n", spot=replace(SPOT, date="2026-03-01"))])
    spot = "its spot prices are of 2025-05-28, more than 90 days ago"
    listed = "the prices of made-up are of 2026-01-01, more than 90 days ago"
    for today, stale in ((datetime.date(2026, 3, 2), False), (datetime.date(2026, 5, 1), True)):
        for purchase in PURCHASES:
            request = PlanRequest(READ, TB, purchase=purchase, today=today)
            made = plan(request, [world], KNOWN)
            assert (listed in made.notes) is stale
            notes = {each.offer: each.notes for each in made.candidates}
            assert (spot in notes["m"]) is (purchase == "spot")
            assert ("its spot price may be wrong: it is rounded" in notes["m"]) is (
                purchase == "spot"
            )
            assert not any("spot price" in note for note in notes["n"])


def test_without_public_addresses_a_nat_gateway_is_minded() -> None:
    request = PlanRequest(sort_job(read_from="objects", written_to="objects"), TB)
    world = catalog([offer("m")], store=STORE)
    for public in (True, False):
        notes = plan(replace(request, public_addresses=public), [world], KNOWN).notes
        assert any("NAT gateway" in each for each in notes) is not public


def test_what_is_fixed_does_not_shrink_with_more_nodes() -> None:
    phases = [
        JobPhase(name="begin", demands=[], fixed_seconds=30),
        replace(READ.phases[0], fixed_seconds=5),
    ]
    job = replace(READ, phases=phases)
    world = catalog([offer("m")], [STEADY])
    for nodes in (1, 10):
        one, other = (planned(world, TB, each, nodes).candidates[0] for each in (READ, job))
        assert other.seconds.median == pytest.approx(one.seconds.median + 35)
        assert other.seconds.low == pytest.approx(one.seconds.low + 35)
        assert [phase.bottleneck for phase in other.phases] == ["fixed time", "volumes"]
        assert other.phases[0].seconds == 30


def test_the_arithmetic_tells_bursts_and_prices() -> None:
    spot = Spot(
        low_usd_per_hour=0.2, typical_usd_per_hour=0.3, high_usd_per_hour=0.6, date=None, source="x"
    )
    world = catalog([offer("m", link=1e8, link_most=1e9, spot=spot)], [BURSTING], store=STORE)
    job = replace(READ, taken_out_per_byte=1.0)
    limits = Limits(max_nodes=10)
    told = explain(
        PlanRequest(job=job, size=TB, limits=limits, purchase="spot"), [world], KNOWN, "m"
    )
    (term,) = told.terms
    assert "up to 1,000 MB/s for a credit of 1.62 TB" in term.capacity_source
    assert term.seconds == pytest.approx(told.candidate.seconds.median)
    assert any("0.3 USD an hour on the spot market, 0.2 to 0.6" in line for line in told.prices)
    assert any("90.00 USD" in line and "egress" in line for line in told.prices)


def test_a_single_node_has_no_term_of_the_network() -> None:
    """It sends nothing, so no rate follows from its bytes and seconds."""
    shares = [*SHARES, distribution("network", 0.9, 0.1)]
    known = index_profiles(
        [profile({"m": [distribution("local both", 1e9, 0.1, 4)]}, shares=shares)]
    )
    for nodes, has_network in ((1, False), (2, True)):
        limits = Limits(min_nodes=nodes, max_nodes=nodes)
        question = PlanRequest(job=sort_job(), size=10**9, limits=limits)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            told = explain(question, [catalog([offer("m")], [STEADY])], known, "m")
        assert ("network" in {each.resource for each in told.terms}) == has_network
        assert all(math.isfinite(each.capacity) and each.seconds > 0 for each in told.terms)


def test_cores_count_as_far_as_a_profile_knows_them() -> None:
    """Of an offer that was measured its own; of others what a core did, times their vCPUs."""
    world = catalog([offer("seen"), offer("other")], [STEADY])
    own = [
        distribution("local both", 1e12, 0.0, 1_000_000),
        distribution("cpu sort", 1e6, 0.0, 1_000_000),
    ]
    shares = [
        distribution("network", 1e3, 0.0, 1_000_000),
        distribution("cpu sort", 5e5, 0.0, 1_000_000),
        *SHARES,
    ]
    question = PlanRequest(job=sort_job(), size=TB, limits=Limits(min_nodes=1, max_nodes=1))
    fast = plan(
        question, [world], index_profiles([profile({"seen": own[:1]}, shares=[shares[0], *SHARES])])
    )
    found = plan(question, [world], index_profiles([profile({"seen": own}, shares=shares)]))
    of = {each.offer: each for each in found.candidates}
    assert of["seen"].phases[1].bottleneck == of["other"].phases[1].bottleneck == "cpu"
    assert of["seen"].phases[1].seconds == pytest.approx(TB / 8 / 1e6, rel=1e-3)
    assert of["other"].phases[1].seconds == pytest.approx(TB / 8 / 5e5, rel=1e-3)
    assert NO_CORES in fast.notes
    assert not any("cores" in note for note in found.notes)


def test_what_one_core_limits_is_no_faster_on_many() -> None:
    phase = JobPhase(name="pack", demands=[Demand(resource="cpu", per_byte=1e-8, source="made up")])
    one, many = (
        Job(name="pack", phases=[replace(phase, most_cores=cores)], room=[])
        for cores in (1.25, None)
    )
    world = catalog([offer("m")])
    slow, fast = (planned(world, TB, each).candidates[0].seconds.median for each in (one, many))
    assert (slow, fast) == (pytest.approx(1e4 / 1.25), pytest.approx(1e4 / 8))


def test_what_a_watched_run_was_is_minded() -> None:
    """Machines with less memory are refused; a far larger input, and waits, cause warnings."""
    job = replace(
        READ,
        least_memory_bytes=128 << 30,
        seen_bytes=TB // 100,
        settings={"waits_seconds": 12.0},
    )
    small, large = offer("small"), replace(offer("large"), memory_bytes=128 << 30)
    found = planned(catalog([small, large]), TB, job)
    assert [each.offer for each in found.candidates] == ["large"]
    (out,) = found.excluded
    assert (out.catalog, out.offer) == ("made-up", "small") and "128 GiB" in out.why
    assert any("10.0 GB of input" in note for note in found.notes)
    assert any("waited 12 s" in note for note in found.notes)


def test_nothing_vanishes_without_a_reason() -> None:
    """Whatever is asked for, an offer is a candidate or excluded."""
    offers = [
        offer("placed"),
        replace(offer("unknown"), placement_groups=None, arch=None),
        replace(offer("never"), placement_groups=False),
    ]
    of_placed = distribution("local both", 1e9), distribution("network", 1e9)
    measured = index_profiles([profile({"placed": list(of_placed)}, shares=SHARES)])
    for placement in (None, True, False):
        for arch in (None, "x86_64"):
            question = PlanRequest(job=READ, size=TB, placement=placement, arch=arch)
            found = plan(question, [catalog(offers)], measured)
            told = {each.offer for each in found.candidates} | {e.offer for e in found.excluded}
            assert told == {"placed", "unknown", "never"}


def test_two_measured_nodes_make_no_offer_look_better_than_none() -> None:
    """Its fall was not measured, so it is taken to be that of the one whose was."""
    seen = profile(
        {"seen": [distribution("network", 1e9, 0.0, 1_000_000)]}, scaling=[(2, 1.0), (200, 0.5)]
    )
    two = profile({"two": [distribution("network", 1e9, 0.0, 1_000_000)]})
    shares = profile({}, shares=[distribution("network", 1.0, 0.0, 1_000_000), *SHARES])
    send = Job(
        name="send",
        phases=[
            JobPhase(
                name="send", demands=[Demand(resource="network", per_byte=1.0, source="made up")]
            )
        ],
        room=[],
    )
    offers = [offer(name, network=1e9) for name in ("seen", "two", "none")]
    limits = Limits(min_nodes=200, max_nodes=200)
    question = PlanRequest(job=send, size=200 * TB, limits=limits)
    found = plan(question, [catalog(offers)], index_profiles([seen, two, shares]))
    times = {each.offer: each.seconds.median for each in found.candidates}
    assert times == {name: pytest.approx(2_000, rel=1e-3) for name in ("seen", "two", "none")}
    alone = replace(question, limits=Limits(min_nodes=1, max_nodes=1))
    assert {
        e.seconds.median for e in plan(alone, [catalog(offers)], index_profiles([seen])).candidates
    } == {0}


def test_what_is_extrapolated_is_less_sure() -> None:
    curve = [(2, 1.0), (100, 0.8)]
    world = catalog([offer("m", network=1e9)])
    measured = index_profiles(
        [profile({"m": [distribution("network", 1e9, 0.0, 1_000_000)]}, scaling=curve)]
    )
    send = Job(
        name="send",
        phases=[
            JobPhase(
                name="send", demands=[Demand(resource="network", per_byte=1.0, source="made up")]
            )
        ],
        room=[],
    )
    widths = []
    for nodes in (100, 400, 800):
        limits = Limits(min_nodes=nodes, max_nodes=nodes)
        (found,) = plan(PlanRequest(job=send, size=TB, limits=limits), [world], measured).candidates
        widths.append(found.seconds.high / found.seconds.low)
    assert widths[0] < widths[1] < widths[2]


def test_volumes_are_no_smaller_than_they_are_sold() -> None:
    large = replace(STEADY, least_bytes=125 << 30)
    (found,) = planned(catalog([offer("m")], [large]), 10**9).candidates
    assert found.volumes is not None and found.volumes.gib_each == 125
    hours = found.seconds.median / 3600
    machine = max(hours, 60 / 3600) * 1.0
    assert found.cost_usd.median == pytest.approx(machine + hours * 125 * 0.08 / 730)


def test_the_surest_has_the_fewest_nodes_of_those_that_cost_as_much() -> None:
    world = catalog([offer("m", link=1e9)], [replace(STEADY, usd_per_gib_month=0.0)])
    question = PlanRequest(job=READ, size=100 * TB, limits=Limits(deadline_seconds=1e9))
    found = plan(question, [world], KNOWN)
    assert found.sure is not None and found.sure.nodes == found.candidates[0].nodes
    # A volume holds 64 TiB: 16 of them on a node hold it all.
    assert found.sure.nodes == 1


def test_only_what_was_measured_if_asked() -> None:
    world = catalog([offer("seen"), offer("other", 0.01)])
    laws = [distribution("local both", 1e8), distribution("network", 1e9)]
    shares = [
        replace(each, evidence="advertised") for each in (distribution("network", 1.0), *SHARES)
    ]
    measured = index_profiles([profile({"seen": laws}, shares=shares)])
    question = PlanRequest(job=sort_job(), size=TB)
    first = [
        plan(each, [world], measured).candidates[0].offer
        for each in (question, replace(question, measured_only=True))
    ]
    assert first == ["other", "seen"]
    told = plan(replace(question, measured_only=True), [world], measured)
    assert [each.offer for each in told.excluded] == ["other"]
    assert {each.evidence for each in told.candidates} == {"measured"}


def test_local_disks_of_no_measured_offer_have_published_rates() -> None:
    """1 TB is read at 0.9 x 1 GB/s, then read and written again: times of both ways add up."""
    ways = [
        replace(distribution(f"local {way}", 0.9, 0.0, 1_000_000), evidence="advertised")
        for way in ("read", "write")
    ]
    known = index_profiles([profile({}, shares=ways)])
    demands = [
        Demand(resource="local read", per_byte=1.0, source="made up"),
        Demand(resource="local write", per_byte=0.5, source="made up"),
    ]
    job = Job(
        name="copy",
        phases=[
            JobPhase(name="read", demands=demands[:1]),
            JobPhase(name="copy", demands=demands),
        ],
        room=[SpaceDemand(where="local", what="input", per_byte=1.0)],
    )
    world = catalog([offer("fast", disk_rates=(1e9, 0.5e9)), offer("unknown")], ())
    request = PlanRequest(job=job, size=TB, limits=Limits(max_nodes=1))
    (found,) = plan(request, [world], known).candidates
    assert found.offer == "fast" and found.evidence == "advertised"
    assert [each.seconds for each in found.phases] == pytest.approx(
        [1_000 / 0.9, 1_000 / 0.9 + 500 / 0.45]
    )
    terms = explain(request, [world], known, "fast").terms
    assert "0.9 of the advertised 1,000 MB/s (made up)" in terms[0].capacity_source
    assert "0.9 of the advertised 500 MB/s (made up)" in terms[2].capacity_source
    assert sum(each.seconds for each in terms[1:]) == pytest.approx(found.phases[1].seconds)
    # What nobody published is still to be measured.
    made = plan(request, [world], known)
    assert [each.offer for each in made.excluded] == ["unknown"]
    # Without the shares that measured offers reached, nothing is known of any.
    assert plan(request, [world], index_profiles([profile({})])).candidates == []
