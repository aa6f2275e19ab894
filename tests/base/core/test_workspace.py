"""Workspaces: a locked directory, removed afterwards, and never another command's."""

import fcntl
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tonnage.base.core import workspace

PREFIX = ".tonnage-test-"


def test_a_workspace_is_removed_afterwards_and_leftovers_of_killed_commands_before(
    disk: Path,
) -> None:
    for number in (1, 2):
        (disk / f"{PREFIX}{number}" / "data").mkdir(parents=True)
    lock = os.open(disk / f"{PREFIX}2", os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)  # Its command is still running.
    with workspace("dir", disk, PREFIX) as room:
        (room / "file").write_bytes(b"data")
        assert set(disk.iterdir()) == {room, disk / f"{PREFIX}2"}
    os.close(lock)
    assert list(disk.iterdir()) == [disk / f"{PREFIX}2"]


def test_a_new_workspace_that_another_command_removes_is_made_again(
    disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Between creation and locking, the only time in which another command can do that.
    room = disk / f"{PREFIX}{os.getpid()}"
    removed = []

    def flock(handle: int, how: int, lock: Callable[[int, int], None] = fcntl.flock) -> None:
        if not removed:
            shutil.rmtree(room)
            removed.append(room)
        lock(handle, how)

    monkeypatch.setattr(fcntl, "flock", flock)
    with workspace("dir", disk, PREFIX) as made:
        assert made == room.resolve() and removed == [room]
        os.close(os.open(room, os.O_RDONLY))
    assert list(disk.iterdir()) == []
