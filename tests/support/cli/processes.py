"""Run commands that tests interrupt, and see what files and memory they use."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PATIENCE_SECONDS = 120
"""A test fails after waiting this long; no result depends on it."""

MAX_OVERHEAD_BYTES = 100 << 20
"""What a command may use beyond its memory setting: interpreter, libraries, threads."""

PATCHED = """
import functools, importlib, json, sys
import tonnage.cli.main
part = importlib.import_module(sys.argv.pop(1))
for name, value in json.loads(sys.argv.pop(1)).items():
    if name == "faults":
        part.sort = functools.partial(part.sort, faults=value)
    else:
        setattr(part, name, value)
tonnage.cli.main.main()
"""
"""The command with changed constants of a module, or with faults in a study's sort."""

LAUNCHER = """
import json, os, sys
process = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ)
_, status, usage = os.wait4(process, 0)
print(json.dumps([os.waitstatus_to_exitcode(status), usage.ru_maxrss * 1024]), flush=True)
"""
"""Starts a command and waits for it. It is small, since the kernel counts the memory of the parent
process as the child's, too."""


@dataclass(frozen=True)
class Usage:
    """The output and memory use of a finished command."""

    returncode: int
    out: str
    peak_memory_bytes: int


class RunningCommand:
    """A running command."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.pid = process.pid

    def wait_until(self, happened: Callable[[], bool]) -> None:
        """Wait until something happens, which must be while the command runs."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not happened():
            if self.process.poll() is not None:
                raise AssertionError(f"the command ended before: {self.process.communicate()}")
            if time.monotonic() > deadline:
                raise AssertionError("it did not happen in time")
            time.sleep(0.002)

    def end(self, number: signal.Signals) -> tuple[int, str, str]:
        """Send a signal and wait; returns the exit code and both outputs."""
        self.process.send_signal(number)
        out, err = self.process.communicate(timeout=PATIENCE_SECONDS)
        return self.process.returncode, out, err

    def open_files(self, directory: Path) -> list[os.stat_result]:
        """The open files of the command in a directory, including unlinked ones."""
        files = []
        for entry in Path(f"/proc/{self.pid}/fd").iterdir():
            try:
                if os.readlink(entry).startswith(f"{directory}/"):
                    files.append(os.stat(entry))
            except FileNotFoundError:
                continue  # Just closed.
        return files


@contextmanager
def started(
    command: Sequence[str | Path], cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> Iterator[RunningCommand]:
    """Start a command with an extended environment, and kill it at the end if it still runs."""
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=cwd,
        env=os.environ | (env or {}),
    )
    with process:
        try:
            yield RunningCommand(process)
        finally:
            process.kill()


def patched_command(
    patches: dict[str, Any], *args: str | Path, module: str = "tonnage.study.local"
) -> list[str | Path]:
    """The command `tonnage` with `args` and a patched module."""
    return [sys.executable, "-c", PATCHED, module, json.dumps(patches), *args]


def run_with_usage(command: Sequence[str | Path]) -> Usage:
    """Run a command to its end and return its output and memory use."""
    launched = [sys.executable, "-S", "-c", LAUNCHER, *command]
    done = subprocess.run(launched, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    out, _, usage = done.stdout.rstrip("\n").rpartition("\n")
    returncode, peak_memory_bytes = json.loads(usage)
    return Usage(returncode, out, peak_memory_bytes)
