"""What the memory of a machine allows a sort: two passes, or too little for them."""

import pytest

from support.data.copies import replace
from support.data.offers import catalog, distribution, offer, profile
from tonnage.base.records.plan import Plan
from tonnage.catalog import Offer, find_offer, load_catalog
from tonnage.model.jobs.mapreduce import mapreduce_job, sort_job
from tonnage.model.jobs.reduce import reduce_job
from tonnage.model.profiles.repository import index_profiles
from tonnage.plan.planner import PlanRequest, plan
from tonnage.plan.resources.engine_memory import largest_sort
from tonnage.plan.search import Limits
from tonnage.simulate.cluster import Machine
from tonnage.simulate.scalability_limits import cluster_limits

TB, GIB = 10**12, 1 << 30
EACH_PARTITION = {"least block", "memory"}
THE_LARGEST = "largest partition"


def machine(name: str) -> Offer:
    return find_offer([load_catalog("aws-us-east-1-2026")], name)[1]


def limits_hit(found: Offer, devices: int, size: int, nodes: int) -> set[str]:
    """Which limits of memory the simulation of such a cluster names."""
    assert found.memory_bytes and found.vcpus
    its = Machine(found.memory_bytes // 2, int(found.vcpus), devices)
    limits = cluster_limits(nodes, size, its, 1e9, 1e4)
    hit = set(limits.hit) | ({"memory"} if limits.refused else set())
    return hit & (EACH_PARTITION | {THE_LARGEST})


@pytest.mark.parametrize(
    ("name", "devices"), [("c8gn.medium", 16), ("i4i.large", 1), ("m7gd.4xlarge", 1)]
)
@pytest.mark.parametrize("nodes", [20, 200])
def test_simulate_agrees_which_inputs_memory_allows(name: str, devices: int, nodes: int) -> None:
    found = machine(name)
    most = largest_sort(found, devices)
    # By the sample, some partition may be larger than the mean, and be divided once more.
    assert limits_hit(found, devices, most // 2, nodes) <= {THE_LARGEST}
    assert limits_hit(found, devices, most // 20, nodes) == set()
    assert limits_hit(found, devices, 2 * most, nodes)


def test_memory_for_each_thread_is_what_counts() -> None:
    one = largest_sort(replace(offer("m"), vcpus=16, memory_bytes=64 * GIB), 1)
    more = largest_sort(replace(offer("m"), vcpus=16, memory_bytes=128 * GIB), 1)
    fewer_threads = largest_sort(replace(offer("m"), vcpus=8, memory_bytes=64 * GIB), 1)
    # Twice the memory holds twice as many partitions of twice the size.
    assert more / one == pytest.approx(4, rel=0.1)
    assert fewer_threads > 3 * one
    assert largest_sort(replace(offer("m"), memory_bytes=1 << 20), 1) == 0


def planned(size: int, memory: bool, name: str = "sort") -> Plan:
    world = [
        replace(offer("small", 0.1), vcpus=8, memory_bytes=4 * GIB),
        replace(offer("large", 1.0), vcpus=8, memory_bytes=256 * GIB),
    ]
    laws = [distribution("local both", 1e9), distribution("network", 1e9)]
    known = index_profiles([profile({each.type: laws for each in world})])
    job = {
        "sort": sort_job(),
        "ten times": mapreduce_job(map_share=10.0),
        "reduce": reduce_job(local_share=1.0),
    }[name]
    request = PlanRequest(job=job, size=size, limits=Limits(max_nodes=1_000), memory=memory)
    return plan(request, [catalog(world, ())], known)


def test_a_machine_with_too_little_memory_is_no_candidate() -> None:
    most = largest_sort(replace(offer("small"), vcpus=8, memory_bytes=4 * GIB), 1)
    assert planned(most // 2, memory=True).candidates[0].offer == "small"
    found = planned(2 * most, memory=True)
    assert [each.offer for each in found.candidates] == ["large"]
    (refused,) = found.excluded
    assert refused.offer == "small"
    assert refused.why.startswith("too little memory: in two passes it sorts at most ")
    assert {each.offer for each in planned(2 * most, memory=False).candidates} == {
        *("small", "large")
    }


def test_what_a_function_makes_counts_and_a_reduction_has_no_passes() -> None:
    most = largest_sort(replace(offer("small"), vcpus=8, memory_bytes=4 * GIB), 1)
    larger = planned(most // 2, memory=True, name="ten times")
    assert [each.offer for each in larger.candidates] == ["large"]
    reduced = planned(2 * most, memory=True, name="reduce")
    assert {each.offer for each in reduced.candidates} == {"small", "large"}
