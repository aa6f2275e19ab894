"""The report of a study, as a reader sees it: in Chromium, offline, wide and narrow."""

import re
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from support.browser.chromium import Browser, Page
from support.data.copies import replace
from support.stores.disk import ROOT
from tonnage.base import formatting
from tonnage.base.records import Measurement, RecordError, Study, read_table, write_table
from tonnage.report import html_elements, write_report
from tonnage.report.study import counters

pytestmark = pytest.mark.slow

STUDY = ROOT / "tests" / "support" / "recorded" / "study"
WIDE, NARROW = 1280, 390


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A copy of the study in tests/support/recorded."""
    unreported = shutil.ignore_patterns("*.html")
    return Path(shutil.copytree(STUDY, tmp_path / "study", ignore=unreported))


@pytest.fixture
def study() -> Study:
    return Study.read(STUDY / "study.json")


@contextmanager
def shown(
    browser: Browser, directory: Path, width: int = WIDE, scheme: str = "light"
) -> Iterator[Page]:
    """The report of a study, open and drawn, and free of errors when it is left."""
    with browser.open(write_report(directory), width, 900) as page:
        page.inner.emulate_media(color_scheme=scheme)
        page.inner.wait_for_selector("html[data-drawn]", state="attached")
        yield page
        assert page.problems == []


def change(directory: Path, **fields: Any) -> Study:
    """Writes the study with other fields."""
    path = directory / "study.json"
    changed = replace(Study.read(path), **fields)
    changed.write(path)
    return changed


def wait(until: Callable[[], bool], seconds: float = 20) -> None:
    """Waits from outside: the page's own policy forbids to evaluate text inside it."""
    end = time.monotonic() + seconds
    while not until():
        assert time.monotonic() < end
        time.sleep(0.05)


def tiles(page: Page) -> dict[str, str]:
    """The key figures by their names."""
    pairs = page.inner.locator(".tiles > div").evaluate_all(
        "tiles => tiles.map(tile => [tile.querySelector('dt').innerText, tile.innerText])"
    )
    return {name: plain(said).removeprefix(name).strip() for name, said in pairs}


def plain(said: str) -> str:
    return re.sub(r"\s+", " ", said.replace("−", "-")).strip()


def figures(said: str) -> list[str]:
    return re.findall(r"-?\d[\d,]*(?:\.\d+)?", said)


def states(figure: str, value: float) -> bool:
    """Whether a figure is a value, rounded to the figure's last digit, of which two must count."""
    digits = figure.replace(",", "")
    decimals = len(digits.partition(".")[2])
    counting = len(digits.replace(".", "").lstrip("0"))
    return float(digits) == round(value, decimals) and (counting >= 2 or abs(value) < 10)


@pytest.mark.browser
@pytest.mark.parametrize(
    ("width", "scheme"),
    [
        pytest.param(NARROW, "dark", marks=pytest.mark.real),
        (NARROW, "light"),
        (WIDE, "dark"),
        (WIDE, "light"),
    ],
)
def test_page_is_drawn_offline(browser: Browser, directory: Path, width: int, scheme: str) -> None:
    with shown(browser, directory, width, scheme) as page:
        asked: list[str] = []
        page.inner.on("request", lambda request: asked.append(request.url))
        page.inner.reload()
        page.inner.wait_for_selector("html[data-drawn]", state="attached")
        assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []

        visible = page.inner.locator(".plot:visible")
        assert visible.count() >= 8
        marks = visible.evaluate_all(
            "plots => plots.map(plot => [plot.id, plot.querySelectorAll('svg .trace path').length])"
        )
        assert [name for name, count in marks if count == 0] == []
        assert page.inner.locator(".plot.js-plotly-plot:visible").count() == visible.count()

        page_width = page.inner.evaluate("document.documentElement.scrollWidth")
        assert page_width <= width
        background = page.inner.evaluate("getComputedStyle(document.body).backgroundColor")
        brightness = sum(map(int, re.findall(r"\d+", background)[:3])) / 3
        assert brightness > 200 if scheme == "light" else brightness < 60
        assert page.serious == []


@pytest.mark.browser
def test_charts_follow_the_scheme(browser: Browser, directory: Path) -> None:
    with shown(browser, directory) as page:
        colour = "document.getElementById('chart-prediction').data[0].marker.color"
        light = page.inner.evaluate(colour)
        page.inner.emulate_media(color_scheme="dark")
        wait(lambda: page.inner.evaluate(colour) != light)


@pytest.mark.browser
def test_charts_over_time_share_an_axis(browser: Browser, directory: Path) -> None:
    with shown(browser, directory) as page:
        ranges = (
            "[...document.querySelectorAll('.timed.js-plotly-plot')]"
            ".map(plot => plot.layout.xaxis.range.map(end => end.toFixed(6)).join())"
        )
        before = page.inner.evaluate(ranges)
        assert len(before) >= 4 and len(set(before)) == 1
        plot = page.inner.locator("#chart-stages-rate")
        plot.scroll_into_view_if_needed()
        box = plot.bounding_box()
        assert box is not None
        middle = box["y"] + box["height"] / 2
        page.inner.mouse.move(box["x"] + 0.3 * box["width"], middle)
        page.inner.mouse.down()
        page.inner.mouse.move(box["x"] + 0.6 * box["width"], middle, steps=4)
        page.inner.mouse.up()

        def zoomed_together() -> bool:
            now = page.inner.evaluate(ranges)
            return len(set(now)) == 1 and now[0] != before[0]

        wait(zoomed_together)


@pytest.mark.real
@pytest.mark.browser
def test_headline_is_the_record(browser: Browser, directory: Path, study: Study) -> None:
    run, predicted, limit, found = study.run, study.predicted, study.limit, study.validation
    assert run and predicted and limit and found and study.error_fraction is not None
    with shown(browser, directory) as page:
        headline = plain(page.inner.locator("h1").inner_text())
        lead = plain(page.inner.locator(".lead").inner_text())
        tile = tiles(page)
    size, seconds, *interval = figures(headline)
    unit = {"kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12}[headline.split()[2]]
    expected = (predicted.seconds, predicted.low_seconds, predicted.high_seconds)
    assert states(size, run.bytes / unit)
    assert states(seconds, run.seconds)
    assert len(interval) == 3 and all(map(states, interval, expected))
    assert states(figures(lead)[0], 100 * limit.efficiency)
    assert "Limited by: " in lead

    assert states(figures(tile["Actual"])[0], run.seconds)
    assert all(map(states, figures(tile["Predicted"]), (*expected, 100 * predicted.confidence)))
    assert states(figures(tile["Prediction error"])[0], 100 * abs(study.error_fraction))
    inside = predicted.low_seconds <= run.seconds <= predicted.high_seconds
    assert ("inside" in tile["Prediction error"]) == inside
    assert states(figures(tile["Efficiency"])[0], 100 * limit.efficiency)
    assert states(figures(tile["Efficiency"])[1], limit.seconds)
    peak, budget = figures(tile["Peak memory"])[:2]
    binary = {"MiB": 1 << 20, "GiB": 1 << 30}
    peak_unit, budget_unit = re.findall(r"[MG]iB", tile["Peak memory"])[:2]
    assert states(peak, run.peak_memory_bytes / binary[peak_unit])
    assert states(budget, run.settings["memory_bytes"] / binary[budget_unit])
    per_gigabyte, whole = figures(tile["CPU, core-seconds per GB"])
    assert states(per_gigabyte, run.cpu_seconds / (run.bytes / 1e9))
    assert states(whole, run.cpu_seconds)
    assert figures(tile["Records"])[0] == f"{found.records:,}"
    assert "Verified" in tile["Checksum"] and run.checksum in tile["Checksum"]


@pytest.mark.browser
def test_phases_terms_and_measurements_are_there(
    browser: Browser, directory: Path, study: Study
) -> None:
    assert study.predicted and study.run
    with shown(browser, directory) as page:
        said = plain(page.inner.locator("main").inner_text())
        links = page.inner.locator("a[href^='#']").evaluate_all(
            "links => links.map(link => link.getAttribute('href').slice(1))"
        )
        identifiers = page.inner.locator("[id]").evaluate_all("all => all.map(each => each.id)")
        unnamed = page.inner.locator("table:not(:has(caption)), .plot:not([aria-label])").count()
    assert set(links) <= set(identifiers)
    assert len(identifiers) == len(set(identifiers))
    assert unnamed == 0
    for measurement in study.measurements:
        assert measurement.id in said
        assert measurement.stopping_rule in said and measurement.page_cache in said
    for phase in study.run.phases:
        assert phase.name.replace("_", " ") in said.lower()
    for finding in study.findings:
        assert plain(finding) in said


@pytest.mark.browser
@pytest.mark.parametrize(
    ("kept", "headline"),
    [
        (["predicted", "run"], "Sorted"),
        (["predicted"], "should take"),
        (["run"], "Sorted"),
        ([], "Throughput of this machine"),
        (None, "just started"),
    ],
)
def test_study_that_was_cut_short_is_shown(
    browser: Browser, directory: Path, kept: list[str] | None, headline: str
) -> None:
    later = ["predicted", "run", "actual", "validation", "limit", "error_fraction"]
    lost: dict[str, Any] = {name: None for name in later if name not in (kept or [])}
    lost |= {"findings": [], "files": {}}
    change(directory, **lost, **({} if kept is not None else {"measurements": [], "steps": []}))
    with shown(browser, directory, NARROW) as page:
        assert headline in plain(page.inner.locator("h1").inner_text())
        assert "incomplete" in page.inner.locator(".notice").first.inner_text()
        was_run = "job was not run" not in page.inner.locator("main").inner_text().lower()
        assert was_run == ("run" in (kept or []))
        assert page.inner.evaluate("document.documentElement.scrollWidth") <= NARROW


@pytest.mark.browser
def test_network_that_was_idle_is_folded_away(browser: Browser, directory: Path) -> None:
    path = directory / "host.parquet"
    table = read_table(path)
    idle = {name: [0] * len(table["seconds"]) for name in table if name.startswith("network_")}
    write_table(path, table | idle)
    with shown(browser, directory) as page:
        chart = page.inner.locator("#chart-network")
        assert not chart.is_visible()
        page.inner.locator("details", has=chart).locator("summary").click()
        page.inner.wait_for_selector("#chart-network.js-plotly-plot")


@pytest.mark.browser
def test_text_of_a_study_is_only_text(browser: Browser, directory: Path, study: Study) -> None:
    evil = "<script>document.title='taken'</script><img src=x onerror=alert(1)>\"'&amp;$style"
    device = replace(study.environment.devices[0], name=evil, directories=[evil])
    environment = replace(study.environment, host=evil, devices=[device])
    measurements = [
        replace(measurement, id=evil, command=[evil]) for measurement in study.measurements[:1]
    ]
    devices = read_table(directory / "devices.parquet")
    write_table(
        directory / "devices.parquet", devices | {"device": [evil] * len(devices["device"])}
    )
    change(
        directory,
        environment=environment,
        measurements=measurements,
        findings=[evil],
        settings={evil: evil},
        command=["tonnage", "study", "--dir", evil],
    )
    with shown(browser, directory) as page:
        assert page.inner.title() != "taken"
        assert page.inner.locator("img[src=x]").count() == 0
        assert evil in page.inner.locator(".findings").inner_text()
        assert evil in page.inner.locator(".eyebrow").inner_text()


def test_warnings_are_counted_and_shown_once(directory: Path) -> None:
    page = write_report(directory).read_text()
    assert "about these figures" not in page
    change(directory, warnings=["The first warning.", "The second warning."])
    page = write_report(directory).read_text()
    assert page.count("The first warning.") == page.count("The second warning.") == 1
    assert "2 warnings about these figures" in page


def test_report_is_of_a_known_study_only(directory: Path) -> None:
    (directory / "study.json").write_text('{"schema": "tonnage.study/999"}')
    with pytest.raises(RecordError):
        write_report(directory)
    assert not (directory / "report.html").exists()


def test_counters_become_rates() -> None:
    table = {
        "seconds": [1.0, 1.5, 2.5],
        "bytes": [10, 60, 60],
        "busy": [0, 1, 2],
        "idle": [0, 3, 5],
    }
    assert counters.rate(table, "bytes") == counters.Series([1.25, 2.0], [100.0, 0.0])
    assert counters.share(table, "busy", ["busy", "idle"]).values == [
        0.25,
        pytest.approx(1 / 3, 1e-3),
    ]
    assert counters.prepend_zeros(table, 0.5)["bytes"] == [0, 10, 60, 60]
    assert counters.gauge(table, "bytes").values == [10, 60, 60]
    empty: counters.Table = {"seconds": [], "bytes": []}
    assert (
        counters.rate(empty, "bytes") == counters.gauge(empty, "bytes") == counters.Series([], [])
    )


def test_long_counters_are_thinned_and_lose_nothing() -> None:
    samples = 10_001
    table = {"seconds": [place / 20 for place in range(samples)], "bytes": [*range(samples)]}
    table["depth"] = [0] * samples
    table["depth"][5003] = 32
    drawn = counters.rate(table, "bytes")
    assert len(drawn.values) <= counters.MAX_POINTS
    assert set(drawn.values) == {20.0}
    assert max(filter(None, counters.gauge(table, "depth").values)) == 32


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (formatting.seconds(9.06), "9.06 s"),
        (formatting.seconds(0.0471), "0.0471 s"),
        (formatting.seconds_between(8.94, 10.24), "8.94 – 10.2 s"),
        (formatting.size(4e9), "4.00 GB"),
        (formatting.size(104e6), "104 MB"),
        (formatting.size(12), "12 B"),
        (formatting.several(1, "trial"), "1 trial"),
        (formatting.several(0, "trial"), "0 trials"),
        (formatting.several(1200, "trial"), "1,200 trials"),
        (formatting.memory(1 << 30), "1 GiB"),
        (formatting.memory(531 << 20), "531 MiB"),
        (formatting.memory(64 << 20), "64 MiB"),
        (formatting.rate(1.0234e9), "1,023 MB/s"),
        (formatting.percent(0.917), "92 %"),
        (formatting.percent(-0.0312), "−3.1 %"),
        (formatting.significant(0.00456), "0.00456"),
        (
            formatting.bottleneck("write", ["read", "sort", "write"]),
            "the disk, reading and writing at once",
        ),
        (formatting.bottleneck("read", ["read", "keys"]), "the disk, reading"),
        (formatting.bottleneck("sort", ["read", "sort", "write"]), "the CPU, sorting"),
        (formatting.bottleneck("shuffle", []), "shuffle"),
    ],
)
def test_figures_and_words(said: str, expected: str) -> None:
    assert said == expected


def test_markup_escapes_what_is_not_markup() -> None:
    inner = html_elements.tag("b", "<i>", title='"&')
    assert html_elements.tag("p", inner, None, "&", hidden=None) == (
        '<p><b title="&quot;&amp;">&lt;i&gt;</b>&amp;</p>'
    )


def test_no_line_ends_between_a_figure_and_its_unit() -> None:
    assert html_elements.escape("1.2 s of 3 MB/s, 4 GiB, 90 %") == (
        "1.2\u00a0s of 3\u00a0MB/s, 4\u00a0GiB, 90\u00a0%"
    )
    assert html_elements.escape("2 stages, 3 Bs, a s") == "2 stages, 3 Bs, a s"
    # What may be typed again is left as it is.
    assert "--size 4 GB" in html_elements.code_block("--size 4 GB", "a command")


def test_what_was_predicted_adds_up_on_the_page(directory: Path, study: Study) -> None:
    predicted = study.predicted
    assert predicted
    # One phase that the disk limits, where filling and draining spare time, one that the CPU does.
    one, two = predicted.phases
    disk, cpu = (next(t for t in one.terms if t.resource.startswith(n)) for n in ("disk", "cpu"))
    phases = [
        replace(
            phase,
            limit=term.resource,
            ramp_seconds=-0.31,
            rehearsal_factor=1.236,
            seconds=(term.seconds + ramp) * 1.236,
            terms=[term],
        )
        for phase, term, ramp in ((one, disk, -0.31), (two, cpu, 0.0))
    ]
    whole = sum(phase.seconds for phase in phases) + 0.25
    change(
        directory,
        predicted=replace(predicted, phases=phases, other_seconds=0.25, seconds=whole),
    )
    page = write_report(directory).read_text()
    first, second, last = (
        plain(said) for said in re.findall(r'<p class="note sum">(.*?)</p>', page)
    )
    term, ramp, factor, product = map(float, figures(first))
    assert f"- {ramp:.3f} s of filling and draining" in first
    assert factor == 1.236 and "slowdown in rehearsals" in first
    assert (term - ramp) * factor == pytest.approx(product, abs=0.002)
    term, factor, product = map(float, figures(second))
    assert term * factor == pytest.approx(product, abs=0.002)
    *parts, total = map(float, figures(last))
    assert len(parts) == 3 and sum(parts) == pytest.approx(total, abs=0.003)


def test_efficiency_above_all_is_explained(directory: Path, study: Study) -> None:
    assert study.limit
    assert formatting.ABOVE_LIMIT not in plain(write_report(directory).read_text())
    change(directory, limit=replace(study.limit, efficiency=1.07))
    assert formatting.ABOVE_LIMIT in plain(write_report(directory).read_text())


def test_only_a_command_that_repeats_a_measurement_is_called_so(
    directory: Path, study: Study
) -> None:
    disk, *_ = study.measurements
    alone = replace(disk, command=["tonnage", "measure", "disk", "--dir", "a b"])
    within = replace(disk, id="within", command=study.command)
    change(directory, measurements=[alone, within])
    page = write_report(directory).read_text()
    repeats = re.findall(
        r"<h4>Command to repeat the measurement</h4><pre[^>]*><code>(.*?)</code>", page
    )
    assert repeats == ["tonnage measure disk --dir &#x27;a b&#x27;"]
    assert page.count("<h4>The study&#x27;s command, which includes the measurement</h4>") == 1


@pytest.mark.browser
@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_no_figure_of_an_axis_is_cut_off(
    browser: Browser, directory: Path, study: Study, width: int
) -> None:
    def faster(measurement: Measurement, factor: float) -> Measurement:
        trials = [
            replace(trial, rates=[factor * rate for rate in trial.rates])
            for trial in measurement.trials
        ]
        return replace(measurement, id=f"times-{factor:.0f}", trials=trials)

    # From what disks do to what memory does, and beyond.
    measurements = [faster(study.measurements[0], 10.0**power) for power in (0, 1, 3, 6)]
    change(directory, measurements=measurements)
    with shown(browser, directory, width) as page:
        cut = page.inner.locator(".plot .ytick text").evaluate_all(
            "all => all.filter(text => text.getBoundingClientRect().left <"
            " text.closest('.plot').getBoundingClientRect().left).map(text => text.textContent)"
        )
        titles = page.inner.locator("figcaption span").all_inner_texts()
    assert cut == []
    units = [title.split(",")[1].strip() for title in titles if "Raw rates" in title]
    assert {"MB/s", "GB/s"} == set(units)
