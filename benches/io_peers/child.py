"""Run commands concurrently to their end: the output and the CPU of each."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import IO


@dataclass(frozen=True)
class Command:
    """A command and its standard input."""

    line: Sequence[str]
    given: bytes = b""


@dataclass(frozen=True)
class Done:
    """A command's output, and the core seconds of it and its children."""

    out: str
    cpu_seconds: float


def run(*commands: Command, ready: str = "", servers: int = 1) -> list[Done]:
    """Run commands concurrently, and wait for all.

    With ``ready``, the first ``servers`` commands must print that text before the others start. A
    command that fails ends the bench with its output.
    """
    with ExitStack() as stack:
        started = []
        for command in commands:
            given, out, err = (stack.enter_context(tempfile.TemporaryFile()) for _ in range(3))
            given.write(command.given)
            given.seek(0)
            process = subprocess.Popen(command.line, stdin=given, stdout=out, stderr=err)
            stack.callback(_end, process)
            started.append((process, out, err))
            if ready and len(started) == servers:
                for server, server_out, _ in started:
                    _await(server, server_out, ready)
        return [_wait(*each) for each in started]


def first_line(*line: str) -> str:
    """Run a command; return the first line of its output."""
    return run(Command(line))[0].out.splitlines()[0]


def _await(process: subprocess.Popen[bytes], out: IO[bytes], ready: str) -> None:
    while ready.encode() not in os.pread(out.fileno(), 4096, 0) and process.poll() is None:
        time.sleep(0.01)


def _wait(process: subprocess.Popen[bytes], out: IO[bytes], err: IO[bytes]) -> Done:
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    texts = []
    for file in (out, err):
        file.seek(0)
        texts.append(file.read().decode())
    if process.returncode:
        raise SystemExit(f"{process.args} ended with {process.returncode}:\n{''.join(texts)}")
    return Done(texts[0], usage.ru_utime + usage.ru_stime)


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.returncode is None:
        process.kill()
        process.wait()
