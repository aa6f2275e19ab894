"""Requests to an object store: their sizes and price; what all nodes of a cluster share of it."""

import itertools
from typing import Any

import pytest

from support.data.copies import replace
from support.data.offers import STORE, catalog, distribution, offer, profile
from tonnage.base import core
from tonnage.base.records.job import Job
from tonnage.base.records.plan import Candidate
from tonnage.base.records.profile import CapacityDistribution
from tonnage.catalog import StoreLimits
from tonnage.model.jobs.mapreduce import GET_BYTES, PUT_BYTES, mapreduce_job, sort_job
from tonnage.model.jobs.reduce import reduce_job
from tonnage.model.profiles.repository import index_profiles
from tonnage.plan.explain import explain
from tonnage.plan.planner import PlanRequest, plan
from tonnage.plan.resources import engine_requests
from tonnage.plan.resources.engine_memory import FILL
from tonnage.plan.resources.engine_requests import SPLIT_BYTES, RequestSizes, request_sizes
from tonnage.plan.search import Limits
from tonnage.run.storage.object_store import usual_requests
from tonnage.run.two_pass import sizing

TB = 10**12
SORT = sort_job(read_from="objects", written_to="objects")
FAST = {
    "m": [
        distribution(name, 1e12, 0.0)
        for name in ("local both", "local write", "network", "object get", "object put")
    ]
}
AS_ADVERTISED = distribution("network", 1.0, 0.0)
NONE = StoreLimits(
    gets_per_second=None,
    puts_per_second=None,
    read_bytes_per_second=None,
    write_bytes_per_second=None,
    source="made up",
)


def planned(
    limits: StoreLimits | None,
    nodes: int = 4,
    job: Job = SORT,
    memory_bytes: int = 64 << 30,
    laws: dict[str, list[CapacityDistribution]] = FAST,
    prefixes: int = 1,
) -> Candidate:
    store = replace(STORE, limits=limits)
    machine = replace(offer("m", link=None, local_bytes=10**16), memory_bytes=memory_bytes, vcpus=4)
    question = PlanRequest(
        job=job,
        size=TB,
        limits=Limits(min_nodes=nodes, max_nodes=nodes),
        prefixes=prefixes,
    )
    world = catalog([machine], store=store)
    return plan(
        question, [world], index_profiles([profile(laws, shares=[AS_ADVERTISED])])
    ).candidates[0]


def core_plan(memory_bytes: int, threads: int, **more: object) -> dict[str, Any]:
    """How the core divides the memory of a sort of 0.1 TB a node, as the engine has it."""
    requests = usual_requests(threads)
    shape = {
        "bytes": TB // 10,
        "record_bytes": 100,
        "memory_bytes": memory_bytes,
        "workers": threads,
        "devices": (requests, 1, requests),
        "downloads": True,
        "uploads": True,
    }
    return core.plan(shape | more)


@pytest.mark.parametrize("nodes", [1, 4, 100])
def test_nodes_share_the_requests_of_a_store(nodes: int) -> None:
    found = planned(replace(NONE, gets_per_second=100.0, puts_per_second=50.0), nodes)
    assert [phase.bottleneck for phase in found.phases] == ["object requests"] * 2
    each = sizes_of(64, 4)
    assert [phase.seconds for phase in found.phases] == pytest.approx(
        [TB / each.get / 100, TB / each.put / 50]
    )


@pytest.mark.parametrize("nodes", [1, 4, 100])
def test_nodes_share_the_bytes_of_an_account(nodes: int) -> None:
    limits = replace(NONE, read_bytes_per_second=1e9, write_bytes_per_second=2e9)
    found = planned(limits, nodes)
    assert [phase.bottleneck for phase in found.phases] == ["object account"] * 2
    assert [phase.seconds for phase in found.phases] == pytest.approx([1_000, 500])


def test_what_is_not_documented_does_not_limit() -> None:
    assert planned(NONE).phases == planned(None).phases
    assert planned(NONE).evidence == planned(replace(NONE, gets_per_second=1.0)).evidence


def test_every_pass_of_a_reduction_takes_its_share_of_the_requests() -> None:
    job = reduce_job(3, chunk_bytes=1 << 20)
    found = planned(replace(NONE, gets_per_second=1_000.0), job=job)
    assert [phase.seconds for phase in found.phases] == pytest.approx([TB / (1 << 20) / 1_000] * 3)


def test_the_arithmetic_has_requests_and_their_source() -> None:
    limits = replace(NONE, gets_per_second=100.0)
    world = catalog(
        [offer("m", link=None, local_bytes=10**16)], store=replace(STORE, limits=limits)
    )
    job = reduce_job(1, chunk_bytes=1 << 20)
    question = PlanRequest(job=job, size=TB, limits=Limits(min_nodes=4, max_nodes=4))
    its = explain(question, [world], index_profiles([profile(FAST)]), "m")
    (term,) = [each for each in its.terms if each.resource == "get requests"]
    assert term.demand == pytest.approx(TB / (1 << 20))
    assert term.capacity == pytest.approx(100 / 4)
    assert term.seconds == pytest.approx(its.candidate.phases[0].seconds)
    assert term.capacity_source == "of all nodes together: made up"
    assert "each moves" not in term.capacity_source


SIZES = [(2, 1), (4, 2), (16, 4), (64, 8), (128, 16), (512, 64)]


def sizes_of(gib: int, threads: int) -> RequestSizes:
    found = request_sizes(replace(offer("m"), memory_bytes=gib << 30, vcpus=threads))
    assert found is not None
    return found


@pytest.mark.parametrize(("gib", "threads"), SIZES)
def test_a_machine_requests_as_much_as_its_engine(gib: int, threads: int) -> None:
    found = sizes_of(gib, threads)
    its = core_plan(gib << 29, threads)
    whole_ranges, rest = divmod(SPLIT_BYTES, its["extent_bytes"])
    assert found.get == pytest.approx(SPLIT_BYTES / (whole_ranges + bool(rest)))
    assert found.get <= its["extent_bytes"] <= GET_BYTES
    assert 0.7 * its["output_block_bytes"] < found.put < its["output_block_bytes"] <= PUT_BYTES


def test_an_upload_is_begun_and_completed() -> None:
    # Of the partitions that fill a node's memory, part by part.
    its = core_plan(32 << 30, 8)
    whole, part = its["slot_bytes"] * FILL, its["output_block_bytes"]
    puts = [whole * share // part + 1 + 2 for share in (0.9, 0.95, 1.0, 1.05, 1.1)]
    assert sizes_of(64, 8).put == pytest.approx(5 * whole / sum(puts), rel=0.02)


def test_each_prefix_has_the_limits_of_one() -> None:
    limits = replace(
        NONE,
        gets_per_second=100.0,
        puts_per_second=50.0,
        read_bytes_per_second=1e9,
        write_bytes_per_second=1e9,
    )
    one, ten = planned(limits), planned(limits, prefixes=10)
    assert ten.seconds.median == pytest.approx(one.seconds.median / 10)


def test_a_nodes_requests_carry_what_its_connections_do() -> None:
    """Four vCPUs have sixteen requests under way, of 8 to 9 MB/s each, unless it was measured."""
    limits = replace(NONE, connection_bytes_per_second=(8e6, 9e6))
    unmeasured = {"m": [each for each in FAST["m"] if not each.resource.startswith("object")]}
    slow = planned(limits, laws=unmeasured)
    assert [each.bottleneck for each in slow.phases] == ["object connections"] * 2
    for phase in slow.phases:
        assert phase.seconds == pytest.approx(TB / 4 / (16 * (8e6 * 9e6) ** 0.5))
    assert planned(limits).seconds == planned(NONE).seconds


def test_more_memory_makes_no_shorter_requests() -> None:
    found = [sizes_of(gib, 8) for gib in (4, 8, 16, 32, 64, 128, 256)]
    for less, more in itertools.pairwise(found):
        assert less.get <= more.get and less.put <= more.put


def test_figures_that_the_planner_repeats_are_those_of_the_run() -> None:
    for threads in (1, 4, 5, 16, 192, 1_000):
        assert engine_requests.concurrent_requests(threads) == usual_requests(threads)
    assert SPLIT_BYTES == sizing.MAX_BYTES
    its = core_plan(1 << 40, 1)
    assert GET_BYTES - 2 * sizing.ALIGNMENT - 100 * 1024 < its["extent_bytes"] <= GET_BYTES
    assert its["output_block_bytes"] == PUT_BYTES


def test_requests_of_unknown_machines_are_the_longest() -> None:
    unknown = request_sizes(replace(offer("m"), memory_bytes=None))
    assert unknown and (unknown.get, unknown.put) >= (15.7e6, 0.95 * PUT_BYTES)
    assert request_sizes(replace(offer("m"), memory_bytes=1 << 20, vcpus=2)) is None


@pytest.mark.parametrize("gib", [4, 64])
def test_shorter_requests_take_longer_and_cost_more(gib: int) -> None:
    limits = replace(NONE, gets_per_second=100.0, puts_per_second=50.0)
    found, each = planned(limits, memory_bytes=gib << 30), sizes_of(gib, 4)
    assert [phase.seconds for phase in found.phases] == pytest.approx(
        [TB / each.get / 100, TB / each.put / 50]
    )
    assert STORE.usd_per_1000_gets and STORE.usd_per_1000_puts
    requests = (
        TB / each.get / 1000 * STORE.usd_per_1000_gets
        + TB / each.put / 1000 * STORE.usd_per_1000_puts
    )
    machines = found.seconds.median / 3600 * found.usd_per_hour * 4
    assert found.cost_usd.median == pytest.approx(machines + requests)


def test_formats_choose_the_gets_of_a_mapreduce() -> None:
    limits = replace(NONE, gets_per_second=100.0)
    job = mapreduce_job(read_from="objects", written_to="objects")
    found = planned(limits, job=job, memory_bytes=64 << 30)
    assert found.phases[0].seconds == pytest.approx(TB / (4 << 20) / 100)


def test_another_engine_makes_its_own_requests() -> None:
    limits = replace(NONE, puts_per_second=50.0)
    found = planned(limits, memory_bytes=4 << 30, job=replace(SORT, name="another"))
    assert found.phases[1].seconds == pytest.approx(TB / PUT_BYTES / 50)


def test_the_arithmetic_says_what_a_request_moves() -> None:
    limits = replace(NONE, puts_per_second=50.0)
    machine = replace(offer("m", link=None, local_bytes=10**16), memory_bytes=4 << 30, vcpus=4)
    world = catalog([machine], store=replace(STORE, limits=limits))
    question = PlanRequest(job=SORT, size=TB, limits=Limits(min_nodes=4, max_nodes=4))
    its = explain(question, [world], index_profiles([profile(FAST)]), "m")
    (term,) = [each for each in its.terms if each.resource == "put requests"]
    each = sizes_of(4, 4).put
    assert term.demand == pytest.approx(TB / each)
    assert term.capacity == pytest.approx(50 / 4)
    assert f"each moves {each / 1e6:.1f} MB, as its memory allows" in term.capacity_source


@pytest.mark.parametrize(("network", "seconds"), [(8e9, 125.0), (20e9, 100.0)])
def test_a_store_gives_a_machine_no_more_than_is_documented(network: float, seconds: float) -> None:
    """However fast its network is; what was measured of a machine counts as measured."""
    limits = replace(NONE, node_bytes_per_second=10e9)
    machine = offer("m", network=network, link=None, local_bytes=0)
    world = catalog([machine], store=replace(STORE, limits=limits))
    shares = profile({}, shares=[distribution("network", 1.0, 0.0)])
    for each, found in ((shares, seconds), (profile(FAST), 1.0)):
        question = PlanRequest(job=reduce_job(), size=TB, limits=Limits(max_nodes=1))
        known = index_profiles([each])
        made = plan(question, [world], known)
        assert made.candidates[0].seconds.median == pytest.approx(found)
        (term,) = explain(question, [world], known, "m").terms
        said = "the store gives a machine at most 10,000 MB/s (made up)" in term.capacity_source
        assert said is (each is shares)
