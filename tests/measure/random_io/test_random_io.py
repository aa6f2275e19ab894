"""Random I/O: which trials are run, their results, and resuming after a kill."""

import json
import os
import re
import signal
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from support.cli.command import Tonnage
from support.cli.processes import started
from support.data.copies import replace
from support.data.measurements import PHASE, measurement
from support.stores.disk import IMAGE_BYTES, btrfs, needs_btrfs
from tonnage.base import core
from tonnage.base.records import Measurement, Summary, SystemActivity, Trial, TrialSpec
from tonnage.base.system import block_devices
from tonnage.cli.output.trials import summary
from tonnage.measure.random_io.suite import (
    RandomIoSettings,
    max_duration_seconds,
    measure_random_io,
    stopping_rule,
    trial_order,
)
from tonnage.measure.random_io.trial import OPERATIONS
from tonnage.measure.trial.cache_detection import FASTEST_DEVICE, NOT_PROVED, cache_evidence
from tonnage.measure.trial.repetition import is_precise
from tonnage.measure.trial.trial import summaries, summarise

SETTINGS = RandomIoSettings(
    suite="explore",
    operations=("read4k", "write4k"),
    outstanding=(1, 4),
    rounds=3,
    until_confidence=None,
    explore_seconds=0.2,
    seconds=0.2,
    file_bytes=8_000_000,
    blocking=False,
    batched=False,
    seed=1,
)


def trial(step: TrialSpec, rate: float) -> Trial:
    """An invented trial."""
    return Trial(
        name=f"{step.operation} x{step.outstanding} {step.suite}",
        bytes_per_second=rate,
        cpu_seconds_per_byte=0.0,
        warm_up_seconds=0.0,
        rates=[rate],
        phase=PHASE,
        step=step,
    )


def walked(settings: RandomIoSettings, rates: Sequence[float] = (100.0,)) -> list[TrialSpec]:
    """All steps, if the trials give these rates in turn."""
    done: list[Trial] = []
    for step in trial_order(settings, done):
        done.append(trial(step, rates[len(done) % len(rates)]))
    return [each.step for each in done if each.step]


def test_each_round_has_each_kind_once_in_its_own_order() -> None:
    settings = replace(SETTINGS, outstanding=None)
    steps = walked(settings)
    pairs = [(name, t) for name in settings.operations for t in OPERATIONS[name].sweep]
    orders = []
    for number in range(3):
        of_round = [(s.operation, s.outstanding) for s in steps if s.round == number]
        assert sorted(of_round) == sorted(pairs)
        orders.append(of_round)
    assert orders[0] != orders[1] != orders[2] and sorted(pairs) not in orders
    assert walked(settings) == steps
    assert walked(replace(settings, seed=2)) != steps
    assert max_duration_seconds(settings) == pytest.approx(3 * 18 * 0.2)


def test_trials_end_when_the_median_is_precise() -> None:
    until = replace(SETTINGS, operations=("read4k",), outstanding=(1,), until_confidence=0.02)
    # Six runs are the fewest with a 95 % interval of the median.
    assert len(walked(replace(until, rounds=30), [100.0, 100.5])) == 6
    assert len(walked(replace(until, rounds=30), [100.0, 200.0])) == 30
    assert len(walked(replace(until, rounds=3), [100.0, 100.5])) == 3
    assert not is_precise([], 0.02)
    step = TrialSpec(operation="x", outstanding=1, round=0)
    assert not is_precise([trial(step, 0.0)] * 9, 0.02)
    assert not is_precise([trial(step, rate) for rate in (0.0, 0.0, 0.0, 0.0, 1.0, 1.0)], 0.02)


def test_precise_kinds_are_skipped_while_others_continue() -> None:
    until = replace(SETTINGS, operations=("read4k",), until_confidence=0.02, rounds=9)
    done: list[Trial] = []
    for step in trial_order(until, done):
        steady = step.outstanding == 1
        done.append(trial(step, 100.0 if steady else 100.0 + 50 * (step.round % 2)))
    tried = [each.step.outstanding for each in done if each.step]
    assert (tried.count(1), tried.count(4)) == (6, 9)


def test_steady_trials_use_the_smallest_queue_depth_near_the_best() -> None:
    settings = replace(SETTINGS, suite="steady", outstanding=(1, 2, 4, 8), operations=("read4k",))
    rates = {1: 50.0, 2: 96.0, 4: 99.0, 8: 100.0}
    done: list[Trial] = []
    for step in trial_order(settings, done):
        done.append(trial(step, rates[step.outstanding]))
    suites = [(each.step.suite, each.step.outstanding) for each in done if each.step]
    assert sorted(suites[:4]) == [("explore", t) for t in (1, 2, 4, 8)]
    assert suites[4:] == [("steady", 2)] * 3


def test_a_killed_measurement_resumes_with_the_same_trials() -> None:
    settings = replace(SETTINGS, suite="steady", outstanding=(1, 2, 4))
    whole = walked(settings, [10.0, 30.0, 20.0])
    for cut in range(len(whole)):
        done = [trial(s, [10.0, 30.0, 20.0][n % 3]) for n, s in enumerate(whole[:cut])]
        again = []
        for number, step in enumerate(trial_order(settings, done)):
            again.append(step)
            if number >= cut:
                done.append(trial(step, [10.0, 30.0, 20.0][number % 3]))
        assert again == whole


def test_a_single_queue_depth_is_not_explored() -> None:
    steady = replace(SETTINGS, suite="steady", explore_seconds=5.0, seconds=120.0)
    assert max_duration_seconds(steady) == 4 * 5 + 3 * 2 * 120
    assert "to explore" in stopping_rule(steady)
    single = replace(steady, outstanding=(4,))
    assert {step.suite for step in walked(single)} == {"steady"}
    assert max_duration_seconds(single) == 3 * 2 * 120
    assert "to explore" not in stopping_rule(single)


def test_summaries_state_the_wanted_precision() -> None:
    until = replace(SETTINGS, suite="steady", operations=("read4k",), until_confidence=0.02)
    done: list[Trial] = []
    for step in trial_order(replace(until, rounds=30), done):
        done.append(trial(step, 100.0 + len(done) % 2))
    # Exploration need not be precise.
    wanted = {each.name: (each.wanted_share, each.still_needed) for each in summaries(done)}
    assert wanted == {
        "read4k x1 explore": (0.05, 5),
        "read4k x4 explore": (0.05, 5),
        "read4k x1 steady": (0.02, 0),
    }


PRECISIONS = {
    "not estimable": (
        summarise("f", [1e8] * 4),
        "(100 to 100, 4 trials; the 95 % interval of the median needs 2 more trials)",
    ),
    "reached": (
        summarise("f", [99e6, 100e6, 100e6, 100e6, 100e6, 101e6], 0.02),
        "; 95 % interval of the median 99.0 to 101, within 1.0 % of it; goal 2 % reached)",
    ),
    # Four times the precision takes sixteen times the trials.
    "not reached": (
        summarise("f", [92e6, 100e6, 100e6, 100e6, 100e6, 101e6], 0.02),
        "; 95 % interval of the median 92.0 to 101, within 8.0 % of it; goal 2 % needs 90 more "
        "trials)",
    ),
    "out of reach": (
        summarise("f", [1e6, 100e6, 100e6, 100e6, 100e6, 101e6], 0.001),
        ", within 99 % of it; goal 0.1 % needs more than a million trials)",
    ),
    "zero": (summarise("f", [0.0] * 6), "(0 to 0, 6 trials)"),
}


@pytest.mark.parametrize("case", PRECISIONS)
def test_the_precision_of_a_summary_is_shown(case: str) -> None:
    known, told = PRECISIONS[case]
    whole = replace(measurement("m", {}), figures=[known])
    assert summary(whole)[0].endswith(told)
    assert Measurement.from_json(json.loads(json.dumps(whole.to_json()))).figures[0] == replace(
        known,
        interval_bytes_per_second=known.interval_bytes_per_second
        and tuple(known.interval_bytes_per_second),
    )


def test_two_modes_are_shown_before_their_median() -> None:
    between = [
        each * 1e6 for number in range(20) for each in (100 + number / 10, 200 + number / 10)
    ]
    together = [each * 1e6 for number in range(20) for each in (100 + number, 100 + number / 10)]
    told = {}
    for name, rates in {"two": between, "one": together, "few": between[:18]}.items():
        whole = measurement("m", {name: rates})
        told[name] = summary(replace(whole, figures=summaries(whole.trials)))[0]
    two = r"two: 2 modes, 101 MB/s \(50 %\) and 201 MB/s \(50 %\); median 151 MB/s \(100 to 202,"
    assert re.match(two, told["two"]), told["two"]
    assert all(re.match(rf"{name}: [\d.]+ MB/s \(", told[name]) for name in ("one", "few"))


def test_summaries_without_precision_can_be_read() -> None:
    values = measurement("m", {"rw": [1e6]}).to_json()
    values["figures"] = [
        {
            "name": "rw",
            "trials": 1,
            "median_bytes_per_second": 1e6,
            "low_bytes_per_second": 1e6,
            "high_bytes_per_second": 1e6,
        }
    ]
    found = Measurement.from_json(values)
    (known,) = found.figures
    assert isinstance(known, Summary) and known.still_needed is None
    assert summary(found)[0] == "rw: 1.00 MB/s (1.00 to 1.00, 1 trial)"


@pytest.mark.parametrize(
    ("writes", "device_bytes", "rate", "told"),
    [
        (False, 1000, 1e6, None),
        (False, 899, 1e6, "sda read only 899 of 1000 requested bytes"),
        (True, 0, 1e6, "sda wrote only 0 of 1000 requested bytes"),
        # Several devices may be faster than one; their counters prove it.
        (False, 1000, 2 * FASTEST_DEVICE, None),
        # Without counters only the speed decides.
        (True, None, FASTEST_DEVICE, None),
        (True, None, 2 * FASTEST_DEVICE, "40.0 GB/s: no single device exceeds 20 GB/s"),
    ],
)
def test_a_device_that_moved_fewer_bytes_reveals_a_cache(
    writes: bool, device_bytes: int | None, rate: float, told: str | None
) -> None:
    happened = SystemActivity(
        device="sda",
        device_reads=None,
        device_read_bytes=None if writes else device_bytes,
        device_writes=None,
        device_written_bytes=device_bytes if writes else None,
        foreign_cpu_seconds=0.0,
        stolen_cpu_seconds=0.0,
        dirty_bytes_before=None,
        dirty_bytes_after=None,
        queue={},
    )
    assert cache_evidence(happened, writes, 1000, rate) == told


def measured(directory: Path, out: Path, settings: RandomIoSettings = SETTINGS) -> Measurement:
    """Run a complete measurement."""
    *trials, whole = measure_random_io(directory, out, settings, command=["test"])
    assert isinstance(whole, Measurement)
    assert all(isinstance(each, Trial) for each in trials)
    return whole


def test_each_operation_does_what_its_name_says(disk: Path) -> None:
    settings = replace(SETTINGS, operations=tuple(OPERATIONS), outstanding=(2,), rounds=1)
    whole = measured(disk, disk / "out", settings)
    assert Measurement.read(disk / "out" / "measurement.json") == whole
    by_name = {trial.name.partition(" ")[0]: trial for trial in whole.trials}
    assert set(by_name) == set(OPERATIONS)
    for name, operation in OPERATIONS.items():
        reading = by_name[name].reading
        assert reading is not None and reading.bins is not None and reading.series is not None
        assert reading.block_bytes == operation.block_bytes
        assert reading.operation == ("randwrite" if operation.writes else "randread")
        assert reading.concurrency == 2
        latency = reading.latency_seconds
        assert latency.count == sum(count for _, count in reading.bins)
        assert latency.error_bound == 0.001
        assert latency.p50 and latency.p99 and latency.max
        assert latency.p50 <= latency.p99 <= latency.max
        # The series includes the warm-up, so it counts at least as many.
        counted = sum(value for _, value in reading.series) / operation.block_bytes
        assert counted >= latency.count
    assert whole.trials[0].activity is not None
    assert len(whole.scorecard) == 6
    assert [path.name for path in disk.iterdir()] == ["out"]


@pytest.mark.parametrize(("blocking", "engines"), [(True, ["blocking"]), (False, ["io_uring"])])
def test_the_result_says_which_engine(disk: Path, blocking: bool, engines: list[str]) -> None:
    settings = replace(
        SETTINGS, operations=("read4k",), outstanding=(3,), rounds=1, blocking=blocking
    )
    (only,) = measured(disk, disk / "out", settings).trials
    assert only.reading is not None
    assert only.reading.details["engine"] == engines
    assert len(only.each_second) == (3 if blocking else 1)


def test_other_settings_and_other_machines_are_refused(disk: Path) -> None:
    few = replace(SETTINGS, operations=("read4k",), outstanding=(1,), rounds=1)
    measured(disk, disk / "out", few)
    with pytest.raises(
        core.UsageError, match=r"seed: \S+ was started with seed=1, not 2; use the original value"
    ):
        measured(disk, disk / "out", replace(few, seed=2))
    (disk / "other").mkdir()
    elsewhere = rf"directory: \S+ was started with directory={disk}, not {disk}/other;"
    with pytest.raises(core.UsageError, match=elsewhere):
        measured(disk / "other", disk / "out", few)
    begun = json.loads((disk / "out" / "begun.json").read_text())
    begun["environment"]["host"] = "another"
    (disk / "out" / "begun.json").write_text(json.dumps(begun))
    with pytest.raises(core.UsageError, match="trials of machine another, but this machine is"):
        measured(disk, disk / "out", few)
    (disk / "full").mkdir()
    (disk / "full" / "letter").touch()
    with pytest.raises(core.UsageError, match=r"output: \S+ contains other files"):
        measured(disk, disk / "full", few)


def test_a_measurement_resumes_under_another_name_of_its_directory(disk: Path) -> None:
    few = replace(SETTINGS, operations=("read4k",), outstanding=(1,), rounds=1)
    whole = measured(disk, disk / "out", few)
    (disk / "link").symlink_to(disk)
    assert measured(disk / "link", disk / "out", few) == whole


def test_results_without_device_counters_are_not_proved(tonnage: Tonnage, disk: Path) -> None:
    few = ("--operation", "read4k", "--queue-depth", "1", "--repetitions", "1", "--seconds", "0.2")
    with tempfile.TemporaryDirectory(dir="/dev/shm") as memory:
        where = ("--dir", memory, "--file-size", "1MB", "--output", disk / "out")
        said = tonnage.run("measure", "ops", *where, *few, check=True).stdout
    whole = Measurement.read(disk / "out" / "measurement.json")
    (reading,) = whole.readings
    why = reading.details[NOT_PROVED]
    assert re.fullmatch(r"the device \(0:\d+\) has no counters", why)
    assert f"a cache cannot be ruled out: {why}" in said.splitlines()[0]
    assert whole.page_cache.endswith(f"; not proved: {why}")
    assert (whole.scorecard[0].verdict, why in whole.scorecard[0].reason) == ("unknown", True)
    assert f"not proved: {why}" in said


@needs_btrfs
def test_counters_of_all_btrfs_devices_are_read(disk: Path) -> None:
    few = replace(SETTINGS, operations=("write4m",), outstanding=(2,), rounds=1)
    with btrfs(disk, 2) as (mount, names):
        assert block_devices.devices_of(mount) == sorted(names)
        whole = measured(mount, disk / "out", few)
    (only,) = whole.trials
    assert only.activity and only.reading and only.activity.device == ", ".join(sorted(names))
    assert NOT_PROVED not in only.reading.details
    assert only.activity.device_written_bytes is not None
    # With data checksums direct writes go through the page cache, and still reach the device.
    assert only.activity.device_written_bytes >= only.phase.stages[0].bytes
    assert whole.environment and whole.environment.devices[0].size_bytes == 2 * IMAGE_BYTES


def test_a_refused_measurement_leaves_no_directory(disk: Path) -> None:
    too_large = replace(SETTINGS, file_bytes=1 << 60)
    with pytest.raises(core.UsageError, match="bytes free, but the test file needs"):
        measured(disk, disk / "out", too_large)
    assert list(disk.iterdir()) == []


@pytest.mark.parametrize(
    "number", [signal.SIGKILL, pytest.param(signal.SIGINT, marks=pytest.mark.slow)]
)
def test_an_interrupted_sweep_resumes_and_keeps_its_trials(
    tonnage: Tonnage, disk: Path, number: signal.Signals
) -> None:
    out = disk / "out"
    command: list[Any] = [tonnage.path, "measure", "ops", "--dir", disk, "--output", out, "--json"]
    command += ["--operation", "read4k", "write4k", "--queue-depth", "1", "2", "--repetitions", "2"]
    command += ["--seconds", "0.5", "--file-size", "8MB"]
    with started(command) as running:
        running.wait_until(lambda: (out / "trial-00002.json").exists())
        code, said, _ = running.end(number)
    assert code == (130 if number == signal.SIGINT else -9)
    assert said == ""
    kept = {path.name: path.read_bytes() for path in out.glob("trial-*.json")}
    assert 3 <= len(kept) < 8
    again = tonnage.run(*command[1:], check=True)
    found = json.loads(again.stdout)
    steps = [(t["step"]["operation"], t["step"]["outstanding"]) for t in found["trials"]]
    assert sorted(steps) == sorted([(o, t) for o in ("read4k", "write4k") for t in (1, 2)] * 2)
    for name, content in kept.items():
        assert (out / name).read_bytes() == content
    assert [path.name for path in disk.iterdir()] == ["out"]
    assert os.listdir(out).count("measurement.json") == 1
