"""Plans on a page: side by side, by machine type, with nothing computed that no plan says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.browser.chromium import Browser
from support.cli.command import Tonnage
from support.data.copies import replace
from support.stores.disk import ROOT
from tonnage.base.records.plan import NO_CORES, WITHOUT_CORES, NamedPlan, Plan, Plans, SpaceFit
from tonnage.report.plans import MEETS, ROWS, SHOWN, best_in_words, render, write_plans

WIDE, NARROW = 1280, 390
KEPT = ROOT / "tests" / "support" / "recorded" / "artifacts" / "plan-1.json"
NETWORKS = ("infinite", "baseline", "scaled")
STUDY = ("--ignore-cores", "--startup", "0")
CATALOG = ("--catalog", "aws-us-east-1-2014")


def plan() -> Plan:
    return Plan.read(KEPT)


def of_types(count: int, times: float, sizes: int = 1) -> Plan:
    """A plan of as many types, each more expensive than the one before; some sizes a family."""
    first = plan().candidates[0]
    candidates = []
    for number in range(1, count + 1):
        cost = replace(
            first.cost_usd,
            low=times * number * 0.9,
            median=times * number,
            high=times * number * 1.2,
        )
        family, size = divmod(number - 1, sizes)
        candidates.append(replace(first, offer=f"t{family + 1}.{size + 1}x", cost_usd=cost))
    return replace(plan(), candidates=candidates)


def test_memory_for_data_is_apart_from_storage(tmp_path: Path) -> None:
    first = replace(
        plan().candidates[0],
        capacity=SpaceFit(needed_bytes=10**9, have_bytes=4 * 10**9),
        memory=SpaceFit(needed_bytes=3 << 30, have_bytes=32 << 30),
    )
    plans = Plans(plans=[NamedPlan(name="one", plan=replace(plan(), candidates=[first]))])
    text = write_plans(plans, tmp_path / "plans.html").read_text().replace("\xa0", " ")
    assert "1.00 GB of 4.00 GB<br><small>memory: 3 GiB of 32 GiB</small>" in text


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
    assert "near, 5 x t3.1x (local): $3.00 ($2.70 – $3.60)" in said
    assert "far, 5 x t1.1x (local): $2.00 ($1.80 – $2.40)" in said
    assert f"t{SHOWN + 1}." not in said
    assert "2 more machine types in the tables below." in render(plans)


def test_a_type_has_its_best_candidate_only() -> None:
    one = of_types(1, 1.0)
    costlier = replace(one.candidates[0], nodes=77)
    twice = replace(one, candidates=[*one.candidates, costlier])
    page = render(Plans(plans=[NamedPlan(name="one", plan=twice)]))
    (said,) = (line for line in page.splitlines() if 'id="chart-seconds"' in line)
    assert "one, 5 x t1.1x" in said and "one, 77 x" not in said


@pytest.mark.browser
@pytest.mark.parametrize("width", [pytest.param(WIDE, marks=pytest.mark.slow), NARROW])
def test_a_table_has_the_best_of_each_family_and_a_search_all(
    browser: Browser, tmp_path: Path, width: int
) -> None:
    families, sizes = ROWS + 3, 3
    many = replace(of_types(families * sizes, 400.0, sizes), notes=["what nobody counts", NO_CORES])
    plans = Plans(plans=[NamedPlan(name="many", plan=many)])
    with browser.open(write_plans(plans, tmp_path / "plans.html"), width, 900) as page:
        page.inner.wait_for_selector("html[data-drawn]", state="attached")
        best, fold = page.inner.locator("#plan-0 > .candidates"), page.inner.locator("#plan-0-all")
        rows, every = best.locator("tbody tr"), fold.locator("tbody tr:not([hidden])")
        texts = rows.locator("th").all_inner_texts()
        assert [text.split("\n")[0] for text in texts] == [
            f"5 x t{family}.1x" for family in range(1, ROWS + 1)
        ]
        assert texts[1].endswith(f"rank {sizes + 1}, aws t2")
        assert not fold.locator("table").is_visible()
        # What is not counted stands above, and time and cost are in sight.
        note = page.inner.get_by_text("What nobody counts.").bounding_box()
        table, cost = best.bounding_box(), rows.last.locator("td").nth(1).bounding_box()
        assert note and table and cost and note["y"] < table["y"]
        assert cost["x"] + cost["width"] <= width
        assert "Meets deadline" not in page.inner.locator("#plan-0").inner_text()

        page.inner.locator("#plan-0-search").fill("AWS t9")
        assert every.count() == sizes and every.first.is_visible() and not best.is_visible()
        assert page.inner.get_by_role("status").inner_text() == f"3 of {families * sizes}"
        assert page.problems == [] and page.serious == []
        page.inner.locator("#plan-0-search").fill("")
        assert best.is_visible() and not fold.locator("table").is_visible()

        dot = page.inner.locator("#chart-front .scatterlayer .trace").first.locator(".point").first
        dot.dispatch_event("mousemove")
        box = dot.bounding_box()
        assert box
        page.inner.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        assert page.inner.locator("#plan-0-search").input_value() == "t1.1x"


def test_a_probability_has_a_column_where_every_demand_is_known() -> None:
    settings = plan().settings | {"deadline_seconds": 3600.0}
    known = replace(plan(), settings=settings, notes=[])
    for one, shown in ((known, True), (replace(known, notes=[NO_CORES]), False)):
        page = render(Plans(plans=[NamedPlan(name="one", plan=one)]))
        assert (MEETS in page) == shown


def test_an_interval_without_the_cores_is_a_lower_bound() -> None:
    known = replace(of_types(1, 1.0), notes=[])
    interval, without = "$0.90 – $1.20", f"$1.00 {WITHOUT_CORES}"
    page = render(Plans(plans=[NamedPlan(name="one", plan=known)]))
    assert interval in page and "with intervals of" in page and '"error_x":' in page
    assert without not in page and "at least $0.90" not in page
    page = render(Plans(plans=[NamedPlan(name="one", plan=replace(known, notes=[NO_CORES]))]))
    assert "at least $0.90" in page and page.count(without) > 2
    gone = (" – $1.20", "with intervals of", '"error_x":', "of 400")
    assert not any(said in page for said in gone)


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
        options = ("--placement", "--nodes", "178", "--network", network, *STUDY)
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
    assert "infinite: 178 x i2.8xlarge (local, placement group), 11 min, $218.00 without" in said


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
