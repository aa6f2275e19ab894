"""Which offers a plan considers: those that a data job would rent, and others if asked."""

from functools import cache

import pytest

from support.data.copies import replace
from support.data.offers import catalog, distribution, offer, profile
from tonnage.base.records.job import Job
from tonnage.base.records.plan import Plan
from tonnage.catalog import OFFER_KINDS, Offer, find_offer, load_catalog, newest_catalogs
from tonnage.catalog.offer import OfferKind
from tonnage.catalog.published.core_speeds import family_of
from tonnage.model.jobs.mapreduce import mapreduce_job, sort_job
from tonnage.model.profiles.repository import index_profiles, read_profiles
from tonnage.plan.candidates import best_of_families
from tonnage.plan.planner import PlanRequest, options_for, plan
from tonnage.plan.search import Limits

TB = 10**12


@cache
def planned(include: frozenset[OfferKind]) -> Plan:
    request = PlanRequest(job=sort_job(), size=TB, limits=Limits(max_nodes=100), include=include)
    return plan(request, newest_catalogs(), index_profiles(read_profiles("themis-2014")))


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("i4i.4xlarge", []),
        ("p4d.24xlarge", ["gpu"]),
        ("inf2.xlarge", ["gpu"]),
        ("t3.large", ["burstable"]),
        ("i2.8xlarge", ["previous"]),
        ("i4i.metal", ["metal"]),
        ("mac1.metal", ["metal"]),
        ("hpc7g.16xlarge", ["hpc"]),
        ("e2-medium", ["burstable"]),
        ("Standard_B2ms", ["burstable"]),
        ("B2ls_v2", ["burstable"]),
        ("c3-standard-192-metal", ["metal"]),
        ("Standard_L8s_v3", []),
    ],
)
def test_offers_know_why_a_data_job_would_hardly_rent_them(name: str, kinds: list[str]) -> None:
    assert find_offer(newest_catalogs(), name)[1].kinds == kinds


def test_no_machine_gets_more_volumes_than_can_be_attached() -> None:
    """d3en.12xlarge takes three volumes, and one of them is its root volume."""
    request = PlanRequest(
        job=sort_job(read_from="volumes", written_to="volumes"),
        size=20 * TB,
        limits=Limits(max_nodes=1_000),
        providers=("aws",),
    )
    known = index_profiles(read_profiles("themis-2014"))
    groups = options_for(request, newest_catalogs(), known).groups
    counts: dict[str, set[int]] = {}
    for group in groups:
        for machine in group.machines:
            assert group.demand.volumes is not None
            count = group.demand.volumes.count
            most = machine.offer.volume_link.most_volumes
            assert most is None or count < most
            counts.setdefault(machine.offer.type, set()).add(count)
    assert counts["d3en.12xlarge"] == {1, 2}
    assert counts["i4i.4xlarge"] == {1, 2, 4, 8, 16}


def test_no_type_of_2014_was_of_a_previous_generation_then() -> None:
    assert not any("previous" in each.kinds for each in load_catalog("aws-us-east-1-2014").offers)


def test_special_kinds_are_left_out_and_say_how_to_include_them() -> None:
    found = planned(frozenset())
    offers = {each.type: each for catalog in newest_catalogs() for each in catalog.offers}
    assert all(offers[each.offer].kinds == [] for each in found.candidates)
    why = {each.offer: each.why for each in found.excluded}
    for kind, words in OFFER_KINDS.items():
        said = f"{words}; --include {kind} plans it, too"
        assert said in why.values(), kind
    assert found.settings["include"] == []


def test_a_table_shows_the_best_of_each_family_under_its_number() -> None:
    candidates = planned(frozenset()).candidates
    shown = best_of_families(candidates, len(candidates) - 1)
    assert shown[0] == (1, candidates[0])
    assert all(candidates[number - 1] is each for number, each in shown)
    families = [
        (each.provider, family_of(each.provider, each.offer), each.placement) for _, each in shown
    ]
    assert len(families) == len({*families}) < len(candidates)
    assert [number for number, _ in shown] == sorted(number for number, _ in shown)


@pytest.mark.parametrize("kind", OFFER_KINDS)
def test_a_kind_is_planned_if_asked(kind: OfferKind) -> None:
    offers = {each.type: each for catalog in newest_catalogs() for each in catalog.offers}
    found = planned(frozenset([kind]))
    kinds = {tuple(offers[each.offer].kinds) for each in found.candidates}
    assert (kind,) in kinds
    assert all(set(each) <= {kind} for each in kinds)
    assert found.settings["include"] == [kind]


def quota(world: list[Offer], vcpus: int | None, max_nodes: int = 100) -> Plan:
    laws = [distribution("local both", 1e8), distribution("network", 1e9)]
    known = index_profiles([profile({each.type: laws for each in world})])
    limits = Limits(max_nodes=max_nodes, objective="time")
    return plan(
        PlanRequest(job=sort_job(), size=TB, limits=limits, quota_vcpus=vcpus),
        [catalog(world, ())],
        known,
    )


def test_a_quota_limits_the_vcpus_of_all_nodes() -> None:
    world = [replace(offer("few"), vcpus=4), replace(offer("many"), vcpus=64)]
    every, some = quota(world, None), quota(world, 80)
    assert {each.nodes for each in every.candidates} == {100}
    assert {each.offer: each.nodes for each in some.candidates} == {"few": 20, "many": 1}
    assert all(each.nodes <= 20 for each in some.pareto)
    none = quota(world, 3)
    assert none.candidates == []
    assert {each.why for each in none.excluded} == {"too many vCPUs for the quota"}
    assert "account quotas" in every.notes[0]
    assert "account quotas" not in some.notes[0]


def test_a_quota_needs_a_known_number_of_vcpus() -> None:
    found = quota([replace(offer("unknown"), vcpus=None)], 80)
    assert [each.why for each in found.excluded] == ["its number of vCPUs is unknown"]


def connected(job: Job, descriptors: int | None, nodes: int | None = None) -> Plan:
    world = [offer("one", local_bytes=TB // 100), offer("small", local_bytes=TB // 1000)]
    laws = [distribution("local both", 1e8), distribution("network", 1e9)]
    known = index_profiles([profile({each.type: laws for each in world})])
    limits = Limits(nodes or 1, nodes or 100_000, objective="time")
    request = PlanRequest(job=job, size=TB, limits=limits, descriptors=descriptors)
    return plan(request, [catalog(world, ())], known)


@pytest.mark.parametrize("job", [sort_job(), mapreduce_job()], ids=lambda job: job.name)
def test_a_cluster_has_no_more_nodes_than_can_be_connected(job: Job) -> None:
    found = connected(job, 1024)
    assert {each.offer: each.nodes for each in found.candidates} == {"one": 513}
    assert max(each.nodes for each in found.pareto) == 513
    (refused,) = found.excluded
    assert refused.offer == "small" and refused.why == (
        "too many sockets: each node has two for each other one, so at most 513 nodes can be "
        "connected (--descriptors)"
    )
    assert {each.nodes for each in connected(job, 2048).candidates} == {1025}
    assert {each.nodes for each in connected(job, None).candidates} == {100_000}
    none = connected(job, 1024, 514)
    assert (none.candidates, none.nearest) == ([], None)
    assert {each.why for each in none.excluded} == {refused.why}


def test_nodes_that_exchange_no_data_need_no_sockets() -> None:
    found = connected(replace(sort_job(), name="another engine's"), 1024)
    assert {each.nodes for each in found.candidates} == {100_000}


def test_of_equally_cheap_candidates_the_fewest_nodes_come_first() -> None:
    world = [offer("small", 1.0), offer("large", 10.1), offer("dear", 12.0)]
    laws = {"small": 1e8, "large": 1e9, "dear": 1e9}
    known = index_profiles(
        [
            profile(
                {
                    name: [distribution("local both", rate, 0.0), distribution("network", 1e12)]
                    for name, rate in laws.items()
                }
            )
        ]
    )
    limits = Limits(max_nodes=100, deadline_seconds=1000)
    request = PlanRequest(job=sort_job(), size=TB, limits=limits, network="infinite")
    found = plan(request, [catalog(world, ())], known)
    assert [each.offer for each in found.candidates] == ["large", "small", "dear"]
    first, second = found.candidates[:2]
    assert first.nodes < second.nodes
    assert second.cost_usd.median < first.cost_usd.median
