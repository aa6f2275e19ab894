"""Plan pages for tests: write and open them, and compare their plans with the planner's."""

from __future__ import annotations

import dataclasses
import math
import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from support.browser.chromium import Browser, Page
from tonnage.base.records.base import to_builtins
from tonnage.base.records.job import Job
from tonnage.base.records.plan import Candidate, Plan
from tonnage.catalog import Catalog
from tonnage.cli.options.types import parse_duration, parse_size
from tonnage.model.jobs.mapreduce import sort_job
from tonnage.model.profiles.repository import ProfileIndex
from tonnage.plan.candidates import best_of_families
from tonnage.plan.planner import PlanRequest
from tonnage.plan.search import Limits
from tonnage.report.explorer import PageData, page_data, write_explorer

SHOWN = 20
"""Candidates in the page's table."""
WIDE, NARROW = 1280, 360
JOBS: dict[str, Job] = {
    "local": sort_job(),
    "replicated": sort_job("replicated"),
    "volumes": sort_job(read_from="volumes", written_to="volumes"),
    "objects": sort_job(read_from="objects", written_to="objects"),
}
"""A sort by the location of its data."""


@dataclasses.dataclass(frozen=True)
class PlanPage:
    """A page and what it plans from."""

    page: Path
    catalogs: list[Catalog]
    known: ProfileIndex


def page_tables(catalogs: list[Catalog], profiles: ProfileIndex) -> PageData:
    return page_data(JOBS, catalogs, profiles)


def write_page(directory: Path, catalogs: list[Catalog], profiles: ProfileIndex) -> PlanPage:
    page = write_explorer(page_tables(catalogs, profiles), "sort", [], directory / "explore.html")
    return PlanPage(page, catalogs, profiles)


@contextmanager
def open_page(browser: Browser, page: Path, width: int = WIDE, hash: str = "") -> Iterator[Page]:
    """Open the page, wait for its first plan, and check for errors at the end."""
    with browser.open(page, width, 900) as opened:
        if hash:
            opened.inner.goto(f"{page.resolve().as_uri()}{hash}")
            opened.inner.reload()
        opened.inner.wait_for_selector("html[data-planned]", state="attached", timeout=120_000)
        yield opened
        assert opened.problems == []


def page_plan(page: Page, fields: dict[str, str]) -> dict[str, Any]:
    """Plan on the page, through the function that its form calls."""
    found: dict[str, Any] = page.inner.evaluate("fields => tonnage.plan(fields)", fields)
    return found


def random_forms(
    count: int,
    seed: int,
    locations: Sequence[str] = (*JOBS,),
    providers: Sequence[str] = ("aws", "gcp", "azure"),
) -> Iterator[dict[str, str]]:
    """Random texts of the form, over all that a person may enter."""
    dice = random.Random(seed)
    for _ in range(count):
        size = f"{10 ** dice.uniform(9, 15):.0f}"
        yield {
            "data": dice.choice([size, "20TB", "1.5PB", "700GiB"]),
            "deadline": dice.choice(["", "2h", f"{10 ** dice.uniform(1, 5):.1f}s"]),
            "budget": dice.choice(["", "", f"{10 ** dice.uniform(0, 4):.2f}"]),
            "objective": dice.choice(["cost", "cost", "time"]),
            "location": dice.choice(locations),
            "provider": dice.choice(["", *providers]),
            "purchase": dice.choice(["on-demand", "spot"]),
            "max-nodes": str(round(10 ** dice.uniform(0, 2.2))),
        }


def to_request(fields: dict[str, str], jobs: Mapping[str, Job] = JOBS) -> PlanRequest:
    """The same as a plan request, parsed as the command does."""
    deadline, budget, provider = fields["deadline"], fields["budget"], fields["provider"]
    return PlanRequest(
        job=jobs[fields["location"]],
        size=parse_size(fields["data"]),
        limits=Limits(
            max_nodes=int(fields["max-nodes"]),
            deadline_seconds=parse_duration(deadline) if deadline else math.inf,
            budget_usd=float(budget) if budget else math.inf,
            objective=fields["objective"],  # type: ignore[arg-type]
        ),
        purchase=fields["purchase"],  # type: ignore[arg-type]
        providers=(provider,) if provider else (),
    )


def assert_same_plan(found: dict[str, Any], made: Plan) -> None:
    """Check that the page's plan is the planner's: the same candidates, to the cent."""
    assert found["wrong"] == {}
    assert found["candidates"] == len(made.candidates)
    for mine, (rank, its) in zip(
        found["shown"], best_of_families(made.candidates, SHOWN), strict=True
    ):
        assert mine["rank"] == rank
        assert_same_candidate(mine, its)
    assert (found["nearest"] is None) == (made.nearest is None)
    if made.nearest:
        assert_same_candidate(found["nearest"], made.nearest)
        assert {(each["catalog"], each["offer"], each["why"]) for each in found["excluded"]} == {
            (each.catalog, each.offer, each.why) for each in made.excluded
        }
    for name, figures in (
        ("seconds", [each.seconds for each in made.pareto]),
        ("cost", [each.cost_usd for each in made.pareto]),
    ):
        assert [each[name] for each in found["pareto"]] == pytest.approx(figures, rel=1e-9)
    assert found["notes"] == made.notes
    assert found["demandsKnown"] == made.demands_known


def assert_same_candidate(mine: dict[str, Any], its: Candidate) -> None:
    names = ("catalog", "provider", "offer", "layout", "placement", "nodes", "evidence", "notes")
    assert [mine[name] for name in names] == [getattr(its, name) for name in names]
    for middle, between, whole in (
        (mine["seconds"], mine["secondsInterval"], its.seconds),
        (mine["cost"], mine["costInterval"], its.cost_usd),
    ):
        assert f"{middle:.2f}" == f"{whole.median:.2f}"
        assert [middle, *between] == pytest.approx([whole.median, whole.low, whole.high], rel=1e-9)
    assert mine["usdPerHour"] == pytest.approx(its.usd_per_hour, rel=1e-12)
    assert mine["inTime"] == its.deadline_probability
    assert mine["calibrated"] == (its.calibrated and to_builtins(its.calibrated))
    assert [each["bottleneck"] for each in mine["phases"]] == [
        each.bottleneck for each in its.phases
    ]
