"""Plans simulated: the same demands and rates, another schedule; bursts, stores, MapReduces."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from support.data.copies import replace
from support.data.offers import MIB, STEADY, STORE, catalog, distribution, offer, profile
from tonnage.base import core
from tonnage.base.records.job import Job
from tonnage.base.records.location import Location
from tonnage.base.records.plan import Candidate, Plan
from tonnage.catalog import Catalog, Grant, StoreLimits, load_catalog
from tonnage.cli.commands import app
from tonnage.cli.options.planning import load_profiles
from tonnage.model.jobs.mapreduce import mapreduce_job, sort_job
from tonnage.model.jobs.reduce import reduce_job
from tonnage.model.profiles.repository import ProfileIndex, index_profiles
from tonnage.plan.planner import PlanError, PlanRequest, find_choice, plan
from tonnage.plan.resources.engine_requests import request_sizes
from tonnage.plan.resources.startup import fixed_startup
from tonnage.plan.search import Limits
from tonnage.simulate import scalability_limits
from tonnage.simulate.cluster import (
    LINK_OUT,
    PassLoads,
    SimulatedCluster,
    SimulationError,
    bound_seconds,
)
from tonnage.simulate.division import Machine, MapReduceDivision, SortDivision
from tonnage.simulate.planned import planned_scenario
from tonnage.simulate.scenario import Scenario, ScenarioResult, run_scenario
from tonnage.simulate.two_pass import JobRequest, SimulatedJob, simulate

GB, TB = 10**9, 10**12
CLAIM = 0.15
OFFERS = (
    *("i4i.4xlarge", "m6i.4xlarge", "r6in.4xlarge", "c6gn.4xlarge", "i3en.3xlarge"),
    # Few threads, and a link to volumes that bursts.
    "r8gb.large",
)
RATES = ("local read", "local write", "network", "object get", "object put")


@pytest.fixture(scope="module")
def amazon() -> tuple[Catalog, ProfileIndex]:
    """Some machines of AWS, so that planning them is quick."""
    whole = load_catalog("aws-us-east-1-2026")
    few = replace(whole, offers=tuple(each for each in whole.offers if each.type in OFFERS))
    return few, load_profiles(None, [few])


def planned(
    job: Job,
    size: int,
    world: Catalog,
    known: ProfileIndex,
    nodes: int | None = None,
    **more: float,
) -> tuple[Plan, Candidate]:
    limits = Limits(min_nodes=nodes or 1, max_nodes=nodes or 1_000, **more)  # type: ignore[arg-type]
    question = PlanRequest(
        job=job, size=size, limits=limits, startup=fixed_startup(60), memory=True
    )
    made = plan(question, [world], known)
    return made, made.candidates[0]


def scenario(made: Plan, candidate: Candidate, world: Catalog, known: ProfileIndex) -> Scenario:
    return planned_scenario(made, candidate, find_choice(made, candidate, [world], known))


def simulated(asked: Scenario) -> SimulatedJob:
    cluster = asked.cluster(asked.nodes, asked.data_bytes)
    copies = None if asked.machine.from_objects else 1
    return simulate(
        cluster,
        asked.division,
        JobRequest.of(asked.job, asked.data_bytes, input_copies=copies, even=True),
    )


@pytest.mark.parametrize(("size", "deadline"), [(TB, math.inf), (5 * TB, 1_800.0)])
@pytest.mark.parametrize("where", ["local", "volumes", "objects"])
@pytest.mark.parametrize("kind", [sort_job, mapreduce_job])
def test_a_plan_is_simulated_in_the_time_that_it_says(
    amazon: tuple[Catalog, ProfileIndex],
    kind: Callable[..., Job],
    where: Location,
    size: int,
    deadline: float,
) -> None:
    job = kind(read_from=where, written_to=where)
    made, candidate = planned(job, size, *amazon, deadline_seconds=deadline)
    asked = scenario(made, candidate, *amazon)
    assert asked.planned is not None and asked.planned.start == pytest.approx(60)
    assert simulated(asked).seconds == pytest.approx(asked.planned.run, rel=CLAIM)


# One resource at a time, on machines whose others do not limit.


def world_of(limits: StoreLimits | None = None, **slow: float) -> tuple[Catalog, ProfileIndex]:
    """Machines with these rates; the rest is fast. The memory is plenty."""
    rates = {name: 1e13 for name in RATES} | {
        name.replace("_", " "): rate for name, rate in slow.items()
    }
    laws = [distribution(name, rate, 0.0) for name, rate in rates.items()]
    machine = replace(
        offer("m", link=None, local_bytes=10**16), memory_bytes=1 << 40, vcpus=8, cores=None
    )
    return (
        catalog([machine], store=replace(STORE, limits=limits)),
        index_profiles([profile({"m": laws})]),
    )


def seconds_of(
    job: Job, nodes: int, size: int, world: tuple[Catalog, ProfileIndex]
) -> tuple[float, list[tuple[str, float]]]:
    """The planned time, and each simulated step."""
    made, candidate = planned(job, size, *world, nodes=nodes)
    asked = scenario(made, candidate, *world)
    assert asked.planned is not None
    found = simulated(asked)
    assert found.bytes_in == found.bytes_out == size
    return asked.planned.run, [(step.name, step.seconds) for step in found.steps]


def total(steps: list[tuple[str, float]]) -> float:
    return sum(seconds for _, seconds in steps)


OBJECTS = sort_job(read_from="objects", written_to="objects")


def test_objects_and_the_shuffle_share_the_link() -> None:
    nodes, size = 8, TB
    slow = {"network": 1e9, "object_get": 1e9, "object_put": 1e9}
    _, steps = seconds_of(OBJECTS, nodes, size, world_of(**slow))
    each = size / nodes / 1e9
    # What a node keeps is not sent, though a plan counts it.
    expected = [each * (1 + (nodes - 1) / nodes), each]
    assert [seconds for _, seconds in steps] == pytest.approx(expected, rel=0.05)


@pytest.mark.parametrize("nodes", [4, 40])
def test_all_nodes_share_the_requests_of_a_store(nodes: int) -> None:
    limits = StoreLimits(
        gets_per_second=100.0,
        puts_per_second=None,
        read_bytes_per_second=None,
        write_bytes_per_second=2e9,
        source="made up",
    )
    world = world_of(limits)
    moved = request_sizes(world[0].offers[0])
    assert moved is not None
    run, steps = seconds_of(OBJECTS, nodes, TB, world)
    assert [seconds for _, seconds in steps] == pytest.approx(
        [TB / moved.get / 100, TB / 2e9], rel=0.05
    )
    assert total(steps) == pytest.approx(run, rel=0.05)


def test_a_mapreduce_shuffles_and_writes_its_own_shares() -> None:
    job = mapreduce_job(map_share=0.25, reduce_share=0.5)
    nodes, size = 10, TB
    _, steps = seconds_of(job, nodes, size, world_of(network=1e8, local_write=1e8))
    each = 0.25 * size / nodes / 1e8
    assert [seconds for _, seconds in steps] == pytest.approx([each, 0.5 * each], rel=0.1)


def test_a_mapreduces_output_is_copied_afterwards() -> None:
    slow = {"network": 1e9, "local_read": 1e9, "local_write": 1e9}
    steps = {
        job.name: seconds_of(job, 10, TB, world_of(**slow))[1]
        for job in (sort_job("replicated"), mapreduce_job("replicated"))
    }
    assert [name for name, _ in steps["sort"]] == ["pass_one", "pass_two"]
    assert [name for name, _ in steps["mapreduce"]] == ["pass_one", "pass_two", "copy"]
    each = TB / 10 / 1e9
    # Disks are read and written apart here: 1 + 1, then 1 + 1 + 1 (a copy), or 1 + 1 and 1 + 1.
    assert total(steps["sort"]) == pytest.approx(5 * each, rel=0.05)
    assert total(steps["mapreduce"]) == pytest.approx(6 * each, rel=0.05)


def test_partitions_that_do_not_fit_are_read_and_written_again() -> None:
    job = mapreduce_job()
    made, candidate = planned(job, TB, *(world := world_of(local_read=1e9, local_write=1e9)), 4)
    asked = scenario(made, candidate, *world)
    usual = simulated(asked)
    assert usual.repartitioned_bytes == 0
    machine = dataclasses.replace(asked.machine, memory_bytes=256 << 20)
    little = simulated(dataclasses.replace(asked, machine=machine))
    assert little.repartitioned_bytes == TB
    again = TB / 4 * (1 / 1e9 + 1 / 1e9)
    assert little.seconds - usual.seconds == pytest.approx(again, rel=0.05)


def test_short_blocks_cost_operations_of_volumes() -> None:
    def second_pass(memory_bytes: int) -> tuple[float, int]:
        machine = dataclasses.replace(asked.machine, memory_bytes=memory_bytes)
        found = simulated(dataclasses.replace(asked, machine=machine))
        return found.steps[1].seconds, found.block_bytes

    kind = replace(STEADY, operations=Grant(included=1_000))
    machine = replace(offer("m", link=1e12, network=1e12, local_bytes=0), memory_bytes=1 << 40)
    world = catalog([machine], [kind]), load_profiles(None, [catalog([machine])])
    made, candidate = planned(sort_job(), 4 * TB, *world, nodes=4)
    asked = scenario(made, candidate, *world)
    assert candidate.volumes is not None
    rate = candidate.volumes.count * 1_000
    usual, long_block = second_pass(512 << 30)
    short, short_block = second_pass(8 << 30)
    read = TB / (rate * short_block)
    assert long_block * 1_000 > 2 * 125 * MIB > 4 * short_block * 1_000
    assert usual < read
    assert short == pytest.approx(read, rel=0.1)


# Bursts.


def bursting(nodes: int, burst: float, credit: float) -> SimulatedCluster:
    """Nodes whose link carries 1 GB a second, more while there is credit; nothing else limits."""
    link, none = np.full((1, nodes), 1e-9), np.zeros((1, nodes))
    return SimulatedCluster(
        (LINK_OUT,),
        PassLoads(none, link, none),
        PassLoads(none, none, none),
        third_pass=PassLoads(none, none, none),
        first_read=np.zeros(nodes),
        burst=np.full((1, nodes), burst),
        credit=np.full((1, nodes), credit),
    )


@pytest.mark.parametrize(
    ("credit", "rate"), [(0.0, 1.0), (30.0, 5.0), (60.0, 2.0), (1e6, 4.0), (1e-6, 5.0)]
)
def test_a_link_bursts_until_its_credit_is_used(credit: float, rate: float) -> None:
    nodes, share = 4, 120 * GB
    cluster = bursting(nodes, rate, credit)
    division = SortDivision(Machine(1 << 30, 2))
    found = simulate(cluster, division, JobRequest(nodes * share, even=True))
    sent = share * (nodes - 1) / nodes / 1e9  # Seconds at the baseline
    expected = max(sent / rate, sent - credit)
    assert found.seconds == pytest.approx(expected, rel=0.02)
    assert bound_seconds(cluster, nodes * share) == pytest.approx(expected, rel=1e-6)


def test_credit_that_pass_one_used_is_gone_in_pass_two() -> None:
    nodes, share = 4, 100 * GB
    link, none = np.full((1, nodes), 1e-9), np.zeros((1, nodes))
    cluster = replace(
        bursting(nodes, 10.0, 50.0),
        pass_one=PassLoads(link, none, none),
        pass_two=PassLoads(link, none, none),
    )
    found = simulate(
        cluster, SortDivision(Machine(1 << 30, 2)), JobRequest(nodes * share, even=True)
    )
    # 55.6 s of 10 GB a second would use 500 s of credit: 100 GB take 50 s, and then 100 s.
    assert [step.seconds for step in found.steps] == pytest.approx([50, 100], rel=0.02)


# What is refused.


def test_what_a_plan_no_longer_says_is_refused() -> None:
    world, known = world_of(network=1e9)
    made, candidate = planned(sort_job(), TB, world, known, 10)
    with pytest.raises(PlanError, match=r"the job takes \d+ s, but \d+ s were planned"):
        find_choice(made, candidate, [world], world_of(network=2e9)[1])
    with pytest.raises(PlanError, match="has no m"):
        find_choice(made, candidate, [replace(world, offers=())], known)


def test_only_jobs_of_two_passes_are_simulated() -> None:
    world = world_of(network=1e9)
    made, candidate = planned(reduce_job(read_from="local"), TB, *world, nodes=3)
    with pytest.raises(SimulationError, match="reduce is not simulated"):
        scenario(made, candidate, *world)


def test_one_node_sends_nothing() -> None:
    run, steps = seconds_of(sort_job(), 1, TB, world_of(network=1e3, local_read=1e9))
    assert total(steps) == pytest.approx(run, rel=0.05) == pytest.approx(2_000, rel=0.05)


def test_lost_nodes_lose_no_objects() -> None:
    world = world_of(network=1e9)
    made, candidate = planned(OBJECTS, TB, *world, nodes=5)
    found: ScenarioResult = run_scenario(
        dataclasses.replace(scenario(made, candidate, *world), lose=2)
    )
    assert found.disturbed is not None and found.disturbed.bytes_out == TB
    assert found.disturbed.seconds > found.undisturbed.seconds


def test_a_mapreduces_partitions_are_the_drivers() -> None:
    division = MapReduceDivision(Machine(128 << 30, 16, devices=2), map_share=2.0)
    # Of 64 GiB half is for partitions, of which each of 16 threads has four copies; bytes of input
    # are half of those that are shuffled.
    assert division.slot_bytes(0, 10) == (512 << 20)
    assert division.partitions(512 << 30, 4) == 4 * 1_024
    assert division.partitions(1 << 50, 100) == 1 << 15
    assert division.keys_per_partition(4, 100) == math.inf


# The command.


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A plan of a MapReduce over objects, as ``tonnage plan --json`` prints it."""
    asked = ["plan", "mapreduce", "--data", "1TB", "--provider", "aws", "--nodes", "12"]
    done = CliRunner().invoke(app, [*asked, "--json"], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    path = tmp_path_factory.mktemp("plans") / "plan.json"
    path.write_text(done.stdout)
    return path


def test_the_command_simulates_a_stored_plan(stored: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scalability_limits, "SIZES", (4, 16))
    asked = ["simulate", "--plan", str(stored), "--candidate", "2"]
    done = CliRunner().invoke(app, [*asked, "--json"], catch_exceptions=False)
    found, candidate = json.loads(done.stdout), Plan.read(stored).candidates[1]
    assert found["undisturbed"]["nodes"] == candidate.nodes == 12
    assert found["undisturbed"]["bytes_out"] == TB
    assert found["undisturbed"]["keys_per_partition"] is None
    planned_passes = [[each.name, each.seconds] for each in candidate.job_phases]
    assert found["planned"]["passes"] == planned_passes
    said = CliRunner().invoke(app, ["simulate", "mapreduce", "--plan", str(stored)]).stdout
    assert "Planned: " in said and "With the start of the machines, " in said


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "no job; add sort or mapreduce, or --plan FILE"),
        (["reduce"], "JOB reduce is not valid"),
        (["sort"], "add --nodes"),
        (["sort", "--nodes", "4"], "add --data"),
        (["sort", "--nodes", "4", "--data", "1TB", "--from", "volumes"], "add --plan FILE"),
        (["sort", "--nodes", "4", "--data", "1TB", "--map-share", "2"], "--map-share applies only"),
        (["--candidate", "2"], "--candidate needs --plan"),
        (["--plan", "PLAN", "--nodes", "5"], "decides what --nodes is; remove one of them"),
        (["--plan", "PLAN", "--cores", "5"], "decides what --cores is; remove one of them"),
        (["sort", "--plan", "PLAN"], "is a plan for mapreduce"),
        (["--plan", "PLAN", "--candidate", "9999"], "--candidate 9999 does not exist"),
        (["--plan", "none.json"], "--plan none.json: No such file"),
    ],
)
def test_what_contradicts_a_plan_or_lacks_one_is_refused(
    stored: Path, arguments: list[str], said: str
) -> None:
    asked = [str(stored) if each == "PLAN" else each for each in arguments]
    with pytest.raises(core.UsageError, match=said):
        CliRunner().invoke(app, ["simulate", *asked], catch_exceptions=False)
