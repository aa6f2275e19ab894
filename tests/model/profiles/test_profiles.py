"""Profiles from measurements: simulated distributions are recovered; unused parts are listed."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.cli.command import Tonnage
from support.data.copies import replace
from support.data.measurements import ENVIRONMENT, PHASE
from support.data.offers import catalog, distribution, offer
from support.data.offers import profile as made_up
from support.stores.disk import ROOT
from tonnage.base import core
from tonnage.base.records import Device, Measurement, Metric, Source, Study, Trial, TrialSpec
from tonnage.base.records.profile import CapacityDistribution, Profile
from tonnage.measure.trial import environment
from tonnage.model.jobs.mapreduce import sort_job
from tonnage.model.profiles.build import AdvertisedRate, AdvertisedRates, build_profile
from tonnage.model.profiles.offer_matching import OfferAssignments, OfferError
from tonnage.model.profiles.repository import ProfileError, index_profiles, read_profiles
from tonnage.model.slowest_node import ClusterDraws
from tonnage.plan.planner import PlanRequest, plan
from tonnage.plan.resources.machines import advertised_rates

BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
M = ("aws", "m")
GIGABIT = 1e9 / 8
TB = 10**12


def device(name: str = "nvme1n1", model: str | None = "Amazon EC2 NVMe Instance Storage") -> Device:
    return Device(
        name=name,
        directories=[f"/{name}"],
        file_system="xfs",
        mount_options="rw",
        scheduler=None,
        rotational=False,
        size_bytes=None,
        model=model,
    )


def trial(name: str, rate: float, **changed: Any) -> Trial:
    made = Trial(
        name=name,
        bytes_per_second=rate,
        cpu_seconds_per_byte=1e-9,
        warm_up_seconds=0.0,
        rates=[rate],
        phase=PHASE,
    )
    return replace(made, **changed)


def measurement_of(
    trials: Sequence[Trial],
    *,
    kind: str = "disk",
    host: str = "node-0",
    days: float = 0.0,
    type: str | None = "m",
    devices: Sequence[Device] = (device(),),
    settings: Mapping[str, Any] | None = None,
) -> Measurement:
    """A measurement on a machine that tells its type, or does not."""
    return Measurement(
        id=f"{kind}-{host}-{days:g}",
        kind=kind,
        began_at=(BEGAN + timedelta(days=days)).isoformat(),
        command=["test"],
        environment=replace(
            ENVIRONMENT,
            host=host,
            devices=list(devices),
            provider="aws" if type else None,
            machine_type=type,
        ),
        settings={"read": ["/nvme1n1"], "write": ["/nvme1n1"], **(settings or {})},
        stopping_rule="none",
        page_cache="none",
        trials=list(trials),
    )


def disks(rates: Mapping[str, Sequence[float]], **named: Any) -> Measurement:
    return measurement_of(
        [trial(way, rate) for way, each in rates.items() for rate in each], **named
    )


def network(nodes: Mapping[int, float], *, type: str | None = None, **settings: Any) -> Measurement:
    """Rounds of an endpoint each with these rates, received a little faster than sent."""
    endpoints = len(nodes)
    found = [
        trial(
            way,
            rate * more,
            step=TrialSpec(operation=way, outstanding=1, round=number, suite="net"),
        )
        for number in range(3)
        for way, more in (("send", 1.0), ("receive", 1.1))
        for rate in nodes.values()
    ]
    told = {
        "endpoints": endpoints,
        "one_way": False,
        "namespaces": True,
        "rate_bits_per_second": 10**9,
        "connections": 2,
    }
    return measurement_of(
        found,
        kind="net",
        host=f"lab-{endpoints}",
        type=type,
        settings=told | settings,
    )


def shuffled(
    node: str,
    rates: Mapping[tuple[int, int], float],
    types: Sequence[str] = ("large",),
    pattern: str = "all to all",
) -> Measurement:
    """A node's part, all to all, by how many there were and connections a pair; two rounds."""
    found = [
        trial(
            f"{way}, {pattern}",
            rate * more,
            step=TrialSpec(operation=way, outstanding=1, round=number, suite="net"),
            reading=Metric(
                source=Source(tool="tonnage"),
                operation=way,
                details={
                    "pattern": f"{pattern} of {size}" if pattern == "all to all" else pattern,
                    "attempt": f"{number}",
                    "endpoints": size,
                    "connections_per_pair": connections,
                    "machine_types": list(types),
                    "node_names": [f"node-{at}" for at in range(size)],
                },
            ),
        )
        for (size, connections), rate in rates.items()
        for number in range(2)
        for way, more in (("send", 1.0), ("receive", 1.2))
    ]
    return measurement_of(found, kind="net", host=node, settings={})


def store(operation: str, chunk: int, threads: int, rate: float) -> Trial:
    return trial(
        f"{operation} {chunk} x{threads}",
        rate,
        step=TrialSpec(operation=operation, outstanding=threads, round=0, block_bytes=chunk),
        reading=Metric(
            source=Source(tool="tonnage"),
            operation="get" if operation == "get" else "put",
            block_bytes=chunk,
        ),
    )


def built(
    measurements: Sequence[Measurement], figures: AdvertisedRates | None = None, **named: Any
) -> Profile:
    found = build_profile(
        measurements, figures or {}, name="p", made_at="2026-01-01T00:00:00+00:00", **named
    )
    assert Profile.from_json(json.loads(json.dumps(found.to_json()))) == found
    return found


def distributions(found: Profile, place: int = 0) -> dict[str, CapacityDistribution]:
    return {law.resource: law for law in found.offers[place].laws}


def why(found: Profile) -> str:
    return "; ".join(each.why for each in found.left_out)


def simulated_measurements(
    seed: int, nodes: int, days: int, *, spread: float, of_days: float, mood: float
) -> list[Measurement]:
    """Nodes that differ, on days that differ, each with moods of its own."""
    generator = np.random.default_rng(seed)
    own = spread * generator.standard_normal(nodes)
    return [
        disks(
            {
                "rw": [
                    5e8 * math.exp(of_day + own[node] + noise + 0.005 * generator.standard_normal())
                    for _ in range(3)
                ]
            },
            host=f"node-{node}",
            days=day,
        )
        for day, of_day in enumerate(of_days * generator.standard_normal(days))
        for node, noise in enumerate(mood * generator.standard_normal(nodes))
    ]


def test_network_scaling_follows_from_cluster_sizes() -> None:
    """Of the number of connections that carried most; the less of sent and received."""
    one, two = {(2, 1): 1e8, (4, 1): 5e7}, {(2, 2): 1.2e8, (4, 2): 9e7, (8, 2): 6e7}
    found = built([shuffled(f"node-{number}", one | two) for number in range(8)])
    assert "1 connection a pair; all to all, 2 connections a pair was faster" in why(found)
    (offer,) = found.offers
    assert distributions(found)["network"].modes[0].median == pytest.approx(1.2e8, rel=0.01)
    assert offer.scaling is not None
    assert offer.scaling.points == [(2, 1.0), (4, pytest.approx(0.75)), (8, pytest.approx(0.5))]


def test_between_unlike_machines_each_ones_own_link_counts() -> None:
    alone = {(2, 1): 3e8}
    both = [
        shuffled("node-0", {(2, 1): 1e8}, types=("large", "small")),
        shuffled("node-0", alone, pattern="alone", types=("large", "small")),
    ]
    whole = replace(both[0], trials=[*both[0].trials, *both[1].trials])
    found = built([whole])
    assert "between large and small; the slowest node limits" in why(found)
    assert distributions(found)["network"].modes[0].median == pytest.approx(3e8, rel=0.01)
    assert found.offers[0].scaling is None


def test_a_simulated_distribution_is_recovered() -> None:
    found = distributions(
        built(simulated_measurements(1, 60, 40, spread=0.1, of_days=0.15, mood=0.05))
    )["local both"]
    (mode,) = found.modes
    assert mode.instances == 60
    assert mode.median == pytest.approx(5e8, rel=0.06)
    assert mode.spread == pytest.approx(math.hypot(0.1, 0.05), rel=0.2)
    assert (found.fleet_spread, found.fleets) == (pytest.approx(0.15, rel=0.25), 40)
    assert found.evidence == "measured"
    assert "60 nodes at 40 times" in found.spread_source and "disk-node-7-3" in found.source


def test_variation_of_times_and_nodes_is_separated() -> None:
    only_nodes = distributions(
        built(simulated_measurements(2, 40, 10, spread=0.1, of_days=0.0, mood=0.0))
    )["local both"]
    assert only_nodes.fleet_spread < 0.005
    assert only_nodes.modes[0].spread == pytest.approx(0.1, rel=0.25)
    only_days = distributions(
        built(simulated_measurements(3, 10, 40, spread=0.0, of_days=0.1, mood=0.0))
    )["local both"]
    assert only_days.fleet_spread == pytest.approx(0.1, rel=0.25)
    assert max(mode.spread for mode in only_days.modes) < 0.015


@given(again=st.integers(1, 5), nodes=st.integers(1, 5), seed=st.integers(0, 1 << 20))
def test_repeated_measurements_add_no_nodes(again: int, nodes: int, seed: int) -> None:
    looked = simulated_measurements(seed, nodes, again, spread=0.02, of_days=0.02, mood=0.01)
    found = distributions(built(looked))["local both"]
    assert sum(mode.instances for mode in found.modes) == nodes
    assert found.fleets == again
    assert index_profiles([built(looked)]).offers[M][False].distributions["local both"] == found


def test_a_common_factor_changes_only_the_level() -> None:
    measured = simulated_measurements(4, 6, 4, spread=0.1, of_days=0.1, mood=0.02)
    faster = [
        replace(
            each,
            trials=[replace(one, bytes_per_second=3 * one.bytes_per_second) for one in each.trials],
        )
        for each in measured
    ]
    slow, fast = (distributions(built(each))["local both"] for each in (measured, faster))
    assert fast.modes[0].median == pytest.approx(3 * slow.modes[0].median)
    assert fast.modes[0].spread == pytest.approx(slow.modes[0].spread)
    assert fast.fleet_spread == pytest.approx(slow.fleet_spread)


def test_the_slowest_of_many_matches_the_distribution() -> None:
    held = 0
    for seed in range(200):
        found = distributions(
            built(simulated_measurements(seed, 6, 5, spread=0.08, of_days=0.1, mood=0.03))
        )["local both"]
        low, high = np.quantile(ClusterDraws(200).slowest(found, [50]), [0.05, 0.95])
        generator = np.random.default_rng([seed, 1])
        own = math.hypot(0.08, 0.03) * generator.standard_normal(50)
        held += low <= 5e8 * math.exp(0.1 * generator.standard_normal() + own.min()) <= high
    assert 0.85 <= held / 200 <= 0.97


def test_two_modes_are_found_over_several_days() -> None:
    measured = [
        disks({"rw": [rate * (1 + 0.01 * day)]}, host=f"node-{place}", days=day)
        for day in range(3)
        for place, rate in enumerate([5e8, 5.05e8, 4.95e8, 5.1e8, 4.9e8, 5e8, 2e8, 2.02e8])
    ]
    modes = distributions(built(measured))["local both"].modes
    assert [mode.instances for mode in modes] == [6, 2]
    assert [mode.median for mode in modes] == pytest.approx([5.05e8, 2.03e8], rel=0.01)


def test_what_was_measured_within_an_hour_was_measured_together() -> None:
    half_an_hour = 1 / 48
    measured = [disks({"rw": [1e8 * (place + 1)]}, days=place * half_an_hour) for place in range(3)]
    found = distributions(built(measured))["local both"]
    assert (found.fleets, found.fleet_spread) == (1, 0.0)
    assert found.modes[0].median == pytest.approx(2e8)
    assert "the variation over time is unknown" in found.spread_source
    assert "the spread of nodes is assumed" in found.spread_source


def test_nodes_measured_each_alone_vary_as_nodes_do() -> None:
    measured = [
        disks({"rw": [rate]}, host=f"node-{place}", days=place)
        for place, rate in enumerate((4e8, 5e8, 6e8))
    ]
    found = distributions(built(measured))["local both"]
    assert found.fleet_spread == 0
    assert found.modes[0].spread == pytest.approx(statistics.stdev(map(math.log, (4e8, 5e8, 6e8))))


def test_recorded_measurements_match_the_study() -> None:
    study = Study.read(ROOT / "tests" / "support" / "recorded" / "study" / "study.json")
    found = distributions(built(study.measurements, assigned=OfferAssignments(default=M)))
    for resource, name in (
        ("local both", "rw"),
        ("local read", "ro"),
        ("local write", "wo"),
        ("cpu partition", "partition"),
        ("cpu sort", "sort"),
    ):
        trials = [each for one in study.measurements for each in one.trials if each.name == name]
        rates = [
            1 / each.cpu_seconds_per_byte if resource.startswith("cpu") else each.bytes_per_second
            for each in trials
        ]
        assert found[resource].modes[0].median == pytest.approx(statistics.median(rates))
    assert "synthetic" not in found
    assert "as the model is unknown" in found["local both"].source


def test_records_without_a_machine_type_are_read() -> None:
    old = Measurement.read(
        ROOT / "tests" / "support" / "recorded" / "artifacts" / "measurement-1.json"
    )
    assert old.environment and old.environment.machine_type is None
    with_host = built([old])
    assert with_host.offers == []
    assert f"{old.environment.host}=PROVIDER/TYPE" in why(with_host)
    told = built([old], assigned=OfferAssignments(by_host={old.environment.host: M}))
    assert distributions(told)["local both"].modes[0].median == pytest.approx(1709270184.77)


def test_devices_tell_whether_they_are_volumes() -> None:
    rates = {"rw": [1e8], "ro": [2e8], "wo": [1.5e8]}
    ebs = device("nvme0n1", "Amazon Elastic Block Store")
    found = built([disks(rates, devices=[ebs])])
    assert distributions(found).keys() == {"volume read", "volume write"}
    assert "which share the link" in why(found)
    silent = disks(rates, devices=[device("vdb", None)])
    assert distributions(built([silent])).keys() == {"local both", "local read", "local write"}
    assert distributions(built([silent], volumes=True)).keys() == {"volume read", "volume write"}
    assert distributions(built([disks(rates)], volumes=True)).keys() >= {"local both"}
    assert "the rate is of neither" in why(built([disks(rates, devices=[device(), ebs])]))
    memory = replace(device("tmpfs", None), file_system="tmpfs")
    assert "on a tmpfs" in why(built([disks(rates, devices=[memory])]))


def test_separate_devices_only_give_the_mixed_rate() -> None:
    two = disks(
        {"rw": [1e8], "ro": [2e8], "wo": [1.5e8]},
        devices=[device(), device("nvme2n1")],
        settings={"read": ["/nvme1n1"], "write": ["/nvme2n1"]},
    )
    found = built([two])
    assert distributions(found).keys() == {"local both"}
    assert "only some of the devices" in why(found)


def test_plans_use_the_fastest_layout() -> None:
    several = [device(), device("nvme2n1")]
    measured = [
        disks({"rw": [rate]}, host=f"node-{node}", devices=of, settings={"layout": layout})
        for node in range(3)
        for layout, rate, of in (("raid0", 3e8, several), ("single", 2e8, several[:1]))
    ]
    measured = [
        replace(each, id=f"{each.id}-{place}", kind="layouts")
        for place, each in enumerate(measured)
    ]
    found = built(measured)
    assert distributions(found)["local both"].modes[0].median == pytest.approx(3e8)
    assert distributions(found)["local both"].modes[0].instances == 3
    assert "single of 1 device; raid0 of 2 devices was faster" in why(found)


def test_network_scaling_is_relative_to_two_nodes() -> None:
    said = OfferAssignments(default=M)
    measured = [
        network({node: rate for node in range(size)})
        for size, rate in ((2, 1.2e8), (4, 1.08e8), (8, 0.9e8))
    ]
    found = built(measured, assigned=said)
    scaling = found.offers[0].scaling
    assert scaling and scaling.points == [(2, 1.0), (4, pytest.approx(0.9)), (8, 0.75)]
    assert distributions(found)["network"].modes[0].median == pytest.approx(1.2e8)
    assert distributions(found)["network"].modes[0].instances == 2
    curve = index_profiles([found]).offers[M][False].curve
    assert curve and "extrapolated from at most 8" in (curve.warning(9) or "")


@pytest.mark.parametrize(
    ("settings", "said", "reason"),
    [
        ({"namespaces": False}, OfferAssignments(default=M), "within one machine"),
        ({"rate_bits_per_second": None}, OfferAssignments(default=M), "within one machine"),
        ({"one_way": True}, OfferAssignments(default=M), "in one direction"),
        ({}, None, "emulated within one machine"),
    ],
)
def test_emulated_networks_are_not_used(
    settings: dict[str, Any], said: OfferAssignments | None, reason: str
) -> None:
    measured = network({0: 1e8, 1: 1e8}, type=None if said else "m", **settings)
    found = built([measured], assigned=said)
    assert found.offers == [] and reason in why(found)


def test_networks_of_different_links_are_not_combined() -> None:
    slow, fast = network({0: 1e8, 1: 1e8}), network({0: 1e9, 1: 1e9}, rate_bits_per_second=10**10)
    fast = replace(fast, id="fast")
    found = built([slow, fast], assigned=OfferAssignments(default=M))
    assert found.offers == []
    for said in ("of 1 Gbit/s", "of 10 Gbit/s", "differ"):
        assert said in why(found)


def test_plans_use_the_fastest_setting_of_object_storage() -> None:
    chunk = 8 << 20
    trials = [
        *(store("get", chunk, threads, rate) for threads, rate in ((1, 5e7), (8, 3e8), (16, 2e8))),
        store("put", chunk, 8, 1e8),
        store("multipart", chunk, 8, 2e8),
    ]
    found = built([measurement_of(trials, kind="object", settings={"endpoint": None})])
    assert {
        name: each.modes[0].median for name, each in distributions(found).items()
    } == pytest.approx({"object get": 3e8, "object put": 2e8})
    assert "chunks of 8 MiB by 8 threads" in distributions(found)["object get"].source
    assert "by 1 thread; chunks of 8 MiB by 8 threads was faster" in why(found)
    here = measurement_of(trials, kind="object", settings={"endpoint": "http://127.0.0.1:9000"})
    assert "a store on the machine itself" in why(built([here]))


def test_shares_are_of_nodes_and_of_offers() -> None:
    figures: AdvertisedRates = {
        ("aws", name): {"network": AdvertisedRate(figure)}
        for name, figure in (("m", 1.25e8), ("n", 2.5e8))
    }
    one = network({0: 1.0e8, 1: 1.0e8})
    other = replace(network({0: 2.25e8, 1: 2.25e8, 2: 2.25e8}), id="other")
    alone = built([one], figures, assigned=OfferAssignments(default=M)).shares[0]
    assert alone.modes[0].median == pytest.approx(0.8)
    assert alone.evidence == "advertised" and alone.fleet_spread == 0.25
    said = OfferAssignments(by_host={"lab-2": M, "lab-3": ("aws", "n")})
    (both,) = built([one, other], figures, assigned=said).shares
    assert both.modes[0].median == pytest.approx(math.sqrt(0.8 * 0.9))
    assert both.fleet_spread == pytest.approx(statistics.stdev((math.log(0.8), math.log(0.9))), 0.1)
    assert "m: 100 MB/s of 125 MB/s advertised" in both.source


def test_a_burst_is_not_what_lasts() -> None:
    burst: AdvertisedRates = {M: {"network": AdvertisedRate(2e7, 1.25e8)}}
    found = built([network({0: 1e8, 1: 1e8})], burst, assigned=OfferAssignments(default=M))
    assert found.offers == [] and found.shares == []
    assert "100 MB/s is a burst; the advertised baseline, which plans use, is 20.0 MB/s" in why(
        found
    )


@pytest.mark.parametrize("rate", [0.0, -1.0, math.inf, math.nan, 1e15])
def test_absurd_rates_are_not_used(rate: float) -> None:
    found = built([disks({"rw": [rate, 5e8], "ro": [rate]})])
    assert distributions(found).keys() == {"local both"}
    assert distributions(found)["local both"].modes[0].median == pytest.approx(5e8)
    assert "local both: the trial moved no data, or an impossible amount" in why(found)
    assert "local read: the trial moved no data" in why(found)


def test_unused_measurements_are_listed() -> None:
    foreign = replace(measurement_of([]), id="fio", environment=None)
    debug = disks({"rw": [1e8]}, host="slow")
    debug = replace(
        debug,
        environment=replace(debug.environment, debug_build=True),  # type: ignore[type-var]
    )
    when = replace(disks({"rw": [1e8]}, host="when"), began_at="yesterday")
    cached = measurement_of(
        [trial("rw", 1e9, reading=replace(store("get", 1, 1, 1).reading, cached="so"))],  # type: ignore[type-var]
        host="cached",
    )
    several = [
        foreign,
        debug,
        when,
        cached,
        *(
            measurement_of([trial("x", 1e8)], kind=kind)
            for kind in ("ops", "over-time", "stream", "other")
        ),
        measurement_of([trial("headroom", 1e9)], host="idle"),
    ]
    found = built(several)
    assert found.offers == []
    assert found.measurements == [each.id for each in several]
    left = {name for each in found.left_out for name in each.measurements}
    assert left == set(found.measurements)
    for said in (
        "another tool",
        "debug build",
        "time of the measurement is invalid",
        "a cache",
        "sequential files",
        "no trial",
    ):
        assert said in why(found)


def test_assignments_must_agree_with_machines() -> None:
    one, other = disks({"rw": [1e8]}), disks({"rw": [1e8]}, host="node-1", type=None)
    with pytest.raises(OfferError, match="aws/n conflicts with node-0, which reports aws/m"):
        built([one], assigned=OfferAssignments(default=("aws", "n")))
    with pytest.raises(OfferError, match=r"nobody: no measurement .* node-0 and node-1"):
        built([one, other], assigned=OfferAssignments(by_host={"nobody": M}))
    found = built([one, other], assigned=OfferAssignments(by_host={"node-0": ("aws", "n")}))
    assert [each.type for each in found.offers] == ["n"]
    assert "node-1 does not report its offer" in why(found)


def test_a_directory_may_hold_measurements_and_profiles(tmp_path: Path) -> None:
    for each in simulated_measurements(5, 4, 2, spread=0.05, of_days=0.05, mood=0.01):
        each.write(tmp_path / "deep" / each.id / "measurement.json")
    made_up({"n": [distribution("local both", 1e9)]}).write(tmp_path / "n.json")
    (tmp_path / "notes.json").write_text("{}")
    both = index_profiles(read_profiles(str(tmp_path)))
    assert both.offers.keys() == {M, ("aws", "n")}
    assert both.offers[M][False].distributions["local both"].modes[0].instances == 4
    # A profile that was built from them takes precedence: its author may have assigned more.
    measured = [Measurement.read(path) for path in sorted(tmp_path.glob("deep/*/*.json"))]
    said = OfferAssignments(by_host={f"node-{node}": ("aws", "o") for node in range(4)})
    built(measured, assigned=said).write(tmp_path / "o.json")
    assert index_profiles(read_profiles(str(tmp_path))).offers.keys() == {
        ("aws", "n"),
        ("aws", "o"),
    }
    assert index_profiles(read_profiles(str(tmp_path / "o.json"))).offers.keys() == {("aws", "o")}


def test_a_directory_without_usable_files_is_refused(tmp_path: Path) -> None:
    disks({"rw": [1e8]}, type=None).write(tmp_path / "measurement.json")
    with pytest.raises(ProfileError, match=r"as in node-0=PROVIDER/TYPE"):
        read_profiles(str(tmp_path))
    (tmp_path / "measurement.json").write_text('{"schema": "tonnage.measurement/1", ')
    with pytest.raises(ProfileError, match="is not JSON"):
        read_profiles(str(tmp_path))
    (tmp_path / "measurement.json").write_text("{}")
    with pytest.raises(ProfileError, match=r"expected tonnage\.measurement/1"):
        read_profiles(str(tmp_path))
    sort_job().write(tmp_path / "job.json")
    with pytest.raises(ProfileError, match="contains no profiles, measurements, runs or launches"):
        read_profiles(str(tmp_path / "job.json"))


def test_a_plan_uses_measurements_and_notes_unused_ones(tmp_path: Path) -> None:
    for each in simulated_measurements(6, 5, 3, spread=0.05, of_days=0.05, mood=0.01):
        each.write(tmp_path / each.id / "measurement.json")
    measurement_of([trial("read4k", 1e6)], kind="ops").write(tmp_path / "ops" / "measurement.json")
    offers = [catalog([offer("m", 1.0), offer("n", 0.1)])]
    question = PlanRequest(job=sort_job("none"), size=100 * TB, network="infinite")
    found = plan(
        question,
        offers,
        index_profiles(read_profiles(str(tmp_path), lambda: advertised_rates(offers))),
    )
    assert [each.offer for each in found.candidates] == ["m"]
    assert found.candidates[0].evidence == "measured"
    assert [each.offer for each in found.survey] == ["n"]
    assert any("1 measurement not used: random single operations" in note for note in found.notes)


def test_machines_of_ec2_tell_their_type(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "FIRMWARE", tmp_path)

    def reported(vendor: str, product: str) -> tuple[str | None, str | None]:
        (tmp_path / "sys_vendor").write_text(f"{vendor}\n")
        (tmp_path / "product_name").write_text(f"{product}\n")
        here = environment.capture([])
        return here.provider, here.machine_type

    assert environment.capture([]).provider is None
    assert reported("Amazon EC2", "m5d.large") == ("aws", "m5d.large")
    assert reported("Google", "Google Compute Engine") == ("gcp", None)
    assert reported("Microsoft Corporation", "Virtual Machine") == (None, None)
    assert reported("QEMU", "Standard PC") == (None, None)


AWS_2026 = ROOT / "python" / "tonnage" / "catalog" / "snapshots" / "aws-us-east-1-2026.csv"


@pytest.fixture
def own_catalog(tmp_path: Path) -> Path:
    """A catalog of one type that nobody rents, with disks of its own."""
    header, *rows = AWS_2026.read_text().splitlines()
    row = dict(zip(header.split(","), rows[0].split(","), strict=False))
    row |= {
        "instance_type": "made.up",
        "disk_count": "1",
        "disk_gb_each": "1000",
        "disk_total_gb": "1000",
        "disk_kind": "nvme",
    }
    path = tmp_path / "aws-nowhere-2026.csv"
    path.write_text(f"{header}\n{','.join(row.values())}\n")
    return path


@pytest.mark.skipif(core.is_debug_build(), reason="a debug build's measurements are left out")
def test_measured_here_profiled_and_planned_with(
    tonnage: Tonnage, disk: Path, tmp_path: Path, own_catalog: Path
) -> None:
    measured, kept = tmp_path / "measured", tmp_path / "profiles" / "here.json"
    quick = ("--dir", str(disk), "--size", "8MB", "--seconds", "0.2", "--repetitions", "3")
    where = ("--memory", "64MiB", "--output", str(measured), "--json")
    tonnage.run("measure", "disk", *quick, *where, check=True)
    own = ("--catalog", str(own_catalog))
    told = tonnage.run(
        *("profile", str(measured), "--offer", "aws/made.up", *own),
        *("--output", str(kept), "--name", "here"),
        check=True,
    ).stdout
    assert "aws/made.up" in told and "local both" in told and "--profile" in told
    found = Profile.read(kept)
    assert found.name == "here"
    measurement = Measurement.read(measured / "measurement.json")
    both = [each.bytes_per_second for each in measurement.trials if each.name == "rw"]
    assert distributions(found)["local both"].modes[0].median == pytest.approx(
        statistics.median(both)
    )
    assert measurement.id in distributions(found)["local both"].source
    asked = ("--data", "1TB", "--from", "local", "--network", "infinite", "--json")
    arguments = ("plan", "sort", *asked, *own)
    for profiles in (kept, kept.parent):
        done = tonnage.run(*arguments, "--profile", str(profiles), check=True)
        first = json.loads(done.stdout)["candidates"][0]
        assert (first["offer"], first["evidence"]) == ("made.up", "measured")
    said = tonnage.run(*arguments, "--profile", str(kept), "--explain", "made.up", check=True)
    assert measurement.id in said.stdout
    done = tonnage.run(*arguments, "--profile", str(measured))
    assert done.returncode == 2
    assert "PROVIDER/TYPE" in done.stderr and len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("nowhere", "--output", "p.json"), "nowhere: No such file"),
        ((".", "--output", "p.json"), ". contains no measurement"),
        (("m.json", "--output", "p.txt"), "--output p.txt: use a file name that ends in .json"),
        (("m.json", "--output", "p.json"), "as in node-0=PROVIDER/TYPE"),
        (("m.json", "--output", "p.json", "--offer", "m5.lrge"), "specify TYPE or PROVIDER/TYPE"),
        (
            ("m.json", "--output", "p.json", "--offer", "=aws/m5.large"),
            "use HOST=OFFER, or OFFER",
        ),
        (
            ("m.json", "--output", "p.json", "--offer", "ibm/m5.large"),
            "unknown offer ibm/m5.large (did you mean m5.large?)",
        ),
        (("m.json", "--output", "p.json", "--offer", "aws/m5.lrge"), "did you mean aws/m5.large?"),
        (
            ("m.json", "--output", "p.json", "--offer", "x=aws/m5.large"),
            "no measurement or run is from this machine",
        ),
        (
            ("m.json", "--output", "p.json", "--offer", "aws/m5.large", "--offer", "aws/m5.xlarge"),
            "conflicts with aws/m5.large",
        ),
        (
            ("m.json", "--output", "p.json", "--offer", "gcp/x", "--catalog", "aws-us-east-1-2014"),
            "unknown offer gcp/x in aws-us-east-1-2014; specify TYPE or PROVIDER/TYPE",
        ),
        (
            ("m.json", "--output", "p.json", "--catalog", "aws-2014"),
            "--catalog: unknown catalog aws-2014",
        ),
        (("m.json",), "--output"),
    ],
)
def test_refusals_say_what_to_do(
    tonnage: Tonnage, tmp_path: Path, arguments: tuple[str, ...], said: str
) -> None:
    if "m.json" in arguments:
        disks({"rw": [1e8]}, type=None).write(tmp_path / "m.json")
    done = tonnage.run("profile", *arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr and len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "p.json").exists()


@pytest.mark.parametrize("offer", ["m5.large", "aws/m5.large", "node-0=m5.large"])
def test_an_offer_has_two_names(tonnage: Tonnage, tmp_path: Path, offer: str) -> None:
    disks({"rw": [1e8]}, type=None).write(tmp_path / "m.json")
    done = tonnage.run("profile", "m.json", "--output", "p.json", "--offer", offer, cwd=tmp_path)
    assert done.returncode == 0 and "aws/m5.large" in done.stdout
    [of] = Profile.read(tmp_path / "p.json").offers
    assert (of.provider, of.type) == ("aws", "m5.large")


def test_what_cannot_be_written_is_named_as_it_was_given(tonnage: Tonnage, tmp_path: Path) -> None:
    disks({"rw": [1e8]}, type="m5.large").write(tmp_path / "m.json")
    # A name of maximum length: no temporary file with a longer name can be written first.
    name = f"{'p' * 250}.json"
    done = tonnage.run("profile", "m.json", "--output", name, cwd=tmp_path)
    assert done.returncode == 2 and f"tonnage: {name}: File name too long" in done.stderr


def test_json_is_the_profile(tonnage: Tonnage, tmp_path: Path) -> None:
    disks({"rw": [1e8]}, type="m5.large").write(tmp_path / "m.json")
    done = tonnage.run(
        "profile", "m.json", "--output", "p.json", "--json", cwd=tmp_path, check=True
    )
    assert Profile.from_json(json.loads(done.stdout)) == Profile.read(tmp_path / "p.json")
    assert Profile.read(tmp_path / "p.json").name == "p"
