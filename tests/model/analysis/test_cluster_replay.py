"""A cluster of 45 instances over ten minutes, replayed from its records: findings and page."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.browser.chromium import Browser, Page
from support.cli.command import Tonnage
from support.data.synthetic_cluster import SyntheticCluster, record, synthetic_cluster
from tonnage.base.records import Measurement
from tonnage.base.records.analysis import Analysis, Subject
from tonnage.model.analysis.analyse import Price, analyse
from tonnage.report.analysis import write_analysis

WIDE, NARROW = 1280, 390
SEEDS = (0, 1, 2)


def replayed(made: SyntheticCluster, directory: Path) -> Analysis:
    """The analysis of a cluster, from its files."""
    return analyse([Measurement.read(path) for path in record(made, directory)])


def only(analysis: Analysis) -> Subject:
    """The one operation that was measured."""
    (subject,) = analysis.subjects
    return subject


@contextmanager
def open_page(browser: Browser, page: Path, width: int, scheme: str = "light") -> Iterator[Page]:
    """The page, open and drawn, and free of errors when it is left."""
    with browser.open(page, width, 900) as opened:
        opened.inner.emulate_media(color_scheme=scheme)
        opened.inner.wait_for_selector("html[data-drawn]", state="attached")
        yield opened
        assert opened.problems == [] and opened.serious == []


@pytest.mark.parametrize("seed", SEEDS)
def test_exactly_the_faults_are_found(tmp_path: Path, seed: int) -> None:
    made = synthetic_cluster(seed)
    found = only(replayed(made, tmp_path))
    assert [each.instance for each in found.outliers] == [made.slower, made.slow]
    assert found.bad_apples == found.outliers
    ratios = [each.ratio for each in found.bad_apples]
    assert ratios == pytest.approx([1 / 30, 0.6], rel=0.1)
    assert max(each.false_alarm for each in found.bad_apples) <= 0.001

    (moody,) = found.alternating
    low, high = moody.modes
    assert moody.instance == made.bimodal
    assert low.value / high.value == pytest.approx(0.55, rel=0.1)
    assert low.share + high.share == pytest.approx(1)

    (cyclic,) = found.cycles
    assert cyclic.instance == made.cyclic
    assert cyclic.period_seconds == pytest.approx(150, rel=0.05)
    assert cyclic.amplitude_share == pytest.approx(0.15, rel=0.2)

    # Each cites the file of the instance that it is about.
    for each in (*found.bad_apples, moody, cyclic):
        assert each.measurements == [f"ops-{each.instance}"]
    assert found.instances[-1].name == made.slower
    assert found.lines and found.lines.instances[-1] == made.slower
    assert found.rate and found.rate.size == 45 and found.rate.over == "instances"
    assert found.rate.low is not None and found.rate.high is not None
    assert found.rate.low < found.rate.value < found.rate.high
    assert found.rate.value == pytest.approx(100e6, rel=0.05)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_healthy_cluster_has_no_findings(tmp_path: Path, seed: int) -> None:
    analysis = replayed(synthetic_cluster(seed, healthy=True), tmp_path)
    found = only(analysis)
    assert (found.outliers, found.alternating, found.cycles) == ([], [], [])
    assert any("none of 45 machines stands out" in said for said in analysis.findings)


def test_the_order_of_files_does_not_matter(tmp_path: Path) -> None:
    measurements = [Measurement.read(path) for path in record(synthetic_cluster(3), tmp_path)]
    first, second = analyse(measurements), analyse(measurements[::-1])
    assert first.subjects == second.subjects
    assert Analysis.from_json(json.loads(json.dumps(first.to_json()))) == first


def test_the_command_writes_the_page_and_the_analysis(tonnage: Tonnage, tmp_path: Path) -> None:
    made = synthetic_cluster(0)
    record(made, tmp_path / "cluster")
    page = tmp_path / "page" / "cluster.html"
    prices = [f"{name}=0.25" for name in made.series]
    done = tonnage.run(
        "report", tmp_path / "cluster", "--price", *prices, "--output", page, check=True
    )
    assert re.search(rf"{made.slow} is a slow outlier, (39|4\d) % below", done.stdout)
    assert f"{made.bimodal} alternates" in done.stdout
    assert f"{made.cyclic} rises and falls" in done.stdout
    assert re.search(r"Has measurements of many instances\. Pass: 45 machines\.", done.stdout)
    assert re.search(r"Covers a substantial time\. Short: 10 min", done.stdout)
    assert sorted(path.name for path in page.parent.iterdir()) == ["cluster.html", "cluster.json"]
    kept = Analysis.read(page.with_suffix(".json"))
    assert only(kept).bad_apples[0].instance == made.slower
    (bought,) = kept.per_dollar
    assert bought.priced_as == "45 machines at 0.25 USD" and len(bought.measurements) == 45


@pytest.mark.browser
@pytest.mark.parametrize("width", [pytest.param(WIDE, marks=pytest.mark.slow), NARROW])
def test_the_page_shows_what_was_found(browser: Browser, tmp_path: Path, width: int) -> None:
    made = synthetic_cluster(1)
    prices = {"none": Price(0.25, "made up")}
    measurements = [Measurement.read(path) for path in record(made, tmp_path)]
    page = write_analysis(analyse(measurements, prices), tmp_path / "report.html")
    with open_page(browser, page, width) as opened:
        assert "Throughput of 45 machines" in opened.inner.locator("h1").inner_text()
        lead = opened.inner.locator(".lead").inner_text()
        assert (
            "2 slow outliers" in lead and "1 machine that alternates" in lead and "1 cycle" in lead
        )
        rows = opened.inner.locator("[aria-label='Exceptional machines'] tbody tr")
        found = [tuple(row.locator("th, td").all_inner_texts()[:2]) for row in rows.all()]
        assert found == [
            (made.slower, "slow outlier"),
            (made.slow, "slow outlier"),
            (made.bimodal, "alternates"),
            (made.cyclic, "cycle"),
        ]
        # A line for each instance, and those that stand out in colours of their own.
        lines = opened.inner.locator("#chart-subject-1-courses").evaluate(
            "plot => plot.data.map(line => [line.name, line.line.color, Math.max(...line.y)])"
        )
        assert len(lines) == 45 and max(most for *_, most in lines) == 1
        colours = {name: colour for name, colour, _ in lines}
        assert colours[made.slow] == colours[made.slower]
        apart = {colours[name] for name in (made.slow, made.bimodal, made.cyclic, made.slower)}
        assert len(apart) == 3
        others = {colour for name, colour in colours.items() if name not in vars(made).values()}
        assert len(others) == 1 and not others & apart

        for chart in ("dollar-operations", "dollar-megabytes", "latencies"):
            assert opened.inner.locator(f"#chart-{chart} svg .trace").count() > 0
        for chart in ("lines", "courses", "spread", "histogram"):
            marks = opened.inner.locator(f"#chart-subject-1-{chart} svg .trace path")
            assert marks.count() > 0
        left_out = opened.inner.locator("#belief .warnings").inner_text()
        for chart in ("Throughput by queue depth", "Layouts' ratio", "Direct against buffered"):
            assert chart in left_out
        assert opened.inner.locator("#chart-subject-1-levels").count() == 0
        assert opened.inner.evaluate("document.documentElement.scrollWidth") <= width
        links = opened.inner.locator("a[href^='#']").evaluate_all(
            "links => links.map(link => link.getAttribute('href').slice(1))"
        )
        identifiers = opened.inner.locator("[id]").evaluate_all("all => all.map(each => each.id)")
        assert set(links) <= set(identifiers)
        assert len(identifiers) == len(set(identifiers))
