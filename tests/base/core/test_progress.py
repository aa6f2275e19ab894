"""Progress: what is shown of a job, and that every long step shows it."""

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tonnage.base import core
from tonnage.base.core import core_job, progress
from tonnage.measure.disk import DiskSettings, run_disk_rounds
from tonnage.measure.trial import environment
from tonnage.run.sort.gensort import generate
from tonnage.run.sort.local import Layout, sort
from tonnage.study.local import LocalStudySettings, run_study

SHOWN = re.compile(r"(\w+): (\d+)%, (?:\d+ MB/s,|at most) \d+ s left")
MB = 1_000_000


class Clock:
    """A clock that a test sets."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        monkeypatch.setattr(progress.time, "monotonic", lambda: self.now)

    def show(self, shown: core.Progress, *moments: tuple[float, int]) -> None:
        """Report the bytes done at each moment."""
        with shown:
            for self.now, done in moments:
                shown(done)


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Show every poll of a job, and poll often."""
    monkeypatch.setattr(progress, "SHOW_AFTER_SECONDS", 0.0)
    monkeypatch.setattr(progress, "PLAIN_EVERY_SECONDS", 0.0)
    monkeypatch.setattr(core_job, "POLL_SECONDS", 0.001)


def test_bytes_are_shown_with_their_rate(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    moments = [(0.5, 0), (2.0, 0), (3.0, 200 * MB), (8.0, 400 * MB), (16.0, 900 * MB)]
    Clock(monkeypatch).show(core.Progress("sorting", 800 * MB), *moments)
    assert capsys.readouterr().err.splitlines() == [
        "sorting: time left unknown",
        "sorting: 50%, 50 MB/s, 8 s left",
        "sorting: 100%, 56 MB/s, 0 s left",
    ]


def test_a_fixed_time_is_shown_by_the_clock(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # Whatever amount is moved.
    moments = [(2.0, 0), (8.0, 900 * MB), (15.0, 5 * MB), (25.0, 0)]
    Clock(monkeypatch).show(core.Progress("measuring", total_seconds=20.0), *moments)
    assert capsys.readouterr().err.splitlines() == [
        "measuring: 10%, at most 18 s left",
        "measuring: 40%, at most 12 s left",
        "measuring: 75%, at most 5 s left",
        "measuring: 100%, at most 0 s left",
    ]


def test_the_fixed_time_starts_when_the_bytes_are_moved(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # 5 of 10 s of moving are over; then 30 s follow.
    moments = [(5.0, 50 * MB), (10.0, 99 * MB), (20.0, 200 * MB)]
    Clock(monkeypatch).show(core.Progress("measuring", 100 * MB, 30.0), *moments)
    first, _, last = capsys.readouterr().err.splitlines()
    assert first == "measuring: 12%, at most 35 s left"
    assert last == "measuring: 50%, at most 20 s left"


def test_items_are_counted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock, shown = Clock(monkeypatch), core.Progress("making")
    with shown:
        for clock.now, done in ((0.5, 1), (2.0, 0), (7.0, 1), (14.0, 2), (30.0, 4)):
            shown(done, 4)
    assert capsys.readouterr().err.splitlines() == [
        "making: time left unknown",
        "making: 25%, 1 of 4, 21 s left",
        "making: 50%, 2 of 4, 14 s left",
        "making: 100%, 4 of 4, 0 s left",
    ]


def test_time_left_covers_all_rounds(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = Clock(monkeypatch)
    with core.Progress("reducing") as shown:
        clock.now = 3.0  # Time spent before the first round.
        for number in range(5, 11):
            for done in (0, 50):
                shown.update_round(number, 24, done * MB, 100 * MB)
                clock.now += 0.6
    assert capsys.readouterr().err.splitlines() == [
        "reducing, round 6 of 24 at most: 5%, 83 MB/s, 23 s left",
        "reducing, round 10 of 24 at most: 28%, 83 MB/s, 17 s left",
    ]


def test_time_left_covers_one_round_if_their_number_is_unknown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = Clock(monkeypatch)
    moments = [(0.0, 1, 0), (2.0, 1, 40), (8.0, 2, 0), (18.0, 2, 50)]
    with core.Progress("reducing") as shown:
        for clock.now, number, done in moments:
            shown.update_round(number, None, done * MB, 100 * MB)
    assert capsys.readouterr().err.splitlines() == [
        "reducing, round 1: 40%, 20 MB/s, 3 s left of this round",
        "reducing, round 2: time left unknown",
        "reducing, round 2: 50%, 8 MB/s, 10 s left of this round",
    ]


def test_a_bar_on_the_terminal_leaves_redirected_output_alone() -> None:
    shown = """
from tonnage.base.core import progress
progress.SHOW_AFTER_SECONDS = 0
with progress.Progress("measuring", 100) as bar:
    bar(10)
    print("a document", flush=True)
"""
    terminal, end = pty.openpty()
    try:
        done = subprocess.run([sys.executable, "-c", shown], stdout=subprocess.PIPE, stderr=end)
        assert b"measuring" in os.read(terminal, 4096)
    finally:
        os.close(end)
        os.close(terminal)
    assert (done.returncode, done.stdout) == (0, b"a document\n")


def test_measuring_shows_progress_from_start_to_end(
    always: None, disk: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    modes, seconds, size = ("headroom", "rw"), 0.5, 4 * MB
    with core.Progress("measuring", size, 2 * len(modes) * seconds) as shown:
        run_disk_rounds(
            DiskSettings(
                read=(disk,),
                write=(disk,),
                modes=modes,
                rounds=2,
                seconds=seconds,
                size_bytes=size,
                memory_bytes=64 << 20,
            ),
            environment=environment.capture([disk]),
            command=["test"],
            on_progress=shown,
        )
    lines = capsys.readouterr().err.splitlines()
    found = [SHOWN.fullmatch(line) for line in lines if not line.endswith("unknown")]
    shares = [int(each[2]) for each in found if each]
    assert len(shares) == len(found) > 2
    assert shares[0] < 100 and len(set(shares)) > 2


def test_a_study_shows_every_long_step(
    always: None, disk: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("tonnage.study.local.TRIAL_SECONDS", (0.1, 0.1))
    monkeypatch.setattr("tonnage.study.local.REHEARSALS", 1)
    memory, out = 64 << 20, disk / "study"
    run_study(LocalStudySettings(20 * MB, memory, (disk,), out), ["test"])
    steps: dict[str, set[str]] = {}
    step = ""
    for line in capsys.readouterr().err.splitlines():
        label, colon, _ = line.partition(": ")
        if colon and label in ("generating", "measuring", "sorting", "validating"):
            steps[step].add(label)
        else:
            step = line.split()[0]
            steps.setdefault(step, set())
    assert steps.pop("Measuring") == {"measuring"}
    assert {name: shown for name, shown in steps.items() if shown} == {
        "Generating": {"generating"},
        "Rehearsing": {"generating", "sorting"},
        "Sorting": {"sorting"},
        "Validating": {"validating"},
    }


def test_a_sort_counts_its_input_once(always: None, disk: Path) -> None:
    generate(200_000, [disk / "in"])
    done: list[int] = []
    sort(
        [disk / "in"],
        [disk / "out"],
        [disk / "scratch"],
        layout=Layout(),
        memory_bytes=64 << 20,
        environment=environment.capture([disk]),
        began_at="now",
        command=["test"],
        on_progress=done.append,
    )
    # Only one pass counts; the rest is the key sample.
    assert 15 * MB < max(done) < 25 * MB
    assert done == sorted(done)
