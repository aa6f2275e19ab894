"""Compared with fio, IOR and iperf3: operations on one file, sequential files, a network.

    .venv/bin/python benches/io_peers/bench.py --dir DIR

Each case runs in pairs, Tonnage and its peer one right after the other, in random order; the pairs
of all cases come in a random, seeded order. The ratio is taken within a pair, because the same
command varies by up to 1.8 times here. Each case prints the median of the ratios, with a 95 %
interval of order statistics, and whether it holds the claim:

    operations   rate at least 0.97 of fio's; p50 and p99 at most 1.05 of fio's; core seconds an
                 operation at most fio's
    files        if IOR is installed: bytes a second within 3 % of IOR's
    network      bytes a second, and bytes a core second of both sides together, at least iperf3's:
                 one way over loopback; all to all between namespaces, as root

Both sides run in processes of their own. Core seconds are what the kernel counted for a process and
its children. The cost of a run that does next to nothing is subtracted, its operations and bytes
too, because start-up says nothing about either. `operations.py`, `files.py` and `network.py`
describe how each side is called. Ends with 1 if a claim is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import files
import huge_pages
import network
import operations
import typer
from child import first_line

import tonnage
from tonnage.base import core
from tonnage.base.clock import utc_now
from tonnage.base.records import write_atomically
from tonnage.base.records.base import to_builtins
from tonnage.base.stats.quantiles import quantile_estimate
from tonnage.base.system.activity import ActivityMonitor
from tonnage.base.system.block_devices import devices_of
from tonnage.cli.options.types import parse_size
from tonnage.measure.net.endpoint import EndpointHost
from tonnage.measure.net.namespaces import namespaces
from tonnage.measure.trial import environment

START_RUNS = 3
"""Runs that measure the start-up of a program."""
PEERS = {"operations": "fio", "files": "ior", "network": "iperf3"}

Sample = operations.Sample | files.Sample | network.Sample


@dataclass(frozen=True)
class Case:
    """A case; each side is called with the seconds to measure, or 0 for next to nothing."""

    name: str
    kind: str
    ours: Callable[[float], Sample]
    theirs: Callable[[float], Sample]


@dataclass(frozen=True)
class Claim:
    """A bound of ours over theirs."""

    figure: str
    least: float | None = None
    most: float | None = None

    def holds(self, ratio: float) -> bool:
        """Return whether a ratio keeps the bounds."""
        return (self.least is None or ratio >= self.least) and (
            self.most is None or ratio <= self.most
        )

    def __str__(self) -> str:
        bounds = {"at least": self.least, "at most": self.most}
        return " and ".join(f"{word} {bound}" for word, bound in bounds.items() if bound)


CLAIMS = {
    "operations": (
        Claim("per_second", least=0.97),
        Claim("p50_seconds", most=1.05),
        Claim("p99_seconds", most=1.05),
        Claim("cpu_seconds_each", most=1.0),
    ),
    "files": (Claim("bytes_per_second", least=0.97, most=1.03),),
    "network": (
        Claim("bytes_per_second", least=1.0),
        Claim("bytes_per_cpu_second", least=1.0),
    ),
}


def size(text: str) -> int:
    """Parse a size as Tonnage's own options do."""
    try:
        return parse_size(text)
    except typer.BadParameter as why:
        raise argparse.ArgumentTypeError(why.message) from why


def parse() -> argparse.Namespace:
    """Parse and check the options."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add(
        "--dir",
        type=Path,
        default=Path("target"),
        help="directory on the device; the file stays there",
    )
    add("--size", type=size, default="4GB", help="size of the file, which is written once")
    add("--pairs", type=int, default=12, help="pairs of each case")
    add("--seconds", type=float, default=4.0, help="measured seconds of a run")
    add("--warm-up", type=float, default=1.0, help="seconds before the measured ones")
    add("--operations", default=",".join(operations.CASES), help="read4k:16,... or empty")
    add("--files", default=",".join(files.CASES), help="read:2,... or empty")
    add("--streams", default=",".join(map(str, network.STREAMS)), help="1,4 or empty")
    add("--nodes", default="4" if os.geteuid() == 0 else "", help="all to all; 2,4 or empty")
    add("--submission", choices=("single", "batched"), default="single", help="how Tonnage submits")
    add(
        "--block",
        type=int,
        help="block in bytes for both sides of the network; by default each side's own",
    )
    add("--seed", type=int, default=1, help="seed of the order")
    add("--out", type=Path, default=Path("target/io_peers.json"))
    options = parser.parse_args()
    options.operations = [case for case in options.operations.split(",") if case]
    options.streams = [int(each) for each in options.streams.split(",") if each]
    options.nodes = [int(each) for each in options.nodes.split(",") if each]
    if options.out.exists():
        parser.error(f"--out {options.out} holds earlier results: name another file")
    if options.nodes and os.geteuid():
        parser.error("--nodes are network namespaces, which only root can make: use --nodes ''")
    for kind, flag in (("operations", "operations"), ("network", "streams"), ("network", "nodes")):
        if getattr(options, flag) and not shutil.which(PEERS[kind]):
            parser.error(f"{PEERS[kind]} is not on the PATH: install it, or use --{flag} ''")
    options.files = [case for case in options.files.split(",") if case]
    if options.files and (missing := files.missing_programs()):
        print(f"Sequential files are left out: {', '.join(missing)} not on the PATH.")
        options.files = []
    for flag, read in (("operations", operations.parse), ("files", files.parse)):
        try:
            setattr(options, flag, [(case, read(case)) for case in getattr(options, flag)])
        except ValueError as why:
            parser.error(f"--{flag}: {why}")
    return options


def cases(options: argparse.Namespace, stack: ExitStack) -> list[Case]:
    """Return the cases, ready to run: the file exists, and namespaces until the stack closes."""
    found = []
    if options.operations:
        file = operations.lay_out(options.dir, options.size)
        setup = operations.Setup(file, options.warm_up, options.submission == "batched")
        for name, case in options.operations:
            sides = [partial(side, case, setup) for side in (operations.ours, operations.fio)]
            found.append(Case(name, "operations", *sides))
    if options.files:
        room = files.lay_out(options.dir, [case for _, case in options.files], options.size)
        for name, case in options.files:
            sides = [partial(side, case, room) for side in (files.ours, files.ior)]
            found.append(Case(f"files, {name}", "files", *sides))
    loopback = (EndpointHost(network.LOOPBACK),) * 2
    networks = [
        (f"{streams} streams", network.Case(loopback, streams, False, *how(options)))
        for streams in options.streams
    ]
    if options.nodes:
        places = stack.enter_context(namespaces(max(options.nodes)))
        networks += [
            (f"{nodes} nodes", network.Case(tuple(places[:nodes]), 1, True, *how(options)))
            for nodes in options.nodes
        ]
    for name, case in networks:
        sides = [partial(side, case) for side in (network.ours, network.iperf3)]
        found.append(Case(name, "network", *sides))
    return found


def how(options: argparse.Namespace) -> tuple[float, int | None]:
    """Return the settings that all network cases share."""
    return options.warm_up, options.block


def figures(sample: Sample, start: Sample) -> dict[str, float]:
    """Return the figures of a run, without the cost of starting."""
    cpu = sample.cpu_seconds - start.cpu_seconds
    if isinstance(sample, operations.Sample) and isinstance(start, operations.Sample):
        return {
            "per_second": sample.per_second,
            "p50_seconds": sample.p50_seconds,
            "p99_seconds": sample.p99_seconds,
            "cpu_seconds_each": cpu / (sample.count - start.count),
        }
    if isinstance(sample, files.Sample):
        return {"bytes_per_second": sample.bytes_per_second}
    assert isinstance(sample, network.Sample) and isinstance(start, network.Sample)
    return {
        "bytes_per_second": sample.bytes_per_second,
        "bytes_per_cpu_second": (sample.bytes - start.bytes) / cpu,
    }


def version(kind: str, directory: Path) -> str:
    """Return a peer's version."""
    return files.version(directory) if kind == "files" else first_line(PEERS[kind], "--version")


def start_of(run: Callable[[float], Sample]) -> Sample:
    """Measure start-up: of some runs that do next to nothing, the median one by its CPU."""
    runs = sorted((run(0.0) for _ in range(START_RUNS)), key=lambda sample: sample.cpu_seconds)
    return runs[START_RUNS // 2]


def pair(
    case: Case, starts: dict[str, Sample], options: argparse.Namespace, order: random.Random
) -> dict[str, Any]:
    """Run one pair: a row with both sides, and the machine's other activity."""
    sides = {"tonnage": case.ours, PEERS[case.kind]: case.theirs}
    names = list(sides)
    order.shuffle(names)
    row: dict[str, Any] = {"case": case.name, "began_at": utc_now(), "first": names[0]}
    row["load_before"] = os.getloadavg()[0]
    devices = devices_of(options.dir)
    for name in names:
        with ActivityMonitor(*devices) as monitor:
            sample = sides[name](options.seconds)
        happened = monitor.activity
        assert happened
        # Of the cores' time that passed, the run's own is not foreign.
        foreign = max(happened.foreign_cpu_seconds - sample.cpu_seconds, 0.0)
        row[name] = {
            **figures(sample, starts[name]),
            "raw": asdict(sample),
            "foreign_cpu_seconds": foreign,
            "stolen_cpu_seconds": happened.stolen_cpu_seconds,
            "device_reads": happened.device_reads,
            "device_writes": happened.device_writes,
        }
    return row


def show(row: dict[str, Any], kind: str) -> str:
    """Return a pair as a line."""
    ours, theirs = row["tonnage"], row[PEERS[kind]]
    ratios = ", ".join(
        f"{claim.figure} {ours[claim.figure] / theirs[claim.figure]:.3f}" for claim in CLAIMS[kind]
    )
    other = max(side["foreign_cpu_seconds"] + side["stolen_cpu_seconds"] for side in (ours, theirs))
    return f"{row['case']}: {ratios} (others used at most {other:.1f} core seconds)"


def verdict(name: str, kind: str, rows: Sequence[dict[str, Any]]) -> tuple[list[str], bool]:
    """Return a case's claims with the measured values, and whether all hold."""
    peer, lines, kept = PEERS[kind], [], True
    for claim in CLAIMS[kind]:
        ours = [row["tonnage"][claim.figure] for row in rows]
        theirs = [row[peer][claim.figure] for row in rows]
        estimate = quantile_estimate([a / b for a, b in zip(ours, theirs, strict=True)])
        holds = claim.holds(estimate.value)
        kept = kept and holds
        within = "not estimable"
        if estimate.interval:
            within = f"{estimate.interval.low_value:.3f} .. {estimate.interval.high_value:.3f}"
        middles = [quantile_estimate(side).value for side in (ours, theirs)]
        swings = [max(side) / min(side) for side in (ours, theirs)]
        lines.append(
            f"{'holds' if holds else 'MISSED'}: {name} {claim.figure} {estimate.value:.3f} "
            f"[{within}], claimed {claim}; tonnage {middles[0]:.4g}, {peer} {middles[1]:.4g}; "
            f"their own runs vary {swings[0]:.2f} and {swings[1]:.2f} times"
        )
    return lines, kept


def compare(options: argparse.Namespace, all_cases: Sequence[Case], pages: str) -> dict[str, Any]:
    """Run the pairs; write all samples after each."""
    result: dict[str, Any] = {
        "began_at": utc_now(),
        "command": sys.argv,
        "environment": to_builtins(environment.capture([options.dir])),
        "versions": {"tonnage": tonnage.__version__}
        | {PEERS[kind]: version(kind, options.dir) for kind in {c.kind for c in all_cases}},
        "debug_build": core.is_debug_build(),
        "pages": pages,
        "samples": [],
    }
    versions = ", ".join(f"{name} {version}" for name, version in result["versions"].items())
    print(f"{versions}; {pages}")
    starts = {
        case.name: {"tonnage": start_of(case.ours), PEERS[case.kind]: start_of(case.theirs)}
        for case in all_cases
    }
    result["starts"] = {
        name: {side: asdict(sample) for side, sample in sides.items()}
        for name, sides in starts.items()
    }
    order = random.Random(options.seed)
    agenda = [case for case in all_cases for _ in range(options.pairs)]
    order.shuffle(agenda)
    for number, case in enumerate(agenda, start=1):
        row = pair(case, starts[case.name], options, order)
        result["samples"].append(row)
        write_atomically(options.out, json.dumps(result).encode())
        print(f"{number}/{len(agenda)} {show(row, case.kind)}", flush=True)
    return result


def main() -> int:
    """Run the pairs and print the claims."""
    options = parse()
    with ExitStack() as stack:
        all_cases = cases(options, stack)
        with huge_pages.set_aside() as pages:
            result = compare(options, all_cases, pages)
    all_kept = True
    for case in all_cases:
        rows = [row for row in result["samples"] if row["case"] == case.name]
        lines, kept = verdict(case.name, case.kind, rows)
        all_kept = all_kept and kept
        print("\n".join(lines))
    print("all claims hold" if all_kept else "some claims are missed")
    return 0 if all_kept else 1


if __name__ == "__main__":
    sys.exit(main())
