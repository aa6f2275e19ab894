"""Which measurements pass each of the six rules, which fall short, and what is unknown."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from support.data.copies import replace
from support.data.measurements import ENVIRONMENT, PHASE, measurement
from tonnage.base.credibility import MANY_INSTANCES, NOT_PROVED, PASS, SHORT, UNKNOWN, scorecard
from tonnage.base.records import Environment, Measurement, Metric, Source, Trial

BASIC, INSTANCES, TIME, REPRODUCIBLE, EXPLAINED, AGGREGATED = range(6)
BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
OURS = Source(tool="tonnage", version="0.1.0")


def reading(**fields: Any) -> Metric:
    """A direct read of 4 KiB, or another."""
    known = {"source": OURS, "operation": "randread", "block_bytes": 4096, "direct": True}
    return Metric(**{**known, **fields})


def measured(
    host: str = "a",
    hours: list[float] | None = None,
    seconds: float = 60.0,
    readings: list[Metric] | None = None,
    **fields: Any,
) -> Measurement:
    """A measurement with a trial that began at each of the hours."""
    base = measurement(f"m-{host}", {})
    trials = [
        Trial(
            name="read4k x1",
            bytes_per_second=1.0,
            cpu_seconds_per_byte=0.0,
            warm_up_seconds=0.0,
            rates=[],
            phase=replace(PHASE, seconds=seconds),
            began_at=(BEGAN + timedelta(hours=hour)).isoformat(),
            reading=each,
        )
        for hour in hours or [0.0]
        for each in readings or [reading()]
    ]
    environment = replace(ENVIRONMENT, host=host, versions={"tonnage": "0.1.0"})
    known = {"trials": trials, "environment": environment}
    return replace(base, **{**known, **fields})


def imported(*readings: Metric) -> Measurement:
    """What another tool measured, on an unknown machine."""
    base = measurement("import", {})
    return replace(base, environment=None, imported=list(readings))


def verdict(rule: int, *measurements: Measurement) -> tuple[str, str]:
    """A rule's verdict and its reason."""
    found = scorecard(measurements)[rule]
    return found.verdict, found.reason


def test_there_are_six_rules_each_with_a_reason() -> None:
    found = scorecard([measured()])
    assert len(found) == 6
    assert {each.verdict for each in found} <= {PASS, SHORT, UNKNOWN}
    assert all(each.reason for each in found)
    with pytest.raises(ValueError, match="no measurements"):
        scorecard([])


def test_basic_properties() -> None:
    assert verdict(BASIC, measured()) == (
        PASS,
        "each trial measures one kind of operation: randread",
    )
    # The trials of `measure disk` and `measure cpu` have no readings.
    assert verdict(BASIC, measurement("m", {"rw": [1.0]}))[0] == PASS
    assert verdict(BASIC, measurement("m", {}))[0] == UNKNOWN
    assert verdict(BASIC, measured(readings=[reading(operation="other")]))[0] == UNKNOWN
    observed = imported(reading(operation="device read"))
    assert verdict(BASIC, observed)[0] == SHORT
    assert verdict(BASIC, measured(), observed)[0] == SHORT
    half = measured(readings=[reading(), reading(cached="too fast")])
    assert verdict(BASIC, half) == (SHORT, "1 of 2 figures can only come from a cache")
    unwatched = reading(details={NOT_PROVED: "nobody looked"})
    assert verdict(BASIC, measured(readings=[reading(), unwatched])) == (
        UNKNOWN,
        "1 of 2 figures may come from a cache: nobody looked",
    )


def test_many_instances() -> None:
    machines = [measured(f"host-{number}") for number in range(MANY_INSTANCES)]
    assert verdict(INSTANCES, *machines) == (PASS, f"{MANY_INSTANCES} machines")
    assert verdict(INSTANCES, *machines[1:])[0] == SHORT
    # A machine measured twice counts once.
    assert "single machine" in verdict(INSTANCES, measured(), measured(hours=[5.0]))[1]
    assert verdict(INSTANCES, imported(reading()))[0] == UNKNOWN
    assert verdict(INSTANCES, measured(), imported(reading()))[0] == UNKNOWN


def test_a_substantial_time() -> None:
    day = [float(hour) for hour in range(0, 26, 2)]
    assert verdict(TIME, measured(hours=day))[0] == PASS
    ten_minutes = measured(seconds=600.0)
    assert verdict(TIME, ten_minutes) == (
        SHORT,
        "10 min from first to last trial, with trials in 1 hour; at least a day is needed, with "
        "trials in 12 different hours, because load follows the time of day",
    )
    # Two trials a month apart do not cover the time between.
    assert verdict(TIME, measured(hours=[0.0, 720.0]))[0] == SHORT
    # Parts of a day on several machines are a day.
    assert verdict(TIME, measured("a", day[:7]), measured("b", day[7:]))[0] == PASS
    # The time of the import says nothing.
    assert verdict(TIME, imported(reading()))[0] == UNKNOWN
    assert verdict(TIME, measured(began_at="yesterday", trials=[]))[0] == UNKNOWN


def test_trials_without_a_time_follow_one_another() -> None:
    base = measured(hours=[0.0, 0.0, 0.0], seconds=3600.0)
    trials = [replace(each, began_at=None) for each in base.trials]
    reason = verdict(TIME, replace(base, trials=trials))[1]
    assert reason.startswith("3.0 h from first to last trial")


def test_reproducible() -> None:
    assert verdict(REPRODUCIBLE, measured())[0] == PASS
    environment = measured().environment
    assert environment
    debug = replace(environment, debug_build=True)
    unversioned: Environment = replace(environment, versions={})
    assert verdict(REPRODUCIBLE, measured(environment=debug))[0] == SHORT
    assert verdict(REPRODUCIBLE, measured(environment=unversioned))[0] == SHORT
    assert verdict(REPRODUCIBLE, measured(command=[])) == (
        SHORT,
        "the command or the version is missing in m-a",
    )
    assert verdict(REPRODUCIBLE, imported(reading()))[0] == UNKNOWN
    complete = reading(source=Source(tool="ior", version="4.0"), details={"command": "ior -t 1m"})
    assert verdict(REPRODUCIBLE, imported(complete))[0] == PASS


def test_explained() -> None:
    assert verdict(EXPLAINED, measured())[0] == PASS
    assert verdict(EXPLAINED, measured(page_cache=""))[0] == SHORT
    assert verdict(EXPLAINED, measured(readings=[reading(direct=None)]))[0] == SHORT
    assert verdict(EXPLAINED, imported(reading()))[0] == UNKNOWN


def test_aggregated() -> None:
    assert verdict(AGGREGATED, measured(hours=[0.0, 1.0, 2.0])) == (
        PASS,
        "medians of 3 trials of each kind, too few for a confidence interval; stopping rule, raw "
        "samples and all trials recorded",
    )
    assert "too few" not in verdict(AGGREGATED, measured(hours=[float(n) for n in range(6)]))[1]
    assert verdict(AGGREGATED, measured(stopping_rule=""))[0] == SHORT
    assert verdict(AGGREGATED, measured(trials=[]))[0] == UNKNOWN
    assert verdict(AGGREGATED, imported(reading()))[0] == UNKNOWN
