"""Jobs of the core: one that nobody holds any more ends and cleans up."""

import json
import time
from pathlib import Path

import pytest

from tonnage import _core
from tonnage.base import core

RECORDS = 30_000_000
"""Some seconds' worth of writing."""


def config(file: Path) -> dict[str, object]:
    return {
        "records": RECORDS,
        "start": "0",
        "encoding": "binary",
        "skew": False,
        "files": [str(file)],
    }


def started_job(file: Path) -> _core.Job:
    job = _core.Job("gensort", json.dumps(config(file)))
    while not unfinished(file).exists():
        time.sleep(0.001)
    return job


def unfinished(file: Path) -> Path:
    return file.with_name(f".{file.name}.unfinished")


def test_a_lost_job_is_cancelled_and_cleans_up(disk: Path) -> None:
    """As a signal loses it that comes before Python has stored it."""
    job = started_job(disk / "in")
    assert not job.wait(0.0)
    del job
    assert list(disk.iterdir()) == []


def test_a_job_whose_result_was_asked_for_is_not_waited_for_again(disk: Path) -> None:
    job = started_job(disk / "in")
    job.cancel()
    with pytest.raises(core.Cancelled):
        job.result()
    with pytest.raises(RuntimeError, match="already returned"):
        job.result()
    del job
    assert list(disk.iterdir()) == []


def test_an_interrupt_between_start_and_wait_leaves_nothing(
    disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = _core.Job

    def start(name: str, text: str) -> _core.Job:
        job = made(name, text)
        while not unfinished(disk / "in").exists():
            time.sleep(0.001)
        assert not job.wait(0.0)
        raise KeyboardInterrupt  # The caller never gets it.

    monkeypatch.setattr(_core, "Job", start)
    with pytest.raises(KeyboardInterrupt):
        core.run("gensort", config(disk / "in"))
    assert list(disk.iterdir()) == []
