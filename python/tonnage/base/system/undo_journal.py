"""A write-ahead undo journal: every change of the machine is undone, even after a crash.

How to undo a change is data: commands, and a question that tells whether they are needed: another
command with the answers that mean yes. A change that was never made, is undone already, or is not
ours gives another answer. So undoing is safe at any time, repeatedly, and by another process. It is
the undo half of a write-ahead log (Mohan et al., ARIES): the journal knows of a change before the
machine does.

    ROOM/journal.json    how to undo the changes in effect, oldest first
    ROOM/...             what the changes create there, as mount points

The process and each command that it starts hold the room's lock. So a command that outlives a
killed process delays the next one, and two processes never interfere.
"""

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
from tonnage.base.records.base import RecordError, Struct, decode, to_builtins

ATTEMPTS = 40
PAUSE_SECONDS = 0.25
"""Between attempts: files of a killed process are closed a moment after it is gone."""
LOCK_PAUSE_SECONDS = 0.05

ENVIRONMENT = {"LC_ALL": "C", "BLKID_FILE": "/dev/null", "LVM_SUPPRESS_FD_WARNINGS": "1"}
"""For commands: no cache of temporary devices, no warning about the inherited lock."""

Command = tuple[str, ...]
Execute = Callable[[Command], str]
"""Runs a command and returns its output; raises `RunError`."""


class Undo(Struct, frozen=True):
    """Commands that undo a change; needed while the question has one of the answers."""

    commands: tuple[Command, ...]
    question: Command
    answers: tuple[str, ...]


@dataclass(frozen=True)
class Change:
    """A command that changes the machine, and how to undo it, last to first."""

    command: Command
    undos: tuple[Undo, ...] = ()


class UndoJournal:
    """The changes in effect, and how to undo them; ``owner`` is the command to run again."""

    def __init__(self, file: Path, execute: Execute, owner: str) -> None:
        self._file = file
        self.execute = execute
        self._owner = owner
        self._undos = _read(file)

    def apply(self, changes: Iterable[Change]) -> None:
        """Make ``changes``, which last until undone, also if a later one fails (`RunError`).

        A change is requested after the one before it was made, so it may depend on it.
        """
        for change in changes:
            self._write([*self._undos, *change.undos])
            self.execute(change.command)

    @contextmanager
    def apply_temporarily(self, changes: Iterable[Change]) -> Iterator[None]:
        """Make ``changes`` and undo them when the context ends; `RunError` if either fails."""
        before = len(self._undos)
        try:
            self.apply(changes)
            yield
        finally:
            self.undo(before)

    def undo(self, keep: int = 0) -> None:
        """Undo all but the ``keep`` oldest changes; one that fails stays (`RunError`)."""
        for undo in reversed(self._undos[keep:]):
            self._undo(undo)
        self._write(self._undos[:keep])

    def _undo(self, undo: Undo) -> None:
        error = ""
        for attempt in range(ATTEMPTS):
            if not self._is_needed(undo):
                return
            if attempt:
                time.sleep(PAUSE_SECONDS)
            for command in undo.commands:
                try:
                    self.execute(command)
                except RunError as why:
                    error = str(why.args[0])  # The question decides.
        if self._is_needed(undo):
            text = f"run {self._owner} again, which first undoes what is left"
            raise RunError(f"cannot undo a change: {error}; {text}")

    def _is_needed(self, undo: Undo) -> bool:
        try:
            answer = self.execute(undo.question)
        except RunError:
            return False
        return answer in [expected.strip() for expected in undo.answers]

    def _write(self, undos: list[Undo]) -> None:
        if undos != self._undos:
            text = json.dumps(to_builtins(undos), indent=1)
            write_atomically(self._file, text.encode())
            self._undos = undos


@contextmanager
def open_journal(room: Path, owner: str) -> Iterator[UndoJournal]:
    """Open the journal in ``room`` after undoing what a killed process left; remove it afterwards.

    Raises `UsageError` if another process holds it, `RunError` if a leftover cannot be undone.
    """
    with locked_room(room, owner) as lock:
        journal = UndoJournal(room / "journal.json", partial(run_command, lock), owner)
        try:
            journal.undo()
            yield journal
        finally:
            journal.undo()
            for file in room.iterdir():
                file.unlink()  # The journal, and perhaps a partly written one.
            room.rmdir()


@contextmanager
def locked_room(room: Path, owner: str, patience_seconds: float = 0.0) -> Iterator[int]:
    """Lock the directory ``room``, created if need be, and give its descriptor.

    The holder may remove the room. Raises `UsageError` if another process of the command ``owner``
    holds the lock for longer than ``patience_seconds``.
    """
    deadline = time.monotonic() + patience_seconds
    while True:
        room.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = os.open(room, os.O_RDONLY)
        try:
            if _try_lock(lock, room):
                yield lock
                return
        finally:
            os.close(lock)
        if time.monotonic() >= deadline:
            raise UsageError(f"another {owner} is running on this machine; wait until it ends")
        time.sleep(LOCK_PAUSE_SECONDS)


def _try_lock(lock: int, room: Path) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    # The previous holder may have removed the directory, and another process recreated it.
    try:
        return os.path.samestat(os.fstat(lock), os.stat(room))
    except FileNotFoundError:
        return False


def run_command(lock: int, command: Command) -> str:
    """Run a command, which inherits the lock; returns its output."""
    result = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env=os.environ | ENVIRONMENT,
        pass_fds=(lock,),
        start_new_session=True,  # Ctrl-C is for this process, which then undoes its changes.
    )
    if result.returncode:
        output = " ".join(result.stderr.split())
        raise RunError(f"{shlex.join(command)}: {output}")
    return result.stdout.strip()


def _read(file: Path) -> list[Undo]:
    try:
        content = file.read_bytes()
    except FileNotFoundError:
        return []
    try:
        return decode(content, list[Undo], file)
    except RecordError as why:
        raise UsageError(str(why)) from why
