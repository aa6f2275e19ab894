"""The analysis of measurements: groups, statistics, warnings and omissions."""

import json
import math
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from model.analysis.test_cluster_replay import NARROW, WIDE, open_page
from support.browser.chromium import Browser
from support.cli.command import Tonnage
from support.data.copies import replace
from support.data.measurements import ENVIRONMENT, PHASE, measurement
from tonnage.base import core, formatting
from tonnage.base.records import (
    Latency,
    Measurement,
    Metric,
    RecordError,
    Source,
    Trial,
    TrialSpec,
    load_measurement,
)
from tonnage.base.records.analysis import Analysis, Subject
from tonnage.base.records.find_measurements import find_measurements
from tonnage.catalog import load_catalog
from tonnage.catalog.load import SNAPSHOTS
from tonnage.cli.options.prices import prices
from tonnage.model.analysis.analyse import Price, analyse
from tonnage.model.analysis.comparisons import ratio_of_medians
from tonnage.report.analysis import render, write_analysis
from tonnage.report.analysis.time_series import time_series_chart

BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
OURS = Source(tool="tonnage", version="0.1.0")
OPERATIONS = {
    "read4k": ("randread", 4096, 0),
    "write4k": ("randwrite", 4096, 1),
    "write4k-64": ("randwrite", 4096, 64),
    "read4m": ("randread", 4 << 20, 0),
}


def trial(
    operation: str,
    outstanding: int,
    rate: float,
    number: int = 0,
    *,
    suite: str = "explore",
    minutes: float = 0.0,
    p50: float = 1e-3,
    series: list[tuple[float, float]] | None = None,
    bins: list[tuple[float, int]] | None = None,
    **fields: Any,
) -> Trial:
    """A trial that gave so many operations a second."""
    name, block, durable_one_in = OPERATIONS[operation]
    reading = Metric(
        source=OURS,
        operation=name,
        block_bytes=block,
        concurrency=outstanding,
        bandwidth_bytes_per_second=rate * block,
        operations_per_second=rate,
        latency_seconds=Latency(count=100, mean=p50, p50=p50, p99=3 * p50, max=9 * p50),
        bins=bins,
        series=series,
        **{"direct": True, **fields},
    )
    details = reading.details | {"durable_one_in": durable_one_in}
    return Trial(
        name=f"{operation} x{outstanding}",
        bytes_per_second=rate * block,
        cpu_seconds_per_byte=1e-9,
        warm_up_seconds=0.0,
        rates=[],
        phase=PHASE,
        began_at=(BEGAN + timedelta(minutes=minutes)).isoformat(),
        step=TrialSpec(operation=operation, outstanding=outstanding, round=number, suite=suite),
        reading=replace(reading, details=details),
        cpu_seconds_per_operation=5e-6,
    )


def measured(host: str, trials: Sequence[Trial], **fields: Any) -> Measurement:
    """A measurement on a host."""
    environment = replace(ENVIRONMENT, host=host, versions={"tonnage": "0.1.0"})
    known = {"environment": environment, "trials": list(trials)}
    return replace(measurement(f"ops-{host}", {}), **{**known, **fields})


def imported(name: str, *readings: Metric) -> Measurement:
    """What another tool measured."""
    known = measurement(name, {})
    return replace(known, kind="import", environment=None, imported=list(readings))


def subject(analysis: Analysis, name: str) -> Subject:
    """The subject of that name."""
    (found,) = [each for each in analysis.subjects if each.name == name]
    return found


# By how many are outstanding.


def sweep(host: str = "a", rounds: int = 7) -> Measurement:
    """More outstanding give more, up to 8, and wait longer."""
    gave = {1: 100.0, 2: 190.0, 4: 350.0, 8: 500.0, 16: 510.0}
    return measured(
        host,
        [
            trial("read4k", number, rate + each, each, p50=number / rate)
            for each in range(rounds)
            for number, rate in gave.items()
        ],
    )


def test_a_single_machines_unit_is_the_trial() -> None:
    found = subject(analyse([sweep()]), "read4k")
    assert found.unit == "operations"
    assert [level.concurrency for level in found.levels] == [1, 2, 4, 8, 16]
    rates = [level.operations for level in found.levels if level.operations]
    assert [rate.value for rate in rates] == [103, 193, 353, 503, 513]
    assert {(rate.size, rate.over) for rate in rates} == {(7, "trials")}
    # Of seven, the first and the last hold the median with 98 %.
    assert [(rate.low, rate.high) for rate in rates[:1]] == [(100, 106)]
    assert found.near_best == 8 and found.concurrencies == [8]
    assert found.chosen.operations == rates[3]
    assert all(level.measurements == ["ops-a"] for level in found.levels)
    assert found.levels[0].cpu_seconds_per_operation == 5e-6


def test_the_unit_of_a_cluster_is_the_instance() -> None:
    found = subject(analyse([sweep("a", 7), sweep("b", 1), sweep("c", 3)]), "read4k")
    rate = found.chosen.operations
    assert rate and (rate.size, rate.over, rate.value) == (3, "instances", 501)
    assert (rate.low, rate.high, rate.lacking) == (None, None, 3)
    assert found.chosen.measurements == ["ops-a", "ops-b", "ops-c"]


def test_percentiles_of_instances_are_never_pooled() -> None:
    # One instance of three is a hundred times slower: pooled, its operations would be the tail.
    cluster = [
        measured(host, [trial("read4k", 1, 100.0, p50=p50)])
        for host, p50 in {"a": 1e-3, "b": 2e-3, "c": 0.2}.items()
    ]
    found = subject(analyse(cluster), "read4k")
    latencies = {each.name: each.seconds.value for each in found.chosen.latencies}
    assert latencies == pytest.approx({"mean": 2e-3, "p50": 2e-3, "p99": 6e-3, "max": 18e-3})
    assert found.lines and found.lines.instances == ["a", "b", "c"]
    assert found.lines.percentiles == ["p50", "p99", "max"]
    assert found.lines.values[0] == [1e-3, 2e-3, 0.2]


def test_long_trials_are_the_representative_samples() -> None:
    long = [trial("read4k", 4, 340.0, number, suite="steady") for number in range(2)]
    explored = sweep(rounds=1)
    whole = replace(explored, trials=explored.trials + long)
    found = subject(analyse([whole]), "read4k")
    assert found.concurrencies == [4] and found.near_best == 8
    assert found.chosen.operations and found.chosen.operations.value == 340
    assert [each.operations.size for each in found.levels if each.operations] == [1] * 5


# What is kept apart.


def test_only_comparable_samples_are_grouped() -> None:
    fio = Source(tool="fio", version="3.36")
    same = {"operation": "randread", "block_bytes": 4096, "concurrency": 1}
    readings = [
        Metric(source=fio, direct=True, bandwidth_bytes_per_second=4e6, **same),
        Metric(source=fio, direct=False, bandwidth_bytes_per_second=5e6, **same),
        Metric(source=fio, direct=False, bandwidth_bytes_per_second=9e9, cached="fast", **same),
    ]
    analysis = analyse(
        [
            measured("a", [trial("write4k", 1, 100.0), trial("write4k-64", 1, 900.0)]),
            imported("import-1", *readings),
        ]
    )
    assert [each.name for each in analysis.subjects] == [
        "write4k",
        "write4k-64",
        "fio: randread 4 KiB, buffered, not from a cache",
        "fio: randread 4 KiB, buffered, from a cache",
        "fio: randread 4 KiB, direct, not from a cache",
    ]
    (cached,) = [said for said in analysis.warnings if "almost certainly come from a cache" in said]
    assert cached == (
        "1 of fio's 3 figures almost certainly come from a cache, so they are shown separately: "
        "fio: randread 4 KiB, buffered, from a cache. Reason for the first: fast."
    )
    (compared,) = analysis.direct_against_buffered
    assert (compared.way, compared.than, compared.ratio.value) == ("direct", "buffered", 0.8)


def test_results_do_not_separate_groups() -> None:
    # What the network's and the object store's readings hold besides: lists, counts, latencies.
    details = [
        {
            "connections_per_pair": 4,
            "connections": [{"retransmits": n}],
            "retries": n,
            "requests": 9 * n,
        }
        for n in range(3)
    ]
    trials = [trial("read4k", 1, 100.0, n, details=of) for n, of in enumerate(details)]
    other = trial("read4k", 1, 100.0, details={"connections_per_pair": 8})
    analysis = analyse([measured("a", [*trials, other])])
    assert {each.name: each.rate.size for each in analysis.subjects if each.rate} == {
        "read4k, connections per pair 4": 3,
        "read4k, connections per pair 8": 1,
    }


def test_block_sizes_are_separate_groups_in_order() -> None:
    sizes = [64 << 20, 8 << 20, 512, 1 << 20]
    trials = [trial("read4k", 1, 100.0) for _ in sizes]
    trials = [
        replace(each, reading=replace(each.reading, block_bytes=size))
        for each, size in zip(trials, sizes, strict=True)
        if each.reading
    ]
    found = analyse([measured("a", trials)]).subjects
    assert [each.name for each in found] == [
        f"read4k, blocks of {size}" for size in ("512 B", "1 MiB", "8 MiB", "64 MiB")
    ]


def test_a_sweep_of_sizes_through_the_cache_is_one_warning() -> None:
    iozone = Source(tool="iozone", version="3")
    readings = [
        Metric(
            source=iozone,
            operation="read",
            block_bytes=4096 << step,
            bandwidth_bytes_per_second=1e9,
            cached="it was there" if step else None,
        )
        for step in range(8)
    ]
    (said,) = analyse([imported("import-1", *readings)]).warnings
    assert said.startswith("7 of iozone's 8 figures almost certainly come from a cache")
    assert "(7 in total). Reason for the first: it was there." in said


def test_an_imported_measurement_is_an_instance() -> None:
    read = Metric(source=Source(tool="hdparm"), operation="read", bandwidth_bytes_per_second=1e8)
    analysis = analyse([imported(f"import-{number}", read) for number in range(3)])
    (found,) = analysis.subjects
    assert [each.name for each in analysis.machines] == ["import-0", "import-1", "import-2"]
    assert not any(each.known for each in analysis.machines)
    assert analysis.findings[0].startswith("Imported results do not state their machine")
    assert "3 imported results." in render(analysis)
    one = analyse([sweep(), imported("import-1", read)])
    assert "Throughput of a, and 1 imported result." in render(one)
    assert one.findings[0].startswith("This is a single machine")
    assert found.rate and (found.rate.size, found.rate.over) == (3, "instances")
    assert (found.unit, found.near_best, found.concurrencies) == ("bytes", None, [])
    assert found.chosen.latencies == [] and found.courses == []


def test_measurements_without_results_get_a_warning() -> None:
    analysis = analyse([measurement("disk", {"rw": [1e6]})])
    assert analysis.subjects == []
    assert "These measurements have no results and are not shown: disk." in analysis.warnings
    assert "have no metrics" in render(analysis)


def test_a_measurement_counts_once() -> None:
    with pytest.raises(ValueError, match="ops-a is listed twice"):
        analyse([sweep(), sweep()])
    with pytest.raises(ValueError, match="no measurements"):
        analyse([])


# Ratios and prices.


def test_a_ratio_is_of_each_instance_where_there_are_several() -> None:
    above = {"a": [2.0], "b": [40.0], "c": [600.0]}
    below = {"a": [1.0], "b": [10.0], "c": [100.0], "d": [1.0]}
    found = ratio_of_medians(above, below)
    assert found and (found.value, found.size, found.over) == (4, 3, "instances")
    assert found.low is None and found.lacking == 3


def test_a_ratio_of_one_instance_is_of_medians_and_both_intervals() -> None:
    above, below = [float(20 + n) for n in range(8)], [float(10 + n) for n in range(8)]
    found = ratio_of_medians({"a": above}, {"a": below})
    assert found and found.value == pytest.approx(23.5 / 13.5)
    # Eight values hold their median between the first and the last with 99.2 %: over 97.5 %.
    assert (found.low, found.high) == pytest.approx((20 / 17, 27 / 10))
    few = ratio_of_medians({"a": above[:3]}, {"a": below})
    assert few and few.low is None and few.lacking == 4
    assert (
        ratio_of_medians({}, {"a": [1.0]}) is None
        and ratio_of_medians({"a": [1.0]}, {"a": [0.0]}) is None
    )


def test_layouts_are_compared_with_the_single_device() -> None:
    def on(layout: str, rate: float) -> Measurement:
        trials = [trial("read4m", 1, rate + n, n) for n in range(3)]
        return measured("a", trials, id=f"layouts-{layout}", settings={"layout": layout})

    analysis = analyse([on("raid0", 390.0), on("single", 99.0), on("jbod", 149.0)])
    assert [(each.way, each.than) for each in analysis.layouts] == [
        ("jbod", "single"),
        ("raid0", "single"),
    ]
    assert [each.ratio.value for each in analysis.layouts] == pytest.approx([1.5, 3.91])
    assert analysis.layouts[0].measurements == ["layouts-jbod", "layouts-single"]
    assert analysis.layouts[0].way_cpu_seconds_per_byte == 1e-9
    assert {each.layout for each in analysis.subjects} == {"raid0", "single", "jbod"}


def test_layouts_whose_tool_does_not_say_how_many_were_outstanding_are_compared() -> None:
    # As the disk benchmark's, which are of the sort's own stages and not of single operations.
    def on(layout: str, rates: Sequence[float]) -> Measurement:
        base = measurement(f"layouts-{layout}", {"rw": rates}, {"rw": 2e-9})
        trials = [
            replace(
                each,
                reading=Metric(
                    source=OURS,
                    operation="readwrite",
                    direct=True,
                    bandwidth_bytes_per_second=each.bytes_per_second,
                ),
            )
            for each in base.trials
        ]
        return replace(base, trials=trials, settings={"layout": layout})

    analysis = analyse([on("raid0", [380, 400, 420]), on("single", [90, 100, 110])])
    (found,) = analysis.layouts
    assert (found.subject, found.concurrency, found.ratio.value) == ("readwrite", None, 4)
    assert (found.ratio.low, found.ratio.lacking) == (None, 4)
    assert [each.name for each in analysis.subjects] == [
        "readwrite, layout raid0",
        "readwrite, layout single",
    ]


def test_cost_efficiency_is_rate_over_price() -> None:
    named = {"a": Price(0.5, "given"), "m5d.large": Price(0.25, "a list")}
    one = measured("a", [trial("read4k", 1, 100.0)])
    environment = replace(
        ENVIRONMENT, host="b", virtualisation="virtual machine (Amazon EC2 m5d.large)"
    )
    two = measured("b", [trial("read4k", 1, 200.0)], environment=environment)
    unpriced = measured("c", [trial("read4k", 1, 900.0)])
    analysis = analyse([one, two, unpriced], named)
    bought = {each.priced_as: each for each in analysis.per_dollar}
    assert set(bought) == {"a", "m5d.large"}
    operations, size = bought["a"].operations, bought["a"].bytes
    assert operations and operations.value == pytest.approx(100 * 3600 / 0.5)
    assert size and size.value == pytest.approx(100 * 4096 * 3600 / 0.5)
    other = bought["m5d.large"]
    assert other.operations and other.operations.value == pytest.approx(200 * 3600 / 0.25)
    assert other.measurements == ["ops-b"]
    costs = {each.name: (each.usd_per_hour, each.price_source) for each in analysis.machines}
    assert costs == {"a": (0.5, "given"), "b": (0.25, "a list"), "c": (None, None)}


AWS = "aws-us-east-1-2026"


@pytest.mark.parametrize(
    ("catalog", "name", "usd", "source"),
    [
        ("aws-us-east-1-2014", "m1.small", 0.044, "2014-"),
        (AWS, "m5d.large", 0.113, "2026-07-06, karpenter"),
        (AWS, "c8a.metal-24xl", 5.69026, "dedicated tenancy"),
        ("azure-us-east-2025", "Standard_L8s_v3", 0.696, "2025-"),
        ("gcp-us-central1-2026", "n2-standard-2", 0.097118, "2026-"),
    ],
)
def test_prices_of_a_catalog_are_those_on_demand(
    catalog: str, name: str, usd: float, source: str
) -> None:
    found = prices([f"host={name}", "other=2"], catalog)
    assert found["host"] == found[name] and found[name].usd_per_hour == usd
    assert found[name].source.startswith(f"{catalog}, ") and source in found[name].source
    assert found["other"] == Price(2.0, "given with --price")
    assert prices(["a=$0.113", "b=2USD"], None)["b"].usd_per_hour == 2.0
    assert prices([f"{name}=9"], catalog)[name].usd_per_hour == 9
    assert len(found) == 2 + sum(
        each.on_demand is not None for each in load_catalog(catalog).offers
    )


def test_a_catalog_of_ones_own_is_a_csv_file(tmp_path: Path) -> None:
    file = tmp_path / "mine.csv"
    file.write_bytes((SNAPSHOTS / "aws-us-east-1-2014.csv").read_bytes())
    assert prices(["a=m3.large"], str(file))["a"].source.startswith("mine, 2014-")


@pytest.mark.parametrize(
    ("given", "catalog", "why"),
    [
        (["a"], None, "--price a: use HOST_OR_TYPE=USD_PER_HOUR"),
        (["a=cheap"], None, "cheap is not a price"),
        (["a=1", "a=2"], None, "--price a=2: a has a price already; specify one"),
        (["a=-1"], None, "-1 is not a price"),
        (["a=nan"], None, "nan is not a price"),
        (["a=m5d.lrge"], AWS, r"machine type in aws-us-east-1-2026 \(did you mean m5d.large\?\)"),
        (["a=mac2.metal"], AWS, "mac2.metal has no price in aws-us-east-1-2026"),
        ([], "aws-us-east-1-2025", "--catalog: unknown catalog aws-us-east-1-2025"),
        ([], "", "--catalog: unknown catalog"),
    ],
)
def test_invalid_prices_are_refused(given: list[str], catalog: str | None, why: str) -> None:
    with pytest.raises(core.UsageError, match=why):
        prices(given, catalog)


def test_a_file_that_is_not_a_catalog_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "catalog.csv"
    file.write_text("name,price\na,1\n")
    with pytest.raises(core.UsageError, match=r"--catalog: .*catalog.csv: not a catalog of offers"):
        prices([], str(file))


# Warnings.


def warnings_of(*trials: Trial) -> list[str]:
    """The warnings about a machine's trials."""
    return [said for said in analyse([measured("a", trials)]).warnings if "durability" in said]


def test_a_durable_write_that_is_too_fast_gets_a_warning() -> None:
    (said,) = warnings_of(trial("write4k", 1, 1e4, p50=50e-6))
    assert said.startswith(
        "write4k on a: the p50 of durable writes is less than 100 µs (minimum 50.0 µs"
    )
    (said,) = warnings_of(trial("write4k", 4, 1e3, p50=2e-3), trial("read4k", 4, 1e3, p50=3e-3))
    assert "less than that of reads of the same size" in said
    assert "write-back cache in the host; durability cannot be confirmed" in said


@pytest.mark.parametrize(
    "trials",
    [
        [trial("write4k", 4, 1e3, p50=4e-3), trial("read4k", 4, 1e3, p50=3e-3)],
        # Not with as many outstanding; not each durable; of another size; from a cache.
        [trial("write4k", 1, 1e3, p50=2e-3), trial("read4k", 4, 1e3, p50=3e-3)],
        [trial("write4k-64", 4, 1e3, p50=1e-5), trial("read4k", 4, 1e3, p50=3e-3)],
        [trial("write4k", 4, 1e3, p50=2e-3), trial("read4m", 4, 1e3, p50=3e-3)],
        [trial("write4k", 4, 1e3, p50=2e-3), trial("read4k", 4, 1e3, p50=3e-3, cached="yes")],
    ],
)
def test_a_plausible_durable_write_gets_no_warning(trials: list[Trial]) -> None:
    assert warnings_of(*trials) == []


def test_unlike_machines_get_a_warning() -> None:
    one, two = (measured(host, [trial("read4k", 1, 1.0)]) for host in "ab")
    assert two.environment and analyse([one, two]).warnings == []
    larger = replace(two.environment, cores=16, versions={"tonnage": "0.2.0"})
    said = analyse([one, replace(two, environment=larger)]).warnings
    assert said == [
        "Measured with several versions of Tonnage: 0.1.0 and 0.2.0.",
        "The machines differ in cores.",
    ]


# Over time.


def test_periodic_trials_are_points_with_gaps() -> None:
    # One slot is missed, and later many.
    minutes = [*range(0, 50, 5), *range(55, 105, 5), *range(300, 400, 5)]
    trials = [
        trial("read4k", 1, 100.0 + place % 3, place, suite="over-time", minutes=at, series=[(1, 9)])
        for place, at in enumerate(minutes)
    ]
    (course,) = subject(analyse([measured("a", trials)]), "read4k").courses
    assert course.seconds[:2] == [0, 300]
    gaps = [at for at, share in zip(course.seconds, course.shares, strict=True) if share is None]
    assert len(gaps) == 2 and 2700 < gaps[0] < 3300 and 6000 < gaps[1] < 18_000
    assert len(course.shares) == 42 and max(filter(None, course.shares)) == 1


def long_trial(*, rises_for: float) -> Subject:
    """A trial of ten minutes that rises to 100 operations a second, and stays there."""
    rates = [100 * 4096 * min(1.0, (second + 1) / rises_for) for second in range(600)]
    series = [(second + 1.0, rate) for second, rate in enumerate(rates)]
    return subject(analyse([measured("a", [trial("read4k", 1, 90.0, series=series)])]), "read4k")


def test_a_long_trial_has_a_steady_state() -> None:
    warm = long_trial(rises_for=100)
    (course,) = warm.courses
    steady = course.steady
    assert steady and steady.begins_seconds and 60 < steady.begins_seconds < 110
    assert steady.rule == "slope within 0.1 of the mean over a window of 150 s"
    # At most 0.1 over the window: what is left of the rise.
    assert steady.slope_per_second and 0 < steady.slope_per_second <= 0.1 / 150
    drawn = time_series_chart(warm)
    assert drawn and "steady from" in str(drawn.note) and steady.rule in str(drawn.note)
    assert "a minute" in str(drawn.traces)

    rising = long_trial(rises_for=1e9)
    (course,) = rising.courses
    assert course.steady and course.steady.begins_seconds is None
    drawn = time_series_chart(rising)
    assert drawn and "never steady" in str(drawn.note)

    short = [(float(second), 4096.0) for second in range(1, 60)]
    found = subject(analyse([measured("a", [trial("read4k", 1, 1.0, series=short)])]), "read4k")
    assert [each.steady for each in found.courses] == [None]


def test_trials_over_days_are_correlated_and_show_a_daily_cycle() -> None:
    minutes = range(0, 4 * 1440, 20)
    trials = [
        trial("read4k", 1, 100 + 20 * math.sin(2 * math.pi * at / 1440), n, minutes=at)
        for n, at in enumerate(minutes)
    ]
    found = subject(analyse([measured("a", trials)]), "read4k")
    rate = found.chosen.operations
    assert rate and rate.size == len(minutes) and rate.effective_size < 40
    (cycle,) = found.cycles
    assert cycle.instance == "a"
    assert cycle.period_seconds == pytest.approx(86_400, rel=0.02)
    assert cycle.amplitude_share == pytest.approx(0.2, rel=0.05)
    assert "hours" in render(analyse([measured("a", trials)]))


def test_instances_that_were_measured_together_share_a_clock() -> None:
    series = [(float(second), 4096.0 * 100) for second in range(600)]

    def began(host: str, minutes: float) -> Measurement:
        return measured(host, [trial("read4k", 1, 100.0, minutes=minutes, series=series)])

    together = subject(analyse([began("a", 0), began("b", 1)]), "read4k").courses
    assert [course.seconds[0] for course in together] == pytest.approx([1.5, 61.5])
    apart = subject(analyse([began("a", 0), began("b", 1000)]), "read4k").courses
    assert [course.seconds[0] for course in apart] == pytest.approx([1.5, 1.5])
    assert len(apart[0].seconds) == 150


def test_each_series_has_a_median_and_an_effective_size() -> None:
    def course(host: str, rate: float) -> Measurement:
        # Moods of twenty seconds: far fewer independent values than seconds.
        series = [
            (second + 1.0, rate * (1.1 if second // 20 % 2 else 0.9)) for second in range(600)
        ]
        return measured(host, [trial("read4m", 1, rate / (4 << 20), series=series)])

    several = subject(analyse([course("a", 1e8), course("b", 2e8)]), "read4m")
    drawn = time_series_chart(several)
    assert drawn
    texts = {line["name"]: line["hovertemplate"] for line in drawn.traces}
    for each in several.instances:
        rate = each.rate
        assert rate.effective_size < 100 < rate.size == 600
        assert rate.low and rate.high
        low, high = (formatting.significant(end / 1e6) for end in (rate.low, rate.high))
        assert f"<br>median {formatting.megabytes(rate.value)} MB/s<br>" in texts[each.name]
        worth = f"of 600 samples, correlated: effectively {rate.effective_size}<br>steady from "
        assert f"<br>interval {low} – {high}<br>{worth}" in texts[each.name]
    assert str(drawn.note).startswith("1 is 220 MB/s. Exceptional: ")

    # Of a single one it is also said below.
    alone = time_series_chart(subject(analyse([course("a", 1e8)]), "read4m"))
    assert alone and ". Median 100 MB/s, interval 90.0 – 110, of 600 samples" in str(alone.note)


@pytest.mark.parametrize("rest", [0.0, 4096.0])
def test_idle_instances_are_handled(rest: float) -> None:
    # All the time, or most of it.
    idle = [(float(second), 0.0 if second % 3 else rest) for second in range(60)]
    cluster = [measured(host, [trial("read4k", 1, rest, series=idle)]) for host in "abc"]
    found = subject(analyse(cluster), "read4k")
    assert (found.instances, found.spread, bool(found.courses)) == ([], None, rest > 0)
    assert "read4k" in render(analyse(cluster))


def test_latencies_of_one_instance_are_put_into_bins() -> None:
    bins = [(1.0e-3, 10), (1.01e-3, 20), (0.5, 1)]
    two = [trial("read4k", 1, 100.0, number, bins=bins) for number in range(2)]
    (found,) = subject(analyse([measured("a", two)]), "read4k").latency_histograms
    assert (found.role, found.count) == ("only", 62)
    assert sum(found.shares) == pytest.approx(1)
    assert found.shares[0] == pytest.approx(60 / 62) and found.shares[-1] == pytest.approx(2 / 62)
    assert found.edges_seconds[0] <= 1e-3 < found.edges_seconds[1]
    assert len(found.edges_seconds) == len(found.shares) + 1


# Files.


def test_results_of_a_killed_command_are_loaded(tmp_path: Path) -> None:
    whole = sweep()
    begun = replace(whole, trials=[])
    begun.write(tmp_path / "run" / "begun.json")
    for number, each in enumerate(whole.trials[:12]):
        each.write(tmp_path / "run" / f"trial-{number:05}.json")
    assert load_measurement(tmp_path / "run").trials == whole.trials[:12]
    assert find_measurements(tmp_path) == [tmp_path / "run"]
    whole.write(tmp_path / "run" / "measurement.json")
    assert load_measurement(tmp_path / "run") == whole
    assert find_measurements(tmp_path) == [tmp_path / "run" / "measurement.json"]


def test_other_files_of_a_directory_are_ignored(tmp_path: Path) -> None:
    sweep().write(tmp_path / "study" / "measurements" / "ops-a.json")
    (tmp_path / "study" / "other.json").write_text("no JSON at all")
    (tmp_path / "study" / "directory.json").mkdir()
    analyse([sweep()]).write(tmp_path / "report.json")
    assert find_measurements(tmp_path) == [tmp_path / "study" / "measurements" / "ops-a.json"]
    (tmp_path / "none").mkdir()
    with pytest.raises(RecordError, match="contains no measurement"):
        find_measurements(tmp_path / "none")
    (tmp_path / "none" / "measurement.json").write_text("{}")
    with pytest.raises(RecordError, match="expected tonnage"):
        load_measurement(tmp_path / "none")


def test_the_command_prints_one_document(tonnage: Tonnage, tmp_path: Path) -> None:
    file = sweep().write(tmp_path / "measurement.json")
    out = tmp_path / "page.html"
    done = tonnage.run("report", file, "--json", "--output", out, check=True)
    printed = Analysis.from_json(json.loads(done.stdout))
    assert printed == Analysis.read(tmp_path / "page.json") == analyse([sweep()])
    assert out.is_file()
    # A slow machine gets progress, and nothing else.
    assert all(line.startswith(("reading ", "analysing ")) for line in done.stderr.splitlines())


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["{}/nothing"], "nothing: no such file or directory; use the"),
        (["{}"], "no measurement; use results of tonnage measure"),
        (["{}/other.json"], "other.json: expected tonnage.measurement/1, but it has no schema"),
        (["{}/cut.json"], "cut.json is not JSON"),
        (["{}/a", "{}/copy"], "both contain measurement ops-a; pass only one"),
        (["{}/a", "--output", "{}/page.txt"], "use a file name that ends in .html"),
        (["{}/a", "--price", "a"], "--price a: use HOST_OR_TYPE=USD_PER_HOUR"),
        (["{}/a", "--catalog", "{}/none.csv"], "none.csv; use one of"),
    ],
)
def test_the_command_refuses_in_a_line(
    tonnage: Tonnage, tmp_path: Path, arguments: list[str], why: str
) -> None:
    if arguments != ["{}"]:
        sweep().write(tmp_path / "a" / "measurement.json")
        sweep().write(tmp_path / "copy" / "measurement.json")
    (tmp_path / "other.json").write_text("{}")
    (tmp_path / "cut.json").write_text('{"schema": "tonnage.meas')
    given = [each.format(tmp_path) for each in arguments]
    done = tonnage.run("report", *given, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1 and why in done.stderr
    assert not (tmp_path / "report.html").exists() and not (tmp_path / "report.json").exists()


def test_the_same_file_given_twice_counts_once(tonnage: Tonnage, tmp_path: Path) -> None:
    file = sweep().write(tmp_path / "measurement.json")
    done = tonnage.run("report", file, tmp_path, "--json", cwd=tmp_path, check=True)
    assert len(json.loads(done.stdout)["cited"]) == 1


# The page.


def everything() -> Analysis:
    """One machine, all operations, layouts, both ways, prices, bins, and a cache."""
    bins = [(1e-4 * 1.3**step, 100 - step) for step in range(40)]
    trials = [
        trial(operation, number, 100.0 * number + each, each, bins=bins, direct=direct)
        for operation in OPERATIONS
        for number in (1, 2, 4, 8)
        for each in range(8)
        for direct in (True, False)
    ]
    layouts = [
        measured(
            "a",
            [trial("read4m", 1, 100.0 * number, each) for each in range(8)],
            id=f"layouts-{name}",
            settings={"layout": name},
        )
        for number, name in enumerate(("single", "jbod", "raid0"), start=1)
    ]
    return analyse([measured("a", trials), *layouts], {"a": Price(0.25, "given with --price")})


@pytest.mark.browser
@pytest.mark.parametrize(
    ("width", "scheme"),
    [
        (NARROW, "light"),
        pytest.param(NARROW, "dark", marks=pytest.mark.slow),
        pytest.param(WIDE, "light", marks=pytest.mark.slow),
        pytest.param(WIDE, "dark", marks=pytest.mark.slow),
    ],
)
def test_every_chart_of_a_machine_is_drawn(
    browser: Browser, tmp_path: Path, width: int, scheme: str
) -> None:
    page = write_analysis(everything(), tmp_path / "report.html")
    with open_page(browser, page, width, scheme) as opened:
        for details in opened.inner.locator("details:has(.plot)").all():
            details.locator("summary").first.click()
        opened.inner.wait_for_selector(".plot.js-plotly-plot >> nth=-1")
        plots = opened.inner.locator(".plot")
        drawn = plots.evaluate_all(
            "plots => plots.map(plot => [plot.id, plot.querySelectorAll('svg .trace path').length])"
        )
        assert [name for name, count in drawn if count == 0] == []
        named = {name.rpartition("-")[2] for name, _ in drawn}
        assert named >= {"operations", "megabytes", "layouts", "direct", "levels", "histogram"}
        assert opened.inner.evaluate("document.documentElement.scrollWidth") <= width
        cut = opened.inner.locator(".plot .ytick text").evaluate_all(
            "all => all.filter(text => text.getBoundingClientRect().left <"
            " text.closest('.plot').getBoundingClientRect().left - 1).map(text => text.textContent)"
        )
        assert cut == []
        said = opened.inner.locator("main").inner_text()
        assert "This is a single machine." in said
        assert "a single machine; another machine may be much faster or slower" in said.lower()
        for rule in ("Has measurements of many instances", "Can be reproduced"):
            assert rule in said


@pytest.mark.browser
def test_text_of_a_measurement_is_only_text(browser: Browser, tmp_path: Path) -> None:
    evil = "<script>document.title='taken'</script><img src=x onerror=alert(1)>\"'&amp;$style"
    reading = Metric(
        source=Source(tool=evil, version=evil),
        operation="randread",
        block_bytes=4096,
        bandwidth_bytes_per_second=1e6,
        operations_per_second=244.0,
        cached=evil,
        series=[(1.0, 1e6), (2.0, 2e6)],
        details={"job": evil, "layout": evil},
    )
    trials = [trial("read4k", number, 100.0) for number in (1, 2)]
    own = measured(evil, trials, command=[evil], id=evil, page_cache=evil)
    analysis = analyse([own, imported("import-1", reading)], {evil: Price(1.0, evil)})
    with open_page(browser, write_analysis(analysis, tmp_path / "report.html"), WIDE) as opened:
        assert opened.inner.title() != "taken"
        assert opened.inner.locator("img[src=x]").count() == 0
        assert evil in opened.inner.locator("#sources").inner_text()


def test_a_figure_without_an_interval_says_so() -> None:
    page = render(analyse([sweep(rounds=1)]))
    assert "not estimable: needs 5 trials more" in page
    assert "too few values for a confidence interval" in page


@pytest.mark.parametrize(
    ("measurements", "lacking"),
    [
        (lambda: [sweep()], {"Operations per dollar", "Layouts&#x27; ratio", "Latency histogram"}),
        (lambda: [sweep(rounds=1)], {"Variation across machines"}),
    ],
)
def test_omitted_charts_are_listed(
    measurements: Callable[[], list[Measurement]], lacking: set[str]
) -> None:
    page = render(analyse(measurements()))
    for chart in lacking:
        assert f"<b>{chart}</b>" in page
