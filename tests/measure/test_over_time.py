"""Trials at fixed intervals: which come next, gaps, and resuming after a kill."""

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from support.cli.command import Tonnage
from support.cli.processes import started
from support.data.measurements import PHASE, measurement
from tonnage.base import core
from tonnage.base.records import Trial, TrialSpec
from tonnage.measure.over_time import OverTimeSettings, next_trial
from tonnage.measure.trial import environment
from tonnage.measure.trial.session import MeasurementSession, open_session

SETTINGS = OverTimeSettings(
    operations=("read4k", "write4k"),
    outstanding=8,
    every_seconds=10.0,
    for_seconds=50.0,
    seconds=1.0,
    file_bytes=8_000_000,
    blocking=False,
    seed=1,
)


def done(disk: Path, *slots: int) -> MeasurementSession:
    """Trials of these slots, in the order of the operations."""
    kept = MeasurementSession(disk, measurement("made-up", {}))
    for place, slot in enumerate(slots):
        name = SETTINGS.operations[slots[:place].count(slot)]
        step = TrialSpec(operation=name, outstanding=8, round=slot)
        kept.trials.append(
            Trial(
                name="made up",
                bytes_per_second=1.0,
                cpu_seconds_per_byte=0.0,
                warm_up_seconds=0.0,
                rates=[],
                phase=PHASE,
                step=step,
            )
        )
    return kept


@pytest.mark.parametrize(
    ("slots", "passed", "follows"),
    [
        ((), 0.5, (0, "read4k")),
        ((), 23.0, (2, "read4k")),  # Laying out took so long.
        ((0,), 2.0, (0, "write4k")),
        ((0, 0), 4.0, (1, "read4k")),
        ((0,), 14.0, (2, "read4k")),  # Killed in slot 0: slot 1 is under way, it is left out.
        ((0, 0, 1), 14.0, (1, "write4k")),  # Begun, so it is ended.
        ((0, 0), 33.0, (4, "read4k")),
        ((0, 0), 43.0, None),  # The last slot has started.
        ((0, 0, 4), 43.0, (4, "write4k")),
        ((0, 0, 4, 4), 43.0, None),
        ((0, 0), 1e9, None),
        ((0, 0), -5.0, (1, "read4k")),  # The clock was set back.
    ],
)
def test_slots_that_were_missed_stay_gaps(
    disk: Path, slots: tuple[int, ...], passed: float, follows: tuple[int, str] | None
) -> None:
    step = next_trial(SETTINGS, done(disk, *slots), passed)
    assert (step and (step.round, step.operation)) == follows


@pytest.mark.slow
def test_a_killed_measurement_resumes_with_a_gap(tonnage: Tonnage, disk: Path) -> None:
    out = disk / "out"
    command: list[Any] = [tonnage.path, "measure", "over-time", "--dir", disk, "--output", out]
    command += ["--json", "--operation", "read4k", "write4k", "--every", "1s", "--for", "6s"]
    command += ["--seconds", "0.2", "--file-size", "1MB"]
    with started(command) as running:
        running.wait_until(lambda: (out / "trial-00002.json").exists())
        running.end(signal.SIGKILL)
    kept = {path.name: path.read_bytes() for path in out.glob("trial-*.json")}
    found = json.loads(tonnage.run(*command[1:], check=True).stdout)
    steps = [(trial["step"]["round"], trial["step"]["operation"]) for trial in found["trials"]]
    assert len(set(steps)) == len(steps) >= len(kept)
    assert steps == sorted(steps)
    assert all(slot < 6 for slot, _ in steps)
    for name, content in kept.items():
        assert (out / name).read_bytes() == content
    assert [path.name for path in disk.iterdir()] == ["out"]


def test_another_directory_is_refused(tonnage: Tonnage, disk: Path) -> None:
    (disk / "other").mkdir()
    quick = ("--operation", "read4k", "--seconds", "0.2", "--every", "1s", "--for", "1s")
    where = ("--output", disk / "out", "--file-size", "1MB")
    tonnage.run("measure", "over-time", "--dir", disk, *where, *quick, check=True)
    said = tonnage.run("measure", "over-time", "--dir", disk / "other", *where, *quick)
    assert said.returncode == 2
    assert f"--dir: {disk}/out was started with directory={disk}, not {disk}/other;" in said.stderr


def test_a_measurement_without_trials_can_be_resumed(disk: Path) -> None:
    """Every slot may be missed; the next command still knows the settings."""
    header: dict[str, Any] = {
        "command": [],
        "environment": environment.capture([disk]),
        "stopping_rule": "",
        "page_cache": "",
    }
    with open_session(disk / "out", "over-time", {"directory": str(disk)}, **header) as none:
        assert none.finish().trials == []
    with open_session(disk / "out", "over-time", {"directory": str(disk)}, **header) as again:
        assert again.header.id == none.header.id
    with (
        pytest.raises(core.UsageError, match=r"directory: .* was started with"),
        open_session(disk / "out", "over-time", {"directory": "/elsewhere"}, **header),
    ):
        pass


def test_slots_too_short_for_their_trials_are_refused(tonnage: Tonnage, disk: Path) -> None:
    said = tonnage.run("measure", "over-time", "--dir", disk, "--every", "20s", "--for", "1h")
    assert said.returncode == 2
    assert "--every 20s is too short for 5 trials of 5s; raise --every" in said.stderr
