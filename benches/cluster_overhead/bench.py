"""What a cluster's machinery costs: the same measurement on one machine, with and without Ray.

    sudo .venv/bin/python benches/cluster_overhead/bench.py

On a lab of one node with Ray the same is measured in turns: by an agent while Ray's processes run,
and by the command while they are stopped (SIGSTOP), when they take no core. So turns are seconds
apart and not a cluster's start, and what a virtual machine's cores lose to others meets both alike.
It is reads of a disk of set speed, single operations at a set rate, and operations in memory by a
thread for each core, which wait for no device, and so show best what else takes cores: in many
short turns, of a file that fits a core's own cache, so that where its pages lie does not matter. A
turn with Ray is held against the mean of the two without it on either side, so that a drift
cancels. How far these two are from each other is what the bench cannot see below, and is told
beside it. The claim: the median of the ratios differs from 1 by less than 2 % in every case.

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

MOST_DIFFERENCE = 0.02
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
    """What is measured, and what its figure is called."""

    name: str
    command: Sequence[str]
    figure: str
    turns: int
    """With Ray; without it one more."""
    in_memory: bool = False


def cases(options: argparse.Namespace) -> list[Case]:
    """Reads, operations, cores alone."""
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
    """What the command prints."""
    done = subprocess.run([*TONNAGE, *command], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"tonnage {' '.join(command)}: {done.stderr.strip()}")
    return done.stdout


@contextmanager
def lab(name: str, options: argparse.Namespace) -> Iterator[str]:
    """A lab of one node with Ray, gone afterwards: the directory of its disk."""
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
    """One measurement on the node: its figure, in bytes a second."""
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
    """Inside, none of the processes that are on the node now gets a core."""
    node = labs.find_node(labs.require_up(labs.STATE_DIR, name), NODE)
    there = processes_in(group_directories(node, controllers().values()))

    def tell(what: signal.Signals) -> None:
        for process in there:
            with suppress(ProcessLookupError):
                os.kill(process, what)

    tell(signal.SIGSTOP)
    try:
        yield
    finally:
        tell(signal.SIGCONT)


def in_turns(name: str, directory: str, case: Case) -> dict[str, list[float]]:
    """A case without Ray and with it by turns, the first and the last one without."""
    without, with_ray = [], []
    for turn in range(2 * case.turns + 1):
        if turn % 2:
            with_ray.append(measured(name, directory, case, with_ray=True))
        else:
            with stopped(name):
                without.append(measured(name, directory, case, with_ray=False))
        print(f"{case.name}: {turn + 1} of {2 * case.turns + 1}", file=sys.stderr)
    return {"without": without, "with_ray": with_ray}


def told(name: str, ratios: Sequence[float]) -> str:
    """Ratios in a line: the median, its interval, their range."""
    interval = quantile_estimate(ratios, 0.5).interval
    between = f"{min(ratios):.4f} to {max(ratios):.4f}"
    known = (
        f"{interval.low_value:.4f} to {interval.high_value:.4f}" if interval else "not estimable"
    )
    return f"{name} {statistics.median(ratios):.4f} (95 % {known}; all {between})"


def main() -> int:
    """Runs the cases and prints a row for each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=8, help="of reads and operations")
    parser.add_argument("--turns", type=int, default=24, help="of cores")
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--mb-per-s", type=int, default=200)
    parser.add_argument("--iops", type=int, default=2000)
    parser.add_argument("--lab", default="overhead")
    parser.add_argument("--out", type=Path, default=Path("target/cluster-overhead.json"))
    options = parser.parse_args()
    if options.out.exists():
        parser.error(f"--out {options.out} is there: move it, or name another file")
    known = {
        "environment": to_builtins(capture([])),
        "options": {name: str(value) for name, value in vars(options).items()},
    }
    found: dict[str, dict[str, list[float]]] = {}
    missed = []
    with lab(options.lab, options) as directory:
        for case in cases(options):
            found[case.name] = turns = in_turns(options.lab, directory, case)
            # After each case: one that is killed leaves what it had.
            write_atomically(options.out, json.dumps(known | found).encode())
            alone = turns["without"]
            beside = [statistics.mean(alone[place : place + 2]) for place in range(case.turns)]
            ratios = [each / of for each, of in zip(turns["with_ray"], beside, strict=True)]
            noise = [alone[place + 1] / alone[place] for place in range(case.turns)]
            print(f"{case.name}: {told('with Ray over without', ratios)}; {told('noise', noise)}")
            if abs(statistics.median(ratios) - 1) >= MOST_DIFFERENCE:
                missed.append(case.name)
    print("missed: " + (", ".join(missed) or "nothing"))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
