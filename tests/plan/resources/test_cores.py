"""The work of cores: Tonnage's own figures, on physical cores as fast as others measured them."""

from dataclasses import replace as with_fields

import pytest

from support.data.copies import replace
from support.data.offers import catalog, distribution, offer, profile
from tonnage.base.records.durability import Durability
from tonnage.base.records.plan import NO_CORES, Candidate, Explanation
from tonnage.catalog import find_offer, newest_catalogs
from tonnage.model.jobs.core_throughput import (
    CORE_SECONDS_PER_GB,
    EPYC_SORTING,
    NODE_CORE_SECONDS,
    core_throughput,
)
from tonnage.model.jobs.mapreduce import mapreduce_job, sort_job
from tonnage.model.profiles.repository import ProfileIndex, index_profiles
from tonnage.plan.explain import explain
from tonnage.plan.planner import PlanRequest, plan
from tonnage.plan.resources.machines import lasting_vcpus, reference_cores
from tonnage.plan.search import Limits

TB = 10**12
FAST = distribution("local both", 1e12, 0.0, 1_000_000)


def known(*, measured: bool = False, engine: bool = True) -> ProfileIndex:
    """Fast disks; cores as Tonnage's benchmarks measured them, or as a profile has them."""
    cores = [
        distribution("cpu partition", 1e6, 0.0, 1_000_000),
        distribution("cpu sort", 1e6, 0.0, 1_000_000),
    ]
    laws = {name: [FAST, *(cores if measured else [])] for name in ("m", "few", "quick")}
    found = index_profiles([profile(laws)])
    if not engine:
        return found
    return with_fields(found, shares=with_fields(found.shares, engine=core_throughput()))


def planned(
    name: str = "m",
    durability: Durability = "none",
    profiles: ProfileIndex | None = None,
) -> Candidate:
    machine = {
        "m": replace(offer("m"), vcpus=8, cores=8),
        "few": replace(offer("few"), vcpus=8, cores=4),
        "quick": replace(offer("quick"), vcpus=8, cores=8, core_speed=2 * EPYC_SORTING),
    }[name]
    request = PlanRequest(
        job=sort_job(durability), size=TB, limits=Limits(max_nodes=1), network="infinite"
    )
    (found,) = plan(request, [catalog([machine], ())], profiles or known()).candidates
    return found


def test_a_sort_takes_the_core_seconds_of_the_benchmarks() -> None:
    found = planned()
    assert [each.bottleneck for each in found.phases] == ["cpu", "cpu", "cpu"]
    per_gb = sum(each.seconds for each in found.phases[:2]) * 8 / 1_000
    assert per_gb == pytest.approx(3.2)
    assert sum(CORE_SECONDS_PER_GB[f"cpu {each}"] for each in ("partition", "sort")) == (
        pytest.approx(3.2)
    )
    # The uncertainty of the scaling is in the interval.
    assert found.seconds.high / found.seconds.low > 1.5


def test_hyper_threads_are_not_cores_and_fast_cores_are_faster() -> None:
    usual, few, quick = (
        sum(phase.seconds for phase in planned(name).phases[:2]) for name in ("m", "few", "quick")
    )
    assert few == pytest.approx(2 * usual) and quick == pytest.approx(usual / 2)


def test_each_node_begins_and_ends_on_one_core() -> None:
    """Whatever the input: of eight cores one, of half a core that half."""
    half = replace(offer("m"), vcpus=1, cores=0.5)
    for machine, seconds in ((replace(offer("m"), vcpus=8, cores=8), 1.0), (half, 2.0)):
        request = PlanRequest(job=sort_job(), size=TB, limits=Limits(4, 4), network="infinite")
        (found,) = plan(request, [catalog([machine], ())], known()).candidates
        last = found.phases[-1]
        assert last.name == "beginning and end"
        assert last.seconds == pytest.approx(seconds * NODE_CORE_SECONDS)


def test_a_copy_on_another_node_takes_cores_too() -> None:
    request = PlanRequest(
        job=sort_job("replicated"), size=TB, limits=Limits(max_nodes=1), network="infinite"
    )
    machine = replace(offer("m"), vcpus=8, cores=8)
    its = explain(request, [catalog([machine], ())], known(), "m")
    assert cores_of(its) == {
        "cpu partition": pytest.approx(1_000 * CORE_SECONDS_PER_GB["cpu partition"] / 8),
        "cpu sort": pytest.approx(1_000 * CORE_SECONDS_PER_GB["cpu sort"] / 8),
        "cpu copy": pytest.approx(1_000 * CORE_SECONDS_PER_GB["cpu copy"] / 8),
        "cpu": pytest.approx(NODE_CORE_SECONDS),
    }


def cores_of(its: Explanation) -> dict[str, float]:
    return {each.resource: each.seconds for each in its.terms if each.resource.startswith("cpu")}


def test_objects_take_cores_too() -> None:
    job = sort_job(read_from="objects", written_to="objects")
    wanted = [
        [demand.resource for demand in phase.demands if demand.resource.startswith("cpu")]
        for phase in job.phases
    ]
    assert wanted == [["cpu partition", "cpu object"], ["cpu sort", "cpu object"]]


def test_what_a_profile_measured_wins() -> None:
    found = planned(profiles=known(measured=True))
    # 8 vCPUs of 1 MB/s each, in both passes.
    assert found.seconds.median == pytest.approx(2 * TB / 8e6, rel=0.01)


def test_without_any_figure_the_plan_says_so() -> None:
    machine = replace(offer("m"), vcpus=8, cores=8)
    request = PlanRequest(job=sort_job(), size=TB, limits=Limits(max_nodes=1), network="infinite")
    assert NO_CORES in plan(request, [catalog([machine], ())], known(engine=False)).notes
    assert NO_CORES not in plan(request, [catalog([machine], ())], known()).notes


def test_the_arithmetic_has_the_source_of_the_cores() -> None:
    request = PlanRequest(job=sort_job(), size=TB, limits=Limits(max_nodes=1), network="infinite")
    quick = replace(offer("quick"), vcpus=8, cores=8, core_speed=2 * EPYC_SORTING)
    its = explain(request, [catalog([quick], ())], known(), "quick")
    (first, *_) = [each for each in its.terms if each.resource == "cpu partition"]
    assert "571 MB/s by each of 16 reference cores (8 physical cores, each 2.00 times as fast" in (
        first.capacity_source
    )
    assert "Tonnage's own, benches/cluster_sort" in first.capacity_source
    assert first.evidence == "advertised"
    # The plan is of measured disks all the same, and says what its cores rest on.
    assert its.candidate.evidence == "measured"
    assert any("Tonnage's own benchmarks" in note for note in its.candidate.notes)


def test_cores_of_real_machines() -> None:
    catalogs = newest_catalogs()

    def cores(name: str) -> float:
        found = reference_cores(find_offer(catalogs, name)[1])
        assert found is not None
        return found

    # Eight cores of Ice Lake with two threads each, and sixteen of Graviton.
    assert cores("i4i.4xlarge") == pytest.approx(33_820.7 / EPYC_SORTING)
    assert 1.5 < cores("c7g.4xlarge") / cores("i4i.4xlarge") < 2
    # Of cores that burst the baseline counts: 30 % of one with two threads, 20 % of each of two.
    large, medium = (find_offer(catalogs, name)[1] for name in ("t3.large", "t4g.medium"))
    assert (lasting_vcpus(large), lasting_vcpus(medium)) == (0.6, 0.4)
    assert large.core_speed is not None
    assert cores("t3.large") == pytest.approx(0.3 * large.core_speed / EPYC_SORTING)
    # Where none is documented, nothing is known.
    assert lasting_vcpus(find_offer(catalogs, "B2ts_v2")[1]) is None
    # An unknown number of cores is half of the vCPUs; an unknown speed is the reference's.
    unknown = replace(offer("m"), vcpus=8, cores=None)
    assert reference_cores(unknown) == 4
    assert reference_cores(replace(unknown, vcpus=None)) is None


@pytest.mark.parametrize(
    ("vcpus", "cores", "in_turn"),
    [(1, 1, 1.0), (0.4, 0.4, 1.0), (16, 8, 1 / 16)],
    ids=["one thread", "part of a core", "many threads"],
)
def test_threads_of_functions_read_and_write_in_turn_with_their_work(
    vcpus: float, cores: float, in_turn: float
) -> None:
    """A sort overlaps them; a MapReduce with one thread takes the sum."""
    machine = replace(offer("m"), vcpus=vcpus, cores=cores)
    profiles = index_profiles([profile({"m": [distribution("local both", 5e8, 0.0, 1_000_000)]})])
    shares = with_fields(profiles.shares, engine=core_throughput())
    moving = TB / 5e8
    for job, is_sort in ((sort_job(), True), (mapreduce_job(), False)):
        request = PlanRequest(job=job, size=TB, limits=Limits(max_nodes=1), network="infinite")
        made = plan(request, [catalog([machine], ())], with_fields(profiles, shares=shares))
        for phase, work in zip(
            made.candidates[0].phases, ("cpu partition", "cpu sort"), strict=False
        ):
            working = 1_000 * CORE_SECONDS_PER_GB[work] / cores
            slowest = max(working, moving)
            wanted = slowest if is_sort else max(slowest, working + moving * in_turn)
            assert phase.seconds == pytest.approx(wanted)
            assert (phase.bottleneck == "threads") == (wanted > slowest)
