"""What all nodes of a cluster share of an object store: requests and bytes a second."""

import pytest

from support.data.copies import replace
from support.data.offers import STORE, catalog, distribution, offer, profile
from tonnage.base.records.plan import Candidate
from tonnage.catalog import StoreLimits
from tonnage.model.jobs.mapreduce import GET_BYTES, PUT_BYTES, sort_job
from tonnage.model.jobs.reduce import reduce_job
from tonnage.model.profiles.repository import index_profiles
from tonnage.plan.explain import explain
from tonnage.plan.planner import PlanRequest, plan
from tonnage.plan.search import Limits

TB = 10**12
SORT = sort_job(read_from="objects", written_to="objects")
FAST = {
    "m": [
        distribution(name, 1e12, 0.0)
        for name in ("local both", "local write", "network", "object get", "object put")
    ]
}
NONE = StoreLimits(
    gets_per_second=None,
    puts_per_second=None,
    read_bytes_per_second=None,
    write_bytes_per_second=None,
    source="made up",
)


def planned(limits: StoreLimits | None, nodes: int = 4, job: object = SORT) -> Candidate:
    store = replace(STORE, limits=limits)
    world = catalog([offer("m", link=None, local_bytes=10**16)], store=store)
    question = PlanRequest(job=job, size=TB, limits=Limits(min_nodes=nodes, max_nodes=nodes))  # type: ignore[arg-type]
    return plan(question, [world], index_profiles([profile(FAST)])).candidates[0]


@pytest.mark.parametrize("nodes", [1, 4, 100])
def test_nodes_share_the_requests_of_a_store(nodes: int) -> None:
    found = planned(replace(NONE, gets_per_second=100.0, puts_per_second=50.0), nodes)
    assert [phase.bottleneck for phase in found.phases] == ["object requests"] * 2
    assert [phase.seconds for phase in found.phases] == pytest.approx(
        [TB / GET_BYTES / 100, TB / PUT_BYTES / 50]
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
    question = PlanRequest(job=SORT, size=TB, limits=Limits(min_nodes=4, max_nodes=4))
    its = explain(question, [world], index_profiles([profile(FAST)]), "m")
    (term,) = [each for each in its.terms if each.resource == "get requests"]
    assert term.demand == pytest.approx(TB / GET_BYTES)
    assert term.capacity == pytest.approx(100 / 4)
    assert term.seconds == pytest.approx(its.candidate.phases[0].seconds)
    assert term.capacity_source == "of all nodes together: made up"
