"""Overhead of measuring through Ray: the same measurement on one machine, with and without Ray.

    sudo .venv/bin/python benches/cluster_overhead/bench.py

On a lab of one node with Ray the same measurement alternates: by a worker while Ray's processes
run, and by the command while they are stopped (SIGSTOP) and use no core. So turns are seconds
apart, without a cluster's start between them, and steal affects both alike. The cases are reads of
a throttled disk, single operations at a throttled rate, and operations in memory by a thread for
each core. The last wait for no device, so they show best what else uses the cores: in many short
turns, on a file that fits a core's own cache, so that the location of its pages does not matter. A
turn with Ray is compared with the mean of its two neighbours without it, so that drift cancels. The
difference between these two neighbours is the bench's noise, and is printed too. The claim: the
median of the ratios differs from 1 by less than 2 % in every case.

Needs root, Ray and what a lab needs.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tonnage.base.records import write_atomically
from tonnage.base.records.base import to_builtins
from tonnage.base.stats.quantiles import quantile_estimate
from tonnage.base.system.cgroups import processes_in
from tonnage.measure.trial.environment import capture
from tonnage.provision import lab as labs
from tonnage.provision.lab.throttling import controllers, group_directories

MAX_DIFFERENCE = 0.02
TONNAGE = (sys.executable, "-m", "tonnage")
NODE = "n-0"
MEMORY = "/dev/shm"
LAB = """
[lab]
name = "{name}"

[[machine]]
type = "n"
price_usd_per_hour = 1
disks = [{{ size = "2GiB", read_mb_per_s = {mb_per_s}, read_iops = {iops}, fs = "xfs" }}]
"""


@dataclasses.dataclass(frozen=True)
class Case:
    """A measurement, and the name of its figure."""

    name: str
    command: Sequence[str]
    figure: str
    turns: int
    """Turns with Ray; there is one more without it."""
    in_memory: bool = False


def cases(options: argparse.Namespace) -> list[Case]:
    """Return the cases: reads, operations, cores alone."""
    once = ("--seconds", f"{options.seconds}", "--repetitions", "1")
    disk = ("disk", "--mode", "ro", "--size", "1GB", *once)
    ops = ("ops", "--operation", "read4k", "--queue-depth")
    threads = str(len(os.sched_getaffinity(0)))
    many = ("16", "--file-size", "256MB", *once)
    short = ("--engine", "sync", "--file-size", "1MB", "--seconds", "0.5", "--repetitions", "5")
    return [
        Case("reads", disk, "ro", options.rounds),
        Case("operations", (*ops, *many), "read4k x16", options.rounds),
        Case("cores", (*ops, threads, *short), f"read4k x{threads}", options.turns, in_memory=True),
    ]


def tonnage(*command: str) -> str:
    """Run a command of Tonnage; return its output."""
    done = subprocess.run([*TONNAGE, *command], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"tonnage {' '.join(command)}: {done.stderr.strip()}")
    return done.stdout


@contextmanager
def lab(name: str, options: argparse.Namespace) -> Iterator[str]:
    """Start a lab of one node with Ray; yields the directory of its disk."""
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
        file.write(LAB.format(name=name, mb_per_s=options.mb_per_s, iops=options.iops))
        file.flush()
        tonnage("lab", "up", file.name)
    try:
        tonnage("lab", "ray", "--lab", name)
        told = json.loads(tonnage("lab", "status", "--lab", name, "--json"))
        yield told["nodes"][0]["disks"][0]["path"]
    finally:
        tonnage("lab", "down", "--lab", name)


def measured(name: str, directory: str, case: Case, with_ray: bool) -> float:
    """Measure once on the node; return the figure, in bytes a second."""
    with tempfile.TemporaryDirectory() as kept, tempfile.TemporaryDirectory(dir=MEMORY) as memory:
        where = memory if case.in_memory else directory
        command = ["measure", *case.command, "--dir", where, "--output", f"{kept}/out", "--json"]
        command += ["--cluster", "auto"] if with_ray else []
        said = json.loads(tonnage("lab", "exec", "--lab", name, NODE, "--", *TONNAGE, *command))
    whole: dict[str, Any] = said["nodes"][0] if with_ray else said
    (figure,) = [each for each in whole["figures"] if each["name"] == case.figure]
    rate: float = figure["median_bytes_per_second"]
    return rate


@contextmanager
def stopped(name: str) -> Iterator[None]:
    """Stop all processes that are on the node now, and continue them afterwards."""
    node = labs.find_node(labs.require_up(labs.STATE_DIR, name), NODE)
    there = processes_in(group_directories(node, controllers().values()))

    def send(which: signal.Signals) -> None:
        for process in there:
            with suppress(ProcessLookupError):
                os.kill(process, which)

    send(signal.SIGSTOP)
    try:
        yield
    finally:
        send(signal.SIGCONT)


def in_turns(name: str, directory: str, case: Case) -> dict[str, list[float]]:
    """Alternate a case without Ray and with it, the first and the last turn without."""
    without, with_ray = [], []
    for turn in range(2 * case.turns + 1):
        if turn % 2:
            with_ray.append(measured(name, directory, case, with_ray=True))
        else:
            with stopped(name):
                without.append(measured(name, directory, case, with_ray=False))
        print(f"{case.name}: {turn + 1} of {2 * case.turns + 1}", file=sys.stderr)
    return {"without": without, "with_ray": with_ray}


def in_words(name: str, ratios: Sequence[float]) -> str:
    """Return ratios in a line: the median, its interval, their range."""
    interval = quantile_estimate(ratios, 0.5).interval
    between = f"{min(ratios):.4f} to {max(ratios):.4f}"
    known = (
        f"{interval.low_value:.4f} to {interval.high_value:.4f}" if interval else "not estimable"
    )
    return f"{name} {statistics.median(ratios):.4f} (95 % {known}; all {between})"


def main() -> int:
    """Run the cases and print a row for each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--rounds", type=int, default=8, help="turns of reads and of operations with Ray"
    )
    parser.add_argument("--turns", type=int, default=24, help="turns of cores with Ray")
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--mb-per-s", type=int, default=200)
    parser.add_argument("--iops", type=int, default=2000)
    parser.add_argument("--lab", default="overhead")
    parser.add_argument("--out", type=Path, default=Path("target/cluster-overhead.json"))
    options = parser.parse_args()
    if options.out.exists():
        parser.error(f"--out {options.out} exists: move it, or name another file")
    known = {
        "environment": to_builtins(capture([])),
        "options": {name: str(value) for name, value in vars(options).items()},
    }
    found: dict[str, dict[str, list[float]]] = {}
    missed = []
    with lab(options.lab, options) as directory:
        for case in cases(options):
            found[case.name] = turns = in_turns(options.lab, directory, case)
            # After each case, so that a killed bench leaves its results.
            write_atomically(options.out, json.dumps(known | found).encode())
            alone = turns["without"]
            neighbours = [statistics.mean(alone[place : place + 2]) for place in range(case.turns)]
            ratios = [each / of for each, of in zip(turns["with_ray"], neighbours, strict=True)]
            noise = [alone[place + 1] / alone[place] for place in range(case.turns)]
            overhead = in_words("with Ray over without", ratios)
            print(f"{case.name}: {overhead}; {in_words('noise', noise)}")
            if abs(statistics.median(ratios) - 1) >= MAX_DIFFERENCE:
                missed.append(case.name)
    print("missed: " + (", ".join(missed) or "nothing"))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
