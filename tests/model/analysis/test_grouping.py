"""What the analysis keeps apart: whatever was done in another way, or in another place, is not one.

Each pair is two measurements of one machine that differ in one thing; and a network's round is one
value, however many endpoints had a part in it.
"""

from collections.abc import Sequence
from typing import Any

import pytest

from model.analysis.test_analysis import OURS, imported, measured, subject, trial
from support.data.copies import replace
from support.data.measurements import ENVIRONMENT, PHASE
from tonnage.base.records import Device, Measurement, Metric, Source, Trial, TrialSpec
from tonnage.base.records.analysis import Analysis
from tonnage.model.analysis.analyse import analyse
from tonnage.model.analysis.comparisons import compare_layouts_of


def on(device: str, directory: str, host: str = "a") -> dict[str, Any]:
    """The environment of a measurement of a directory on a device."""
    held = Device(
        name=device,
        directories=[directory],
        file_system="xfs",
        mount_options="",
        scheduler=None,
        rotational=None,
        size_bytes=None,
        model=None,
    )
    return {"environment": replace(ENVIRONMENT, host=host, devices=[held])}


def one(name: str, kind: str = "ops", **fields: Any) -> Measurement:
    """A measurement of machine a, or of another, with a trial of one operation."""
    suite = {"over-time": "over-time", "ops": "explore"}.get(kind, kind)
    known = {"id": name, "kind": kind, "settings": {}, **fields}
    return measured("a", [trial("read4m", 1, 100.0, suite=suite)], **known)


def named(*measurements: Measurement) -> list[str]:
    """The subjects' names."""
    return sorted(each.name for each in analyse(measurements).subjects)


LAYOUT = {"layout": "raid0", "devices": ["/dev/a", "/dev/b"], "size_bytes": 1 << 30}
OBJECT = {"bucket": "mine", "endpoint": "http://here"}
NET_SETTINGS = {"endpoints": 2, "connections": 1, "one_way": False, "namespaces": True}
GBIT = 10**9
PAIRS: dict[str, tuple[Measurement, Measurement, list[str]]] = {
    "devices": (
        one("1", **on("vda", "/mnt/a")),
        one("2", **on("vdb", "/mnt/a")),
        ["device vda", "device vdb"],
    ),
    "directories": (
        one("1", settings={"directory": "/mnt/a"}, **on("vda", ".")),
        one("2", settings={"directory": "/mnt/b"}, **on("vda", ".")),
        ["directory /mnt/a", "directory /mnt/b"],
    ),
    "directories on no block device": (
        one("1", **on("0:45", "/mnt/a")),
        one("2", **on("0:46", "/mnt/b")),
        ["directory /mnt/a", "directory /mnt/b"],
    ),
    "directories that are read": (
        one("1", "disk", settings={"read": ["/mnt/a"], "write": ["/mnt/a"]}, **on("vda", "/mnt/a")),
        one("2", "disk", settings={"read": ["/mnt/b"], "write": ["/mnt/a"]}, **on("vda", "/mnt/a")),
        ["directory /mnt/a", "directory /mnt/b, /mnt/a"],
    ),
    "sizes": (
        one("1", "disk", settings={"bytes": 1 << 30}),
        one("2", "disk", settings={"bytes": 2 << 30}),
        ["size 1 GiB", "size 2 GiB"],
    ),
    "file sizes": (
        one("1", settings={"file_bytes": 1 << 30}),
        one("2", settings={"file_bytes": 4 << 30}),
        ["file 1 GiB", "file 4 GiB"],
    ),
    "a worker's part": (
        one("1", "stream", settings={"block_bytes": 1 << 20}),
        one("2", "stream", settings={"block_bytes": 1 << 30}),
        ["part 1 GiB", "part 1 MiB"],
    ),
    "exploring and over time": (one("1"), one("2", "over-time"), ["", "suite over-time"]),
    "endpoints of a store": (
        one("1", "object", settings=OBJECT),
        one("2", "object", settings=OBJECT | {"endpoint": "http://there"}),
        ["endpoint http://here", "endpoint http://there"],
    ),
    "buckets": (
        one("1", "object", settings=OBJECT),
        one("2", "object", settings=OBJECT | {"bucket": "yours"}),
        ["bucket mine", "bucket yours"],
    ),
    "file systems of layouts": (
        one("1", "layouts", settings=LAYOUT | {"file_system": "btrfs"}),
        one("2", "layouts", settings=LAYOUT | {"file_system": "xfs"}),
        ["file system btrfs", "file system xfs"],
    ),
    "stripes": (
        one("1", "layouts", settings=LAYOUT | {"stripe_bytes": 1 << 16}),
        one("2", "layouts", settings=LAYOUT | {"stripe_bytes": 1 << 19}),
        ["stripe 512 KiB", "stripe 64 KiB"],
    ),
    "devices that are laid out": (
        one("1", "layouts", settings=LAYOUT),
        one("2", "layouts", settings=LAYOUT | {"devices": ["/dev/c", "/dev/d"]}),
        ["device /dev/a, /dev/b", "device /dev/c, /dev/d"],
    ),
}


@pytest.mark.parametrize("case", PAIRS)
def test_other_conditions_are_another_group(case: str) -> None:
    first, second, apart = PAIRS[case]
    assert named(first, second) == [", ".join(filter(None, ("read4m", each))) for each in apart]
    again = replace(first, id="again")
    (found,) = analyse([first, again]).subjects
    assert found.name == "read4m" and found.rate and found.rate.size == 2


def test_names_of_devices_may_differ_between_machines() -> None:
    cluster = [one(host, **on(f"nvme{host}", f"/mnt/{host}", host)) for host in "123"]
    (found,) = analyse(cluster).subjects
    assert found.name == "read4m" and found.rate and found.rate.size == 3


def test_direct_and_buffered_are_compared_on_each_device() -> None:
    def both(device: str, direct: float) -> Measurement:
        trials = [trial("read4m", 1, direct), trial("read4m", 1, 100.0, direct=False)]
        return measured("a", trials, id=device, settings={}, **on(device, "/mnt"))

    # Buffered was tried on one of them only, and what both are in is one place.
    found = analyse([both("vda", 50.0), one("other", **on("vdb", "/mnt"))]).direct_against_buffered
    assert [(each.subject, each.ratio.value) for each in found] == [("read4m", 0.5)]
    found = analyse([both("vda", 50.0), both("vdb", 200.0)]).direct_against_buffered
    assert [(each.subject, each.ratio.value) for each in found] == [
        ("read4m, device vda", 0.5),
        ("read4m, device vdb", 2.0),
    ]


def test_a_write_is_compared_with_reads_of_its_device() -> None:
    def of(device: str, operation: str, p50: float) -> Measurement:
        trials = [trial(operation, 1, 100.0, p50=p50)]
        return measured("a", trials, id=f"{operation} {device}", **on(device, "/mnt"))

    write, slow, quick = of("vda", "write4k", 2e-3), of("vdb", "read4k", 3e-3), 1e-3
    assert not [said for said in analyse([write, slow]).warnings if "durability" in said]
    both = [write, of("vda", "read4k", quick), slow]
    assert not [said for said in analyse(both).warnings if "durability" in said]


def test_each_stripe_is_compared_with_the_single_device() -> None:
    def laid_out(layout: str, rate: float, stripe: int | None) -> Measurement:
        settings = LAYOUT | {"layout": layout, "stripe_bytes": stripe, "file_system": "xfs"}
        trials = [trial("read4m", 1, rate, suite="layouts")]
        return measured("a", trials, id=f"{layout} {stripe}", kind="layouts", settings=settings)

    few = [laid_out("single", 100.0, None), laid_out("raid0", 150.0, 1 << 16)]
    assert [(each.way, each.ratio.value) for each in compare_layouts_of(few)] == [("raid0", 1.5)]
    more = [*few, laid_out("raid0", 190.0, 1 << 19)]
    assert [(each.way, each.than, each.ratio.value) for each in analyse(more).layouts] == [
        ("raid0, stripe 512 KiB", "single", 1.9),
        ("raid0, stripe 64 KiB", "single", 1.5),
    ]


def test_each_host_that_an_imported_file_names_is_an_instance() -> None:
    def of(host: str | None, rate: float) -> Metric:
        return Metric(
            source=Source(tool="fio", version="3.36"),
            operation="randread",
            bandwidth_bytes_per_second=rate,
            details={"host": host},
        )

    two = imported("import-1", of("x", 1.0), of("y", 3.0), of("x", 5.0))
    (found,) = analyse([two]).subjects
    assert [each.name for each in found.instances] == ["import-1, x", "import-1, y"]
    assert found.rate and (found.rate.size, found.rate.over) == (2, "instances")
    # Of one host, or of a tool whose host is the one that it talked to, it is one.
    (found,) = analyse([imported("import-1", of("x", 1.0), of("x", 5.0))]).subjects
    assert [each.name for each in found.instances] == ["import-1"]
    met = [replace(each, source=Source(tool="iperf3")) for each in two.imported]
    (found,) = analyse([imported("import-1", *met)]).subjects
    assert [each.name for each in found.instances] == ["import-1"]


# The network.


def sent(endpoint: int, number: int, rate: float, way: str = "send") -> Trial:
    """What an endpoint sent, or received, in a round."""
    reading = Metric(
        source=OURS,
        operation=way,
        block_bytes=1 << 20,
        concurrency=1,
        bandwidth_bytes_per_second=rate,
        details={"endpoint": endpoint, "endpoints": 2, "connections_per_pair": 1},
    )
    return Trial(
        name=f"{way}, endpoint {endpoint}",
        bytes_per_second=rate,
        cpu_seconds_per_byte=1e-9 * (1 + endpoint),
        warm_up_seconds=0.0,
        rates=[],
        phase=PHASE,
        began_at=f"2026-01-01T00:00:{number:02}+00:00",
        step=TrialSpec(operation=way, outstanding=1, round=number, suite="net"),
        reading=reading,
    )


def network(name: str, rates: Sequence[tuple[float, float]], **settings: Any) -> Measurement:
    """Rounds in which two endpoints sent so much each, and received as much."""
    trials = [
        sent(endpoint, number, rate, way)
        for number, of_round in enumerate(rates)
        for way in ("send", "receive")
        for endpoint, rate in enumerate(of_round)
    ]
    return measured("a", trials, id=name, kind="net", settings=NET_SETTINGS | settings)


def figures(analysis: Analysis) -> dict[str, tuple[float, int, str]]:
    """What each subject that sends gave."""
    return {
        each.name: (each.rate.value, each.rate.size, each.rate.over)
        for each in analysis.subjects
        if each.rate and each.operation == "send"
    }


def test_a_round_is_one_value_of_the_slowest_endpoint_and_one_of_all() -> None:
    rates = [(10.0, 90.0), (80.0, 30.0), (20.0, 100.0)]
    analysis = analyse([network("net", rates)])
    assert figures(analysis) == {
        "send, all endpoints": (110, 3, "trials"),
        "send, each endpoint": (55, 2, "instances"),
        "send, slowest endpoint": (20, 3, "trials"),
    }
    apart = subject(analysis, "send, each endpoint")
    assert {each.name: each.rate.value for each in apart.instances} == {
        "a, endpoint 0": 20,
        "a, endpoint 1": 90,
    }
    # A point a round, though all endpoints of one began at the same moment.
    (course,) = subject(analysis, "send, slowest endpoint").courses
    assert course.seconds == [0, 1, 2] and course.shares == pytest.approx([1 / 3, 1, 2 / 3], 1e-3)
    together = subject(analysis, "send, all endpoints")
    assert together.concurrencies == [2]
    # Of each byte that all sent, not of each endpoint: 10 at 1 and 90 at 2, then 80 and 30.
    assert together.chosen.cpu_seconds_per_byte == pytest.approx(220 / 120 * 1e-9)


def test_a_round_that_was_cut_short_does_not_count() -> None:
    whole = network("net", [(10.0, 90.0), (1.0, 2.0)])
    cut = replace(whole, trials=whole.trials[:-1])
    assert figures(analyse([cut]))["send, slowest endpoint"] == (10, 1, "trials")


NETWORKS: dict[str, tuple[dict[str, Any], dict[str, Any], list[str]]] = {
    "namespaces": ({"namespaces": False}, {}, ["namespaces no", "namespaces yes"]),
    "rates": (
        {"rate_bits_per_second": GBIT},
        {"rate_bits_per_second": 2 * GBIT},
        ["rate 1,000 Mbit/s", "rate 2,000 Mbit/s"],
    ),
}


@pytest.mark.parametrize("case", NETWORKS)
def test_unlike_networks_are_separate_groups(case: str) -> None:
    first, second, apart = NETWORKS[case]
    found = figures(
        analyse([network("1", [(1.0, 2.0)], **first), network("2", [(3.0, 4.0)], **second)])
    )
    assert [name for name in found if "slowest" in name] == [
        f"send, slowest endpoint, {each}" for each in apart
    ]


def test_one_way_is_not_all_to_all() -> None:
    both = network("1", [(10.0, 20.0)])
    alone = [sent(0, 0, 40.0), sent(1, 0, 40.0, "receive")]
    one_way = replace(both, id="2", trials=alone, settings=NET_SETTINGS | {"one_way": True})
    found = figures(analyse([both, one_way]))
    assert found["send, slowest endpoint, one way no"][0] == 10
    assert found["send, slowest endpoint, one way yes"][0] == 40
