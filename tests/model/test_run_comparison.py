"""Comparison of a cluster's run with its limit and its plan, and its bottlenecks."""

from __future__ import annotations

import json

import numpy as np
import pytest

from support.data.copies import replace
from support.data.runs import (
    GB,
    NODES,
    RATES,
    disks,
    lab,
    network,
    pass_one,
    pass_two,
    phase,
    plan_of,
    record,
    store,
)
from support.data.simulated import cluster_of, without_copies
from tonnage.base.records import RunRecord
from tonnage.model.jobs.mapreduce import Durability
from tonnage.model.node_capacity import NodeCapacity, cluster_capacity, work_shares
from tonnage.model.run_comparison.two_pass import (
    BOTH_WAYS,
    READ,
    RECEIVE,
    WRITE,
    compare,
    resource_uses,
)
from tonnage.simulate.cluster import bound_seconds

QUICK = {node: [pass_one(), pass_two()] for node in NODES}


def test_limits_and_bottlenecks_of_a_lab() -> None:
    found = compare(record(QUICK), cluster_capacity(lab(), NODES))
    one, two = found.phases
    assert (one.seconds, one.limit_seconds, one.limit) == (27.1, pytest.approx(25.0), SENT_OR_CAME)
    assert one.efficiency == pytest.approx(0.9225, abs=1e-3)
    assert one.bottleneck in ("network: send", RECEIVE) and one.as_limited
    assert (two.bottleneck, two.as_limited) == (READ, True)
    assert two.limit_seconds == pytest.approx(2 * GB / 120e6)
    assert found.limit and found.limit.measurements == ["disks", "net"]
    assert found.phase_efficiency == pytest.approx((25 + 16.667) / 44.5, abs=1e-3)
    assert found.limit.efficiency == pytest.approx((25 + 16.667) / 50.8, abs=1e-3)
    assert found.other_seconds == pytest.approx(6.3) and found.notes == []
    whole = replace(record(QUICK), compared=found)
    assert RunRecord.from_json(json.loads(json.dumps(whole.to_json()))) == whole


class _Either:
    """Sending and receiving take as long as each other."""

    def __eq__(self, other: object) -> bool:
        return other in ("network: send", RECEIVE)


SENT_OR_CAME = _Either()


def test_a_slow_reader_is_the_bottleneck_of_all_receivers() -> None:
    nodes = QUICK | {"n-1": [pass_one(34.0, read=0.98), pass_two()]}
    slow = {"ro": [120e6], "wo": [120e6], "rw": [60e6]}
    measured = [disks(dict.fromkeys(NODES, RATES) | {"n-1": slow}), lab()[1]]
    one, _ = compare(record(nodes), cluster_capacity(measured, NODES)).phases
    assert (one.bottleneck, one.bottleneck_node, one.slowest_node) == (READ, "n-1", "n-1")
    # It is one device: what is read and written there at once is what it has to carry.
    assert (one.limit, one.limit_node, one.as_limited) == (BOTH_WAYS, "n-1", True)
    (disk,) = (each for each in one.nodes[1].uses if each.resource == BOTH_WAYS)
    assert disk.seconds == pytest.approx(2 * GB / 60e6)


def test_a_bottleneck_other_than_the_planned_one_is_reported() -> None:
    nodes = {node: [pass_one(40.0, partition=0.95), pass_two()] for node in NODES}
    one, two = compare(record(nodes), cluster_capacity(lab(), NODES)).phases
    assert (one.bottleneck, one.as_limited) == ("cpu", None)
    slow = {node: [pass_one(40.0, write=0.95), pass_two()] for node in NODES}
    one, _ = compare(record(slow), cluster_capacity(lab(), NODES)).phases
    assert (one.bottleneck, one.as_limited) == (WRITE, False)
    assert two.as_limited


@pytest.mark.parametrize("durability", ["none", "replicated"])
def test_the_limit_is_the_lower_bound_of_simulations(durability: Durability) -> None:
    disk, link, none = np.full(4, 1 / 120e6), np.full(4, 1 / 60e6), np.zeros(4)
    simulated = cluster_of(disk, disk, link, (none, none), apart=False)
    if durability == "none":
        simulated = without_copies(simulated)
    second = pass_two()
    if durability == "replicated":
        moved = {"read": 2 * GB, "sort": 2 * GB, "send": 2 * GB, "receive": 2 * GB, "write": 4 * GB}
        second = phase("pass_two", 34.9, moved, {})
    run = record({node: [pass_one(), second] for node in NODES})
    found = compare(run, cluster_capacity(lab(), NODES)).limit
    bound = bound_seconds(simulated, run.bytes)
    assert found and found.seconds == pytest.approx(bound)


def test_a_node_alone_does_not_wait_for_the_network() -> None:
    moved = {"read": 2 * GB, "partition": 2 * GB, "send": 0, "receive": 0, "write": 2 * GB}
    alone = phase("pass_one", 20.0, moved, {"read": 0.6, "send": 0.0, "receive": 0.0})
    one, _ = compare(record({"n-0": [alone, pass_two()]}), cluster_capacity(lab(), ["n-0"])).phases
    assert one.bottleneck == READ and one.limit in (READ, WRITE) and one.as_limited
    assert one.limit_seconds == pytest.approx(2 * GB / 120e6)


def test_replication_is_limited_by_network_and_disk() -> None:
    moved = {"read": 2 * GB, "sort": 2 * GB, "send": 2 * GB, "receive": 2 * GB, "write": 4 * GB}
    second = phase("pass_two", 34.9, moved, {"read": 0.4, "receive": 0.74, "write": 0.33})
    nodes = {node: [pass_one(), second] for node in NODES}
    _, two = compare(record(nodes, 70.9), cluster_capacity(lab(), NODES)).phases
    assert two.limit_seconds == pytest.approx(33.33, abs=0.01)
    assert two.bottleneck in ("network: send", RECEIVE) and two.as_limited


def test_reading_and_writing_share_a_device_or_do_not() -> None:
    apart = NodeCapacity(read=120e6, write=125e6, mixed=118e6)
    shared = NodeCapacity(read=100e6, write=100e6, mixed=50e6)
    mixed = NodeCapacity(mixed=50e6)
    assert [each.is_shared for each in (apart, shared, mixed, NodeCapacity(read=1.0))] == [
        *(False, True, True, False)
    ]
    assert shared.mixed_seconds(2e8, 2e8) == pytest.approx(4.0)
    # Two of four are written while two are read, two more alone.
    assert shared.mixed_seconds(2e8, 4e8) == shared.mixed_seconds(4e8, 2e8) == pytest.approx(6.0)
    assert mixed.mixed_seconds(2e8, 4e8) == pytest.approx(8.0)
    assert [use.resource for use in resource_uses({READ: 1.0, WRITE: 2.0}, apart)] == [READ, WRITE]
    assert [use.resource for use in resource_uses({READ: 1.0}, shared)] == [READ]
    assert resource_uses({READ: 1.0, "cpu": 2.0}, NodeCapacity())[1].unit == "core seconds"


def test_similar_disks_get_equal_shares() -> None:
    rates = {"a": 121e6, "b": 119e6, "c": 60e6, "d": 58e6, "e": 114e6}
    nodes = {node: NodeCapacity(read=2 * rate, mixed=rate) for node, rate in rates.items()}
    found = work_shares(nodes | {"f": NodeCapacity(send=1.0)})
    assert found == {"a": 121e6, "b": 121e6, "c": 60e6, "d": 60e6, "e": 114e6}
    assert work_shares({}) == {}


def test_a_shuffles_rate_is_that_of_as_many_nodes_or_each_nodes_own() -> None:
    rates, alone = dict.fromkeys(NODES, 50e6), {node: 60e6 for node in NODES} | {"n-3": 30e6}
    alike = cluster_capacity([network(rates, alone)], NODES).nodes
    assert {each.send for each in alike.values()} == {50e6}
    unlike = cluster_capacity([network(rates, alone, types=2)], NODES).nodes
    assert (unlike["n-0"].receive, unlike["n-3"].receive) == (60e6, 30e6)
    fewer = cluster_capacity([network(rates, alone)], NODES[:3]).nodes
    assert set(fewer) == {*NODES[:3]} and fewer["n-0"].send == 60e6
    assert cluster_capacity([network(rates, alone)], NODES).measurements == ("net",)
    assert cluster_capacity([], NODES).nodes == {}


def test_missing_measurements_are_noted() -> None:
    found = compare(record(QUICK), cluster_capacity([network(dict.fromkeys(NODES, 60e6))], NODES))
    assert found.limit is None and found.phases[0].limit_seconds == pytest.approx(25.0)
    assert found.phases[1].limit is None
    assert found.notes == [
        "the limit omits the disk, reading, which was not measured on n-0, n-1, n-2 and n-3",
        "the limit omits the disk, writing, which was not measured on n-0, n-1, n-2 and n-3",
    ]
    nothing = compare(record(QUICK))
    assert nothing.limit is None and nothing.notes == []
    assert [each.bottleneck for each in nothing.phases][1] == READ
    assert compare(record({}, 0.0)).phases == []


def test_losses_and_resumption_are_noted() -> None:
    again = {node: [pass_one(), pass_one(3.0), pass_two()] for node in NODES[:3]}
    found = compare(replace(record(again, 20.0), commands=2), cluster_capacity(lab(), NODES))
    assert found.phases[0].seconds == pytest.approx(30.1)
    assert found.other_seconds is None
    assert found.notes == [
        "the job took 2 commands: the total time is that of the last one, while "
        "the phases cover all of them",
        "4.00 GB were read again after a node was lost; the limit counts them as demand",
    ]


def test_objects_count_as_network_traffic() -> None:
    settings = {"inputs": ["s3://b/in/"], "output": ["s3://b/out/"], "memory_bytes": 1}
    nodes = {node: [pass_one(60.0, read=0.9), pass_two(44.0, write=0.98)] for node in NODES}
    measured = [*lab(), store({"get": 55e6, "put": 50e6})]
    found = compare(record(nodes, 110.0, settings=settings), cluster_capacity(measured, NODES))
    one, two = found.phases
    needs = [{use.resource: use.seconds for use in each.nodes[0].uses} for each in (one, two)]
    assert needs[0] == {
        "object get": pytest.approx(2 * GB / 55e6),
        "network: send": pytest.approx(1.5 * GB / 60e6),
        # What is got comes by the link that the shuffle has, too.
        RECEIVE: pytest.approx(3.5 * GB / 60e6),
        WRITE: pytest.approx(2 * GB / 120e6),
        "cpu": None,
    }
    assert (one.bottleneck, one.limit, one.as_limited) == ("object get", RECEIVE, True)
    assert needs[1].keys() == {READ, "object put", "network: send", "cpu"}
    assert (two.bottleneck, two.limit, two.as_limited) == ("object put", "object put", True)
    assert two.limit_seconds == pytest.approx(40.0) and found.notes == []


def test_the_fastest_setting_of_an_object_store_counts() -> None:
    measured = [store({"get": 30e6}, threads=4), store({"get": 55e6}, threads=16)]
    assert cluster_capacity(measured, NODES).nodes["n-0"].get == 55e6


def test_a_run_is_compared_with_its_plan() -> None:
    plan = plan_of()
    found = compare(record(QUICK), None, plan, plan.candidates[0])
    assert [each.planned_seconds for each in found.phases] == [25.0, 17.0]
    assert [each.as_planned for each in found.phases] == [True, True]
    assert found.planned and found.planned.inside and found.planned.seconds.median == 42.0
    disk = {node: [pass_one(40.0, read=0.95), pass_two()] for node in NODES}
    one, _ = compare(record(disk), None, plan, plan.candidates[0]).phases
    assert one.as_planned is False


def test_a_plan_of_another_size_is_scaled() -> None:
    plan = plan_of(size=16_000_000_000)
    found = compare(record(QUICK), None, plan, plan.candidates[0])
    assert [each.planned_seconds for each in found.phases] == [12.5, 8.5]
    assert found.planned and found.planned.seconds.high == 25.5 and not found.planned.inside
    assert found.notes == ["the plan was for 16.0 GB; its seconds are scaled to 8.00 GB"]
