"""How nodes are reached: a program like ssh, a process for each node, many at once.

The program is the user's to choose, as git's and rsync's is: ``ssh``, with options, or what takes
the same arguments. Processes are watched by one loop, and those that are left when it ends, however
it does, are killed: none outlives a Ctrl-C.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tonnage.base import core

AT_ONCE = 64
PAUSE_SECONDS = 0.05
CONNECT_SECONDS = 10
ALIVE_SECONDS, ALIVE_TIMES = 15, 8
"""A connection that says nothing for so long, so many times, is gone."""
LAST = 400
"""Letters of what a command said that are told if it fails."""

OnDone = Callable[[int, int], None]
"""Told how many nodes are done, and how many there are."""


@dataclass(frozen=True)
class SshClient:
    """The program that reaches nodes, and as whom."""

    program: tuple[str, ...]
    user: str
    known_hosts: Path
    """Keys of nodes, each taken when it is first seen: their addresses were others' before."""

    def command(self, address: str, wanted: str) -> list[str]:
        """The command that runs another one, of a shell, on a node."""
        options = {
            "BatchMode": "yes",
            "StrictHostKeyChecking": "accept-new",
            "UserKnownHostsFile": self.known_hosts,
            "ConnectTimeout": CONNECT_SECONDS,
            "ServerAliveInterval": ALIVE_SECONDS,
            "ServerAliveCountMax": ALIVE_TIMES,
        }
        told = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
        return [*self.program, *told, f"{self.user}@{address}", wanted]


@dataclass(frozen=True)
class RemoteCommand:
    """A command, and what it reads."""

    command: list[str]
    stdin: bytes | Path = b""


@dataclass(frozen=True)
class CommandResult:
    """What a command said, and ended with; ``None``: it did not end in time."""

    code: int | None
    out: str = ""
    err: str = ""

    @property
    def failure(self) -> str:
        """Why it failed, in a line."""
        if self.code is None:
            return "no answer in time"
        said = " ".join((self.err or self.out).split())[-LAST:]
        return said or f"ended with {self.code}"


def run_all(
    tasks: Mapping[str, RemoteCommand], seconds: float, on_done: OnDone
) -> dict[str, CommandResult]:
    """Carries out a task of each node, and gives what came of it.

    Args:
        tasks: By node.
        seconds: How long each may take.
        on_done: Shows how far it is.

    Raises:
        RunError: There is no such program.
    """
    waiting, running, said = list(tasks.items()), dict[str, _Running](), dict[str, CommandResult]()
    with tempfile.TemporaryDirectory(prefix="tonnage-") as room:
        try:
            while waiting or running:
                while waiting and len(running) < AT_ONCE:
                    node, task = waiting.pop(0)
                    running[node] = _Running(task, Path(room) / str(len(waiting)))
                for node, each in list(running.items()):
                    if each.has_ended or each.seconds > seconds:
                        said[node] = each.end()
                        del running[node]
                on_done(len(said), len(tasks))
                if running:
                    time.sleep(PAUSE_SECONDS)
        finally:
            for each in running.values():
                each.end()
    return said


def run_foreground(command: list[str], *, to_stderr: bool) -> int:
    """Carries out a command that says what it says to who called; gives what it ended with."""
    stdout = sys.stderr if to_stderr else None
    process = _started(command, stdin=subprocess.DEVNULL, stdout=stdout)
    try:
        return process.wait()
    finally:
        process.kill()
        process.wait()


class _Running:
    """A task under way; out of reach of a terminal's Ctrl-C, which is its caller's."""

    def __init__(self, task: RemoteCommand, room: Path) -> None:
        self._began = time.monotonic()
        room.mkdir()
        self._files = [room / name for name in ("out", "err")]
        given = room / "in"
        if isinstance(task.stdin, bytes):
            given.write_bytes(task.stdin)
        else:
            given = task.stdin
        out, err = self._files
        with given.open("rb") as stdin, out.open("wb") as to_out, err.open("wb") as to_err:
            self._process = _started(task.command, stdin=stdin, stdout=to_out, stderr=to_err)

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._began

    @property
    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def end(self) -> CommandResult:
        """Ends it, if it has not ended, and gives what came of it."""
        code = self._process.poll()
        self._process.kill()
        self._process.wait()
        return CommandResult(code, *(file.read_text(errors="replace") for file in self._files))


def _started(command: list[str], **files: Any) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(command, start_new_session=True, **files)
    except OSError as why:
        raise core.RunError(f"--ssh {command[0]}: {why.strerror}") from why
