"""The page of an observed run: its phases, its resources over time, what to change first."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path

import pytest

from support.browser.chromium import Browser
from support.cli.command import Tonnage
from support.data.copies import replace
from support.stores.disk import ROOT
from tonnage.base.records import Job, Observation, write_table
from tonnage.base.records.observation import NodeUsage, ObservedNode
from tonnage.base.records.observation_analysis import ObservationAnalysis
from tonnage.measure.observe.series import SERIES
from tonnage.model.jobs.observation_findings import analyse_observation
from tonnage.report.jobs.observation import render, write_observation

ARTIFACTS = ROOT / "tests" / "support" / "recorded" / "artifacts"
RECORDED = Observation.read(ARTIFACTS / "observation-1.json")
EVIL = "<script>document.title='taken'</script>"


def samples(count: int = 200) -> dict[str, list[float]]:
    """Samples in which every counter rises evenly."""
    table = {name: [float(number) for number in range(count)] for name in SERIES}
    return table | {"seconds": [RECORDED.seconds * each / (count - 1) for each in range(count)]}


def text(observation: Observation) -> str:
    page = render(analyse_observation(observation), None)
    body = re.sub(r"<[^>]*>", " ", page[page.index("<main>") : page.index("</main>")])
    return re.sub(r"\s+", " ", html.unescape(body))


@pytest.mark.slow
@pytest.mark.browser
@pytest.mark.parametrize(("width", "scheme"), [(1280, "dark"), (390, "light")])
def test_page_is_drawn_offline(browser: Browser, tmp_path: Path, width: int, scheme: str) -> None:
    analysis = analyse_observation(replace(RECORDED, command=["run", EVIL], notes=[EVIL]))
    page_file = write_observation(analysis, samples(), tmp_path / "page.html")
    with browser.open(page_file, width, 900) as page:
        page.inner.emulate_media(color_scheme=scheme)
        page.inner.wait_for_selector("html[data-drawn]", state="attached")
        plots = page.inner.locator(".plot").evaluate_all(
            "all => all.map(plot => plot.querySelectorAll('svg .trace path').length)"
        )
        assert len(plots) == 4 and all(plots)
        assert page.inner.title() != "taken"
        assert page.inner.evaluate("document.documentElement.scrollWidth") <= width
        assert page.problems == [] and page.serious == []


def test_phases_have_what_limited_them() -> None:
    said = text(RECORDED)
    assert "tonnage run sort input" in said and ": 6.6 s." in said
    for phase in RECORDED.phases:
        assert phase.name in said and phase.why[1:60] in said
    assert "No samples are next to the record" in said
    failed = text(replace(RECORDED, exit_code=137))
    assert "It ended with exit code 137" in failed and "exit code" not in said


def test_what_other_tools_observed_has_a_page() -> None:
    nodes = ["n-1", EVIL]
    usage = NodeUsage(
        node=EVIL,
        cpu_seconds=12.25,
        io_wait_seconds=1.0,
        stolen_seconds=0.0,
        read_bytes=5_000_000,
        written_bytes=0,
        network_received_bytes=0,
        network_sent_bytes=0,
        peak_memory_bytes=1 << 30,
        shares={"cpu": 0.9},
        bottleneck="cpu",
        why="it used 90 % of all cores",
    )
    said = text(
        replace(
            RECORDED,
            command=[],
            notes=["n-1 has no samples"],
            environment=None,
            own_cpu_seconds=None,
            dirty_bytes_before=None,
            dirty_bytes_after=None,
            phases=[replace(each, nodes=[usage]) for each in RECORDED.phases],
            nodes=[
                ObservedNode(
                    name=name,
                    cores=2,
                    link_bytes_per_second=None,
                    least_memory_bytes=0,
                    samples=3,
                    interval_seconds=1.0,
                )
                for name in nodes
            ],
        )
    )
    assert "an observed run: 6.6 s on 2 nodes." in said and "of the node that used most" in said
    assert "n-1 has no samples." in said and EVIL in said and "12.2 s 1.00 s 5.00 MB" in said


def test_no_seconds_and_no_phases() -> None:
    said = text(replace(RECORDED, seconds=0.0, phases=[], device_bytes={}))
    assert "No phase was found." in said and "Nothing stands out" in said


@pytest.fixture
def observed(tmp_path: Path) -> Path:
    """What an observation leaves."""
    RECORDED.write(tmp_path / "out" / "observation.json")
    job = Job.read(ARTIFACTS / "job-1.json")
    replace(job, settings={"observation": RECORDED.id}).write(tmp_path / "out" / "job.json")
    write_table(tmp_path / "out" / "series.parquet", samples())
    return tmp_path


def test_report_of_an_observation_or_its_job(tonnage: Tonnage, observed: Path) -> None:
    for path in ("out", "out/observation.json", "out/job.json"):
        done = tonnage.run("report", path, "--output", "page.html", cwd=observed, check=True)
        assert "phase-2: 2.9 s, limited by the disk, reading and writing" in done.stdout
        stored = ObservationAnalysis.read(observed / "page.json")
        assert stored == analyse_observation(RECORDED)
        assert "chart-cores" in (observed / "page.html").read_text()


def test_report_of_the_job_of_imported_files(tonnage: Tonnage, observed: Path) -> None:
    (observed / "out" / "observation.json").rename(observed / "out" / "night-observation.json")
    (observed / "out" / "job.json").rename(observed / "out" / "night.json")
    command = ("report", "out/night.json", "--output", "page.html")
    done = tonnage.run(*command, cwd=observed, check=True)
    assert "phase-2: 2.9 s, limited by the disk, reading and writing" in done.stdout


def test_a_job_without_its_record_says_what_to_give(tonnage: Tonnage, observed: Path) -> None:
    (observed / "out" / "observation.json").unlink()
    job = json.loads((observed / "out" / "job.json").read_text())
    for settings, expected in (
        (job["settings"], f"use the record of {RECORDED.id}, an observation.json, which is not"),
        ({"application": "app-1"}, "use the record of app-1, which tonnage import"),
        ({}, "use the record that its demands come from"),
    ):
        (observed / "alone.json").write_text(json.dumps(job | {"settings": settings}))
        refused = tonnage.run("report", "alone.json", cwd=observed)
        assert refused.returncode == 2 and refused.stderr.count("\n") == 1
        assert f"alone.json is a job as demands, which has no report; {expected}" in refused.stderr


def test_an_observation_of_another_run_is_not_taken(tonnage: Tonnage, observed: Path) -> None:
    replace(RECORDED, id="another").write(observed / "out" / "observation.json")
    refused = tonnage.run("report", "out/job.json", cwd=observed)
    assert refused.returncode == 2 and "is not next to it" in refused.stderr
