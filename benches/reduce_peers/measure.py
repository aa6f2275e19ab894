"""One run of one system at one job: start-up, the job several times, CPU, memory, answers."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from data import Data, off
from processes import Sampler, descendants, end_descendants
from roster import System, environment
from task import Task

LOG_TAIL_LINES = 12
TIMEOUT_SECONDS = 20
"""That a peer has to end by itself."""


@dataclass(frozen=True)
class Iteration:
    """One iteration of the job."""

    seconds: float
    """By the peer's own clock, from the request to the answer in its memory."""
    cpu_seconds: float
    """CPU of all processes of the system."""
    off: float
    """Error of the answer (`data.off`)."""


@dataclass
class Run:
    """A process of a system, from its start to its end."""

    system: str
    job: str
    round: int
    load_before: float
    ready_seconds: float | None = None
    """From its start until it is ready for its first iteration."""
    cold_seconds: float | None = None
    """From its start until its first answer."""
    iterations: list[Iteration] = field(default_factory=list)
    peak_rss_bytes: int = 0
    """Peak memory of all processes of the system together."""
    failure: str | None = None
    last_output: str = ""

    @property
    def warm(self) -> list[Iteration]:
        """All iterations but the first."""
        return self.iterations[1:]


@dataclass(frozen=True)
class Rules:
    """What is the same for all."""

    data: Data
    leave: set[int]
    """Processes that do not count: the server."""
    workers: int
    iterations: int
    timeout_seconds: float


class Ended(Exception):
    """A process has ended that was to say something."""


def run_once(system: System, job: str, number: int, rules: Rules) -> Run:
    """Start a system, run a job several times, and end it."""
    run = Run(system.name, job, number, os.getloadavg()[0])
    answer, tolerance = rules.data.answer(job), system.tolerance(job)
    # Ray's sockets are there, whose names must be short.
    with tempfile.TemporaryDirectory(prefix="rp-", ignore_cleanup_errors=True) as made:
        room = Path(made)
        task = _task(rules, job, room)
        with Sampler(rules.leave) as sampler, (room / "log").open("w") as log:
            began = time.perf_counter()
            try:
                with _started(system, room, log, rules.timeout_seconds, rules.leave) as process:
                    _read_line("#ready", process)
                    run.ready_seconds = time.perf_counter() - began
                    for _ in range(2 if system.slow else rules.iterations):
                        sampler.sample()
                        before = sampler.cpu_seconds
                        seconds = _run_job(process)
                        sampler.sample()
                        if run.cold_seconds is None:
                            run.cold_seconds = time.perf_counter() - began
                        found = off(np.fromfile(task.result), answer)
                        cpu = sampler.cpu_seconds - before
                        run.iterations.append(Iteration(seconds, cpu, found))
            except Ended:
                late = time.perf_counter() - began >= rules.timeout_seconds
                run.failure = "it exceeded the timeout" if late else "it ended before its answer"
        run.peak_rss_bytes = sampler.peak_rss_bytes
        if run.failure:
            lines = (room / "log").read_text(errors="replace").splitlines()
            run.last_output = "\n".join(lines[-LOG_TAIL_LINES:])
    worst = max((each.off for each in run.iterations), default=0.0)
    if not worst <= tolerance:
        run.failure = f"the error of its answer is {worst:.2g}, more than {tolerance:g}"
    return run


def _task(rules: Rules, job: str, room: Path) -> Task:
    scratch = room / "scratch"
    scratch.mkdir()
    fields = rules.data.task(job) | {"result": str(room / "result"), "scratch": str(scratch)}
    task = Task(workers=rules.workers, **fields)
    task.write(room / "task")
    return task


@contextmanager
def _started(
    system: System, room: Path, log: object, timeout_seconds: float, leave: set[int]
) -> Iterator[subprocess.Popen[str]]:
    """Start a process of a system; at the end all its descendants are killed."""
    process = subprocess.Popen(
        system.command(room / "task"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=log,  # type: ignore[arg-type]
        text=True,
        cwd=room,
        env=environment() | {"TMPDIR": str(room)},
    )
    clock = threading.Timer(timeout_seconds, _kill, [leave])
    clock.start()
    try:
        yield process
        assert process.stdin
        process.stdin.close()
        process.wait(TIMEOUT_SECONDS)
    except subprocess.TimeoutExpired:
        pass  # All results have arrived.
    finally:
        clock.cancel()
        process.kill()
        process.wait()
        end_descendants(leave)


def _kill(leave: set[int]) -> None:
    """Kill all of the system's processes: any of them may hold the pipe open."""
    for each in descendants(leave):
        with suppress(ProcessLookupError):
            os.kill(each.pid, signal.SIGKILL)


def _run_job(process: subprocess.Popen[str]) -> float:
    """Have the process do its job; return the seconds that it reports."""
    assert process.stdin
    try:
        process.stdin.write("\n")
        process.stdin.flush()
    except BrokenPipeError as why:
        raise Ended from why
    return float(_read_line("#done", process))


def _read_line(word: str, process: subprocess.Popen[str]) -> str:
    """Return the rest of the next line that begins with a word."""
    assert process.stdout
    for line in process.stdout:
        if line.startswith(word):
            return line.removeprefix(word)
    raise Ended
