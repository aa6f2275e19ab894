"""Workspaces: a locked directory that goes again, and never another command's."""

import fcntl
import os
import shutil
from pathlib import Path

import pytest

from tonnage.base.core import UsageError, workspace

PREFIX = ".tonnage-test-"


def test_it_is_there_while_it_is_used_and_what_killed_ones_left_is_not(disk: Path) -> None:
    for number in (1, 2):
        (disk / f"{PREFIX}{number}" / "data").mkdir(parents=True)
    lock = os.open(disk / f"{PREFIX}2", os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)  # This one lives.
    with workspace("--dir", disk, PREFIX) as room:
        (room / "file").write_bytes(b"data")
        assert set(disk.iterdir()) == {room, disk / f"{PREFIX}2"}
    os.close(lock)
    assert list(disk.iterdir()) == [disk / f"{PREFIX}2"]


def _held_by_another(room: Path) -> None:
    raise BlockingIOError


def _gone(room: Path) -> None:
    shutil.rmtree(room)


@pytest.mark.parametrize("happens", [_held_by_another, _gone])
def test_one_that_another_command_took_for_left_is_not_used(
    disk: Path, monkeypatch: pytest.MonkeyPatch, happens: object
) -> None:
    # Between making it and locking it, which is as long as others have.
    room = disk / f"{PREFIX}{os.getpid()}"
    monkeypatch.setattr(fcntl, "flock", lambda *_: happens(room))  # type: ignore[operator]
    with (
        pytest.raises(
            UsageError, match=r"--dir \S+: another command is cleaning up there; try again"
        ),
        workspace("--dir", disk, PREFIX),
    ):
        raise AssertionError("it is used")
