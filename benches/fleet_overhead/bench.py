"""What a fleet's machinery costs: the same measurement on one machine, with and without Ray.

    sudo .venv/bin/python benches/fleet_overhead/bench.py

A lab of one node is made anew for every phase, in turn without Ray and with it: then Ray's
processes are there, and an agent measures instead of the command. In each phase the same is
measured: reads of a disk of set speed, single operations at a set rate, and operations of threads
in memory, which keep every core busy with no device at all, and so show best what else takes cores.
A phase with Ray is held against the mean of the two without it on either side, so that a drift
cancels. How far these two are from each other is what the bench cannot see below, and is told
beside it. The claim: the median of the ratios differs from 1 by less than 2 % in every case.

Needs root, Ray and what a lab needs.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tonnage.artifacts import write_atomically
from tonnage.measure.environment import capture
from tonnage.statistics.quantiles import quantile_estimate

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
    in_memory: bool = False


def cases(seconds: float) -> list[Case]:
    """Reads, operations, cores alone."""
    common = ("--seconds", f"{seconds}", "--rounds", "1")
    disk = ("disk", "--mode", "ro", "--size", "1GB", *common)
    ops = ("ops", "--operation", "read4k", "--outstanding", "16", "--file-size", "256MB", *common)
    return [
        Case("reads", disk, "ro"),
        Case("operations", ops, "read4k x16"),
        Case("cores", (*ops, "--engine", "sync"), "read4k x16", in_memory=True),
    ]


def tonnage(*command: str) -> str:
    """What the command prints."""
    done = subprocess.run([*TONNAGE, *command], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"tonnage {' '.join(command)}: {done.stderr.strip()}")
    return done.stdout


@contextmanager
def lab(name: str, options: argparse.Namespace, with_ray: bool) -> Iterator[str]:
    """A lab of one node, gone afterwards: the directory of its disk."""
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
        file.write(LAB.format(name=name, mb_per_s=options.mb_per_s, iops=options.iops))
        file.flush()
        tonnage("lab", "up", file.name)
    try:
        if with_ray:
            tonnage("lab", "ray", "--lab", name)
        told = json.loads(tonnage("lab", "status", "--lab", name, "--json"))
        yield told["nodes"][0]["disks"][0]["path"]
    finally:
        tonnage("lab", "down", "--lab", name)


def measured(name: str, directory: str, case: Case, with_ray: bool) -> float:
    """One measurement on the node: its figure, in bytes a second."""
    with tempfile.TemporaryDirectory() as kept, tempfile.TemporaryDirectory(dir=MEMORY) as memory:
        where = memory if case.in_memory else directory
        command = ["measure", *case.command, "--dir", where, "--out", f"{kept}/out", "--json"]
        command += ["--fleet", "auto"] if with_ray else []
        said = json.loads(tonnage("lab", "exec", "--lab", name, NODE, "--", *TONNAGE, *command))
    whole: dict[str, Any] = said["nodes"][0] if with_ray else said
    (figure,) = [each for each in whole["figures"] if each["name"] == case.figure]
    rate: float = figure["median_bytes_per_second"]
    return rate


def phase(options: argparse.Namespace, with_ray: bool) -> dict[str, float]:
    """All cases once, in a lab of their own."""
    with lab(options.lab, options, with_ray) as directory:
        return {
            case.name: measured(options.lab, directory, case, with_ray)
            for case in cases(options.seconds)
        }


def told(name: str, ratios: Sequence[float]) -> str:
    """Ratios in a line: the median, its interval, their range."""
    interval = quantile_estimate(ratios, 0.5).interval
    between = f"{min(ratios):.4f} to {max(ratios):.4f}"
    known = (
        f"{interval.low_value:.4f} to {interval.high_value:.4f}" if interval else "not estimable"
    )
    return f"{name} {statistics.median(ratios):.4f} (95 % {known}; all {between})"


def main() -> int:
    """Runs the phases in turns and prints a row for each case."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--mb-per-s", type=int, default=200)
    parser.add_argument("--iops", type=int, default=2000)
    parser.add_argument("--lab", default="overhead")
    parser.add_argument("--out", type=Path, default=Path("target/fleet-overhead.json"))
    options = parser.parse_args()
    if options.out.exists():
        parser.error(f"--out {options.out} is there: move it, or name another file")
    known = {
        "environment": dataclasses.asdict(capture([])),
        "options": {name: str(value) for name, value in vars(options).items()},
    }
    without, with_ray = [phase(options, with_ray=False)], []
    for number in range(options.rounds):
        with_ray.append(phase(options, with_ray=True))
        without.append(phase(options, with_ray=False))
        # After each round: one that is killed leaves what it had.
        found = {"without": without, "with_ray": with_ray}
        write_atomically(options.out, json.dumps(known | found).encode())
        print(f"round {number + 1} of {options.rounds}", file=sys.stderr)
    missed = []
    for case in cases(options.seconds):
        alone = [each[case.name] for each in without]
        beside = [statistics.mean(alone[place : place + 2]) for place in range(options.rounds)]
        ratios = [each[case.name] / of for each, of in zip(with_ray, beside, strict=True)]
        noise = [alone[place + 1] / alone[place] for place in range(options.rounds)]
        print(f"{case.name}: {told('with Ray over without', ratios)}; {told('noise', noise)}")
        if abs(statistics.median(ratios) - 1) >= MOST_DIFFERENCE:
            missed.append(case.name)
    print("missed: " + (", ".join(missed) or "nothing"))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
