"""Control groups: where they are mounted, what is in them, and how one is made and goes again."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from tonnage.base.core import RunError
from tonnage.base.system.undo_journal import Change, Command, Undo

PATIENCE_SECONDS = 30.0
"""How long processes may take to end: one that waits for a device ends when that has answered."""
PAUSE_SECONDS = 0.01


def group_dir(mounts: str, kind: str, controller: str, group: str) -> Path | None:
    """Where a group of a hierarchy is, if that is mounted.

    Args:
        mounts: As ``/proc/self/mountinfo`` has it.
        kind: Of the file system: ``cgroup`` or ``cgroup2``.
        controller: Which one the hierarchy has; empty for any.
        group: Its path within the hierarchy.
    """
    for line in mounts.splitlines():
        fields, _, source = line.partition(" - ")
        found, _, options = source.split(" ", 2)
        if found != kind or (controller and controller not in options.split(",")):
            continue
        root, point = fields.split()[3:5]
        inside = os.path.relpath(group, root)
        # A group outside of what is mounted cannot be seen: then its top is the nearest.
        return Path(point) if inside.startswith("..") else Path(point) / inside
    return None


def processes_in(directories: Iterable[Path]) -> set[int]:
    """The processes in these groups, and in groups that were made in them."""
    found: set[int] = set()
    for directory in directories:
        for entrance in directory.rglob("cgroup.procs"):
            with suppress(OSError):  # It is gone meanwhile.
                found |= set(map(int, entrance.read_text().split()))
    return found


def create_group(directory: Path) -> Change:
    """A group, which goes with all groups that were made in it, once nothing is in them."""
    path = str(directory)
    undo = Undo(
        commands=(("find", path, "-depth", "-type", "d", "-delete"),),
        question=("stat", "--format=%F", path),
        answers=("directory",),
    )
    return Change(("mkdir", path), (undo,))


def write_setting(file: Path, text: str) -> Command:
    """What writes a line to one of a group's files."""
    return ("sh", "-c", 'printf "%s\\n" "$1" > "$2"', "sh", text, str(file))


def kill_all(directories: Iterable[Path], spared: Iterable[int] = ()) -> None:
    """Kills all that is in these groups, and waits until it is gone.

    Args:
        directories: The groups.
        spared: Processes that stay.

    Raises:
        RunError: Something would not go.
    """
    groups, stay = list(directories), set(spared)
    deadline = time.monotonic() + PATIENCE_SECONDS
    while left := processes_in(groups) - stay:
        if time.monotonic() > deadline:
            raise RunError(
                f"processes {sorted(left)} do not end: see what they wait for, try again"
            )
        for process in left:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        time.sleep(PAUSE_SECONDS)
