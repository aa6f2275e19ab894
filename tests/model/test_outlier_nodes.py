"""Outlier nodes of made-up clusters, and the gain of a job without them."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.cli.command import Tonnage
from support.data.copies import replace
from support.data.measurements import measurement
from support.data.networks import SETTINGS, network
from tonnage.base.records import ClusterMeasurement, ClusterNode
from tonnage.base.records.job import Demand, Job, JobPhase
from tonnage.base.records.network_rounds import RECEIVE, SEND
from tonnage.catalog import load_catalog
from tonnage.cli.measure.screen import ScreenOptions, why_too_small
from tonnage.cli.output.screening import ScreenedJob, print_screening
from tonnage.cluster.ray_adapter import Machine
from tonnage.model.jobs.mapreduce import mapreduce_job, sort_job
from tonnage.model.jobs.reduce import reduce_job
from tonnage.model.outlier_nodes import FAULTY, measured_rates, screen, why_too_few
from tonnage.plan.recommendations.drop_nodes import (
    MeasuredNode,
    NotEstimable,
    gain,
    resources_off_node,
)

BRIEF = replace(SETTINGS, brief=True)
HEALTHY = {f"n{number}": 100.0 + 0.2 * number for number in range(6)}
LINKS = {name: (rate, rate + 1) for name, rate in HEALTHY.items()}


def cluster_of(
    rates: Mapping[str, float], types: Mapping[str, str] | None = None, dead: Sequence[str] = ()
) -> ClusterMeasurement:
    """A made-up disk measurement of a cluster: read rates by node; some nodes failed."""
    rows = [
        ClusterNode(
            node=name,
            machine_type=(types or {}).get(name, "m"),
            ok=True,
            measurement=measurement(name, {"ro": [rate, rate * 1.01, rate * 0.99], "wo": [50.0]}),
        )
        for name, rate in rates.items()
    ]
    rows += [ClusterNode(node=name, ok=False, why="died", faulty=True) for name in dead]
    return ClusterMeasurement(
        id="f", kind="disk", began_at="now", command=[], settings={}, nodes=rows
    )


def test_screening_names_slow_and_failed_machines() -> None:
    found = screen(cluster_of(HEALTHY | {"n3": 60.0}, dead=["n9"]))
    assert [(each.node, each.what) for each in found.suspects] == [("n9", FAULTY), ("n3", "ro")]
    slow = found.suspects[1]
    assert slow.ratio_to_median == pytest.approx(0.6, rel=0.01) and 0.95 <= slow.confidence < 1
    assert found.not_judged == {} and found.decommission == ["n3", "n9"]
    assert screen(cluster_of(HEALTHY)).suspects == []


def test_screening_compares_within_a_type_and_lists_machines_not_judged() -> None:
    slow_type = {f"s{number}": 30.0 + 0.1 * number for number in range(4)}
    types = dict.fromkeys(slow_type, "small")
    assert screen(cluster_of(HEALTHY | slow_type, types)).suspects == []
    found = screen(cluster_of(HEALTHY | slow_type | {"s1": 15.0}, types))
    assert [each.node for each in found.suspects] == ["s1"]
    alone = screen(cluster_of(HEALTHY | {"x": 1.0}, {"x": "large"}))
    assert (alone.suspects, list(alone.not_judged)) == ([], ["x"])
    few = screen(cluster_of(dict(list(HEALTHY.items())[:4]) | {"n0": 1.0}))
    assert few.suspects == [] and set(few.not_judged) == {"n0", "n1", "n2", "n3"}


@given(
    count=st.integers(6, 12),
    slow=st.integers(0, 5),
    factor=st.floats(0.02, 0.8),
    way=st.sampled_from([SEND, RECEIVE]),
)
@settings(derandomize=True, max_examples=30)
def test_a_slow_link_is_named_with_its_direction(
    count: int, slow: int, factor: float, way: str
) -> None:
    # Few are measured alone and many all at once; with it all, the shuffle is slow for everybody.
    links = {f"n{number}": (100.0 + 0.2 * number, 90.0 + 0.2 * number) for number in range(count)}
    send, receive = links[f"n{slow}"]
    links[f"n{slow}"] = (send * factor, receive) if way == SEND else (send, receive * factor)
    found = screen(cluster_of(dict.fromkeys(links, 100.0)), network(links, BRIEF))
    assert [(each.node, each.what) for each in found.suspects] == [(f"n{slow}", way)]
    ratio = found.suspects[0].ratio_to_median
    assert ratio == pytest.approx(factor, rel=0.05) and found.decommission == [f"n{slow}"]


def test_machines_lost_in_the_network_test_are_faulty_unless_left_alone() -> None:
    disks = cluster_of(HEALTHY, dead=["n9"])
    found = screen(disks, network(LINKS, BRIEF, lost={"n2": "died"}))
    assert [(each.node, each.what) for each in found.suspects] == [("n9", FAULTY), ("n2", FAULTY)]
    two = {name: LINKS[name] for name in ("n0", "n1")}
    lost = {"n0": "died", "n1": "no other machine is there"}
    found = screen(cluster_of(dict.fromkeys(two, 1.0)), network(two, BRIEF, lost=lost))
    assert found.decommission == ["n0"]
    # What nobody could do, and nobody is to blame for.
    lost = dict.fromkeys(LINKS, "alone failed")
    found = screen(cluster_of(HEALTHY), network(LINKS, BRIEF, lost=lost))
    assert found.suspects == [] and found.not_judged == lost


@pytest.mark.parametrize(
    ("types", "judged"),
    [
        (["m"] * 4, False),
        (["m"] * 5, True),
        (["m"] * 3 + ["s"] * 2, False),
        (["m"] * 3 + ["s"] * 3, True),
        (["m"] * 2 + ["s"] * 2 + ["t"] * 2, False),
        # Who does not tell its type may be like any.
        (["m"] * 3 + ["s", None], True),
        ([None] * 4, False),
    ],
)
def test_a_cluster_too_small_to_judge_is_known_in_advance(
    types: Sequence[str | None], judged: bool
) -> None:
    assert (why_too_few(types) is None) == judged
    named = {type_: labelled(type_) for type_ in types}
    machines = [Machine(str(place), named[type_], "", "") for place, type_ in enumerate(types)]
    why = why_too_small(machines, ScreenOptions()) or ""
    assert ("needs at least 5 nodes whose machine type" in why) != judged


def labelled(type_: str | None) -> dict[str, str]:
    """The labels of a machine of this type."""
    return {"machine-type": type_} if type_ else {}


def test_a_requested_cluster_can_be_too_small() -> None:
    machines = [Machine(str(place), {}, "", "") for place in range(9)]
    assert why_too_small(machines, ScreenOptions(nodes=5)) is None
    why = why_too_small(machines, ScreenOptions(nodes=4))
    assert why and why.startswith("4 nodes; needs at least 5")


def test_measured_rates_are_by_resource_without_lost_nodes() -> None:
    disks = cluster_of(HEALTHY, dead=["n9"])
    assert measured_rates(disks)["n3"] == {"local read": pytest.approx(100.6), "local write": 50.0}
    found = measured_rates(disks, network(LINKS, BRIEF, lost={"n2": "died"}))
    assert sorted(found) == ["n0", "n1", "n3", "n4", "n5"]
    # All to all as fast as the slowest link: nothing is lost by it.
    links = LINKS | {"n4": (20.0, 80.0)}
    found = measured_rates(disks, network(links, BRIEF))
    network_of = {node: rates["network"] for node, rates in found.items()}
    assert network_of == {node: pytest.approx(min(both)) for node, both in links.items()}


RATE = st.floats(1e6, 1e9)
CARRIES = st.fixed_dictionaries({"local read": RATE, "local write": RATE, "network": RATE})


@given(some=st.lists(CARRIES, min_size=2, max_size=6), size=st.integers(10**6, 10**14))
@settings(derandomize=True)
def test_a_forecast_follows_the_equations_of_the_slowest_machine(
    some: list[dict[str, float]], size: int
) -> None:
    nodes = [MeasuredNode(str(number), each, None, None) for number, each in enumerate(some)]

    def expected_seconds(some: list[dict[str, float]]) -> float:
        read, write, net = (
            size / len(some) / min(each[name] for each in some)
            for name in ("local read", "local write", "network")
        )
        # Reading and writing share the disks: equations 1 and 3, rates measured apart. A node
        # keeps its own part of the shuffle.
        return max(read + write, net * (1 - 1 / len(some))) + read + write

    found = gain(sort_job(), size, nodes, ["0"])
    assert found.all_nodes.seconds == pytest.approx(expected_seconds(some))
    assert found.remaining.seconds == pytest.approx(expected_seconds(some[1:]))
    assert found.seconds == pytest.approx(
        expected_seconds(some) - expected_seconds(some[1:]), abs=1e-6 * expected_seconds(some)
    )
    assert (found.all_nodes.nodes, found.remaining.nodes) == (len(some), len(some) - 1)
    assert found.usd is None and found.notes == ["CPU time is not included"]


def test_costs_are_of_each_machine_and_a_job_that_does_not_fit_is_refused() -> None:
    catalog = load_catalog("aws-us-east-1-2014")
    small, large = (
        next(each for each in catalog.offers if each.type == kind)
        for kind in ("i2.xlarge", "i2.2xlarge")
    )
    rates = {"local read": 1e8, "local write": 1e8, "network": 1e8}
    nodes = [
        MeasuredNode("a", rates, small, catalog.billing),
        MeasuredNode("b", rates, large, catalog.billing),
    ]
    nodes.append(MeasuredNode("c", rates | {"network": 1e6}, large, catalog.billing))
    found = gain(sort_job(), 10**11, nodes, ["c"])
    assert small.on_demand and large.on_demand
    hourly = small.on_demand.usd_per_hour + large.on_demand.usd_per_hour
    assert found.remaining.usd == pytest.approx(hourly * found.remaining.seconds / 3600)
    assert found.usd and found.usd > 0
    for size, machines, share in ((7 * 10**11, 2, "1.05 TB"), (10**12, 3, "1.00 TB")):
        message = f"does not fit on {machines} nodes: each must store {share}, but .* a have only"
        with pytest.raises(NotEstimable, match=message):
            gain(sort_job(), size, nodes, ["c"])
    # What machines hold of which nobody tells is not held against them.
    gain(sort_job(), 10**12, [replace(each, offer=None) for each in nodes], ["c"])
    # Nor is it that one has no disks of its own: then what was looked at are others.
    volumes = replace(small, disks=[])
    assert volumes.local_bytes == 0
    gain(sort_job(), 10**12, [replace(each, offer=volumes) for each in nodes], ["c"])


def test_cores_count_if_a_catalog_has_them() -> None:
    catalog = load_catalog("aws-us-east-1-2014")
    offer = next(each for each in catalog.offers if each.type == "i2.xlarge")
    demand = Demand(resource="cpu", per_byte=1e-6, source="made up")
    job = Job(name="busy", phases=[JobPhase(name="one", demands=[demand])], room=[])
    nodes = [MeasuredNode(name, {}, offer, catalog.billing) for name in "ab"]
    found = gain(job, 10**9, nodes, [])
    assert offer.vcpus and found.notes == []
    assert found.all_nodes.seconds == pytest.approx(1000 / 2 / offer.vcpus)
    with pytest.raises(NotEstimable, match="cores"):
        gain(job, 10**9, [replace(each, offer=None) for each in nodes], [])


def test_what_cannot_be_estimated_is_refused() -> None:
    rates = {"local read": 1.0, "local write": 1.0, "network": 1.0}
    nodes = [MeasuredNode(name, rates, None, None) for name in "ab"]
    with pytest.raises(NotEstimable, match="no node remains"):
        gain(sort_job(), 1, nodes, "ab")
    with pytest.raises(NotEstimable, match="no measurement of network"):
        few = {name: rate for name, rate in rates.items() if name != "network"}
        gain(sort_job(), 1, [replace(each, rates=few) for each in nodes], [])
    with pytest.raises(NotEstimable, match="network was not measured on all nodes"):
        gain(sort_job(), 1, [nodes[0], MeasuredNode("b", few, None, None)], [])
    with pytest.raises(NotEstimable, match=r"b moved no data \(network\)"):
        gain(sort_job(), 1, [nodes[0], MeasuredNode("b", rates | {"network": 0.0}, None, None)], [])
    assert resources_off_node(sort_job()) == []
    assert resources_off_node(mapreduce_job(read_from="volumes", written_to="volumes")) == [
        "volumes"
    ]
    assert resources_off_node(reduce_job()) == ["object storage"]


def test_screening_prints_all_findings(capsys: pytest.CaptureFixture[str]) -> None:
    disks = cluster_of(HEALTHY | {"n3": 25.0}, dead=["n9"])
    links = LINKS | {"n1": (20.0, 102.0)}
    job = ScreenedJob(sort_job(), 10_000, [load_catalog("aws-us-east-1-2014")])
    print_screening(disks, network(links, BRIEF), Path(), job, False)
    lines = capsys.readouterr().out.splitlines()
    assert "Missing: n9: died" in lines and "Suspect: n9, its measurement failed" in lines
    for said in ("n3, read only: 25 %", "n1, sending: 20 %"):
        assert any(
            line.startswith(f"Suspect: {said} of the median of its machine type, ")
            for line in lines
        )
    assert lines[-5:] == [
        "Nodes to remove: n1, n3 and n9",
        # The slowest read 25 bytes a second, wrote 50 and sent 20.
        "A sort of 10.0 kB: 3.3 min, price unknown, on 6 nodes",
        "Without the suspect nodes: 2.5 min, price unknown, on 4 nodes",
        "Without them, the job is 50 s faster",
        "CPU time is not included.",
    ]
    print_screening(cluster_of({"n0": 1.0}), None, Path(), None, False)
    said = capsys.readouterr().out
    assert "The network was not tested; a network test needs at least two nodes." in said
    assert "Not judged: n0. Reason: fewer than 3 " in said


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--data", "1TB"), "--data needs --job; add --job"),
        (("--job", "sort"), "--job needs --data; add the size of the job's input"),
        (("--job", "reduce", "--data", "1TB"), "--job reduce needs object storage"),
        (("--job", "sort", "--data", "1TB", "--catalog", "no"), "--catalog: unknown catalog no"),
    ],
)
def test_wrong_flags_are_refused(tonnage: Tonnage, flags: Sequence[str], said: str) -> None:
    done = tonnage.run("measure", "screen", *flags)
    assert done.returncode == 2 and done.stdout == "" and said in done.stderr
