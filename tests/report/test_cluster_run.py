"""The report of a job on a cluster, as a reader sees it: in Chromium, offline, wide and narrow."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.browser.chromium import Browser, Page
from support.cli.command import Tonnage
from support.data.copies import replace
from support.data.measurements import measurement
from support.data.runs import NODES, lab, pass_one, pass_two, plan_of, record
from tonnage.base import formatting
from tonnage.base.records import RunRecord
from tonnage.cli.report import RUN
from tonnage.cli.report.jobs import JOB
from tonnage.model.node_capacity import cluster_capacity
from tonnage.model.run_comparison.two_pass import compare
from tonnage.report.cluster_run import render, write_run
from tonnage.run.two_pass import job_dir

pytestmark = pytest.mark.slow

WIDE, NARROW = 1280, 390


def compared(nodes: int = 4) -> RunRecord:
    """A sort of the lab with its limits and its plan."""
    names = [*NODES[:nodes], *(f"m-{number}" for number in range(nodes - len(NODES)))]
    run = record({node: [pass_one(), pass_two()] for node in names})
    plan = plan_of()
    compared = compare(run, cluster_capacity(lab(), names), plan, plan.candidates[0])
    return replace(run, compared=compared)


@contextmanager
def shown(
    browser: Browser, run: RunRecord, path: Path, width: int = WIDE, scheme: str = "light"
) -> Iterator[Page]:
    """The report of a run, open and drawn, and free of errors when it is left."""
    with browser.open(write_run(run, path / "run.html"), width, 900) as page:
        page.inner.emulate_media(color_scheme=scheme)
        page.inner.wait_for_selector("html[data-drawn]", state="attached")
        yield page
        assert page.problems == [] and page.serious == []


def plain(said: str) -> str:
    return re.sub(r"\s+", " ", said.replace("−", "-")).strip()


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_page_is_drawn_offline(browser: Browser, tmp_path: Path, width: int, scheme: str) -> None:
    with shown(browser, compared(), tmp_path, width, scheme) as page:
        plots = page.inner.locator(".plot")
        marks = plots.evaluate_all(
            "all => all.map(plot => [plot.id, plot.querySelectorAll('svg .trace path').length])"
        )
        assert dict(marks) == {
            "chart-phases": 6,  # two phases: what each took, its limit, its plan
            "chart-bytes": 16,
            "chart-pass_one": 8,
            "chart-pass_two": 8,
        }
        assert page.inner.evaluate("document.documentElement.scrollWidth") <= width
        cut = page.inner.locator(".plot .ytick text").evaluate_all(
            "all => all.filter(text => text.getBoundingClientRect().left <"
            " text.closest('.plot').getBoundingClientRect().left).map(text => text.textContent)"
        )
        unnamed = page.inner.locator("table:not(:has(caption)), .plot:not([aria-label])").count()
        identifiers = page.inner.locator("[id]").evaluate_all("all => all.map(each => each.id)")
        links = page.inner.locator("a[href^='#']").evaluate_all(
            "links => links.map(link => link.getAttribute('href').slice(1))"
        )
    assert cut == [] and unnamed == 0
    assert set(links) <= set(identifiers) and len(identifiers) == len(set(identifiers))


@pytest.mark.real
@pytest.mark.browser
def test_every_phase_node_and_resource_is_there(browser: Browser, tmp_path: Path) -> None:
    run = compared()
    assert run.compared and run.compared.limit
    with shown(browser, run, tmp_path) as page:
        said = plain(page.inner.locator("main").inner_text())
        rows = page.inner.locator("table tbody tr").evaluate_all(
            "rows => rows.map(row => [...row.cells].map(cell => cell.innerText))"
        )
    assert said.count("27.1 s") >= 2 and "94 %" in said and "as predicted" in said
    assert "Sorted 8.00 GB on 4 nodes in 50.8 s; planned 42.0 s." in said
    found = [[plain(cell) for cell in row] for row in rows]
    one, two = run.compared.phases
    for phase in (one, two):
        seconds = formatting.seconds_like(phase.seconds)
        for node in phase.nodes:
            for use in node.uses:
                told = next(
                    row[2:5]
                    for row in found
                    if row[:2] == [node.node, formatting.resource(use.resource)]
                    and row[2] == formatting.demand(use.amount, use.unit)
                    and (row[4] == "–") == (use.seconds is None)
                    and row[4] in ("–", seconds(use.seconds or 0.0))
                )
                if use.capacity:
                    assert told[1] == f"{use.capacity / 1e6:.0f} MB/s"
    limits = [row for row in found if row[0] in ("pass one", "pass two") and len(row) == 9]
    assert [row[4] for row in limits] == ["25.00 s", "16.67 s"]
    assert [row[6] for row in limits] == ["92 %", "96 %"]
    assert [row[8] for row in limits] == ["yes", "yes"]
    planned = [row[1:4] for row in found if len(row) == 6 and row[0] in ("pass one", "pass two")]
    assert planned == [["27.1 s", "25.0 s", "network"], ["17.4 s", "17.0 s", "local disks"]]


@pytest.mark.browser
def test_losses_rounds_and_evil_names_are_shown_as_text(browser: Browser, tmp_path: Path) -> None:
    evil = "<script>document.title='taken'</script>"
    run = compared()
    nodes = [
        replace(run.nodes[0], node=evil, lost="died: <b>its machine</b> is gone"),
        *run.nodes[1:],
    ]
    again = replace(run.rounds[0], number=1, bytes=10**9, lost={evil: "died"})
    run = replace(run, nodes=nodes, rounds=[*run.rounds, again], compared=None)
    run = replace(run, compared=compare(run))
    with shown(browser, run, tmp_path, NARROW) as page:
        said = plain(page.inner.locator("main").inner_text())
        assert page.inner.title() != "taken"
        assert page.inner.evaluate("document.documentElement.scrollWidth") <= NARROW
    assert "1 node of 4 lost" in said and f"{evil}: died: <b>its machine</b> is gone" in said
    assert "No limits, because no measured capacities were specified." in said
    assert "No plan was specified." in said


@pytest.mark.browser
def test_a_large_fleet_is_drawn_in_part_and_told_whole(browser: Browser, tmp_path: Path) -> None:
    with shown(browser, compared(100), tmp_path, NARROW) as page:
        assert page.inner.locator("#chart-pass_one .ytick").count() == 32
        note = page.inner.locator("figure:has(#chart-pass_one) .note").inner_text()
        assert "The 32 slowest of 100 nodes" in plain(note)
        details = page.inner.locator("details:has(summary:text('Totals by node'))")
        assert details.locator("tbody tr").count() == 100
        assert page.inner.evaluate("document.documentElement.scrollWidth") <= NARROW


def test_what_a_checksum_is_of_is_said() -> None:
    run = compared()
    assert f"checksum {run.checksum}, of the input;" in render(run)
    page = render(replace(run, job="mapreduce"))
    assert f"checksum {run.checksum}, of the shuffled data" in page


def test_functions_are_said_to_be_in_no_phases_core_seconds() -> None:
    run = compared()
    assert "without functions" not in render(run) and run.compared
    assert not any("functions" in note for note in run.compared.notes)
    run = replace(run, job="mapreduce")
    run = replace(run, compared=compare(run))
    page = render(run)
    # Of each of four nodes, five stages of pass one and three of pass two took a second.
    assert "Core seconds of phases exclude user functions: 32.0 of 36.0." in page
    assert page.count("the CPU, without user functions") == 2 * len(NODES)


def test_what_an_older_record_lacks_is_said() -> None:
    page = render(replace(compared(), compared=None))
    assert "This record has no phases" in page and "chart-bytes" in page
    nothing = replace(compared(), nodes=[], rounds=[], bytes=0, compared=None)
    assert "No node did any work." in render(nothing) and "There were no rounds." in render(nothing)


def test_a_jobs_directory_or_its_record_is_reported(tonnage: Tonnage, tmp_path: Path) -> None:
    assert (JOB, RUN) == (job_dir.JOB, job_dir.RUN)
    run, job = compared(), tmp_path / "job"
    run.write(job / RUN)
    (job / JOB).write_text("{}")
    for place in (job, job / RUN):
        done = tonnage.run("report", str(place), "--output", "x.html", cwd=tmp_path, check=True)
        assert "pass one: 27.1 s on n-3, the slowest" in done.stdout
        assert "limit 25.0 s (the network, " in done.stdout and "Report: x.html" in done.stdout
        assert RunRecord.read(tmp_path / "x.json") == run
        assert "Sorted 8.00" in (tmp_path / "x.html").read_text()
    first, *others = run.nodes
    nodes = [replace(first, lost="died"), *others]
    replace(run, nodes=nodes, commands=3).write(tmp_path / "lost.json")
    done = tonnage.run("report", "lost.json", "--output", "lost.html", cwd=tmp_path, check=True)
    assert f"Lost: {first.node}: died\n" in done.stdout
    assert "the last of 3 commands" in (tmp_path / "lost.html").read_text()
    told = tonnage.run("report", "job", "--output", "x.html", "--json", cwd=tmp_path, check=True)
    assert RunRecord.from_json(json.loads(told.stdout)) == run
    measurement("m", {"ro": [1.0]}).write(tmp_path / "m.json")
    replace(run, nodes=[]).write(tmp_path / "one.json")
    (tmp_path / "begun").mkdir()
    (tmp_path / "begun" / JOB).write_text("{}")
    for arguments, said in (
        (("job", "m.json"), "job is a cluster job; it must be the only path"),
        (("job", "--price", "n=1"), "--price applies only to measurements, but job is a job"),
        (("one.json",), "one.json is a sort on one machine, but"),
        (("begun",), "has not finished; to resume it, run its command again with --job-dir begun"),
    ):
        refused = tonnage.run("report", *arguments, cwd=tmp_path)
        assert refused.returncode == 2 and said in refused.stderr
