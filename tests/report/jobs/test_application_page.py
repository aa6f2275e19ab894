"""The page of an application: where its cores' time went, when, what limited it, what to change."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from support.browser.chromium import Browser, Page
from support.cli.command import Tonnage
from support.data.applications import application, stage
from support.data.copies import replace
from support.stores.disk import ROOT
from tonnage.base.records.application import Application, CachedDataSet
from tonnage.base.records.application_analysis import ApplicationAnalysis
from tonnage.model.jobs.application_analysis import MOST_PHASES, analyse_application
from tonnage.report.jobs.application import render, write_application
from tonnage.report.jobs.stages_over_time import LANE, MOST_STEPS, timeline_section

WIDE, NARROW = 1280, 390
RECORDED = ROOT / "tests" / "support" / "recorded" / "artifacts" / "application-1.json"
EVIL = "<script>document.title='taken'</script>"


def nightly() -> Application:
    """A read, two stages at once, and a skewed join after a gap."""
    return application(
        stage(0, 5.0, 20.0, 40, cpu_seconds=60.0, gc_seconds=8.0, read_bytes={"objects": 10**9}),
        stage(1, 30.0, 10.0, 2, task_seconds=20.0),
        stage(2, 31.0, 10.0, 2, task_seconds=20.0),
        stage(
            3,
            60.0,
            30.0,
            16,
            task_seconds=45.0,
            longest_task_seconds=29.0,
            median_task_seconds=1.0,
            longest_task_bytes=10**9,
            largest_task_bytes=10**9,
            shuffle_remote_bytes=16 * 10**8,
            spilled_bytes=10**8,
        ),
    )


def pages_text(one: Application) -> str:
    """The text of a page, without its scripts."""
    page = render(analyse_application(one))
    body = page[page.index("<main>") : page.index("</main>")]
    return plain(html.unescape(re.sub(r"<[^>]*>", " ", body)))


def plain(said: str) -> str:
    return re.sub(r"\s+", " ", said.replace("\u2212", "-")).strip()


def drawn(one: Application) -> dict[str, Any]:
    _, charts = timeline_section(analyse_application(one))
    return {chart.name: chart for chart in charts}


@contextmanager
def shown(
    browser: Browser, one: Application, path: Path, width: int, scheme: str = "light"
) -> Iterator[Page]:
    """The page, open and drawn; nothing of it may be wrong."""
    page_file = write_application(analyse_application(one), path / "page.html")
    with browser.open(page_file, width, 900) as page:
        page.inner.emulate_media(color_scheme=scheme)
        page.inner.wait_for_selector("html[data-drawn]", state="attached")
        yield page
        assert page.problems == [] and page.serious == []
        assert page.inner.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.slow
@pytest.mark.browser
@pytest.mark.parametrize(("width", "scheme"), [(WIDE, "light"), (NARROW, "dark")])
def test_page_is_drawn_offline(browser: Browser, tmp_path: Path, width: int, scheme: str) -> None:
    with shown(browser, nightly(), tmp_path, width, scheme) as page:
        bars = page.inner.locator("#chart-stages .trace path").count()
        widths = page.inner.locator(".parts i").evaluate_all(
            "all => all.map(each => each.getBoundingClientRect().width)"
        )
        bar = page.inner.locator(".parts").bounding_box()
        links = page.inner.locator("a[href^='#']").evaluate_all(
            "links => links.map(link => link.getAttribute('href').slice(1))"
        )
        identifiers = page.inner.locator("[id]").evaluate_all("all => all.map(each => each.id)")
        lanes = page.inner.locator("#chart-stages .annotation-text").all_text_contents()
    assert bars == 4 and bar and sum(widths) == pytest.approx(bar["width"], abs=1)
    assert set(links) <= set(identifiers) and len(identifiers) == len(set(identifiers))
    assert [each[:2] for each in lanes] == ["0:", "1:", "3:"]


@pytest.mark.slow
@pytest.mark.real
@pytest.mark.browser
def test_names_of_a_log_are_shown_as_text(browser: Browser, tmp_path: Path) -> None:
    link = "<a href='javascript:alert(1)'>x</a> %{y} --read"
    one = application(
        stage(0, 0.0, 50.0, 8, name=EVIL, operators=[EVIL]),
        stage(1, 50.0, 50.0, 8, name=link, operators=[link]),
        name=EVIL,
        id=EVIL,
        version=EVIL,
        began_at=EVIL,
        settings={EVIL: EVIL},
        notes=[EVIL],
        cached=[CachedDataSet(name=EVIL, memory_bytes=1, disk_bytes=0)],
    )
    with shown(browser, one, tmp_path, NARROW) as page:
        assert page.inner.title() != "taken"
        said = plain(page.inner.locator("main").inner_text())
        links = page.inner.locator("a[href^='javascript']").count()
        lanes = page.inner.locator("#chart-stages .annotation-text").all_text_contents()
    assert said.count(EVIL) >= 7 and links == 0
    assert any("<script>" in lane for lane in lanes) and any("<a href" in lane for lane in lanes)


def test_the_headline_has_time_executors_and_the_first_change() -> None:
    said = pages_text(nightly())
    assert "nightly: 100 s on 2 executors of 2 cores each ." in said.replace("each.", "each .")
    assert "Of the cores' time, 36 % was computing and about 59 % idle." in said
    assert "To change first: Executors without work , which saves at most 156 core seconds" in said
    assert "had not ended" not in said and "failed ." not in said
    failed = pages_text(replace(nightly(), ended=False, failed_jobs=2))
    assert "The application had not ended" in failed and "2 jobs failed" in failed


def test_core_time_states_what_is_estimated() -> None:
    said = pages_text(nightly())
    section = said[said.index("Where the time of all cores went") : said.index("over time")]
    # Of 400 core seconds; 39.1 s had no stage.
    assert "Computing 145 36 % CPU time of the tasks' threads." in section
    assert "Garbage collection 8.00 about 2.0 % JVM pauses" in section
    assert "the driver alone 156 39 % Executors' cores x time in which no stage ran." in section


def test_phases_have_what_limited_them_and_their_tasks() -> None:
    said = pages_text(nightly())
    assert "3: call at line 3 30.00 s longest task Its longest took 29.0 s;" in said
    assert "16 1.00 s 2.81 s 29.0 s – 1.60 GB – 100 MB –" in said
    assert "Uneven data" in said and "spark.sql.adaptive.skewJoin.enabled" in said


def test_stages_that_ran_at_once_are_below_each_other() -> None:
    chart = drawn(nightly())["chart-stages"]
    places = {trace["y"][0] for trace in chart.traces}
    heights = [trace["width"] for trace in chart.traces]
    assert len(chart.traces) == len(places) == 4
    assert sorted(heights)[:2] == [heights[0] / 2] * 2
    gaps = [(shape["x0"], shape["x1"]) for shape in chart.layout["shapes"]]
    assert gaps == [(0.0, 5.0), (25.0, 30.0), (41.0, 60.0), (90.0, 100.0)]


def test_cores_over_time_are_those_of_executors() -> None:
    one = nightly()
    late = replace(one.executors[1], began_seconds=50.0)
    charts = drawn(replace(one, executors=[one.executors[0], late]))
    there, held = charts["chart-cores"].traces
    assert dict(zip(there["x"], there["y"], strict=True)) == {0.0: 2, 50.0: 4, 100.0: 0}
    assert dict(zip(held["x"], held["y"], strict=True))[5.0] == 4.0
    executors = charts["chart-executors"].traces[0]
    assert executors["y"] == [1, 2, 0]


def test_without_cores_the_page_says_what_is_unknown() -> None:
    one = nightly()
    executors = [replace(each, cores=None) for each in one.executors]
    one = replace(one, executors=executors)
    said = pages_text(one)
    assert "how long cores were idle is not known" in said and "Idle:" not in said
    assert "100 s on 2 executors." in said and "since the log reports no cores" in said
    assert set(drawn(one)) == {"chart-stages", "chart-executors"}


def test_one_stage_of_no_seconds_has_a_page() -> None:
    one = application(stage(0, 0.0, 0.0, 1, task_seconds=0.0), seconds=0.0, executors=[])
    said = pages_text(one)
    assert "No core time was reported." in said and "Nothing stands out" in said
    assert drawn(one)["chart-stages"].layout["xaxis"]["range"][1] > 0


def test_a_thousand_stages_have_a_few_lanes() -> None:
    stages = [stage(number, number * 0.1, 0.1, 4, name=f"call {number}") for number in range(1000)]
    one = application(*stages)
    analysis = analyse_application(one)
    assert len(analysis.phases) == MOST_PHASES
    chart = drawn(one)["chart-stages"]
    assert chart.height < (MOST_PHASES + 2) * LANE
    assert sum(len(trace["x"]) for trace in chart.traces) <= 1000
    assert len(render(analysis)) - len(render(analyse_application(nightly()))) < 400_000


def test_short_stages_are_drawn_as_one_bar() -> None:
    stages = [stage(number, number * 0.001, 0.001, 4, name="call") for number in range(10_000)]
    chart = drawn(application(*stages))["chart-stages"]
    assert sum(len(trace["x"]) for trace in chart.traces) < 2100
    (trace,) = chart.traces
    assert sum(trace["x"]) == pytest.approx(10.0, abs=0.1)
    assert "stages, from" in trace["customdata"][0]
    held = drawn(application(*stages))["chart-cores"].traces[1]
    assert len(held["x"]) == MOST_STEPS
    # Means over windows keep the sum: four slots for ten seconds.
    assert sum(held["y"]) * 100 / MOST_STEPS == pytest.approx(40.0, rel=0.01)


def test_report_of_a_record(tonnage: Tonnage, tmp_path: Path) -> None:
    nightly().write(tmp_path / "nightly" / "job.json")
    ran = tonnage.run(
        "report", "nightly", "--output", "page.html", cwd=tmp_path, check=True
    ).stdout.splitlines()
    assert ran[0] == "nightly: 100 s on 2 executors of 2 cores each."
    assert ran[1].startswith("Core time: 400 core seconds, most of it no stage 39 %,")
    assert ran[2].startswith("Executors without work: saves at most 156 core seconds (39 %), or 39")
    assert ran[-1] == "Report: page.html"
    stored = ApplicationAnalysis.read(tmp_path / "page.json")
    assert stored == analyse_application(nightly())
    printed = tonnage.run(
        "report", "nightly/job.json", "--output", "page.html", "--json", cwd=tmp_path, check=True
    ).stdout
    assert ApplicationAnalysis.from_json(json.loads(printed)) == stored


def test_nothing_of_a_record_controls_the_terminal(tonnage: Tonnage, tmp_path: Path) -> None:
    replace(nightly(), name="\x1b[31mred\nline").write(tmp_path / "evil.json")
    done = tonnage.run("report", "evil.json", "--output", "page.html", cwd=tmp_path, check=True)
    assert "\x1b" not in done.stdout and done.stdout.startswith("?[31mred?line: 100 s")


def test_report_refuses_in_one_line(tonnage: Tonnage, tmp_path: Path) -> None:
    nightly().write(tmp_path / "a.json")
    nightly().write(tmp_path / "b.json")
    broken = json.loads(RECORDED.read_text())
    broken["stages"][0]["tasks"] = "many"
    (tmp_path / "broken.json").write_text(json.dumps(broken))
    for arguments, expected in (
        (("a.json", "--output", "a.html"), "would overwrite a.json, which it is made of"),
        (("a.json", "b.json"), "a.json is of one job; it must be the only path"),
        (("a.json", "--price", "n=1"), "--price applies only to measurements, but a.json is a job"),
        (("broken.json",), "broken.json: $.stages[0].tasks: expected int"),
    ):
        refused = tonnage.run("report", *arguments, cwd=tmp_path)
        assert refused.returncode == 2 and refused.stderr.count("\n") == 1
        assert expected in refused.stderr
