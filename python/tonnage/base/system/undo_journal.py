"""Changes of the machine, each undone whatever happens: what undoes it is written down before.

A way to undo is data: commands, and a question that tells whether they are needed, which is another
command and its answers if so. What was never done, or is undone, or is not ours, answers otherwise,
so undoing is harmless at any time, again, and by another process. It is the undo half of a
write-ahead log (Mohan et al., ARIES): the journal knows of a change before the machine does.

    ROOM/journal.json    ways to undo what stands, oldest first
    ROOM/...             what steps make there, as mount points

The room is locked by the process and by each command that it starts, so one that outlives a killed
process is not overtaken, and two at once do not get into each other's way.
"""

from __future__ import annotations

import dataclasses
import fcntl
import json
import os
import shlex
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tonnage.base.core import RunError, UsageError
from tonnage.base.records import write_atomically

ATTEMPTS = 40
PAUSE_SECONDS = 0.25
"""Between them: what a killed process had open is closed a moment after it is gone."""
LOCK_PAUSE_SECONDS = 0.05

ENVIRONMENT = {
    "LC_ALL": "C",
    "BLKID_FILE": "/dev/null",
    "LVM_SUPPRESS_FD_WARNINGS": "1",
}
"""Of commands: no cache of devices that go again, no warning that they hold the lock."""

Command = tuple[str, ...]
Execute = Callable[[Command], str]
"""Runs a command and gives what it printed; raises `RunError`."""


@dataclass(frozen=True)
class Undo:
    """Commands that undo something while a question has one of these answers."""

    commands: tuple[Command, ...]
    question: Command
    answers: tuple[str, ...]


@dataclass(frozen=True)
class Change:
    """A command that changes the machine, and all that undoes it, to be undone last to first."""

    command: Command
    undos: tuple[Undo, ...] = ()


class UndoJournal:
    """What stands and how it is undone.

    ``owner`` is the command that undoes first what a killed one left, for messages.
    """

    def __init__(self, file: Path, execute: Execute, owner: str) -> None:
        self._file = file
        self.execute = execute
        self._owner = owner
        self._undos = _read(file)

    def apply(self, steps: Iterable[Change]) -> None:
        """Does ``steps``, which stand until they are undone, whoever does that.

        A step is asked for when the one before it is done, so it may depend on that.

        Raises:
            RunError: A step failed; those before it stand.
        """
        for step in steps:
            self._write([*self._undos, *step.undos])
            self.execute(step.command)

    @contextmanager
    def applied(self, steps: Iterable[Change]) -> Iterator[None]:
        """What ``steps`` make stands inside, and is gone afterwards; see `make`.

        Raises:
            RunError: A step failed, or what was done could not be undone.
        """
        before = len(self._undos)
        try:
            self.apply(steps)
            yield
        finally:
            self.undo(before)

    def undo(self, keep: int = 0) -> None:
        """Undoes all but the ``keep`` oldest.

        Raises:
            RunError: Something could not be undone; it stays in the journal, with all before it.
        """
        for undo in reversed(self._undos[keep:]):
            self._undo(undo)
        self._write(self._undos[:keep])

    def _undo(self, undo: Undo) -> None:
        said = ""
        for attempt in range(ATTEMPTS):
            if not self._is_needed(undo):
                return
            if attempt:
                time.sleep(PAUSE_SECONDS)
            for command in undo.commands:
                try:
                    self.execute(command)
                except RunError as why:
                    said = str(why.args[0])  # What counts is the answer.
        if self._is_needed(undo):
            text = f"run {self._owner} again, which undoes first what is left"
            raise RunError(f"cannot undo what was done: {said}; {text}")

    def _is_needed(self, undo: Undo) -> bool:
        try:
            said = self.execute(undo.question)
        except RunError:
            return False
        return said in [answer.strip() for answer in undo.answers]

    def _write(self, undos: list[Undo]) -> None:
        if undos != self._undos:
            text = json.dumps([dataclasses.asdict(undo) for undo in undos], indent=1)
            write_atomically(self._file, text.encode())
            self._undos = undos


@contextmanager
def open_journal(room: Path, owner: str) -> Iterator[UndoJournal]:
    """The journal in the directory ``room``, when what a killed process left is undone.

    Args:
        room: Where; gone afterwards.
        owner: The command whose room it is.

    Raises:
        UsageError: Another process is at work there.
        RunError: What was left could not be undone.
    """
    with locked_room(room, owner) as lock:
        journal = UndoJournal(room / "journal.json", partial(run_command, lock), owner)
        try:
            journal.undo()
            yield journal
        finally:
            journal.undo()
            for file in room.iterdir():
                file.unlink()  # No more than the journal, and one that was half written.
            room.rmdir()


@contextmanager
def locked_room(room: Path, owner: str, patience_seconds: float = 0.0) -> Iterator[int]:
    """Holds the lock of the directory ``room``, which is made if need be: gives its handle.

    Args:
        room: What is locked. Whoever holds the lock may remove it.
        owner: The command whose room it is.
        patience_seconds: How long another one's end is waited for.

    Raises:
        UsageError: Another process is at work there.
    """
    deadline = time.monotonic() + patience_seconds
    while True:
        room.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = os.open(room, os.O_RDONLY)
        try:
            if _hold(lock, room):
                yield lock
                return
        finally:
            os.close(lock)
        if time.monotonic() >= deadline:
            raise UsageError(f"another {owner} is at work on this machine: wait until it ends")
        time.sleep(LOCK_PAUSE_SECONDS)


def _hold(lock: int, room: Path) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    # Who held the lock before may have removed it at the end, and another one made it anew.
    try:
        return os.path.samestat(os.fstat(lock), os.stat(room))
    except FileNotFoundError:
        return False


def run_command(lock: int, command: Command) -> str:
    """Runs a command, which holds the lock too; gives what it printed."""
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env=os.environ | ENVIRONMENT,
        pass_fds=(lock,),
        start_new_session=True,  # A Ctrl-C is for this process, which then undoes what there is.
    )
    if done.returncode:
        said = " ".join(done.stderr.split())
        raise RunError(f"{shlex.join(command)}: {said}")
    return done.stdout.strip()


def _read(file: Path) -> list[Undo]:
    try:
        noted = json.loads(file.read_bytes())
    except FileNotFoundError:
        return []
    return [
        Undo(
            commands=tuple(map(tuple, each["commands"])),
            question=tuple(each["question"]),
            answers=tuple(each["answers"]),
        )
        for each in noted
    ]
