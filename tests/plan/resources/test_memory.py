"""What the memory of a machine allows a sort: two passes, or a third one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.data.copies import replace
from support.data.offers import catalog, distribution, offer, profile
from tonnage.base.records.plan import Candidate, Plan
from tonnage.catalog import Disks, Offer, find_offer, load_catalog
from tonnage.model.jobs.mapreduce import mapreduce_job, sort_job
from tonnage.model.jobs.reduce import reduce_job
from tonnage.model.profiles.repository import index_profiles, read_profiles
from tonnage.plan.explain import explain
from tonnage.plan.layouts import layout_options
from tonnage.plan.planner import PlanError, PlanRequest, find_choice, plan
from tonnage.plan.resources.engine_memory import (
    MAX_NODE_PARTITIONS,
    MAX_PARTITIONS,
    MIN_VOLUME_BLOCK,
    fits_two_passes,
    largest_mapreduce,
    largest_share,
    largest_sort,
    local_devices,
    partition_bytes,
    suffices,
)
from tonnage.plan.search import Limits
from tonnage.run.mapreduce import cluster
from tonnage.run.mapreduce.shuffle import MemoryBudget
from tonnage.simulate.division import Machine, MapReduceDivision, SortDivision
from tonnage.simulate.scalability_limits import cluster_limits

TB, GIB = 10**12, 1 << 30
EACH_PARTITION = {"least block", "memory"}
THE_LARGEST = "largest partition"


def machine(name: str) -> Offer:
    return find_offer([load_catalog("aws-us-east-1-2026")], name)[1]


def limits_hit(found: Offer, devices: int, size: int, nodes: int) -> set[str]:
    """Which limits of memory the simulation of such a cluster names."""
    assert found.memory_bytes and found.vcpus
    its = SortDivision(Machine(found.memory_bytes // 2, int(found.vcpus), devices))
    limits = cluster_limits(nodes, size, its, 1e9, 1e4)
    hit = set(limits.hit) | ({"memory"} if limits.refused else set())
    return hit & (EACH_PARTITION | {THE_LARGEST})


@pytest.mark.parametrize(
    ("name", "volumes"), [("c8gn.medium", 16), ("i4i.large", 0), ("m7gd.4xlarge", 0)]
)
@pytest.mark.parametrize("nodes", [20, 200])
def test_simulate_agrees_which_inputs_memory_allows(name: str, volumes: int, nodes: int) -> None:
    found, devices = machine(name), volumes or 1
    most = largest_sort(found, volumes)
    # By the sample, some partition may be larger than the mean, and be divided once more.
    assert limits_hit(found, devices, most // 2, nodes) <= {THE_LARGEST}
    assert limits_hit(found, devices, most // 20, nodes) == set()
    # On volumes, a plan wants longer blocks than the shortest of the engine.
    assert limits_hit(found, devices, (10 if volumes else 2) * most, nodes)


def test_memory_for_each_thread_is_what_counts() -> None:
    one = largest_sort(replace(offer("m"), vcpus=16, memory_bytes=64 * GIB))
    more = largest_sort(replace(offer("m"), vcpus=16, memory_bytes=128 * GIB))
    fewer_threads = largest_sort(replace(offer("m"), vcpus=8, memory_bytes=64 * GIB))
    # Twice the memory holds twice as many partitions of twice the size.
    assert more / one == pytest.approx(4, rel=0.1)
    assert fewer_threads > 3 * one
    assert largest_sort(replace(offer("m"), memory_bytes=1 << 20)) == 0


def planned(size: int, name: str = "sort", memory: bool = True) -> Plan:
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
    request = PlanRequest(
        job=job, size=size, limits=Limits(min_nodes=100, max_nodes=100), memory=memory
    )
    return plan(request, [catalog(world, ())], known)


def of(found: Plan, name: str) -> Candidate:
    return next(each for each in found.candidates if each.offer == name)


def test_too_little_memory_costs_a_third_pass() -> None:
    most = largest_sort(replace(offer("small"), vcpus=8, memory_bytes=4 * GIB))
    two = of(planned(most // 2), "small")
    assert [phase.name for phase in two.phases] == ["map and shuffle", "sort and reduce"]
    found = planned(2 * most)
    three, enough = of(found, "small"), of(found, "large")
    assert [phase.name for phase in three.phases] == [
        "map and shuffle",
        "third pass",
        "sort and reduce",
    ]
    # As in the last pass, all bytes are read and written.
    assert three.phases[1].seconds == pytest.approx(enough.phases[1].seconds)
    assert three.seconds.median == pytest.approx(enough.seconds.median + enough.phases[1].seconds)
    assert found.excluded == []
    assert len(of(planned(2 * most, memory=False), "small").phases) == 2


def test_what_a_function_makes_counts_and_a_reduction_has_no_passes() -> None:
    most = largest_sort(replace(offer("small"), vcpus=8, memory_bytes=4 * GIB))
    larger = planned(most // 2, name="ten times")
    # Neither has partitions enough: there are as many as the input needs.
    assert [len(of(larger, name).phases) for name in ("small", "large")] == [3, 3]
    once = of(planned(most // 2), "small").phases[1].seconds
    assert of(larger, "small").phases[1].seconds == pytest.approx(10 * once)
    reduced = planned(2 * most, name="reduce")
    assert {len(each.phases) for each in reduced.candidates} == {1}


def test_without_the_size_of_its_memory_two_passes_are_planned() -> None:
    unknown = replace(offer("unknown"), memory_bytes=None)
    known = index_profiles(
        [profile({"unknown": [distribution("local both", 1e9), distribution("network", 1e9)]})]
    )
    request = PlanRequest(
        job=sort_job(), size=1000 * TB, limits=Limits(max_nodes=1_000), memory=True
    )
    found = plan(request, [catalog([unknown], ())], known)
    assert len(of(found, "unknown").phases) == 2


@pytest.mark.parametrize("share", [0.5, 1.0, 2.0])
@pytest.mark.parametrize(("name", "volumes"), [("c8gn.medium", 4), ("i4i.large", 0)])
def test_the_short_cut_finds_what_the_bisection_finds(
    name: str, volumes: int, share: float
) -> None:
    found = machine(name)
    most = largest_sort(found, volumes)
    for size in (most * share, most * share + 1, most * share * 1.03, most * share / 1.03):
        assert fits_two_passes(found, size, volumes) == (int(size) <= most)


def test_blocks_on_volumes_are_as_long_as_their_operations_need() -> None:
    its = replace(offer("m"), vcpus=4, memory_bytes=16 * GIB)
    on_volumes, locally = largest_sort(its, 1), largest_sort(its)
    # Blocks of 48 KiB are a third as many as those of 16 KiB.
    assert locally / on_volumes == pytest.approx(3, rel=0.1)


@given(st.integers(1 << 24, 1 << 42), st.integers(1, 192), st.integers(1, 16))
def test_a_mapreduces_partitions_are_as_large_as_its_threads_take(
    memory_bytes: int, threads: int, devices: int
) -> None:
    budget = MemoryBudget(memory_bytes, threads, devices)
    assert partition_bytes(memory_bytes, threads, devices) == budget.portion_bytes
    assert MAX_PARTITIONS == cluster.MAX_PARTITIONS
    assert budget.partitions(1 << 62) == max(MAX_NODE_PARTITIONS, threads)


@pytest.mark.parametrize(
    ("name", "volumes"),
    [("i4i.4xlarge", 0), ("x8g.large", 0), ("r8gn.xlarge", 4), ("x8g.large", 8)],
)
@pytest.mark.parametrize("nodes", [10, 200])
@pytest.mark.parametrize("map_share", [0.4, 1.0, 1.9])
def test_simulate_agrees_which_mapreduces_memory_allows(
    name: str, volumes: int, nodes: int, map_share: float
) -> None:
    found = machine(name)
    assert found.memory_bytes and found.vcpus
    devices = volumes or local_devices(found)
    machine_of_it = Machine(found.memory_bytes // 2, int(found.vcpus), devices)
    its = MapReduceDivision(machine_of_it, map_share)
    most = largest_mapreduce(found, volumes, map_share)

    def fits(size: float) -> bool:
        share = int(size) // nodes
        partitions = its.partitions(share, nodes)
        whole = size / partitions <= its.slot_bytes(share, nodes)
        long = not volumes or its.first_block_bytes(share, nodes) >= MIN_VOLUME_BLOCK
        return whole and long

    assert fits(most * 0.98)
    assert not fits(most * 1.02)


@pytest.mark.parametrize(("map_share", "fits"), [(1.9, True), (2.1, False)])
def test_partitions_are_as_many_as_the_input_needs(map_share: float, fits: bool) -> None:
    """The driver does not know that a map function makes more of it."""
    found = machine("i4i.4xlarge")
    assert found.memory_bytes and found.vcpus
    its = MapReduceDivision(
        Machine(found.memory_bytes // 2, int(found.vcpus), local_devices(found)), map_share
    )
    assert (TB / its.partitions(TB // 10, 10) <= its.slot_bytes(TB // 10, 10)) == fits
    assert suffices(mapreduce_job(map_share=map_share), TB, found) == fits


@pytest.mark.parametrize("volumes", [0, 8])
def test_a_mapreduce_on_few_nodes_has_few_partitions(volumes: int) -> None:
    found = machine("x8g.large")
    assert found.memory_bytes and found.vcpus
    devices = volumes or local_devices(found)
    its = MapReduceDivision(Machine(found.memory_bytes // 2, int(found.vcpus), devices))
    most = int(largest_share(mapreduce_job(), found, volumes))
    assert most / its.partitions(most, 1) <= its.slot_bytes(most, 1)
    more = int(most * 1.01)
    assert more / its.partitions(more, 1) > its.slot_bytes(more, 1)


def test_two_passes_need_nodes_for_their_partitions() -> None:
    its = replace(offer("m", local_bytes=10**15), vcpus=8, memory_bytes=64 * GIB)
    laws = [distribution("local both", 1e9), distribution("network", 1e9)]
    known = index_profiles([profile({"m": laws})])
    share = largest_share(mapreduce_job(), its)
    for job, nodes in ((mapreduce_job(), 3), (sort_job(), 1)):
        request = PlanRequest(job, int(2.5 * share), Limits(1, 100), memory=True)
        (found,) = plan(request, [catalog([its], ())], known).candidates
        assert (found.nodes, len(found.phases)) == (nodes, 2)


def test_a_mapreduce_with_too_little_memory_takes_a_third_pass() -> None:
    its = replace(offer("small"), vcpus=8, memory_bytes=4 * GIB)
    most = largest_mapreduce(its)
    laws = [distribution("local both", 1e9), distribution("network", 1e9)]
    known = index_profiles([profile({"small": laws})])
    for size, phases in ((most // 3, 2), (most, 3)):
        job = mapreduce_job(map_share=2.0)
        request = PlanRequest(job, size, Limits(1, 100), memory=True)
        (found,) = plan(request, [catalog([its], ())], known).candidates
        assert len(found.phases) == phases


def test_on_fewer_nodes_than_two_passes_need_a_third_is_planned() -> None:
    its = replace(offer("m", local_bytes=10**15), vcpus=8, memory_bytes=64 * GIB)
    laws = [distribution("local both", 1e9), distribution("network", 1e9)]
    catalogs, known = [catalog([its], ())], index_profiles([profile({"m": laws})])
    size = int(2.5 * largest_share(mapreduce_job(), its))
    every = PlanRequest(mapreduce_job(), size, Limits(1, 5), memory=True, all_sizes=True)
    made = plan(every, catalogs, known)
    assert {each.nodes: len(each.phases) for each in made.candidates} == {
        **{1: 3, 2: 3},
        **{3: 2, 4: 2, 5: 2},
    }
    for each in made.candidates:
        assert len(find_choice(made, each, catalogs, known).group.demand.phases) == len(each.phases)
    few = plan(replace(every, limits=Limits(1, 2), all_sizes=False), catalogs, known)
    (found,) = few.candidates
    assert (found.nodes, len(found.phases)) == (1, 3)


def test_what_a_third_pass_takes_is_the_reason_where_two_need_more_nodes() -> None:
    its = replace(offer("m", local_bytes=10**15), vcpus=8, memory_bytes=64 * GIB)
    laws = [distribution("local both", 1e9), distribution("network", 1e9)]
    catalogs, known = [catalog([its], ())], index_profiles([profile({"m": laws})])
    size = int(2.5 * largest_share(mapreduce_job(), its))
    limits = Limits(1, 2, deadline_seconds=60)
    request = PlanRequest(mapreduce_job(), size, limits, memory=True)
    (excluded,) = plan(request, catalogs, known).excluded
    assert excluded.why.startswith("too slow: at least ")
    with pytest.raises(PlanError, match="so many nodes need no third pass"):
        explain(replace(request, limits=Limits(4, 5, deadline_seconds=60)), catalogs, known, "m")


def rotating(its: Offer) -> Offer:
    disks = [Disks(kind="hdd", count=1, bytes_each=10**13, total_bytes=10**13)]
    return replace(its, disks=disks)


def test_a_third_pass_needs_solid_disks() -> None:
    its = replace(offer("small"), vcpus=8, memory_bytes=4 * GIB)
    most = largest_sort(its)
    laws = [distribution("local both", 1e9), distribution("network", 1e9)]
    known = index_profiles([profile({"small": laws})])
    request = PlanRequest(sort_job(), 2 * most, Limits(1, 100), memory=True)
    (solid,) = plan(request, [catalog([its], ())], known).candidates
    assert len(solid.phases) == 3
    found = plan(request, [catalog([rotating(its)], ())], known)
    assert found.candidates == []
    assert found.excluded[0].why == "too little memory for two passes over so much data"


@pytest.mark.parametrize("kind", ["sc1", "st1"])
def test_intermediate_data_is_not_on_rotating_volumes(kind: str) -> None:
    aws = load_catalog("aws-us-east-1-2026")
    known = index_profiles([*read_profiles("themis-2014"), *read_profiles("skyrise")])
    job = sort_job(read_from="volumes", written_to="volumes")
    options = layout_options(job, TB, [aws], known)
    layouts = {group.demand.layout for group in options.groups + options.unmeasured}
    assert f"local + 4 x {kind}" in layouts
    assert f"4 x {kind}" not in layouts
    assert "4 x gp3" in layouts
