"""Calibrations from finished runs: plans reproduce the run, and extrapolate from it."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.cli.command import Tonnage
from support.data.copies import replace
from support.data.measurements import ENVIRONMENT
from support.data.offers import catalog, distribution, offer
from support.data.offers import profile as made_up
from support.data.runs import pass_one, pass_two, phase, record
from tonnage.base.records import ReductionRecord, RunRecord, Tuning, WorkerRun
from tonnage.base.records.job import Job
from tonnage.base.records.plan import Candidate
from tonnage.base.records.profile import Profile
from tonnage.model.jobs.mapreduce import job_from_run, mapreduce_job, sort_job
from tonnage.model.jobs.reduce import job_from_reduction
from tonnage.model.profiles.build import build_profile
from tonnage.model.profiles.offer_matching import OfferAssignments
from tonnage.model.profiles.repository import index_profiles, read_profiles
from tonnage.plan.calibration import describe
from tonnage.plan.planner import PlanRequest, plan
from tonnage.plan.search import Limits

OFFER = ("aws", "m")
ALL = OfferAssignments(default=OFFER)
LAWS = {
    "m": [
        distribution("local both", 100e6, spread=0.01),
        distribution("network", 90e6, spread=0.01),
    ],
}


def two_nodes(
    one: float = 20.0, two: float = 18.0, elsewhere: float = 2.0, **more: Any
) -> RunRecord:
    """A sort of 4 GB on two nodes, held up by disks in both passes."""
    at_work = {"send": 0.1, "receive": 0.1, "read": 0.95}
    phases = [pass_one(one, **at_work), pass_two(two)]
    run = record({"n-0": phases, "n-1": phases}, one + two + elsewhere)
    return replace(run, bytes=4_000_000_000, **more)


def calibrated(
    runs: Sequence[RunRecord | ReductionRecord], said: OfferAssignments = ALL
) -> Profile:
    """The profile of these runs alone."""
    return build_profile(
        [], {}, name="runs", made_at="2026-01-01T00:00:00Z", runs=runs, assigned=said
    )


def planned(
    profiles: Sequence[Profile], nodes: int, job: Job | None = None, size: int = 4_000_000_000
) -> Candidate:
    """So many nodes, on their own disks."""
    made = plan(
        PlanRequest(job or sort_job(), size, Limits(min_nodes=nodes, max_nodes=nodes)),
        [catalog([offer("m")], ())],
        index_profiles(profiles),
    )
    (candidate,) = made.candidates
    return candidate


@given(
    one=st.floats(1, 500),
    two=st.floats(1, 500),
    elsewhere=st.floats(0, 60),
    holding=st.sampled_from(["read", "write", "partition", "none"]),
    share=st.floats(0.2, 5),
)
def test_a_plan_gives_back_the_run_that_it_is_calibrated_by(
    one: float, two: float, elsewhere: float, holding: str, share: float
) -> None:
    """Whatever held it up, and whatever was measured: faster resources, or slower ones."""
    at_work = dict.fromkeys(("send", "receive", "write"), 0.1) | {holding: 0.95}
    phases = [pass_one(one, **at_work), pass_two(two)]
    run = record({"n-0": phases, "n-1": phases}, one + two + elsewhere)
    run = replace(run, bytes=4_000_000_000)
    laws = {"m": [distribution("local both", share * 100e6), distribution("network", share * 60e6)]}
    found = planned([made_up(laws, [(2, 1.0), (4, 0.9)]), calibrated([run])], 2)
    assert math.isclose(found.seconds.median, one + two + elsewhere, rel_tol=1e-9)
    assert [each.name for each in found.phases][:2] == ["map and shuffle", "sort and reduce"]
    assert math.isclose(found.phases[0].seconds, one) and math.isclose(found.phases[1].seconds, two)
    assert found.evidence == "measured"


def test_calibrations_extrapolate_to_other_clusters_by_resource() -> None:
    # Disks held it up: four nodes take half as long, and what is fixed as long.
    found = planned([made_up(LAWS), calibrated([two_nodes()])], 4)
    assert math.isclose(found.seconds.median, 10 + 9 + 2)
    # The network did: of two nodes each sent half of what it read, of four three quarters.
    phases = [pass_one(20.0, send=0.1, receive=0.1), pass_two(18.0)]
    run = replace(record({"n-0": phases, "n-1": phases}, 40.0), bytes=4_000_000_000)
    found = planned([made_up(LAWS), calibrated([run])], 4)
    assert math.isclose(found.phases[0].seconds, 20 / 2 * (3 / 4) / (1 / 2))
    assert found.phases[0].bottleneck == "network"
    # One node needs no network, but no less of the rest.
    alone = planned([calibrated([run])], 1)
    assert math.isclose(alone.phases[0].seconds, 40.0) and alone.phases[0].bottleneck != "network"
    # Bandwidth falls in larger clusters, as measured.
    found = planned([made_up(LAWS, [(2, 1.0), (4, 0.8)]), calibrated([run])], 4)
    assert math.isclose(found.phases[0].seconds, 15 / 0.8)


def test_a_link_carries_object_reads_besides_a_shuffle() -> None:
    """Of two nodes each gets all of its share and half of it again, of four three quarters."""
    moved = {"read": 2e9, "partition": 2e9, "send": 1e9, "receive": 1e9, "write": 2e9}
    phases = [phase("pass_one", 20.0, moved, {"send": 0.2, "receive": 0.2}), pass_two(18.0)]
    run = record({"n-0": phases, "n-1": phases}, 40.0)
    settings = run.settings | {"inputs": ["s3://b/in"], "output": ["s3://b/out"]}
    run = replace(run, bytes=4_000_000_000, settings=settings)
    job = job_from_run(run)
    assert (job.input_location, job.output_location) == ("objects", "objects")
    assert {each.kind for each in job.requests} == {"get", "put"}
    job = replace(job, requests=[])  # The catalog has no store.
    laws = {
        "m": [*LAWS["m"], *(distribution(name, 1e9, 0.01) for name in ("object get", "object put"))]
    }
    found = planned([made_up(laws), calibrated([run])], 2, job)
    assert math.isclose(found.phases[0].seconds, 20.0)
    assert found.phases[0].bottleneck == "network"
    found = planned([made_up(laws), calibrated([run])], 4, job)
    assert math.isclose(found.phases[0].seconds, 20 / 2 * (1 + 3 / 4) / (1 + 1 / 2))
    # Without a run, too.
    found = planned([made_up(laws)], 4, job)
    assert math.isclose(found.phases[0].seconds, 4e9 / 4 * (1 + 3 / 4) / 90e6, rel_tol=0.01)


def test_resources_that_a_run_did_not_use_are_as_measured() -> None:
    # Links that are slow enough to hold up four nodes, though they did not hold up two.
    laws = {
        "m": [
            distribution("local both", 300e6, 0.0),
            distribution("network", 60e6, 0.0, instances=10**6),
        ]
    }
    run = two_nodes(20.0)
    found = planned([made_up(laws), calibrated([run])], 4)
    assert found.phases[0].bottleneck == "network"
    assert math.isclose(found.phases[0].seconds, 4e9 / 4 * 3 / 4 / 60e6, rel_tol=1e-3)


def test_a_plan_says_whether_it_is_calibrated_and_on_what() -> None:
    without = planned([made_up(LAWS)], 2)
    assert without.calibrated is None
    assert describe(None).startswith("not calibrated: no profile contains a finished run")
    run = two_nodes()
    found = planned([made_up(LAWS), calibrated([run])], 2).calibrated
    assert found and (found.nodes, found.bytes) == (2, 4_000_000_000)
    assert found.runs == [f"sort of {run.began_at}"]
    assert describe(found) == (f"calibrated by 1 run on 2 nodes, 4.00 GB: sort of {run.began_at}")


def test_repeated_runs_show_how_runs_vary() -> None:
    (one,) = calibrated([two_nodes()]).offers[0].calibrations
    assert one.phases[0].spread == 0.25 and "assumed" in one.spread_source
    several = [
        two_nodes(20.0 * more, 18.0 * more, began_at=f"2026-01-0{day}T00:00:00+00:00")
        for day, more in ((1, 1.0), (2, 1.2), (3, 1.1))
    ]
    (found,) = calibrated(several).offers[0].calibrations
    assert math.isclose(found.phases[0].pace, 2e9 / 22.0)
    assert 0.05 < found.phases[0].spread < 0.15 and len(found.runs) == 3
    narrow, wide = (
        planned([made_up(LAWS), calibrated(runs)], 4).seconds for runs in (several, several[:1])
    )
    assert narrow.high / narrow.low < wide.high / wide.low


def test_unusable_runs_are_listed_with_the_reason() -> None:
    run = two_nodes()
    lost = [replace(run.nodes[0], lost="gone"), run.nodes[1]]
    cases = {
        "a run on one machine": replace(run, nodes=[]),
        "nodes were lost": replace(run, nodes=lost),
        "or the job took several commands": replace(run, commands=2),
        "debug build": replace(run, environment=replace(ENVIRONMENT, debug_build=True)),
    }
    for why, each in cases.items():
        found = calibrated([each])
        assert not found.offers and why in found.left_out[0].why
    unknown = calibrated([run], OfferAssignments())
    assert "as in n-0=PROVIDER/TYPE" in unknown.left_out[0].why
    labels = {"provider": "aws", "machine-type": "m"}
    labelled = replace(run, labels=dict.fromkeys(("n-0", "n-1"), labels))
    (told,) = calibrated([labelled], OfferAssignments()).offers
    assert (told.provider, told.type) == OFFER
    mixed = calibrated([run], OfferAssignments(by_host={"n-0": OFFER, "n-1": ("aws", "other")}))
    assert "a run on several offers (aws/m and aws/other)" in mixed.left_out[0].why
    larger = replace(
        two_nodes(began_at="2026-01-01T00:00:00+00:00"),
        nodes=[replace(run.nodes[0], node=f"n-{place}") for place in range(4)],
    )
    found = calibrated([run, larger])
    assert [each.nodes for each in found.offers[0].calibrations] == [4]
    assert "another run used 4" in found.left_out[0].why


def test_runs_of_other_jobs_are_ignored_with_a_note() -> None:
    runs = calibrated([two_nodes()])
    for job in (sort_job("replicated"), mapreduce_job()):
        assert planned([made_up(LAWS), runs], 2, job).calibrated is None
    (shown,) = runs.offers[0].calibrations
    three = replace(shown, phases=[*shown.phases, shown.phases[0]])
    other = replace(runs, offers=[replace(runs.offers[0], calibrations=[three])])
    found = planned([made_up(LAWS), other], 2)
    assert found.calibrated is None
    assert "the run has 3 phases, but this job has 2" in found.notes[0]


def counted(**more: Any) -> RunRecord:
    """A MapReduce on two nodes whose map made half of what it read, and reduce a tenth of that."""
    moved = {"from_host": 1e9, "send": 5e8, "receive": 5e8, "write": 1e9}
    phases = [
        phase("pass_one", 20.0, moved, {"from_host": 0.9, "send": 0.1, "receive": 0.1}),
        phase("pass_two", 5.0, {"read": 1e9, "to_host": 1e9}, {"read": 0.9}),
    ]
    run = record({"n-0": phases, "n-1": phases}, 26.0)
    settings = run.settings | {"code": "digest"}
    return replace(
        run,
        job="mapreduce",
        bytes=4_000_000_000,
        shuffled_bytes=2_000_000_000,
        written_bytes=200_000_000,
        settings=settings,
        **more,
    )


def test_a_mapreduce_calibrates_selectivities_and_core_seconds() -> None:
    run = counted()
    job = job_from_run(run)
    assert (job.settings["map_share"], job.settings["reduce_share"]) == (0.5, 0.1)
    cores = [d.per_byte for p in job.phases for d in p.demands if d.resource == "cpu"]
    assert math.isclose(sum(cores) * run.bytes, run.cpu_seconds)
    found = planned([made_up(LAWS), calibrated([run])], 2, job)
    assert found.calibrated and math.isclose(found.seconds.median, 26.0)
    assert found.phases[0].bottleneck == "cpu"
    # Of plans with other functions, or of none, it says nothing.
    plain = planned([made_up(LAWS), calibrated([run])], 2, mapreduce_job(map_share=0.5))
    assert plain.calibrated is None and "other functions were run" in plain.notes[0]
    unlike = replace(job, settings=job.settings | {"map_share": 0.9})
    found = planned([made_up(LAWS), calibrated([run])], 2, unlike)
    assert found.calibrated is None
    assert "the map share of the run is 0.500, but that of this plan is 0.9" in found.notes[0]


def reduced(**more: Any) -> ReductionRecord:
    """KMeans on two nodes, in two rounds of 10 s that workers reduced in."""
    workers = [
        WorkerRun(
            node=f"n-{place}",
            chunks=10,
            bytes=4_000_000_000,
            retrieval_seconds=4.0,
            processing_seconds=16.0,
            synchronisation_seconds=0.0,
        )
        for place in range(2)
    ]
    made = ReductionRecord(
        job="kmeans",
        began_at="2026-01-01T00:00:00+00:00",
        command=[],
        environment=ENVIRONMENT,
        settings={"inputs": ["in"], "memory_bytes": 1 << 30, "flags": {"k": 4}},
        rows=10,
        bytes=4_000_000_000,
        object_bytes=4_000_000_000,
        chunks=20,
        rounds=2,
        rounds_here=2,
        seconds=20.0,
        cpu_seconds=60.0,
        peak_memory_bytes=1,
        result=None,
        workers=workers,
        tuning=Tuning(chunk_bytes=1 << 23, range_bytes=1 << 23, threads=4, why="made up"),
    )
    return replace(made, **more)


def test_a_reduction_calibrates_each_of_its_passes() -> None:
    job = replace(job_from_reduction(reduced()), requests=[])
    laws = {"m": [distribution("object get", 1e9), distribution("network", 1e9)]}
    for passes in (2, 5):
        each_pass = [replace(job.phases[0], name=f"pass {number}") for number in range(passes)]
        longer = replace(job, phases=each_pass)
        found = planned([made_up(laws), calibrated([reduced()])], 4, longer)
        assert math.isclose(found.seconds.median, passes * 5.0)
        assert {each.bottleneck for each in found.phases} == {"cpu"}
    unlike = reduced().settings | {"flags": {"k": 8}}
    other = calibrated([reduced(settings=unlike)])
    assert planned([made_up(laws), other], 4, job).calibrated is None
    assert calibrated([reduced(rounds_here=1)]).offers == []


def test_profiles_take_records_of_runs(tmp_path: Path, tonnage: Tonnage) -> None:
    run = two_nodes()
    run.write(tmp_path / "run" / "run.json")
    measured = made_up({"m5d.large": LAWS["m"]})
    measured.write(tmp_path / "measured.json")
    out = tmp_path / "profiles" / "runs.json"
    of = [str(tmp_path / "run"), "--offer", "aws/m5d.large", "--output", str(out)]
    done = tonnage.run("profile", *of, check=True)
    assert (
        "sort, from runs: pass one 100 MB/s of input per node, limited by local disks"
        in done.stdout
    )
    found = Profile.read(out)
    assert found.runs == [f"sort of {run.began_at}"] and found.measurements == []
    told = tonnage.run(
        *("plan", "sort", "--data", "4GB", "--from", "local", "--nodes", "2"),
        *("--provider", "aws", "--json"),
        *("--startup", "0"),
        *("--profile", str(tmp_path / "measured.json"), "--profile", str(tmp_path / "profiles")),
        check=True,
    )
    best = json.loads(told.stdout)["candidates"][0]
    assert best["offer"] == "m5d.large" and best["calibrated"]["nodes"] == 2
    assert math.isclose(best["seconds"]["median"], 40.0)
    said = tonnage.run(
        *("plan", str(tmp_path / "run" / "run.json"), "--data", "4GB", "--nodes", "2"),
        *("--provider", "aws", "--profile", str(tmp_path / "measured.json")),
        check=True,
    )
    assert "M5d.large: Not calibrated" in said.stdout or "not calibrated" in said.stdout.lower()


def test_a_directory_of_runs_and_profiles_has_each_once(tmp_path: Path) -> None:
    run = two_nodes()
    run.write(tmp_path / "run.json")
    calibrated([run]).write(tmp_path / "profile.json")
    (alone,) = read_profiles(str(tmp_path))
    assert alone.runs == [f"sort of {run.began_at}"]
    run = replace(run, began_at="2026-02-01T00:00:00+00:00")
    planned_by = replace(run, compared=None)
    planned_by.write(tmp_path / "later.json")
    made, kept = read_profiles(str(tmp_path))
    assert made.runs == [f"sort of {run.began_at}"] and kept == alone


@pytest.mark.parametrize("network", ["infinite", "baseline"])
def test_other_network_models_can_be_planned(network: Any) -> None:
    phases = [pass_one(20.0, send=0.1, receive=0.1), pass_two(18.0)]
    run = replace(record({"n-0": phases, "n-1": phases}, 40.0), bytes=4_000_000_000)
    made = plan(
        PlanRequest(sort_job(), 4_000_000_000, Limits(min_nodes=2, max_nodes=2), network=network),
        [catalog([offer("m")], ())],
        index_profiles([made_up(LAWS), calibrated([run])]),
    )
    assert made.candidates[0].seconds.median <= 40.0 + 1e-6
