"""Workspaces: a locked directory, removed afterwards, and never another command's."""

import fcntl
import os
import shutil
from pathlib import Path

import pytest

from tonnage.base.core import UsageError, workspace

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


def _locked_by_another(room: Path) -> None:
    raise BlockingIOError


def _removed(room: Path) -> None:
    shutil.rmtree(room)


@pytest.mark.parametrize("happens", [_locked_by_another, _removed])
def test_a_new_workspace_removed_by_another_command_is_refused(
    disk: Path, monkeypatch: pytest.MonkeyPatch, happens: object
) -> None:
    # Between creation and locking, the only time in which another command can do that.
    room = disk / f"{PREFIX}{os.getpid()}"
    monkeypatch.setattr(fcntl, "flock", lambda *_: happens(room))  # type: ignore[operator]
    with (
        pytest.raises(
            UsageError, match=r"dir: \S+: another command is cleaning up there; try again"
        ),
        workspace("dir", disk, PREFIX),
    ):
        raise AssertionError("the workspace was used")
