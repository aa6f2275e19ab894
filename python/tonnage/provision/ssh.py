"""Run commands on nodes through ssh, a process for each node, many at once.

The user may choose another program with ssh's arguments, as for git and rsync. One loop watches all
processes and kills those that remain when it ends, so that none outlives a Ctrl-C.
"""

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
"""A connection is lost after so many silent intervals."""
ERROR_CHARACTERS = 400
"""Characters of a failed command's output in its error."""

OnDone = Callable[[int, int], None]
"""Called with the number of finished nodes and of all nodes."""


@dataclass(frozen=True)
class SshClient:
    program: tuple[str, ...]
    user: str
    known_hosts: Path
    """A file of its own, since addresses are reused: host keys are accepted when first seen."""

    def command(self, address: str, wanted: str) -> list[str]:
        """Build the local command that runs a shell command on a node."""
        options = {
            "BatchMode": "yes",
            "StrictHostKeyChecking": "accept-new",
            "UserKnownHostsFile": self.known_hosts,
            "ConnectTimeout": CONNECT_SECONDS,
            "ServerAliveInterval": ALIVE_SECONDS,
            "ServerAliveCountMax": ALIVE_TIMES,
        }
        options_given = [
            word for name, value in options.items() for word in ("-o", f"{name}={value}")
        ]
        return [*self.program, *options_given, f"{self.user}@{address}", wanted]


@dataclass(frozen=True)
class RemoteCommand:
    command: list[str]
    stdin: bytes | Path = b""


@dataclass(frozen=True)
class CommandResult:
    """The output and exit code of a command; ``None`` if it timed out."""

    code: int | None
    out: str = ""
    err: str = ""

    @property
    def failure(self) -> str:
        if self.code is None:
            return "the command timed out"
        results = " ".join((self.err or self.out).split())[-ERROR_CHARACTERS:]
        return results or f"exit code {self.code}"


def run_all(
    tasks: Mapping[str, RemoteCommand], seconds: float, on_done: OnDone
) -> dict[str, CommandResult]:
    """Run a command for each node, with a time limit for each, and return the results by node.

    Raises:
        RunError: There is no such program.
    """
    waiting, running, results = (
        list(tasks.items()),
        dict[str, _Running](),
        dict[str, CommandResult](),
    )
    with tempfile.TemporaryDirectory(prefix="tonnage-") as room:
        try:
            while waiting or running:
                while waiting and len(running) < AT_ONCE:
                    node, task = waiting.pop(0)
                    running[node] = _Running(task, Path(room) / str(len(waiting)))
                for node, each in list(running.items()):
                    if each.has_ended or each.seconds > seconds:
                        results[node] = each.end()
                        del running[node]
                on_done(len(results), len(tasks))
                if running:
                    time.sleep(PAUSE_SECONDS)
        finally:
            for each in running.values():
                each.end()
    return results


def run_foreground(command: list[str], *, to_stderr: bool) -> int:
    """Run a command in the foreground and return its exit code."""
    stdout = sys.stderr if to_stderr else None
    process = _started(command, stdin=subprocess.DEVNULL, stdout=stdout)
    try:
        return process.wait()
    finally:
        process.kill()
        process.wait()


class _Running:
    """A running command in a session of its own: Ctrl-C is the caller's to handle."""

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
        """Kill it if still running, and return the result."""
        code = self._process.poll()
        self._process.kill()
        self._process.wait()
        return CommandResult(code, *(file.read_text(errors="replace") for file in self._files))


def _started(command: list[str], **files: Any) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(command, start_new_session=True, **files)
    except OSError as why:
        raise core.RunError(f"cannot run {command[0]}: {why.strerror}") from why
