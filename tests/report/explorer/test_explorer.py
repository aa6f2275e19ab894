"""The plan page plans as `tonnage plan` does, and is usable offline and accessible (Chromium)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.browser.chromium import Browser, Page
from support.browser.plan_pages import (
    NARROW,
    WIDE,
    PlanPage,
    assert_same_plan,
    open_page,
    page_plan,
    random_forms,
    to_request,
    write_page,
)
from support.cli.command import Tonnage
from support.data.copies import replace
from support.data.offers import (
    BURSTING,
    FAMILIES,
    SIZED,
    STEADY,
    catalog,
    distribution,
    offer,
    profile,
)
from support.data.runs import pass_one, pass_two, record
from tonnage.base import formatting
from tonnage.base.records.plan import NO_CORES, Plan
from tonnage.base.records.profile import Mode
from tonnage.catalog import Spot, load_catalog, newest_catalogs
from tonnage.model.jobs.mapreduce import sort_job
from tonnage.model.jobs.reduce import reduce_job
from tonnage.model.profiles.build import build_profile as profiling
from tonnage.model.profiles.offer_matching import OfferAssignments
from tonnage.model.profiles.repository import index_profiles, read_profiles
from tonnage.plan.calibration import describe
from tonnage.plan.planner import PlanRequest, plan
from tonnage.plan.search import Limits
from tonnage.report.explorer import page_data, write_explorer

STUDY = "aws-us-east-1-2014"
pytestmark = [pytest.mark.slow, pytest.mark.browser]


@pytest.fixture(scope="module")
def some(tmp_path_factory: pytest.TempPathFactory) -> PlanPage:
    """A page over some offers of every provider, and over all that were measured in 2014.

    Some, since it is the command that would take long to be asked as often.
    """
    study = index_profiles(read_profiles("themis-2014"))
    measured = {kind for _, kind in study.offers}
    catalogs = []
    for each in newest_catalogs():
        kept = [
            offer
            for at, offer in enumerate(each.offers)
            if at % 200 == 0 or (each.provider == "aws" and offer.type in measured)
        ]
        two = each.volume_kinds[:2]
        catalogs.append(replace(each, offers=tuple(kept), volume_kinds=two))
    return write_page(tmp_path_factory.mktemp("some"), catalogs, study)


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of the command, over all that is on offer."""
    out = tmp_path_factory.mktemp("everything") / "explore.html"
    said = Tonnage().run("explore", "--output", str(out), "--json", check=True).stdout
    assert json.loads(said)["page"] == str(out)
    return out


@pytest.mark.real
@pytest.mark.parametrize(
    "fields",
    [
        {"data": "20TB", "location": "volumes", "provider": "gcp"},
        {"data": "100TB", "deadline": "1s", "purchase": "spot"},
    ],
)
def test_it_answers_as_the_command_that_it_shows(
    browser: Browser, everything: Path, tonnage: Tonnage, fields: dict[str, str]
) -> None:
    with open_page(browser, everything) as page:
        found = page_plan(page, fields)
        arguments = found["command"].split()
        assert arguments[0] == "tonnage"
        done = tonnage.run(*arguments[1:], "--json")
        made = Plan.from_json(json.loads(done.stdout))
        assert_same_plan(found, made)


def test_a_map_reduce_of_its_own_shares(browser: Browser, tonnage: Tonnage, tmp_path: Path) -> None:
    out = tmp_path / "explore.html"
    shares = ("--map-share", "0.5", "--reduce-share", "0.2")
    tonnage.run("explore", "mapreduce", *shares, "--catalog", STUDY, "--output", out, check=True)
    with open_page(browser, out) as page:
        found = page_plan(page, {"data": "20TB", "location": "replicated"})
    flags = found["command"].split()[1:]
    assert flags[:2] == ["plan", "mapreduce"] and {*shares} <= {*flags}
    assert_same_plan(
        found, Plan.from_json(json.loads(tonnage.run(*flags, "--json", check=True).stdout))
    )


def test_laws_of_nodes_that_vary(browser: Browser, tmp_path: Path) -> None:
    # Nodes of two kinds, draws that depend on how many there are, a bursting link and volumes,
    # spot prices within a range: what no profile of the package has.
    spot = Spot(
        low_usd_per_hour=0.2,
        typical_usd_per_hour=None,
        high_usd_per_hour=0.7,
        date="2026-01-01",
        source="made up",
    )
    offers = [
        offer("both", 1.0, link_most=2e9, spot=spot),
        offer("slow", 0.4, network=2e8, spot=spot),
        offer("diskless", 0.5, local_bytes=0, link_most=3e9),
    ]
    kinds = distribution("local both", 8e8, 0.2, 6)
    kinds = replace(
        kinds, modes=[*kinds.modes, Mode(median=3e8, spread=0.1, instances=2)], fleet_spread=0.1
    )
    laws = {
        "both": [kinds, distribution("network", 7e8, 0.1, 5)],
        "slow": [distribution("local both", 4e8, 0.3, 3)],
    }
    shares = [
        distribution(name, 0.9, 0.1, 4) for name in ("network", "volume read", "volume write")
    ]
    made_up = catalog(offers, (STEADY, SIZED, BURSTING))
    there = write_page(tmp_path, [made_up], index_profiles([profile(laws, shares=shares)]))
    with open_page(browser, there.page) as page:
        for fields in random_forms(20, seed=3):
            fields["provider"] = ""
            assert_same_plan(
                page_plan(page, fields), plan(to_request(fields), there.catalogs, there.known)
            )


def test_runs_calibrate_it_as_they_do_plans(browser: Browser, tmp_path: Path) -> None:
    """Held up by disks, by the network, by cores; more and less than was measured; other jobs'."""
    laws = [distribution("local both", 1e8, 0.01), distribution("network", 9e7, 0.01)]
    offers = [offer(name, usd) for name, usd in (("disk", 1.0), ("link", 0.7), ("core", 0.9))]
    offers.append(offer("never run", 1.1))
    measured = profile({each.type: laws for each in offers}, [(2, 1.0), (4, 0.9), (8, 0.7)])
    at_work = {"disk": {"read": 0.95}, "link": {"send": 0.95}, "core": {"partition": 0.95}}
    made = [measured]
    for name, held_up in at_work.items():
        phases = [pass_one(20.0, **dict.fromkeys(("send", "receive"), 0.1) | held_up), pass_two()]
        runs = [
            replace(
                record({"n-0": phases, "n-1": phases}, seconds),
                bytes=4_000_000_000,
                began_at=f"2026-01-0{day}T00:00:00+00:00",
            )
            for day, seconds in ((1, 40.0), (2, 44.0))
        ]
        made.append(
            profiling(
                [],
                {},
                name=name,
                made_at="now",
                runs=runs,
                assigned=OfferAssignments(default=("aws", name)),
            )
        )
    there = write_page(tmp_path, [catalog(offers)], index_profiles(made))
    with open_page(browser, there.page) as page:
        calibrated = set()
        for fields in random_forms(30, seed=5):
            fields |= {"provider": "", "location": "local"}
            its = plan(to_request(fields), there.catalogs, there.known)
            assert_same_plan(page_plan(page, fields), its)
            calibrated |= {(each.offer, each.calibrated is not None) for each in its.candidates}
        assert {("disk", True), ("link", True), ("core", True), ("never run", False)} <= calibrated
    few = "#data=4GB&max-nodes=2"
    best = plan(
        PlanRequest(sort_job(), 4 * 10**9, Limits(max_nodes=2)), there.catalogs, there.known
    )
    with open_page(browser, there.page, hash=few) as page:
        said = describe(best.candidates[0].calibrated)
        assert said.startswith("calibrated by 2 runs on 2 nodes")
        assert said[1:] in page.inner.locator("#told").inner_text()


def test_a_sort_from_a_store_to_a_store(browser: Browser, tonnage: Tonnage, tmp_path: Path) -> None:
    out = tmp_path / "explore.html"
    flags = ("--from", "objects", "--catalog", "aws-us-east-1-2026")
    tonnage.run("explore", "sort", *flags, "--output", out, check=True)
    with open_page(browser, out) as page:
        assert not page.inner.locator("#location").is_visible()
        for fields in ({"data": "2TB", "deadline": "1h"}, {"data": "90TB", "max-nodes": "60"}):
            found = page_plan(page, fields)
            arguments = found["command"].split()[1:]
            assert " --from objects " in found["command"]
            done = tonnage.run(*arguments, "--json")
            assert_same_plan(found, Plan.from_json(json.loads(done.stdout)))


def test_a_reduction_in_object_storage(browser: Browser, tmp_path: Path) -> None:
    job = reduce_job(4, cpu_seconds_per_byte=2e-9, object_share=0.001)
    study, catalogs = (
        index_profiles(read_profiles("themis-2014")),
        [load_catalog("aws-us-east-1-2026")],
    )
    page = write_explorer(
        page_data({"": job}, catalogs, study), "job.json", [], tmp_path / "reduce.html"
    )
    with open_page(browser, page) as opened:
        assert not opened.inner.locator("#location").is_visible()
        # Four passes with one bottleneck are shown as one; a sort's two passes separately.
        assert "pass 1 to pass 4: " in opened.inner.locator("#told").inner_text()
        found = page_plan(opened, {"data": "2TB", "deadline": "1h", "max-nodes": "40"})
        limits = Limits(max_nodes=40, deadline_seconds=3600)
        assert_same_plan(
            found, plan(PlanRequest(job=job, size=2 * 10**12, limits=limits), catalogs, study)
        )


@pytest.mark.parametrize(
    ("width", "scheme"),
    [
        pytest.param(NARROW, "light", marks=pytest.mark.real),
        (NARROW, "dark"),
        (WIDE, "light"),
        (WIDE, "dark"),
    ],
)
def test_anyone_can_use_it(browser: Browser, some: PlanPage, width: int, scheme: Any) -> None:
    with open_page(browser, some.page, width) as page:
        page.inner.emulate_media(color_scheme=scheme)
        assert page.inner.evaluate("document.documentElement.scrollWidth") <= width
        assert page.serious == []
        # Nothing keeps that; what is asked is nothing that can be; all there is is open.
        page.inner.locator("#deadline").fill("1s")
        page.inner.get_by_text("No offer meets the deadline of 1.0 s").wait_for(timeout=60_000)
        assert page.serious == []
        page.inner.locator("#data").fill("much")
        page.inner.locator("#wrong-data").get_by_text("is not a size").wait_for(timeout=60_000)
        assert page.serious == []
        page.inner.locator("details > summary").evaluate_all(
            "all => all.forEach(one => one.click())"
        )
        assert page.serious == []


def planned_for(page: Page, part: str) -> None:
    """Waits until the answer is to a question that has this in its link."""
    page.inner.locator(f"html[data-planned*='{part}']").wait_for(state="attached", timeout=60_000)


def test_sliders_and_texts_say_the_same(browser: Browser, some: PlanPage) -> None:
    with open_page(browser, some.page, hash="#data=20TB") as page:
        slider, data = page.inner.locator("[data-of=data]"), page.inner.locator("#data")
        assert slider.get_attribute("aria-valuetext") == "20TB"
        place = int(slider.input_value())
        slider.press("ArrowRight")
        planned_for(page, "50TB")
        assert data.input_value() == slider.get_attribute("aria-valuetext") == "50TB"
        data.fill("21TB")  # Between two stops: at the nearer one, and said as it is.
        planned_for(page, "21TB")
        assert int(slider.input_value()) == place
        assert slider.get_attribute("aria-valuetext") == "21TB"
        deadline = page.inner.locator("[data-of=deadline]")
        assert deadline.get_attribute("aria-valuetext") == "none"
        deadline.press("ArrowRight")
        planned_for(page, "deadline")
        assert page.inner.url.endswith("#data=21TB&deadline=5min")


def test_the_full_page_asks_nobody(browser: Browser, everything: Path) -> None:
    with open_page(browser, everything, NARROW) as page:
        urls: list[str] = []
        page.inner.on("request", lambda request: urls.append(request.url))
        page.inner.reload()
        page.inner.wait_for_selector("html[data-planned]", state="attached", timeout=120_000)
        assert [url for url in urls if not url.startswith("file:")] == []
        assert page.inner.evaluate("document.documentElement.scrollWidth") <= NARROW
        assert page.inner.locator("#answer-heading").inner_text().count("×") == 1


def test_a_link_keeps_the_question(browser: Browser, some: PlanPage) -> None:
    with open_page(browser, some.page, hash="#data=3TB&deadline=2h&provider=aws") as page:
        fields = {"data": "3TB", "deadline": "2h", "provider": "aws"}
        assert page.inner.locator("#data").input_value() == "3TB"
        first = page_plan(page, fields)["shown"][0]
        heading = page.inner.locator("#answer-heading")
        assert f"× {first['offer']}" in heading.inner_text()
        command = page.inner.locator(".command code")
        assert (
            command.inner_text()
            == "tonnage plan sort --data 3TB --deadline 2h --from local --provider aws"
        )
        page.inner.locator("#deadline").fill("1s")
        page.inner.get_by_text("No offer meets the deadline of 1.0 s").wait_for(timeout=60_000)
        assert page.inner.url.endswith("#data=3TB&deadline=1s&provider=aws")
        assert page.inner.get_by_role("button", name="plan with up to 2,500").is_visible()
        page.inner.locator("#data").fill("much")
        wrong = page.inner.locator("#wrong-data")
        wrong.get_by_text("is not a size").wait_for(timeout=60_000)
        assert page.inner.locator("#data").get_attribute("aria-invalid") == "true"


def test_each_number_says_where_it_comes_from(browser: Browser, some: PlanPage) -> None:
    with open_page(browser, some.page, hash="#data=20TB&provider=aws") as page:
        told = page.inner.locator("#told").inner_text()
        assert "map and shuffle: " in told and "sort and reduce: " in told
        said = page.inner.locator("#arithmetic").inner_text()
        assert "section" in said and "To measure it yourself: tonnage measure" in said
        assert "tonnage catalog show aws/" in said and "USD an hour on demand" in said
        second = page.inner.locator("#table th button").nth(1)
        name = second.inner_text()
        second.click()
        assert f"{name}," in page.inner.locator("#arithmetic").inner_text()


def test_a_measurement_is_cited_with_its_command(browser: Browser, tmp_path: Path) -> None:
    measured = replace(distribution("local both", 8e8, 0.2, 6), source="disk-a, disk-b")
    told = profile({"m": [measured, distribution("network", 7e8, 0.1, 5)]})
    commands = {"disk-a": ["tonnage", "measure", "disk", "--dir", "/mnt/a"], "c": ["no"]}
    there = index_profiles([replace(told, commands=commands)])
    held = page_data({"local": sort_job()}, [catalog([offer("m")])], there)
    with open_page(browser, write_explorer(held, "sort", [], tmp_path / "explore.html")) as page:
        said = page.inner.locator("#arithmetic").inner_text()
        assert "disk-a, disk-b" in said and "measured" in said
        assert "To repeat the measurement: tonnage measure disk --dir /mnt/a\n" in said


def test_the_front_is_walked_by_keys(browser: Browser, some: PlanPage) -> None:
    with open_page(browser, some.page, hash="#data=20TB") as page:
        plot, told = page.inner.locator("#front .plot"), page.inner.locator("#front .told")
        plot.press("Home")
        front = page_plan(page, {"data": "20TB"})["pareto"]
        assert f"× {front[0]['offer']}," in told.inner_text()
        plot.press("End")
        assert f"× {front[-1]['offer']}," in told.inner_text()


PHONE = 390


@pytest.fixture(scope="module")
def families(tmp_path_factory: pytest.TempPathFactory) -> PlanPage:
    """A page over eight families of AWS and one of Google."""
    google = replace(offer("n9-standard-1", disk_rates=(1e8, 1e8)), provider="gcp")
    two = [
        catalog(FAMILIES),
        replace(catalog([google]), name="made-up-too", provider="gcp"),
    ]
    measured = profile(
        {},
        shares=[
            distribution("local read", 0.9, 0.1, 4),
            distribution("local write", 0.9, 0.1, 4),
            distribution("network", 0.9, 0.1, 4),
        ],
    )
    return write_page(tmp_path_factory.mktemp("families"), two, index_profiles([measured]))


def in_words(candidate: dict[str, Any]) -> str:
    """A candidate, or a point of the front, as the page names it."""
    return f"{candidate['nodes']:,} × {candidate['offer']}"


def rows_of(page: Page) -> list[str]:
    """The offers in the table of candidates."""
    return page.inner.locator("#table th button").all_inner_texts()


def test_a_table_shows_the_best_of_each_family_and_folds_the_rest(
    browser: Browser, families: PlanPage
) -> None:
    with open_page(browser, families.page, hash="#data=3TB") as page:
        found = page_plan(page, {"data": "3TB"})
        count = found["candidates"]
        assert rows_of(page) == [in_words(each) for each in found["shown"]]
        assert len(rows_of(page)) <= 20 < count
        said = page.inner.locator("#rows")
        assert said.inner_text().startswith(f"The best of each family, {len(found['shown'])} of ")
        page.inner.locator("#fold").click()
        rows = page.inner.locator("#table tbody tr")
        rows.nth(count - 1).wait_for(timeout=60_000)
        assert rows.count() == count
        page.inner.locator("#fold").click()
        assert rows.count() == len(found["shown"])


def test_a_search_finds_offers_families_and_providers(browser: Browser, families: PlanPage) -> None:
    with open_page(browser, families.page, hash="#data=3TB") as page:
        search, said = page.inner.locator("#search"), page.inner.locator("#rows")
        search.fill("AWS b.")
        assert rows_of(page) and all(" × b." in row for row in rows_of(page))
        search.fill("gcp")
        assert rows_of(page) and all(" × n9-standard-1" in row for row in rows_of(page))
        search.fill("nothing of this name")
        assert said.inner_text().startswith("None of ") and rows_of(page) == []
        search.fill("")
        assert said.inner_text().startswith("The best of each family")


@pytest.mark.parametrize(
    ("name", "text", "better"),
    [("data", "much", "4TB"), ("deadline", "soon", "3d"), ("budget", "-", "900")],
)
def test_nothing_stale_is_left_while_a_field_cannot_be_read(
    browser: Browser, families: PlanPage, name: str, text: str, better: str
) -> None:
    with open_page(browser, families.page, hash="#data=3TB&deadline=2d") as page:
        assert page.inner.locator(".command code").count() == 1
        page.inner.locator(f"#{name}").fill(text)
        page.inner.locator(f"#wrong-{name}").get_by_text(text).wait_for(timeout=60_000)
        main = page.inner.locator("main").inner_text()
        assert "There is no plan until the marked fields can be read." in main
        assert "$" not in main and "×" not in main and "tonnage plan sort" not in main
        page.inner.set_viewport_size({"width": WIDE - 1, "height": 900})  # Nor on a redrawing.
        assert not page.inner.locator("svg").first.is_visible()
        page.inner.locator(f"#{name}").fill(better)
        planned_for(page, better)
        assert page.inner.locator("#table tbody tr").count() > 0


def test_a_point_of_the_chart_names_its_offer_and_is_selected(
    browser: Browser, families: PlanPage
) -> None:
    with open_page(browser, families.page, hash="#data=20TB") as page:
        plot, told = page.inner.locator("#front .plot"), page.inner.locator("#front .told")
        found = page_plan(page, {"data": "20TB"})
        arithmetic = page.inner.locator("#arithmetic > p").first
        plot.press("Home")
        plot.press("Enter")
        fastest = found["pareto"][0]
        name = in_words(fastest)
        assert arithmetic.inner_text().startswith(f"{name},")
        assert page.inner.locator("tr.marked th button").inner_text() == name
        # The arrow keys go through the families' best, too.
        plot.press("ArrowDown")
        plot.press("ArrowDown")
        second = found["shown"][1]
        assert f": {in_words(second)}," in told.inner_text()
        box = page.inner.locator("#front .cursor").bounding_box()
        assert box
        middle = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        plot.press("Home")
        page.inner.mouse.move(*middle)
        label = page.inner.locator("#front .name")
        assert label.text_content() == in_words(second)
        page.inner.mouse.move(0, 0)
        assert label.text_content() == name
        page.inner.mouse.click(*middle)
        assert arithmetic.inner_text().startswith(f"{in_words(second)},")


def test_a_phone_shows_time_and_both_ends_of_the_cost(browser: Browser, families: PlanPage) -> None:
    with open_page(browser, families.page, PHONE, hash="#data=3TB&deadline=2d") as page:
        assert page.inner.locator("#table thead th").all_inner_texts()[:3] == [
            *("offer", "time", "cost")
        ]
        ends = page.inner.locator("#table tbody td:nth-child(3)").evaluate_all(
            "all => all.map((each) => each.getBoundingClientRect().right)"
        )
        edge = page.inner.locator("#table .scroll").evaluate("e => e.getBoundingClientRect().right")
        assert len(ends) > 1 and max(ends) <= edge <= PHONE
        assert all(
            " – " in text
            for text in page.inner.locator("#table td:nth-child(3) small").all_inner_texts()
        )


def test_what_is_not_counted_stands_above_and_no_probability(
    browser: Browser, tmp_path: Path
) -> None:
    measured = profile(
        {"m": [distribution("local both", 8e8, 0.2, 6), distribution("network", 7e8)]}
    )
    there = write_page(tmp_path, [catalog([offer("m")])], index_profiles([measured]))
    with open_page(browser, there.page, hash="#data=3TB&deadline=2d") as page:
        told = page.inner.locator("#told")
        assert formatting.sentence(NO_CORES) in told.inner_text()
        assert "deadline" not in told.locator(".tiles").inner_text()
        rows = page.inner.locator("#table").inner_text()
        assert "meets deadline" not in rows
        tiles = told.locator(".tiles").inner_text()
        for text in (tiles, rows):
            assert "at least $" in text
            assert not any(sign in text for sign in ("90 %:", "–"))
        for text in (told.inner_text(), page.inner.locator("#front .told").inner_text()):
            assert "without CPU time" in text
        note = told.get_by_text(NO_CORES[6:]).bounding_box()
        table = page.inner.locator("#table").bounding_box()
        assert note and table and note["y"] < table["y"]


def test_a_page_has_a_page_s_name(tonnage: Tonnage, tmp_path: Path) -> None:
    done = tonnage.run("explore", "--catalog", STUDY, "--output", str(tmp_path / "plan.txt"))
    assert done.returncode == 2 and "--output" in done.stderr and ".html" in done.stderr
    done = tonnage.run("explore", "tidy", "--catalog", STUDY, "--output", str(tmp_path / "a.html"))
    assert done.returncode == 2 and "JOB tidy" in done.stderr
