"""Simulated jobs: rates, conservation of data, the cost of failures, and the study's run."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from support.data.copies import replace
from support.data.simulated import cluster_of, without_copies
from tonnage.base import core
from tonnage.base.records.profile import CapacityDistribution, Mode
from tonnage.cli.commands import app
from tonnage.model.jobs.mapreduce import Durability, sort_job
from tonnage.model.profiles.repository import ProfileIndex, index_profiles, read_profiles
from tonnage.model.slowest_node import ClusterDraws
from tonnage.model.token_bucket import TokenBucket
from tonnage.plan.demand import layout_demand
from tonnage.run.sort.local import Layout
from tonnage.run.two_pass import sizing
from tonnage.simulate import scalability_limits
from tonnage.simulate.cluster import (
    LINK_OUT,
    SimulatedCluster,
    SimulationError,
    bound_seconds,
    draw_cluster,
    draw_rates,
)
from tonnage.simulate.division import Machine, SortDivision, keys_per_partition
from tonnage.simulate.flow import Array, OutputFlows, ShuffleFlows, output_rates, shuffle
from tonnage.simulate.two_pass import JobRequest, SimulatedJob, draw_deaths, simulate

MB, GB, TB = 10**6, 10**9, 10**12
SMALL = SortDivision(Machine(memory_bytes=16 << 20, cores=1))
rates = st.floats(0.1, 10.0)


def alike(nodes: int, disk: float, network: float, apart: bool = False) -> SimulatedCluster:
    each, none = np.full(nodes, 1 / disk), np.zeros(nodes)
    return cluster_of(each, each, np.full(nodes, 1 / network), (none, none), apart)


def filled(weights: Array, most: Array) -> Array:
    """Progressive filling as it is defined: one resource a row, one flow a column."""
    found, fixed = np.zeros_like(most), most <= 0
    while not fixed.all():
        moving = ~fixed
        used, more = weights @ found, weights[:, moving].sum(axis=1)
        room = [(1 - u) / m for u, m in zip(used, more, strict=True) if m > 1e-12]
        step = max(min([*room, float((most - found)[moving].min())]), 0.0)
        found[moving] += step
        full = weights @ found > 1 - 1e-9
        fixed |= (found >= most - 1e-9) | (weights[full] > 0).any(axis=0)
    return found


@given(st.integers(2, 7), st.data())
def test_a_shuffles_rates_are_max_min_fair(nodes: int, data: st.DataObject) -> None:
    def some() -> Array:
        return np.array(data.draw(st.lists(rates, min_size=nodes, max_size=nodes)))

    def flags() -> Array:
        return np.array(data.draw(st.lists(st.booleans(), min_size=nodes, max_size=nodes)))

    shares = some()
    shares /= shares.sum()
    link, disk, reading, alone = shares * some(), shares * some(), some(), some()
    reads, sends = flags(), flags()
    store = data.draw(st.sampled_from([0.0, 0.5]))
    # The node's own input does not pass its link.
    flows = ShuffleFlows(
        np.array([-link * sends, reading * reads, alone * (reads | sends)]),
        np.array([link, disk, 0 * link]),
        reads,
        sends,
        store,
    )
    capacity = np.array([some(), some(), some()])
    into = np.tile(link[:, None], nodes) * sends
    np.fill_diagonal(into, 0.0)
    weights = np.vstack(
        [
            into / capacity[0][:, None],
            (np.tile(disk[:, None], nodes) * sends + np.diag(reading * reads))
            / capacity[1][:, None],
            np.diag(alone) / capacity[2][:, None],
            store * reads,
        ]
    )
    most = np.where(reads | sends, 1e15, 0.0)
    assert shuffle(flows, capacity) == pytest.approx(filled(weights, most), rel=1e-6)


@given(st.integers(2, 7), st.data())
def test_copies_rates_are_max_min_fair(nodes: int, data: st.DataObject) -> None:
    def some() -> Array:
        return np.array(data.draw(st.lists(rates, min_size=nodes, max_size=nodes)))

    own, arriving = np.array([some(), some(), 0 * some()]), np.array([some(), 0 * some(), some()])
    copied = np.array(data.draw(st.lists(st.booleans(), min_size=nodes, max_size=nodes)))
    moving = np.ones(nodes, dtype=bool)
    moving[data.draw(st.integers(0, nodes - 1))] = False
    capacity = np.array([some(), some(), some()])
    to = (np.arange(nodes) + 1) % nodes
    weights = []
    for here, there, most in zip(own, arriving, capacity, strict=True):
        weights.append(np.diag(here))
        weights[-1][to, np.arange(nodes)] += there[to] * copied
        weights[-1] /= most[:, None]
    most = np.where(moving, 1e15, 0.0)
    flows = OutputFlows(own, arriving, copied, to, np.zeros(nodes))
    found = output_rates(flows, capacity, moving)
    assert found == pytest.approx(filled(np.vstack(weights), most), rel=1e-6)


@given(st.integers(1, 7), st.floats(0.01, 10), st.data())
def test_what_all_nodes_share_is_divided_fairly(
    nodes: int, weight: float, data: st.DataObject
) -> None:
    most = np.array(data.draw(st.lists(rates, min_size=nodes, max_size=nodes)))
    store = weight * np.array(data.draw(st.lists(st.booleans(), min_size=nodes, max_size=nodes)))
    none, nobody = 0 * most[None, :], np.zeros(nodes, dtype=bool)
    flows = OutputFlows(1 / most[None, :], none, nobody, np.arange(nodes), store)
    found = output_rates(flows, np.ones((1, nodes)), ~nobody)
    weights = np.vstack([np.diag(1 / most), store])
    assert found == pytest.approx(filled(weights, np.full(nodes, 1e15)), rel=1e-6)


@settings(max_examples=40, deadline=None)
@given(
    nodes=st.integers(2, 6),
    megabytes=st.integers(1, 60),
    copies=st.integers(1, 6),
    apart=st.booleans(),
    replicated=st.booleans(),
    seed=st.integers(0, 1000),
    moments=st.lists(st.floats(0, 3.0), max_size=3),
)
@example(
    nodes=2, megabytes=1, copies=2, apart=False, replicated=False, seed=0, moments=[0.0]
)  # dies before the first round
def test_all_data_is_written_once_despite_failures(
    nodes: int,
    megabytes: int,
    copies: int,
    apart: bool,
    replicated: bool,
    seed: int,
    moments: list[float],
) -> None:
    copies, moments = min(copies, nodes), moments[: nodes - 1]
    draw = np.random.default_rng(seed)
    costs = draw.uniform(0.5, 2, (3, nodes)) / (10 * MB)
    idle = np.zeros(nodes)
    made = cluster_of(costs[0], costs[1], costs[2], (idle, idle), apart)
    which = draw.choice(nodes, len(moments), replace=False).tolist()
    asked = JobRequest(
        megabytes * MB,
        "replicated" if replicated else "none",
        input_copies=copies,
        deaths=dict(zip(which, moments, strict=True)),
        seed=seed,
    )
    try:
        found = simulate(made, SMALL, asked)
    except SimulationError as why:
        assert "no remaining node can read" in str(why) and len(moments) >= copies
        return
    assert found.bytes_in == found.bytes_out == megabytes * MB
    assert len(set(found.lost)) == len(found.lost)
    assert len(found.lost) == sum(moment <= found.seconds for moment in moments)


@settings(max_examples=40, deadline=None)
@given(
    nodes=st.integers(2, 6),
    apart=st.booleans(),
    durability=st.sampled_from(["none", "replicated"]),
    seed=st.integers(0, 1000),
)
def test_no_sort_is_faster_than_its_slowest_node(
    nodes: int, apart: bool, durability: Durability, seed: int
) -> None:
    costs = np.random.default_rng(seed).uniform(0.5, 2, (5, nodes)) / (10 * MB)
    made = cluster_of(costs[0], costs[1], costs[2], (costs[3], costs[4]), apart)
    made = made if durability == "replicated" else without_copies(made)
    # As many partitions, and as much to read, for each: else the slowest may have less.
    size = nodes * 5 * MB
    found = simulate(made, SMALL, JobRequest(size, durability, even=True))
    assert found.partitions % nodes == 0
    assert found.seconds >= bound_seconds(made, size) * (1 - 1e-6)


@pytest.mark.parametrize("network", [30 * MB, 3_000 * MB])
@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize("durability", ["none", "replicated"])
def test_of_equal_nodes_the_slowest_resource_is_the_time(
    network: float, apart: bool, durability: Durability
) -> None:
    made = alike(8, 100 * MB, network, apart)
    made = made if durability == "replicated" else without_copies(made)
    asked = JobRequest(200 * GB, durability, even=True)
    found = simulate(made, SortDivision(Machine(1 << 30, 2)), asked)
    bound = bound_seconds(made, 200 * GB)
    assert bound * (1 - 1e-9) <= found.seconds < 1.03 * bound


def test_the_sample_costs_time() -> None:
    made, machine = alike(8, 100 * MB, 100 * MB), SortDivision(Machine(1 << 30, 2))
    even = simulate(made, machine, JobRequest(200 * GB, even=True))
    sampled = simulate(made, machine, JobRequest(200 * GB))
    assert even.seconds < sampled.seconds
    assert even.repartitioned_bytes == 0


def test_a_lost_node_costs_what_the_arithmetic_says() -> None:
    nodes, network, disk = 4, 10 * MB, 10 * GB
    share = 12 * 1_024_000  # Splits that can be divided among four nodes, and among three.
    made = alike(nodes, disk, network)
    asked = JobRequest(nodes * share, input_copies=nodes, even=True)
    undisturbed = simulate(made, SMALL, asked)
    whole = share * 3 / 4 / network
    assert undisturbed.seconds == pytest.approx(whole, rel=0.02)
    dies = whole / 2
    found = simulate(made, SMALL, replace(asked, deaths={3: dies}))
    # The three continue; data for the fourth is dropped, so they are faster.
    rest = share / 2 * 2 / 4 / network
    owned = undisturbed.partitions // nodes
    more = -(-owned // 3)  # of which the one that gets most of them gets so many
    # Then each reads a third of what it was to read, for all three owners: two send to each.
    its_input = (owned + more) / undisturbed.partitions * 2 * share / 3 / network
    # And all that the three have read is read again, for the partitions that it owned.
    its_partitions = more / undisturbed.partitions * 2 * share / network
    expected = dies + rest + its_input + its_partitions
    assert found.seconds == pytest.approx(expected, rel=0.01)
    read = [step.read_bytes for step in found.steps if step.name == "pass_one"]
    assert read[1:] == pytest.approx([share, 3 * share])
    assert [step.lost for step in found.steps if step.lost] == [["node-3"]]
    assert sum(step.name == "pass_one" for step in found.steps) == 3


def test_a_copy_of_the_output_is_not_sorted_again() -> None:
    made, share = alike(4, 10 * MB, 1 * GB), 12 * 1_024_000
    partitions = {}
    for durability in ("none", "replicated"):
        asked = JobRequest(4 * share, durability, input_copies=4, even=True)  # type: ignore[arg-type]
        undisturbed = simulate(made, SMALL, asked)
        dies = undisturbed.seconds - undisturbed.seconds_of("pass_two") / 10
        found = simulate(made, SMALL, replace(asked, deaths={0: dies}))
        assert found.bytes_out == found.bytes_in
        partitions[durability] = (
            sum(step.partitions for step in found.steps if step.name == "pass_two")
            - undisturbed.partitions
        )
    assert partitions["none"] == pytest.approx(undisturbed.partitions / 4, abs=1)
    assert 0 < partitions["replicated"] < partitions["none"] / 4


def test_lost_input_fails_the_sort() -> None:
    with pytest.raises(SimulationError, match="no remaining node can read"):
        simulate(alike(4, GB, MB), SMALL, JobRequest(40 * MB, deaths={0: 1.0}))
    with pytest.raises(core.UsageError, match="input_copies: must be from 1 to 4"):
        simulate(alike(4, GB, MB), SMALL, JobRequest(40 * MB, input_copies=5))


def results(found: SimulatedJob) -> SimulatedJob:
    """Without what was measured of this machine."""
    return replace(found, driver_cpu_seconds=0.0)


def test_the_same_seed_gives_the_same() -> None:
    law = CapacityDistribution(
        resource="network",
        modes=[Mode(median=MB, spread=0.1, instances=3)],
        evidence="measured",
        source="",
        spread_source="",
    )
    assert np.array_equal(draw_rates(law, 50, 7), draw_rates(law, 50, 7))
    assert not np.array_equal(draw_rates(law, 50, 7), draw_rates(law, 50, 8))
    made, deaths = alike(10, MB, MB), draw_deaths(10, 2, 60.0, 3)
    asked = JobRequest(100 * MB, input_copies=3, deaths=deaths, seed=3)
    first, again = (simulate(made, SMALL, asked) for _ in range(2))
    assert results(first) == results(again)
    assert draw_deaths(10, 2, 60.0, 4) != deaths


def test_nodes_are_drawn_as_the_planner_draws_the_slowest() -> None:
    law = CapacityDistribution(
        resource="volume read",
        modes=[
            Mode(median=200.0, spread=0.05, instances=90_000),
            Mode(median=80.0, spread=0.05, instances=10_000),
        ],
        evidence="measured",
        source="",
        spread_source="",
    )
    # So many instances leave only the spread uncertain.
    slowest = [draw_rates(law, 100, seed).min() for seed in range(200)]
    planned = np.median(ClusterDraws().slowest(law, [100]))
    assert np.median(slowest) == pytest.approx(planned, rel=0.02)
    nodes = draw_rates(law, 10_000, 0)
    assert np.mean(nodes < 120) == pytest.approx(0.1, abs=0.02)


def test_slow_nodes_slow_down_all() -> None:
    made, machine = alike(10, 100 * MB, 10 * MB), SortDivision(Machine(1 << 30, 2))
    asked = JobRequest(50 * GB, even=True)
    usual = simulate(made, machine, asked).seconds_of("pass_one")
    slowed = simulate(made.with_slow_nodes(1, 0.5, 0), machine, asked).seconds_of("pass_one")
    assert slowed == pytest.approx(2 * usual, rel=0.02)


# The study's own run: 178 nodes of i2.8xlarge, placed close together, sorted 100 TB in 888 s, of
# which about 500 s were the first phase (Themis on EC2, section 5.1; table 3 has 6.76 TB a minute).
STUDY_SECONDS, STUDY_FIRST_SECONDS = 888, 500
STUDY_DIVISION = SortDivision(
    Machine(
        # The least with which partitions fill no more of a slot than is planned: the study's sort
        # is 2-IO, so none of its partitions is divided twice. It does not tell its own buffers.
        memory_bytes=80 << 30,
        cores=32,
        devices=8,
    )
)


def study_fleet(nodes: int, durability: Durability = "none") -> SimulatedCluster:
    of: ProfileIndex = index_profiles(read_profiles("themis-2014"))
    laws, job = of.offers["aws", "i2.8xlarge"][True], sort_job(durability)
    demand = layout_demand(
        job,
        "local",
        own_disks=True,
        volumes=None,
        laws=laws,
        shares=of.shares,
        network="scaled",
    )
    return draw_cluster(job, demand, {"network": TokenBucket.constant(1.25e9)}, nodes, 0)


def test_the_studys_run_is_within_ten_percent() -> None:
    made = study_fleet(178)
    link = made.pass_one.sent[made.row(LINK_OUT), 0]
    assert 1 / link == pytest.approx(879e6, rel=1e-3)  # section 5.1
    # How the study sampled its keys it does not tell: partitions are taken for even.
    found = simulate(made, STUDY_DIVISION, JobRequest(100 * TB, even=True))
    assert found.bytes_in == found.bytes_out == 100 * TB
    assert found.repartitioned_bytes == 0
    assert found.seconds == pytest.approx(STUDY_SECONDS, rel=0.1)
    # The sum is better than its parts: the network was faster in the job than NetBench had seen
    # (section 5.1: "almost fully utilized", 10 Gb/s), and disks less than in the study's table 2.
    first = found.seconds_of("pass_one")
    assert 1.2 < first / STUDY_FIRST_SECONDS < 1.35
    assert found.seconds_of("pass_two") / (STUDY_SECONDS - STUDY_FIRST_SECONDS) < 0.9


def test_a_thousand_nodes() -> None:
    deaths = draw_deaths(1_000, 2, 5.0, 1)
    machine = SortDivision(Machine(memory_bytes=8 << 30, cores=4, devices=2))
    asked = JobRequest(5 * TB, input_copies=3, deaths=deaths, seed=1)
    found = simulate(study_fleet(1_000), machine, asked)
    assert found.bytes_in == found.bytes_out == 5 * TB
    assert set(found.lost) == {f"node-{node:03}" for node in deaths}


# What breaks first.


def limits_of(nodes: int, **more: float) -> scalability_limits.ClusterLimits:
    machine = SortDivision(Machine(memory_bytes=4 << 30, cores=2))
    settings = {"mtbf_seconds": 1e12, "descriptors": 1024} | more
    return scalability_limits.cluster_limits(
        nodes, nodes * 10 * GB, machine, 1e9, 100.0, **settings
    )  # type: ignore[arg-type]


def test_sockets_are_two_for_each_peer() -> None:
    assert "sockets" not in limits_of(513).hit
    assert "sockets" in limits_of(514).hit
    assert "sockets" not in limits_of(514, descriptors=2048).hit


def test_limits_of_memory_are_those_of_the_cores_plan() -> None:
    def hit(
        nodes: int, memory: int, connections: int = 1, each: int = 10
    ) -> tuple[scalability_limits.ClusterLimits, int]:
        machine = SortDivision(Machine(memory, 2, connections=connections))
        planned = sizing.plan(each * GB, 2, nodes, machine.machine.resources)
        found = scalability_limits.cluster_limits(
            nodes, nodes * each * GB, machine, 1e9, 1e6, mtbf_seconds=1e15, descriptors=1 << 20
        )
        return found, int(planned["block_bytes"])

    large, block = hit(4, 8 << 30)
    assert block > 64 << 10 and large.hit == []
    short, block = hit(128, 1 << 30)
    assert (16 << 10) < block < (64 << 10)
    assert short.hit == ["block"]
    many, block = hit(178, 8 << 30, each=500)
    assert (16 << 10) < block < (64 << 10) and {*many.hit} == {"block", "largest partition"}
    # A block for each connection: with 160 to each of 127 peers these are short.
    crowded, block = hit(128, 1 << 30, connections=160)
    assert block < 16 << 10 and "least block" in crowded.hit
    assert "driver" not in large.hit
    slow_link = scalability_limits.cluster_limits(
        4, 40 * GB, SortDivision(Machine(8 << 30, 2)), 1.0, 1e3
    )
    assert "driver" in slow_link.hit


def test_the_probability_of_a_failure_grows_with_nodes_and_time() -> None:
    def chance(nodes: int) -> float:
        (found,) = [
            each
            for each in limits_of(nodes, mtbf_seconds=1e5).limits
            if each.name == "node failure"
        ]
        return found.value

    assert chance(10) == pytest.approx(1 - np.exp(-10 * 100.0 / 1e5))
    assert "node failure" in limits_of(200, mtbf_seconds=1e5).hit
    assert "node failure" not in limits_of(100, mtbf_seconds=1e5).hit


def test_memory_that_the_core_refuses_is_a_limit() -> None:
    machine = SortDivision(Machine(memory_bytes=64 << 20, cores=64))
    refused = scalability_limits.cluster_limits(3_000, TB, machine, 1e9, 100.0)
    assert refused.refused and "memory: " in refused.refused
    assert scalability_limits.first_limit([limits_of(10), refused]) == (3_000, ["memory"])


def test_the_largest_partition_is_that_of_a_sample() -> None:
    generator = np.random.default_rng(0)
    keys, partitions = 20, 2_000
    largest = []
    for _ in range(200):
        chosen = np.sort(generator.random(keys * partitions))
        bounds = np.concatenate([[0.0], chosen[keys::keys], [1.0]])
        largest.append(np.diff(bounds).max() * partitions)
    assert scalability_limits.largest_partition(keys, partitions) == pytest.approx(
        np.median(largest), rel=0.05
    )


def test_the_number_of_sampled_keys_is_the_drivers() -> None:
    # 4 chunks a partition, of 163 records in 16 KiB; no more than 32,768 chunks of all nodes.
    assert keys_per_partition(4, 100, 100) == 4 * 163
    assert keys_per_partition(4, 100_000, 100) == pytest.approx(32_768 * 163 / 100_000)
    assert Layout().record_bytes == 100


# The command.

COMMAND = ["simulate", "sort", "--nodes", "8", "--data", "1TB", "--offer", "i2.8xlarge"]
COMMAND += ["--catalog", "aws-us-east-1-2014", "--memory", "4GiB", "--cores", "2"]


def run(monkeypatch: pytest.MonkeyPatch, *more: str) -> str:
    monkeypatch.setattr(scalability_limits, "SIZES", (4, 16))
    done = CliRunner().invoke(app, [*COMMAND, *more], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_the_command_prints_the_cost_of_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    told = json.loads(
        run(monkeypatch, "--lose", "1", "--seed", "5", "--descriptors", "16", "--json")
    )
    assert told["disturbed"]["seconds"] > told["undisturbed"]["seconds"] > told["bound_seconds"]
    assert told["disturbed"]["bytes_out"] == told["undisturbed"]["bytes_in"] == TB
    assert [each["nodes"] for each in told["rows"]] == [4, 16]
    assert [each["hit"] for each in told["rows"]] == [[], ["sockets"]]
    # With 8 nodes, 14 sockets: the cluster of 16 is the first.
    assert told["first"] == {"nodes": 16, "limits": ["sockets"]}
    said = run(monkeypatch, "--lose", "1", "--seed", "5")
    assert "With 1 node lost after" in said and "Limits reached, by cluster size" in said


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["--durability", "volumes"],
            "--durability volumes is not valid; use one of none, replicated",
        ),
        (["--lose", "1", "--input-copies", "1", "--seed", "2"], "the job fails"),
        (["--slow", "9:0.5"], "slow: must be at most the cluster's 8 nodes"),
        (["--offer", "nothing"], "--offer"),
        (["--offer", "t2.micro"], "this profile has no measurements of t2.micro; use a --profile"),
    ],
)
def test_what_cannot_be_simulated_is_refused(arguments: list[str], said: str) -> None:
    with pytest.raises(core.UsageError, match=said):
        CliRunner().invoke(app, [*COMMAND, *arguments], catch_exceptions=False)
