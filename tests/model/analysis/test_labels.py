"""Comparison of a label's values: medians, densities, and their page."""

import json
from pathlib import Path

import numpy as np
import pytest

from support.cli.command import Tonnage
from support.data.copies import replace
from support.data.measurements import ENVIRONMENT, PHASE, measurement
from tonnage.base.records import Latency, Measurement, Metric, Source, Trial
from tonnage.base.records.analysis import Analysis, LabelComparison
from tonnage.model.analysis.analyse import analyse
from tonnage.report.analysis import render

EAST = [30.0, 28.0, 33.0, 31.0, 26.0, 35.0, 29.0, 30.5]
WEST = [12.0, 15.0, 18.0, 80.0, 14.0, 16.0, 88.0, 13.0]
"""MB/s: as Magellan's regions, one narrow and one with a few that are far faster."""


def made(host: str, rates: list[float], labels: dict[str, str], number: int = 1) -> Measurement:
    """A machine's measurement: a trial of each rate in MB/s, so many outstanding."""
    trials = [
        Trial(
            name=f"read x{number}",
            bytes_per_second=1e6 * rate,
            cpu_seconds_per_byte=0.0,
            warm_up_seconds=0.0,
            rates=[],
            phase=PHASE,
            reading=Metric(
                source=Source(tool="test"),
                operation="read",
                concurrency=number,
                bandwidth_bytes_per_second=1e6 * rate,
                latency_seconds=Latency(),
            ),
        )
        for rate in rates
    ]
    environment = replace(ENVIRONMENT, host=host, labels=labels)
    return replace(measurement(f"{host}-{number}", {}), environment=environment, trials=trials)


def regions() -> list[Measurement]:
    """Eight machines in each of two regions."""
    sides = (("east", EAST), ("west", WEST))
    return [
        made(f"{region}-{place}", [rate], {"region": region})
        for region, rates in sides
        for place, rate in enumerate(rates)
    ]


def only(analysis: Analysis) -> LabelComparison:
    """The one operation and label there is."""
    (found,) = analysis.by_label
    return found


def test_each_value_has_its_median_its_interval_and_its_density() -> None:
    found = only(analyse(regions()))
    assert (found.label, found.unit, found.concurrency) == ("region", "bytes", 1)
    assert found.axis == "logarithmic"  # The fastest is more than three times the slowest.
    for each, rates in zip(found.values, (EAST, WEST), strict=True):
        assert each.rate.value == pytest.approx(1e6 * float(np.median(rates)))
        low, high = each.rate.low, each.rate.high
        assert low is not None and high is not None and low < each.rate.value < high
        assert each.rate.size == 8 and each.rate.over == "instances"
        assert sum(each.shares) == pytest.approx(1) and len(each.shares) == len(found.edges) - 1
        counted = np.histogram(np.log(1e6 * np.asarray(rates)), np.log(found.edges))[0] / 8
        assert each.shares == pytest.approx(counted.tolist(), abs=1e-6)
        # In shares a bin: over the axis, in bins, a density comes to one.
        bin_width = np.log(found.edges[1] / found.edges[0])
        step = np.log(found.places[1] / found.places[0])
        assert each.densities is not None
        assert sum(each.densities) * step / bin_width == pytest.approx(1, abs=0.01)
    peaks = [found.places[int(np.argmax(each.densities or []))] for each in found.values]
    assert 26e6 < peaks[0] < 35e6 and 10e6 < peaks[1] < 20e6


def test_one_machines_trials_are_counted_where_it_is_alone() -> None:
    times = {"day": [40.0, 41.0, 43.0, 42.0, 39.0, 44.0], "night": [60.0, 61.0, 63.0]}
    measurements = [
        replace(made("only", rates, {"time": time}), id=time) for time, rates in times.items()
    ]
    found = only(analyse(measurements))
    assert found.axis == "linear"
    day, night = found.values
    assert (day.value, day.rate.size, day.rate.over) == ("day", 6, "trials")
    # Three are too few for a density, and for an interval.
    assert day.densities is not None and night.densities is None and night.rate.low is None
    assert not found.is_dense


def test_values_are_compared_at_the_same_concurrency() -> None:
    both = [made("a", [10.0], {"zone": "a"}), made("b", [20.0], {"zone": "b"})]
    more = made("b", [99.0], {"zone": "b"}, number=4)
    found = only(analyse([*both, more]))
    assert found.concurrency == 1 and [each.rate.value for each in found.values] == [10e6, 20e6]
    assert analyse([both[0], more]).by_label == []
    # What machines are called is no label to be held against.
    assert (
        analyse([made("a", [1.0], {"host": "a"}), made("b", [2.0], {"host": "b"})]).by_label == []
    )


def test_the_page_has_a_chart_a_table_and_omissions() -> None:
    page = render(analyse(regions()))
    assert 'id="chart-label-1"' in page and "Medians by label" in page
    assert "read by region: density and histogram, % in each bin" in page
    few = analyse(regions()[6:10])
    assert [each.chart for each in few.left_out if "label" in each.chart] == ["Density by label"]
    assert 'id="chart-label-1"' not in render(few) and "Medians by label" in render(few)
    none = analyse(regions()[:2])
    assert [each.chart for each in none.left_out if "label" in each.chart] == ["By label"]


def test_a_network_keeps_its_labels(tonnage: Tonnage, disk: Path) -> None:
    command = [
        "measure",
        "net",
        "--endpoints",
        "2",
        "--seconds",
        "0.2",
        "--repetitions",
        "1",
        "--json",
    ]
    done = tonnage.run(*command, "--label", "zone=a", "--output", disk / "out", check=True)
    printed = json.loads(done.stdout)
    environment = Measurement.from_json(printed).environment
    assert environment and environment.labels == {"zone": "a"}


@pytest.mark.parametrize("what", ["net", "layouts"])
def test_a_label_without_a_value_is_refused(tonnage: Tonnage, disk: Path, what: str) -> None:
    done = tonnage.run("measure", what, "--label", "zone", cwd=disk)
    assert done.returncode == 2 and "--label zone: use NAME=VALUE" in done.stderr
