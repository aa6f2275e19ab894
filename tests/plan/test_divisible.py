"""A command that was watched runs on one machine, unless the user says that it divides."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.cli.command import Tonnage
from support.data.copies import replace
from support.data.offers import catalog, distribution, offer, profile
from tonnage.base.records.job import Demand, Job, JobPhase, SpaceDemand
from tonnage.base.records.plan import Plan
from tonnage.model.profiles.repository import index_profiles
from tonnage.plan.explain import explain
from tonnage.plan.planner import NOT_DIVISIBLE, PlanRequest, plan
from tonnage.plan.search import Limits

TB = 10**12
WATCHED = Job(
    name="gzip",
    phases=[
        JobPhase(
            name="phase-1",
            demands=[
                Demand(resource="local read", per_byte=1.0, source="watched"),
                Demand(resource="network", per_byte=0.5, source="watched"),
            ],
        )
    ],
    room=[SpaceDemand(where="local", what="input", per_byte=1.0)],
    divisible=False,
)
KNOWN = index_profiles(
    [profile({"m": [distribution("local both", 5e8, 0.0), distribution("network", 1e8, 0.0)]})]
)


def planned(job: Job, size: int = TB, **limits: float) -> Plan:
    request = PlanRequest(job=job, size=size, limits=Limits(**limits))  # type: ignore[arg-type]
    return plan(request, [catalog([offer("m")])], KNOWN)


def test_a_job_that_does_not_divide_is_planned_on_one_machine() -> None:
    alone, many = (
        planned(replace(WATCHED, divisible=divides), objective="time") for divides in (False, True)
    )
    assert {each.nodes for each in alone.candidates} == {1}
    assert max(each.nodes for each in many.candidates) > 1
    assert NOT_DIVISIBLE in alone.notes and NOT_DIVISIBLE not in many.notes
    assert (alone.settings["least_nodes"], alone.settings["most_nodes"]) == (1, 1)


def test_the_traffic_of_one_machine_is_with_others() -> None:
    (alone,) = planned(WATCHED).candidates
    assert alone.phases[-1].bottleneck == "network"
    assert alone.phases[-1].seconds == pytest.approx(0.5 * TB / 1e8, rel=0.05)
    divided = planned(replace(WATCHED, divisible=True), max_nodes=1).candidates[0]
    assert divided.phases[-1].bottleneck == "local disks"
    terms = explain(PlanRequest(job=WATCHED, size=TB), [catalog([offer("m")])], KNOWN, "m").terms
    assert [term.resource for term in terms] == ["local both", "network"]


def test_data_that_no_machine_holds_is_refused(tonnage: Tonnage, tmp_path: Path) -> None:
    job = WATCHED.write(tmp_path / "job.json")
    line = ("plan", job, "--data", "5PB")
    assert "no machine holds the job's data alone" in tonnage.run(*line).stderr
    done = tonnage.run("plan", job, "--data", "1TB", "--nodes", "3")
    assert done.returncode == 2 and "add --divisible" in done.stderr
    divided = tonnage.run("plan", job, "--data", "1TB", "--nodes", "3", "--divisible", "--json")
    assert json.loads(divided.stdout)["candidates"][0]["nodes"] == 3
    done = tonnage.run("plan", "sort", "--data", "1TB", "--divisible")
    assert done.returncode == 2 and "sort divides anyway" in done.stderr


def test_an_earlier_job_divides() -> None:
    stored = WATCHED.to_json()
    del stored["divisible"]
    assert Job.from_json(stored).divisible
