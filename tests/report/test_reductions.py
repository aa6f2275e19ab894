"""Records of reductions put together: medians of each way, and the page that draws them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.browser.chromium import Browser
from support.cli.command import Tonnage
from support.data.copies import replace
from support.data.reductions import record
from tonnage.base.records.sweep import ReductionSweep
from tonnage.model.analysis.reduction_sweep import summarise_sweep
from tonnage.report.reductions import FIGURES, found_in_words, render, write_sweep

WIDE, NARROW = 1280, 390
GIVEN = [(chunk * 10**6, threads) for chunk in (8, 32) for threads in (1, 16)]


def swept() -> ReductionSweep:
    """Two inputs, each in four ways and as it was found, three times."""
    records = []
    for place, bytes_ in (("fast", 10**9), ("slow", 2 * 10**9)):
        for chunk, threads in GIVEN:
            for again in (1, 2, 90):
                seconds = again * (1 + 8 / threads + 10**7 / chunk)
                records.append(record([place], bytes_, seconds, chunk, threads))
        records += [record([place], bytes_, seconds, None, None) for seconds in (3.0, 3.75, 99.0)]
    return summarise_sweep(records)


def test_cells_are_medians_and_the_best_is_one_that_was_given() -> None:
    first, second = swept().swept
    assert [first.inputs, second.inputs] == [["fast"], ["slow"]]
    assert [(cell.chunk_bytes, cell.threads) for cell in first.cells if not cell.found] == GIVEN
    assert {cell.reductions for cell in first.cells} == {3}
    best = first.cells[first.best or 0]
    assert (best.chunk_bytes, best.threads) == (32 * 10**6, 16)
    assert best.seconds == pytest.approx(2 * (1 + 8 / 16 + 10 / 32))
    assert best.retrieval_seconds == pytest.approx(best.seconds / 2)
    assert first.found_over_best == pytest.approx(3.75 / best.seconds)
    assert "took 3.4 % longer" in found_in_words(first)


def test_without_what_was_found_or_given_nothing_is_compared() -> None:
    (given,) = summarise_sweep([record(["x"], 1000, 1.0, 1000, 1)]).swept
    assert given.found_over_best is None and "Found" not in found_in_words(given)
    (found,) = summarise_sweep([record(["x"], 1000, 1.0, None, None)]).swept
    assert found.best is None and found.found_over_best is None
    assert "fastest" not in found_in_words(found)


def test_the_luckiest_cell_is_judged_by_a_run_that_did_not_choose_it() -> None:
    """Three cells of the same speed, each of which has one slow round."""
    noise = {1: (8.0, 8.0, 12.0), 2: (12.0, 8.0, 8.5), 4: (8.5, 12.0, 8.0)}
    records = [
        record(["x"], 1000, seconds, 1000, threads)
        for threads, all_ in noise.items()
        for seconds in all_
    ]
    records += [record(["x"], 1000, 8.5, None, None) for _ in range(3)]
    (swept,) = summarise_sweep(records).swept
    assert swept.found_over_best == pytest.approx(8.5 / 8.0)
    # Rounds 2 and 3 choose 2 threads, 1 and 3 choose 4, 1 and 2 choose 1: each took 12 s once more.
    assert swept.found_over_chosen == pytest.approx(8.5 / 12.0)


def test_what_was_found_in_part_is_not_called_found() -> None:
    ways = [(None, None, 10.0), (1000, None, 50.0), (None, 4, 60.0), (2000, 2, 10.0)]
    records = [record(["x"], 1000, seconds, chunk, threads) for chunk, threads, seconds in ways]
    (swept,) = summarise_sweep(records).swept
    assert sorted(cell.seconds for cell in swept.cells if cell.found) == [10.0]
    assert len(swept.cells) == 4 and swept.found_over_best == pytest.approx(1.0)


def test_other_work_is_no_cell_of_the_same() -> None:
    one = record(["x"], 1000, 1.0, 1000, 1)
    others = [
        replace(one, job="pca"),
        replace(one, settings=one.settings | {"memory_bytes": 7}),
        replace(one, workers=one.workers[:1]),
    ]
    assert len(summarise_sweep([one, *others, one]).swept) == 4


@pytest.mark.browser
@pytest.mark.parametrize("width", [pytest.param(WIDE, marks=pytest.mark.slow), NARROW])
def test_the_page_draws_the_papers_figures(browser: Browser, tmp_path: Path, width: int) -> None:
    with browser.open(write_sweep(swept(), tmp_path / "sweep.html"), width, 900) as page:
        page.inner.wait_for_selector("html[data-drawn]", state="attached")
        lines = page.inner.locator(".plot").evaluate_all(
            "all => all.map(plot => [plot.id, plot.querySelectorAll('svg .trace').length])"
        )
        assert page.inner.evaluate("document.documentElement.scrollWidth") <= width
        assert page.problems == [] and page.serious == []
    # A line for each number of threads, and one for what was found.
    assert dict(lines) == {f"chart-{number}-{name}": 3 for number in (0, 1) for name in FIGURES}


def test_a_name_is_text() -> None:
    page = render(summarise_sweep([record(["<b>&"], 1000, 1.0, 1000, 1)]))
    assert "<b>&" not in page and "&lt;b&gt;&amp;" in page


def test_the_command_takes_a_directory_of_records(tonnage: Tonnage, tmp_path: Path) -> None:
    for number, seconds in enumerate((1.0, 2.0)):
        record(["x"], 1000, seconds, 1000, 1).write(tmp_path / f"{number}.json")
    page = tmp_path / "page.html"
    done = tonnage.run("report", tmp_path, "--output", page, "--json")
    told = ReductionSweep.from_json(json.loads(done.stdout))
    assert told.swept[0].cells[0].seconds == 1.5
    assert ReductionSweep.read(page.with_suffix(".json")) == told
    said = tonnage.run("report", tmp_path / "0.json", "--output", page).stdout
    assert "The fastest of 1 fixed choices" in said
    (tmp_path / "1.json").write_text('{"schema": "tonnage.reduction/1"}')
    refused = tonnage.run("report", tmp_path, "--output", page, check=False)
    assert refused.returncode == 2 and "1.json: $.job: missing" in refused.stderr
