"""Plans on a page: side by side, by machine type, with nothing computed that no plan says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.browser.chromium import Browser
from support.cli.command import Tonnage
from support.data.copies import replace
from support.stores.disk import ROOT
from tonnage.base.records.plan import NamedPlan, Plan, Plans
from tonnage.report.plans import SHOWN, best_in_words, render, write_plans

WIDE, NARROW = 1280, 390
KEPT = ROOT / "tests" / "support" / "recorded" / "artifacts" / "plan-1.json"
NETWORKS = ("infinite", "baseline", "scaled")
CATALOG = ("--catalog", "aws-us-east-1-2014")


def plan() -> Plan:
    return Plan.read(KEPT)


def of_types(count: int, times: float) -> Plan:
    """A plan of as many types, each more expensive than the one before."""
    first = plan().candidates[0]
    candidates = []
    for number in range(1, count + 1):
        cost = replace(
            first.cost_usd,
            low=times * number * 0.9,
            median=times * number,
            high=times * number * 1.2,
        )
        candidates.append(replace(first, offer=f"type-{number}", cost_usd=cost))
    return replace(plan(), candidates=candidates)


@pytest.mark.browser
@pytest.mark.parametrize("width", [pytest.param(WIDE, marks=pytest.mark.slow), NARROW])
def test_the_page_has_a_bar_for_each_type_and_plan(
    browser: Browser, tmp_path: Path, width: int
) -> None:
    plans = Plans(
        plans=[
            NamedPlan(name="near", plan=of_types(3, 1.0)),
            NamedPlan(name="far", plan=of_types(SHOWN + 2, 2.0)),
        ]
    )
    with browser.open(write_plans(plans, tmp_path / "plans.html"), width, 900) as page:
        page.inner.wait_for_selector("html[data-drawn]", state="attached")
        bars = page.inner.locator("#chart-cost-usd .bars .point").count()
        said = page.inner.locator("#chart-cost-usd").get_attribute("aria-label") or ""
        assert page.inner.evaluate("document.documentElement.scrollWidth") <= width
        assert page.problems == [] and page.serious == []
    assert bars == 3 + SHOWN
    assert "near, 5 x type-3 (local): $3.00 ($2.70 – $3.60)" in said
    assert "far, 5 x type-1 (local): $2.00 ($1.80 – $2.40)" in said
    assert f"type-{SHOWN + 1}" not in said
    assert "2 more machine types in the tables below." in render(plans)


def test_a_type_has_its_best_candidate_only() -> None:
    one = of_types(1, 1.0)
    costlier = replace(one.candidates[0], nodes=77)
    twice = replace(one, candidates=[*one.candidates, costlier])
    page = render(Plans(plans=[NamedPlan(name="one", plan=twice)]))
    (said,) = (line for line in page.splitlines() if 'id="chart-seconds"' in line)
    assert "one, 5 x type-1" in said and "one, 77 x" not in said


def test_names_are_text_and_a_plan_without_a_candidate_says_so() -> None:
    nothing = replace(plan(), candidates=[], pareto=[])
    page = render(Plans(plans=[NamedPlan(name="<b>&", plan=nothing)]))
    assert "<b>&" not in page and "&lt;b&gt;&amp;" in page
    assert best_in_words(nothing) in page


def test_the_command_draws_what_a_sort_costs_with_each_of_three_networks(
    tonnage: Tonnage, tmp_path: Path
) -> None:
    """Themis on EC2, figure 9: $218, $284 and $325 of the cluster that set the record."""
    for network in NETWORKS:
        options = ("--placement", "--nodes", "178", "--network", network, "--startup", "0")
        made = tonnage.run(
            "plan",
            "sort",
            "--data",
            "100TB",
            "--from",
            "local",
            *CATALOG,
            *options,
            "--json",
            check=True,
        )
        (tmp_path / f"{network}.json").write_text(made.stdout)
    files = [tmp_path / f"{network}.json" for network in NETWORKS]
    page = tmp_path / "page.html"
    done = tonnage.run("report", *files, "--output", page, "--json", check=True)
    told = Plans.from_json(json.loads(done.stdout))
    assert Plans.read(page.with_suffix(".json")) == told
    found = [round(each.plan.candidates[0].cost_usd.median) for each in told.plans]
    assert [each.name for each in told.plans] == [*NETWORKS] and found == [218, 284, 325]
    said = tonnage.run("report", files[0], "--output", page, check=True).stdout
    assert "infinite: 178 x i2.8xlarge (local, placement group), 11 min, $218.00." in said


def test_what_cannot_be_put_side_by_side_is_refused(tonnage: Tonnage, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    other, broken = tmp_path / "job.json", tmp_path / "broken.json"
    other.write_text((KEPT.parent / "job-1.json").read_text())
    broken.write_text('{"schema": "tonnage.plan/1"}')
    for given, why in (
        ((KEPT, other), "pass only plans"),
        ((KEPT, KEPT), "is passed twice"),
        ((broken,), "broken.json: $.job: missing"),
        ((KEPT, "--price", "m=1"), "--price applies only to measurements"),
        ((tmp_path / "page.json",), "which is a plan; use another"),
    ):
        (tmp_path / "page.json").write_bytes(KEPT.read_bytes())
        done = tonnage.run("report", *given, "--output", page)
        assert done.returncode == 2 and why in done.stderr
    assert not page.exists()
