"""`tonnage plan`: what it prints, and how it refuses."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from support.cli.command import Tonnage
from support.data.offers import distribution, profile
from support.stores.disk import ROOT
from tonnage.base.records.plan import NO_CORES, Explanation, Plan
from tonnage.catalog import find_offer, load_catalog
from tonnage.cli.output.plan import BEST
from tonnage.model.jobs.mapreduce import sort_job
from tonnage.plan.resources.engine_requests import request_sizes
from tonnage.plan.resources.machines import reference_cores

pytestmark = pytest.mark.slow

LOCAL = ("--from", "local")
STUDY = (
    *("--data", "100TB", "--catalog", "aws-us-east-1-2014"),
    *("--any-memory", "--ignore-cores", "--startup", "0"),
)


@pytest.mark.real
def test_json_has_the_interfaces_fields(tonnage: Tonnage) -> None:
    done = tonnage.run("plan", "sort", *LOCAL, *STUDY, "--deadline", "1h", "--json", check=True)
    found = json.loads(done.stdout)
    first = found["candidates"][0]
    assert {
        *("offer", "nodes", "seconds", "cost_usd", "phases", "capacity", "evidence"),
        "deadline_probability",
    } <= first.keys()
    assert first["seconds"].keys() == first["cost_usd"].keys() == {"low", "median", "high"}
    assert first["phases"][0].keys() == {"name", "seconds", "bottleneck"}
    assert first["capacity"].keys() == {"needed_bytes", "have_bytes"}
    assert {"pareto", "excluded", "survey", "sure"} <= found.keys()
    assert Plan.from_json(found).candidates[0].offer == first["offer"]
    assert sum(phase["seconds"] for phase in first["phases"]) == pytest.approx(
        first["seconds"]["median"]
    )


@pytest.mark.real
def test_table_and_explanation_are_of_the_same_plan(tonnage: Tonnage) -> None:
    told = tonnage.run(
        "plan", "sort", *LOCAL, *STUDY, "--placement", "--nodes", "178", check=True
    ).stdout
    assert "i2.8xlarge (placed)" in told and "$324.52" in told and "network" in told
    arguments = ("--placement", "--nodes", "178", "--explain", "i2.8xlarge")
    text = tonnage.run("plan", "sort", *LOCAL, *STUDY, *arguments, check=True).stdout
    assert "100 TB / 178 / 879 MB/s = 639 s" in text and "equation 1" in text
    said = tonnage.run("plan", "sort", *LOCAL, *STUDY, *arguments, "--json", check=True).stdout
    explanation = Explanation.from_json(json.loads(said))
    for term in explanation.terms:
        assert term.seconds == pytest.approx(term.demand / 178 / term.capacity)
        assert term.demand_source and term.capacity_source and term.spread_source
    for phase in explanation.candidate.phases:
        longest = max(term.seconds for term in explanation.terms if term.phase == phase.name)
        assert longest == pytest.approx(phase.seconds)


def test_an_offer_goes_by_either_name(tonnage: Tonnage) -> None:
    for command in (("plan", "sort", *LOCAL, "--data", "100TB", "--explain"), ("catalog", "show")):
        whole, short = (
            tonnage.run(*command, name, "--catalog", "aws-us-east-1-2014", check=True).stdout
            for name in ("aws/i2.8xlarge", "i2.8xlarge")
        )
        assert whole == short


def test_survey_keeps_its_budget(tonnage: Tonnage) -> None:
    wide = ("--network", "infinite", "--max-nodes", "1000", "--survey", "--json")
    arguments = (*wide, "--budget", "0.5USD")
    found = json.loads(tonnage.run("plan", "sort", *LOCAL, *STUDY, *arguments, check=True).stdout)
    rows = found["survey"]
    assert rows and sum(row["usd_to_measure"] for row in rows) <= 0.5
    measured = {each["offer"] for each in found["candidates"]}
    assert not measured & {row["offer"] for row in rows}
    prices = [row["usd_to_measure"] for row in rows]
    assert prices == sorted(prices)
    every = json.loads(tonnage.run("plan", "sort", *LOCAL, *STUDY, *wide, check=True).stdout)[
        "survey"
    ]
    left = [row for row in every if row not in rows]
    # What is left out has a smaller share for a dollar, or costs more than the rest of the budget.
    rest = 0.5 - sum(prices)
    assert left and all(0 <= row["share_of_known"] <= 1 for row in every)
    worst = min(row["share_of_known"] / row["usd_to_measure"] for row in rows)
    for row in left:
        share = row["share_of_known"] / row["usd_to_measure"]
        assert share <= worst or row["usd_to_measure"] > rest


def test_the_surveys_bound_is_what_wins(tonnage: Tonnage, tmp_path: Path) -> None:
    wide = ("--network", "infinite", "--max-nodes", "1000")
    arguments = ("plan", "sort", *LOCAL, *STUDY, *wide, "--json")
    before = json.loads(tonnage.run(*arguments, check=True).stdout)
    row = next(each for each in before["survey"] if each["least_bytes_per_second"])
    for factor, wins in ((0.99, False), (1.01, True)):
        carried = distribution("local both", row["least_bytes_per_second"] * factor, spread=0.0)
        directory = tmp_path / str(wins)
        directory.mkdir()
        profile({row["offer"]: [carried]}).write(directory / "p.json")
        known = ("--profile", "themis-2014", "--profile", str(directory))
        after = json.loads(tonnage.run(*arguments, *known, check=True).stdout)
        cheapest = min(after["candidates"], key=lambda each: each["cost_usd"]["median"])
        assert (cheapest["offer"] == row["offer"]) is wins


def test_a_jobs_file_is_planned_as_the_job(tonnage: Tonnage, tmp_path: Path) -> None:
    sort_job().write(tmp_path / "job.json")
    own, built_in = (
        json.loads(tonnage.run("plan", *job, *STUDY, "--json", check=True).stdout)["candidates"]
        for job in ((str(tmp_path / "job.json"),), ("sort", *LOCAL))
    )
    assert own == built_in


def test_a_reductions_own_work_counts(tonnage: Tonnage) -> None:
    arguments = ("plan", "reduce", "--data", "1TB", "--provider", "aws", "--json")
    idle, busy = (
        json.loads(tonnage.run(*arguments, *more, check=True).stdout)["candidates"][0]
        for more in ((), ("--core-seconds", "10000"))
    )
    assert [each["phases"][0]["bottleneck"] for each in (idle, busy)] == ["start", "start"]
    assert idle["phases"][1]["bottleneck"] == "object storage"
    assert busy["phases"][1]["bottleneck"] == "cpu"
    assert not busy["offer"].startswith("t"), "what lasts of its cores is not known"
    assert busy["cost_usd"]["median"] > idle["cost_usd"]["median"]


def test_a_built_in_reductions_work_is_that_of_its_benchmark(tonnage: Tonnage) -> None:
    arguments = ("plan", "reduce", "--data", "10TB", "--passes", "3", "--from", "local", "--json")
    arguments += ("--provider", "aws", "--nodes", "4", "--explain", "i4i.4xlarge")
    for name, per_gb in (("kmeans", 1.72), ("pca", 2.58)):
        its = json.loads(tonnage.run(*arguments, "--reduction", name, check=True).stdout)
        terms = [each for each in its["terms"] if each["resource"] == f"cpu {name}"]
        assert [each["phase"] for each in terms] == ["pass 1", "pass 2", "pass 3"]
        _, machine = find_offer([load_catalog("aws-us-east-1-2026")], "i4i.4xlarge")
        cores = reference_cores(machine)
        assert cores is not None
        assert terms[0]["seconds"] == pytest.approx(10_000 * per_gb / 4 / cores)
        assert "Tonnage's own, benches/reduce_peers" in terms[0]["capacity_source"]


def test_root_volumes_of_machines_that_start_are_said_not_to_be_included(tonnage: Tonnage) -> None:
    arguments = ("plan", "sort", "--data", "1TB", "--provider", "aws")
    for startup, told in (((), True), (("--startup", "0"), False)):
        made = tonnage.run(*arguments, *startup, check=True).stdout
        assert ("root volumes" in made) == told


def test_a_reduction_without_core_seconds_says_that_they_are_unknown(tonnage: Tonnage) -> None:
    arguments = ("plan", "reduce", "--data", "1TB", "--provider", "aws")
    notes = [
        json.loads(tonnage.run(*arguments, *more, "--json", check=True).stdout)["notes"]
        for more in ((), ("--reduction", "pca"), ("--core-seconds", "1"))
    ]
    assert [NO_CORES in each for each in notes] == [True, False, False]
    for refused, why in (
        (("--reduction", "pac"), "did you mean pca?"),
        (("--reduction", "pca", "--core-seconds", "1"), "remove one of them"),
    ):
        found = tonnage.run(*arguments, *refused)
        assert found.returncode == 2 and why in found.stderr


def test_a_reduction_that_was_run_is_planned_for_other_data(
    tonnage: Tonnage, tmp_path: Path
) -> None:
    np.random.default_rng(1).random((50_000, 4)).tofile(tmp_path / "rows")
    ran = ("kmeans", str(tmp_path / "rows"), "--dtype", "4f8", "--k", "3", "--iterations", "2")
    done = tonnage.run("run", "reduce", *ran, "--json", check=True)
    (tmp_path / "record.json").write_text(done.stdout)
    record = json.loads(done.stdout)
    arguments = (str(tmp_path / "record.json"), "--data", "1TB", "--provider", "aws", "--json")
    plan = json.loads(tonnage.run("plan", *arguments, check=True).stdout)
    best = plan["candidates"][0]
    assert [phase["name"] for phase in best["phases"]] == [
        *("start-up", "pass 1", "pass 2", "beginning and end")
    ]
    seconds = str(1e9 * record["cpu_seconds"] / (2 * record["bytes"]))
    assert record["object_bytes"] == 0 and "concurrent" in record["tuning"]["why"]
    assert "requests" not in record["tuning"]["why"], "it was of a file"
    assert {phase["bottleneck"] for phase in best["phases"]}.isdisjoint({"object storage"})
    given = ("reduce", "--passes", "2", "--local-share", "1", "--core-seconds", seconds)
    same = json.loads(tonnage.run("plan", *given, *arguments[1:], check=True).stdout)
    assert same["candidates"][0]["offer"] == best["offer"]
    assert same["candidates"][0]["seconds"] == pytest.approx(best["seconds"])


def test_a_sort_from_a_store_to_a_store(tonnage: Tonnage) -> None:
    """Through the network in and out; what is between lies on the machines; requests are paid."""
    asked = ("--data", "20TB", "--catalog", "aws-us-east-1-2026", "--nodes", "100")
    made = Plan.from_json(json.loads(tonnage.run("plan", "sort", *asked, "--json").stdout))
    resources = [{demand.resource for demand in phase.demands} for phase in made.job.phases]
    assert resources[0] >= {"object get", "network", "local write"}
    assert resources[1] >= {"local read", "object put"}
    assert {room.where for room in made.job.room if room.what != "intermediate"} == {"object"}
    best = made.candidates[0]
    machines = best.nodes * max(best.seconds.median, 60) * best.usd_per_hour / 3600
    _, offer = find_offer([load_catalog("aws-us-east-1-2026")], best.offer)
    sizes = request_sizes(offer)
    assert sizes is not None
    requests = 20e12 / sizes.get / 1000 * 0.0004 + 20e12 / sizes.put / 1000 * 0.005
    assert best.cost_usd.median == pytest.approx(machines + requests, rel=1e-6)
    assert (made.job.input_location, made.job.output_location) == ("objects", "objects")


def test_what_leaves_the_provider_is_paid_for(tonnage: Tonnage) -> None:
    asked = ("plan", "sort", "--data", "1TB", "--provider", "aws", "--nodes", "4", "--json")
    kept, taken = (
        Plan.from_json(json.loads(tonnage.run(*asked, *flags, check=True).stdout)).candidates[0]
        for flags in ((), ("--egress", "0.5"))
    )
    assert taken.cost_usd.median - kept.cost_usd.median == pytest.approx(500 * 0.09)


def test_copies_are_on_local_disks(tonnage: Tonnage) -> None:
    asked = ("plan", "sort", "--data", "20TB", "--provider", "aws", "--durability", "replicated")
    made = Plan.from_json(json.loads(tonnage.run(*asked, "--json").stdout))
    assert (made.job.input_location, made.job.output_location) == ("objects", "local")
    done = tonnage.run(*asked, "--to", "volumes")
    assert done.returncode == 2 and "but --to volumes keeps it elsewhere" in done.stderr


def test_all_candidates_are_printed_and_the_plan_is_the_same(tonnage: Tonnage) -> None:
    asked = ("plan", "sort", *LOCAL, "--data", "20TB", "--provider", "gcp")
    made = Plan.from_json(json.loads(tonnage.run(*asked, "--json", check=True).stdout))
    assert len(made.candidates) > BEST
    for flags, count in (((), BEST), (("--all",), len(made.candidates))):
        printed = tonnage.run(*asked, *flags, check=True).stdout
        rows = [line for line in printed.splitlines() if re.match(r" *\d+  ", line)]
        assert len(rows) == count
        assert ("more candidates (see --all)" in printed) == (not flags)


def test_every_number_of_nodes(tonnage: Tonnage) -> None:
    arguments = ("--placement", "--max-nodes", "60", "--every-size", "--json")
    done = tonnage.run("plan", "sort", *LOCAL, *STUDY, *arguments, check=True)
    nodes = [
        each["nodes"]
        for each in json.loads(done.stdout)["candidates"]
        if each["offer"] == "i2.8xlarge"
    ]
    assert sorted(nodes) == list(range(47, 61))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("sort", "--data", "0"), "--data 0"),
        (("sort", "--data", "10EB"), "less than 9EB"),
        (
            ("sort", *LOCAL, *STUDY, "--deadline", "1s"),
            "no offer meets --deadline with --max-nodes 250; nearest: 250 x i2.8xlarge",
        ),
        (
            ("sort", *LOCAL, *STUDY, "--deadline", "1s", "--nodes", "50", "--budget", "9000USD"),
            "no offer meets --deadline with --nodes 50; nearest: 50 x ",
        ),
        (
            ("sort", *LOCAL, *STUDY, "--deadline", "1h", "--nodes", "3"),
            "no offer meets --nodes 3; nearest: 7 x hs1.8xlarge",
        ),
        (
            ("sort", *LOCAL, *STUDY, "--max-nodes", "3"),
            "no offer meets --max-nodes 3; nearest: 7 x hs1.",
        ),
        (
            ("sort", *LOCAL, *STUDY, "--budget", "1USD"),
            "no offer meets --budget with --max-nodes 250",
        ),
        (
            (
                "sort",
                *LOCAL,
                "--descriptors",
                "1000000",
                "--data",
                "8EB",
                "--catalog",
                "aws-us-east-1-2014",
                "--any-memory",
            ),
            "the maximum is 100,000 nodes; reduce --data",
        ),
        (
            ("sort", "--data", "8EB", "--catalog", "aws-us-east-1-2026"),
            "no offer is usable. Most common reason: too little memory for two passes over so much",
        ),
        (
            ("sort", "--data", "20TB", "--explain", "c8gn.medium"),
            "c8gn.medium is not a candidate: too little memory for two passes over so much data",
        ),
        (
            ("sort", *LOCAL, *STUDY, "--deadline", "1s", "--explain", "aws/i2.8xlarge"),
            "i2.8xlarge is not a candidate: too slow: ",
        ),
        (
            ("sort", *LOCAL, *STUDY, "--nodes", "3", "--explain", "i2.8xlarge"),
            "too small: at least 47 nodes are needed",
        ),
        (("sort", *LOCAL, *STUDY, "--explain", "i2.8xlrge"), "did you mean i2.8xlarge?"),
        (("sort", *LOCAL, *STUDY, "--explain", "m1.small"), "was not measured"),
        (("sort", "--data", "1TB", "--catalog", "aws-2014"), "--catalog: unknown catalog aws-2014"),
        (("sort", "--data", "1TB", "--profile", "nobody"), "--profile: no profile nobody"),
        (
            ("sort", "--data", "1TB", "--durability", "some"),
            "--durability some is not valid; use one of none",
        ),
        (("sort", *LOCAL, *STUDY, "--provider", "gcp"), "--provider gcp is not valid; use aws"),
        (("shuffle", "--data", "1TB"), "JOB shuffle is not valid; use sort"),
        (("srot", "--data", "1TB"), "did you mean sort?"),
        (
            ("sort", *STUDY, "--from", "volumes", "--to", "objects"),
            "aws-us-east-1-2014 lacks object storage, where the job's data is; for data elsewhere",
        ),
        (
            ("sort", *LOCAL, *STUDY, "--passes", "2"),
            "--passes applies only to reduce, not to sort; remove it",
        ),
        (
            ("reduce", *STUDY, "--durability", "volumes"),
            "--durability applies only to sort and mapreduce",
        ),
        (("sort", "--data", "100TB", "--every-size"), "candidates exceed the limit"),
    ],
)
def test_refuses_and_says_how_to_fix_it(
    tonnage: Tonnage, arguments: tuple[str, ...], said: str
) -> None:
    done = tonnage.run("plan", *arguments)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr and len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("provider", ["aws", "gcp", "azure"])
def test_each_provider_is_planned(tonnage: Tonnage, provider: str) -> None:
    asked = ("plan", "sort", "--data", "20TB", "--provider", provider, "--json")
    found = Plan.from_json(json.loads(tonnage.run(*asked, check=True).stdout))
    assert {each.provider for each in found.candidates} == {provider}
    assert any(each.own_disks for each in found.candidates)


def test_what_no_profile_knows_of_disks_is_to_be_measured(tonnage: Tonnage, tmp_path: Path) -> None:
    profile({"m1.small": [distribution("network", 1e8)]}).write(tmp_path / "p.json")
    asked = (*LOCAL, *STUDY, "--network", "infinite", "--profile", str(tmp_path))
    done = tonnage.run("plan", "sort", *asked)
    assert done.returncode == 2 and "--survey shows which offers to measure" in done.stderr


@pytest.mark.parametrize(("given", "seconds"), [("2min", 120.0), ("0", None), ("0s", None)])
def test_the_start_of_machines_can_be_given(
    tonnage: Tonnage, given: str, seconds: float | None
) -> None:
    asked = ("plan", "sort", *LOCAL, *STUDY[:-2], "--startup", given, "--nodes", "47", "--json")
    best = Plan.from_json(json.loads(tonnage.run(*asked, check=True).stdout)).candidates[0]
    if seconds is None:
        assert best.run_seconds is None and best.phases == best.job_phases
    else:
        assert best.run_seconds is not None
        assert best.phases[0].seconds == pytest.approx(seconds)
        assert best.seconds.median - best.run_seconds.median == pytest.approx(seconds)


def test_refuses_a_profile_of_another_machine(tonnage: Tonnage, tmp_path: Path) -> None:
    profile({"my-laptop": [distribution("local both", 1e9)]}).write(tmp_path / "p.json")
    done = tonnage.run("plan", "sort", *LOCAL, *STUDY, "--profile", str(tmp_path))
    assert done.returncode == 2
    assert "covers my-laptop, not the offers of the catalogs used" in done.stderr


def test_own_launches_count_in_place_of_others_starts(tonnage: Tonnage, tmp_path: Path) -> None:
    earlier = json.loads(
        (ROOT / "tests" / "support" / "recorded" / "artifacts" / "launch-1.json").read_text()
    )
    record, made = tmp_path / "launch.json", tmp_path / "mine.json"
    record.write_text(json.dumps(earlier | {"ready_at": "2026-01-01T00:05:00+00:00"}))
    said = tonnage.run("profile", str(record), "--output", str(made), check=True).stdout
    assert "aws, start: 5.0 min" in said
    arguments = ("plan", "sort", "--data", "1TB", "--provider", "aws", "--json")
    for known in (str(made), str(tmp_path)):
        profiles = ("--profile", "themis-2014", "skyrise", known)
        told = tonnage.run(*arguments, *profiles, check=True)
        phases = json.loads(told.stdout)["candidates"][0]["phases"]
        assert phases[0]["name"] == "start-up" and phases[0]["seconds"] == pytest.approx(300)


@pytest.mark.parametrize("known", [(), ("--reduction", "kmeans"), ("--core-seconds", "1")])
def test_an_explained_reduction_has_an_interval_if_its_cores_are_known(
    tonnage: Tonnage, known: tuple[str, ...]
) -> None:
    """What its processes take to begin and end is not its work."""
    arguments = ("reduce", "--data", "1TB", "--provider", "aws", "--explain", "c8gn.large")
    told = tonnage.run("plan", *arguments, *known, check=True).stdout
    (paid,) = [line for line in told.splitlines() if line.startswith("  ") and "$" in line][:1]
    assert ("at least" in paid) == (not known)
