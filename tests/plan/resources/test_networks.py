"""Networks: credits count where they were measured, and of EFA's rates what carries IP."""

import pytest

from support.data.copies import replace
from support.data.offers import catalog, distribution, offer, profile
from tonnage.base.records.plan import Candidate
from tonnage.catalog import Catalog, Network, NetworkBurst, find_offer, newest_catalogs
from tonnage.catalog.published.network_bursts import network_burst
from tonnage.cli.options.planning import BUILT_IN
from tonnage.model.jobs.mapreduce import sort_job
from tonnage.model.profiles.repository import index_profiles, read_profiles
from tonnage.plan.explain import explain
from tonnage.plan.planner import PlanRequest, plan
from tonnage.plan.search import Limits

GB = 10**9
BURST = NetworkBurst(bytes_per_second=10e9, credit_bytes=90e9, source="seen")
KNOWN = index_profiles(
    [
        profile(
            {"m": [distribution("local both", 1e12, 0.0)]},
            shares=[distribution("network", 1.0, 0.0)],
        )
    ]
)


def request(size: int) -> PlanRequest:
    return PlanRequest(job=sort_job(), size=size, limits=Limits(min_nodes=2, max_nodes=2))


def world(burst: NetworkBurst | None, possible: NetworkBurst | None = None) -> Catalog:
    machine = offer("m", link=None, local_bytes=10**16)
    network = Network(
        baseline_bytes_per_second=1e9,
        peak_bytes_per_second=10e9,
        words=None,
        burst=burst,
        possible_burst=possible,
    )
    return catalog([replace(machine, network=network)])


def planned(
    size: int, burst: NetworkBurst | None, possible: NetworkBurst | None = None
) -> Candidate:
    return plan(request(size), [world(burst, possible)], KNOWN).candidates[0]


def test_a_measured_burst_lasts_as_long_as_its_credit() -> None:
    # Of two nodes each sends half of its share, 100 GB: its credit lasts for 10 s at 10 GB/s.
    assert planned(400 * GB, BURST).phases[0].seconds == pytest.approx(10)
    # 300 GB: 100 in 10 s, and 200 at the baseline.
    assert planned(1_200 * GB, BURST).phases[0].seconds == pytest.approx(210)


def test_the_baseline_counts_where_nobody_measured_and_the_plan_says_so() -> None:
    found = planned(400 * GB, None)
    assert found.phases[0].seconds == pytest.approx(100)
    assert any("may burst to 10,000 MB/s, but nobody published" in note for note in found.notes)
    assert not any("may burst" in note for note in planned(400 * GB, BURST).notes)


def test_the_arithmetic_says_who_measured_the_burst() -> None:
    its = explain(request(400 * GB), [world(BURST)], KNOWN, "m")
    (term,) = [each for each in its.terms if each.resource == "network"]
    assert "up to 10,000 MB/s for a credit of 90.0 GB" in term.capacity_source
    assert "; seen)" in term.capacity_source


def test_an_interval_allows_for_a_burst_that_nobody_measured() -> None:
    found = planned(1_200 * GB, None, BURST)
    assert found.seconds.median == pytest.approx(planned(1_200 * GB, None).seconds.median)
    # Between no credit, 300 s of the baseline, and all of it, 210 s: nearly all of that range.
    assert 210 < found.seconds.low < 225 and found.seconds.high == pytest.approx(300, rel=0.01)
    its = explain(request(1_200 * GB), [world(None, BURST)], KNOWN, "m")
    (term,) = [each for each in its.terms if each.resource == "network"]
    assert term.capacity == pytest.approx(1e9) and term.high_capacity > 1.3e9


def test_a_possible_burst_is_that_of_the_size_that_was_measured() -> None:
    for name, size in (("m7i.large", "large"), ("m7i.4xlarge", "4xlarge"), ("m7i.8xlarge", None)):
        network = find_offer(newest_catalogs(), name)[1].network
        if size is None:  # Its peak is its baseline.
            assert network.possible_burst is None
            continue
        measured = network_burst("aws", f"c6gd.{size}")
        assert network.possible_burst and measured
        assert network.possible_burst.credit_bytes == measured.credit_bytes
        assert network.possible_burst.bytes_per_second == network.peak_bytes_per_second


@pytest.mark.parametrize(
    ("name", "gigabits"), [("p5.48xlarge", 800), ("p6-b300.48xlarge", 3870), ("trn1.32xlarge", 100)]
)
def test_a_shuffle_gets_what_the_network_carries_of_ip_not_of_efa(
    name: str, gigabits: float
) -> None:
    catalogs = newest_catalogs()
    assert find_offer(catalogs, name)[1].network.baseline_bytes_per_second == gigabits * 1e9 / 8
    asked = replace(request(10_000 * GB), include=frozenset(["gpu"]))
    known = index_profiles([each for kind in BUILT_IN for each in read_profiles(kind)])
    its = explain(asked, catalogs, known, name)
    assert any("advertised rate is EFA's" in note for note in its.candidate.notes)
    (term,) = [each for each in its.terms if each.resource == "network"]
    assert term.capacity <= gigabits * 1e9 / 8
    assert "; AWS, EC2 User Guide" in term.capacity_source or "; one of" in term.capacity_source
