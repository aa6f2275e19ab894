"""`study`: the whole loop, its files and their order, what is left of it when it is cut short."""

import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from support.cli import processes
from support.cli.command import Tonnage
from support.cli.processes import RunningCommand, patched_command, started
from support.data.copies import replace
from support.stores.disk import ROOT
from tonnage.base import core
from tonnage.base.records import Measurement, Prediction, RunRecord, Study, read_table
from tonnage.study.local import LocalStudySettings, run_study, standalone_measure_command

pytestmark = pytest.mark.slow

FILES = {
    *("study.json", "prediction.json", "run.json", "report.html", "measurements"),
    *("timeline.parquet", "devices.parquet", "host.parquet"),
}
STEPS = [
    *("begun", "generated", "disks measured", "cores measured", "predicted", "sorted", "validated"),
    *("disks measured", "compared", "explained", "reported"),
]
QUICK = {
    **{"TRIAL_SECONDS": [0.1, 0.1], "CPU_SECONDS": 0.1, "CPU_ROUNDS": 1},
    **{"ROUNDS_BEFORE": 1, "ROUNDS_AFTER": 1, "REHEARSALS": 1},
}
"""Trials too short to say anything, for studies whose figures are of no concern."""
SIZE = ("--data", "20MB", "--memory", "64MiB")
SLOW = {
    "rules": [
        {
            "operation": "write",
            "path_contains": "/output/",
            "effect": {"stall": {"milliseconds": 500}},
        }
    ]
}


def _made(directory: Path) -> Path:
    directory.mkdir(exist_ok=True)
    return directory


def _sorting(running: RunningCommand, data: Path) -> Callable[[], bool]:
    """Whether a study is in the second pass of its sort."""
    parts = f".tonnage-study-{running.pid}/output/.tonnage-unfinished-*/part-*"
    return lambda: bool(list(data.glob(parts)))


@pytest.mark.real
def test_a_study_does_the_whole_loop(tonnage: Tonnage, disk: Path) -> None:
    data, out = _made(disk / "data"), disk / "study"
    args = ("study", "--data", "50MB", "--memory", "64MB", "--dir", data, "--output", out, "--json")
    said = tonnage.run(*args, check=True)
    document = json.loads(said.stdout)
    study = Study.from_json(document)
    assert study == Study.read(out / "study.json")
    _check_figures(document)
    assert [step for step in study.steps if step != "rehearsed"] == STEPS
    assert study.report == str(out / "report.html")
    assert study.findings
    assert study.command == ["tonnage", *map(str, args)]

    assert study.run and study.run.bytes == 50_000_000
    assert study.validation and study.validation.matches_input
    assert (study.validation.unordered, study.validation.records) == (0, 500_000)
    assert study.validation.checksum == study.run.checksum

    # All of it is there, and nothing else: no half-written file, no data.
    assert _names(out) == FILES
    assert list(data.iterdir()) == []
    assert study.run == RunRecord.read(out / "run.json")
    assert study.predicted == Prediction.read(out / "prediction.json")
    _check_measurements(study, out, count=3)
    _check_order(study, out)
    _check_tables(study, out)
    assert (out / "report.html").read_text().lstrip().lower().startswith("<!doctype html>")
    for told in ("Generating", "Measuring", "Predicted", "Sorted", "Validating"):
        assert told in said.stderr


def _check_figures(document: dict[str, Any]) -> None:
    """The figures that are promised, each what it says it is."""
    predicted, actual, limit = (document[name] for name in ("predicted", "actual", "limit"))
    assert 0 < predicted["low_seconds"] <= predicted["seconds"] <= predicted["high_seconds"]
    assert [phase["name"] for phase in predicted["phases"]] == ["pass_one", "pass_two"]
    parts = [*(phase["seconds"] for phase in predicted["phases"]), predicted["other_seconds"]]
    assert predicted["seconds"] == pytest.approx(sum(parts))
    assert [phase["name"] for phase in actual["phases"]] == ["sample", "pass_one", "pass_two"]
    assert actual["seconds"] == document["run"]["seconds"] > 0
    error = abs(predicted["seconds"] - actual["seconds"]) / actual["seconds"]
    assert document["error_fraction"] == pytest.approx(error)
    assert limit["seconds"] > 0
    assert limit["efficiency"] == pytest.approx(limit["seconds"] / actual["seconds"])


def _names(out: Path) -> set[str]:
    """What a study wrote, but for its rehearsals, which are runs."""
    rehearsals = set(out.glob("rehearsal-*.json"))
    assert all(RunRecord.read(path).job == "sort" for path in rehearsals)
    return {path.name for path in set(out.iterdir()) - rehearsals}


def _check_measurements(study: Study, out: Path, count: int) -> None:
    """Each measurement has its file, and those that are cited are there."""
    found = {path.stem: Measurement.read(path) for path in (out / "measurements").iterdir()}
    assert found == {each.id: each for each in study.measurements}
    assert len(found) == count
    assert study.predicted and study.limit
    terms = [term for phase in study.predicted.phases for term in phase.terms]
    assert {cited for term in terms for cited in term.measurements} < set(found)
    assert set(study.limit.measurements) < set(found)


def _check_order(study: Study, out: Path) -> None:
    """What was predicted had been written before the sort began."""
    assert study.run and study.predicted
    written = [
        (out / name).stat().st_mtime_ns for name in ("prediction.json", "run.json", "study.json")
    ]
    assert written == sorted(written) and len(set(written)) == 3
    began = datetime.fromisoformat(study.run.began_at)
    assert datetime.fromisoformat(study.predicted.made_at) <= began
    assert written[0] / 1e9 < began.timestamp() + 1  # Recorded in whole seconds.


def _check_tables(study: Study, out: Path) -> None:
    """The tables cover the sort."""
    assert study.run
    timeline = read_table(out / study.files["timeline"])
    assert set(timeline["phase"]) == {"sample", "pass_one", "pass_two"}
    last = {
        stage: moved
        for phase, stage, moved in zip(
            timeline["phase"], timeline["stage"], timeline["bytes"], strict=True
        )
        if phase == "pass_two"
    }
    assert last == {"read": study.run.bytes, "sort": study.run.bytes, "write": study.run.bytes}
    for name in ("devices", "host"):
        columns = read_table(out / study.files[name])
        assert len({len(values) for values in columns.values()}) == 1
        assert columns["seconds"] == sorted(columns["seconds"])
    memory = read_table(out / study.files["host"])["process_memory_bytes"]
    # The kernel counts pages of each core in batches.
    assert 0 < max(memory) <= study.run.peak_memory_bytes + (1 << 20)


def test_what_cannot_be_studied_is_refused_at_once(tonnage: Tonnage, disk: Path) -> None:
    earlier = disk / "earlier"
    earlier.mkdir()
    (earlier / "study.json").write_text("{}")
    data = _made(disk / "data")
    for flags, told in (
        (("--data", "50MB", "--output", earlier), "contains an earlier study"),
        (("--data", "50MB", "--memory", "9KB", "--output", disk / "new"), "--memory"),
        (("--data", "999TB", "--output", disk / "new"), "bytes free"),
    ):
        done = tonnage.run("study", "--dir", data, *flags)
        assert done.returncode == 2
        assert told in done.stderr
        assert done.stderr.count("\n") == 1
    assert not (disk / "new").exists()
    assert (earlier / "study.json").read_text() == "{}"
    assert list(data.iterdir()) == []


@pytest.mark.parametrize(
    ("steps", "told"),
    [
        (["begun", "disks measured"], r"which is not finished \(its last step: disks measured\)"),
        ([*STEPS], "which is finished"),
        (None, "which this version cannot read"),
    ],
)
def test_an_earlier_study_is_kept_and_told_of(
    disk: Path, steps: list[str] | None, told: str
) -> None:
    out = disk / "earlier"
    if steps is None:
        out.mkdir()
        (out / "study.json").write_text("{}")
    else:
        kept = Study.read(ROOT / "tests" / "support" / "recorded" / "artifacts" / "study-1.json")
        replace(kept, steps=steps).write(out / "study.json")
    before = (out / "study.json").read_bytes()
    settings = LocalStudySettings(20_000_000, 64 << 20, (disk,), out)
    with pytest.raises(
        core.UsageError, match=rf"output: \S+ .*, {told}; use another .* remove that"
    ):
        run_study(settings, ["test"])
    assert (out / "study.json").read_bytes() == before


def test_a_directory_that_is_not_there_is_not_made(disk: Path) -> None:
    with pytest.raises(core.UsageError, match=r"dir: \S+/none: No such file or directory"):
        run_study(
            LocalStudySettings(20_000_000, 64 << 20, (disk / "none",), disk / "out"), ["test"]
        )
    assert list(disk.iterdir()) == []


def test_a_study_asks_for_the_room_that_it_needs(
    disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, int]] = []

    def ask(wanted: Iterable[tuple[Path, int]], what: str) -> None:
        asked.extend((path.parent.name, size) for path, size in wanted)
        raise core.UsageError(f"{what} is refused")

    monkeypatch.setattr(core, "require_free_space", ask)
    size = 6_000_000_000
    for names, needed in (
        # Input, output and scratch; more than the disks' benchmark needs, or a rehearsal.
        ("a", {"a": 3 * size}),
        ("ab", {"a": 2 * size, "b": size}),
        ("abc", {"a": size, "b": size, "c": size}),
        ("abcd", {"a": size, "b": size, "c": size // 2, "d": size // 2}),
    ):
        asked.clear()
        directories = tuple(_made(disk / name) for name in names)
        with pytest.raises(core.UsageError, match="the study is refused"):
            run_study(LocalStudySettings(size, 1 << 30, directories, disk / "out"), ["test"])
        sums = {name: sum(each for at, each in asked if at == name) for name in names}
        assert sums == needed
    assert not (disk / "out").exists()


@pytest.mark.parametrize(
    ("names", "turned", "again"),
    [
        ("a", False, "a"),
        ("ab", False, "a b"),
        ("ab", True, "b a"),
        ("abc", False, "a b c"),
        ("abc", True, None),  # It would read c and a.
        ("abcd", True, "c d a b"),
    ],
)
def test_measuring_alone_is_told_only_where_it_can_be(
    names: str, turned: bool, again: str | None
) -> None:
    settings = LocalStudySettings(10**9, 64 << 20, tuple(map(Path, names)), Path("out"))
    told = standalone_measure_command(settings, 4, 1.5, 10**8, turned=turned)
    flags = "--repetitions 4 --seconds 1.5 --size 100000000 --memory 67108864"
    modes = "--mode rw ro rw wo headroom"
    expected = again and f"tonnage measure disk --dir {again} {modes} {flags}".split()
    assert told == expected


def test_memory_is_kept(tonnage: Tonnage, disk: Path) -> None:
    memory, size = 64 << 20, 200_000_000
    where = ("--dir", _made(disk / "data"), "--output", disk / "study")
    sizes = (f"--memory={memory}", f"--data={size}")
    used = processes.run_with_usage([tonnage.path, "study", *where, *sizes, "--json"])
    assert used.returncode == 0
    assert json.loads(used.out)["run"]["bytes"] == size > 2 * memory
    assert used.peak_memory_bytes <= memory + processes.MAX_OVERHEAD_BYTES


def test_of_two_directories_one_holds_data_and_one_scratch(disk: Path) -> None:
    out = disk / "study"
    one, two = _made(disk / "one"), _made(disk / "two")
    args = ("study", *SIZE, "--dir", one, two, "--output", out, "--json")
    done = subprocess.run(
        patched_command(QUICK, *args), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    _check_figures(document)
    directories = document["settings"]["directories"]
    assert directories == {"data": [str(disk / "one")], "scratch": [str(disk / "two")]}
    study = Study.from_json(document)
    assert study.run
    first, second = (f"{disk}/{name}/.tonnage-study-" for name in ("one", "two"))
    assert study.run.settings["inputs"][0].startswith(first)
    assert study.run.settings["output"][0].startswith(first)
    assert study.run.settings["scratch"][0].startswith(second)
    # Each pass's way was measured, before and after, and predicted from its own measurement.
    _check_measurements(study, out, count=5)
    ways = [each.settings["read"][0] for each in study.measurements if each.kind == "disk"]
    assert [way.startswith(first) for way in ways] == [True, False, True, False]
    # And can be measured again by itself, in the directories that stay.
    commands = [each.command for each in study.measurements if each.kind == "disk"]
    ways_again = [[str(one), str(two)], [str(two), str(one)]] * 2
    assert [command[4:6] for command in commands] == ways_again
    again = subprocess.run(
        [Tonnage().path, *commands[1][1:], "--output", disk / "again", "--json"],
        capture_output=True,
        text=True,
        check=True,
    )
    repeated = Measurement.from_json(json.loads(again.stdout))
    measured = [each for each in study.measurements if each.kind == "disk"][1]
    assert [each.name for each in repeated.trials] == [each.name for each in measured.trials]
    different = {"read", "write"}
    for key in set(measured.settings) - different:
        assert repeated.settings[key] == measured.settings[key]
    (cores,) = [each for each in study.measurements if each.kind == "cpu"]
    assert cores.command == study.command
    assert list((disk / "one").iterdir()) == list((disk / "two").iterdir()) == []


@pytest.mark.parametrize(
    ("number", "exit_code"),
    [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -9)],
    ids=["SIGINT", "SIGTERM", "SIGKILL"],
)
def test_a_study_that_is_cut_short_has_what_was_done(
    disk: Path, number: signal.Signals, exit_code: int
) -> None:
    data, out = _made(disk / "data"), disk / "study"
    args = ("study", *SIZE, "--dir", data, "--output", out, "--json")
    with started(patched_command({**QUICK, "faults": SLOW}, *args)) as running:
        running.wait_until(_sorting(running, data))
        code, printed, err = running.end(number)
    assert (code, printed) == (exit_code, "")

    study = Study.read(out / "study.json")
    assert [step for step in study.steps if step != "rehearsed"] == STEPS[: STEPS.index("sorted")]
    assert study.predicted == Prediction.read(out / "prediction.json")
    found = {path.stem: Measurement.read(path) for path in (out / "measurements").iterdir()}
    assert found == {each.id: each for each in study.measurements}
    assert study.run is None
    assert _names(out) == {"study.json", "prediction.json", "measurements"}
    if number == signal.SIGKILL:
        assert os.listdir(data) == [f".tonnage-study-{running.pid}"]
    else:
        assert err.splitlines()[-1].startswith("tonnage: interrupted; ")
        assert list(data.iterdir()) == []


def test_a_study_removes_what_killed_ones_left_and_no_other(disk: Path) -> None:
    data = _made(disk / "data")
    killed, living, last = (
        ("study", *SIZE, "--dir", data, "--output", disk / name)
        for name in ("killed", "living", "last")
    )
    slow = {**QUICK, "faults": SLOW}
    with started(patched_command(slow, *killed)) as running:
        running.wait_until(_sorting(running, data))
        running.end(signal.SIGKILL)
    (data / "own").write_bytes(b"The reader's own file.")
    with started(patched_command(slow, *living)) as running:
        running.wait_until(_sorting(running, data))
        running.process.send_signal(signal.SIGSTOP)  # It has all the time it needs.
        locked = f".tonnage-study-{running.pid}"
        assert sorted(os.listdir(data)) == [locked, "own"]
        done = subprocess.run(
            patched_command(QUICK, *last), capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        assert f"Report: {disk}/last/report.html\n" in done.stdout
        assert sorted(os.listdir(data)) == [locked, "own"]
        assert list((data / locked).iterdir())
