"""Reductions of data in object storage, side by side: by Tonnage, a bare program, and others.

    .venv/bin/python benches/reduce_peers/bench.py [--systems tonnage dask] [--jobs kmeans] [--json]

README.md describes what is measured. Needs the tests' S3 server (tools/setup-tests), and what
`make -C benches/reduce_peers` installs.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tonnage.base.byte_sizes import bytes_of
from tonnage.base.records import write_atomically
from tonnage.base.records.base import to_builtins
from tonnage.measure.trial.environment import capture

sys.path.insert(1, str(Path(__file__).resolve().parent / "peers"))
sys.path.insert(1, str(Path(__file__).resolve().parents[1]))
sys.path.insert(1, str(Path(__file__).resolve().parents[1] / "sort_peers"))

import stores
from data import Data
from processes import adopt_orphans, descendants
from roster import JOBS, ROSTER, System

from measure import Rules, Run, run_once
from report import Row, claims, render, rows


class Unready(Exception):
    """Something is missing; the message states what to do."""


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Parse the command line."""
    names = [system.name for system in ROSTER]
    parser = argparse.ArgumentParser(
        description="Reductions of data in object storage, side by side.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    started = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    add = parser.add_argument
    add("--systems", nargs="+", choices=names, default=names, metavar="NAME", help="systems to run")
    add("--jobs", nargs="+", choices=JOBS, default=list(JOBS), help="jobs to run")
    add("--rounds", type=int, default=3, help="each with a new process of each system")
    add(
        "--iterations",
        type=int,
        default=4,
        help="iterations of a process; all but the first are warm",
    )
    add(
        "--bytes",
        type=_size,
        default="1GB",
        help="size of the points; the graph's edges are in proportion",
    )
    add("--workers", type=int, default=len(os.sched_getaffinity(0)), help="cores for each")
    add("--timeout", type=float, default=1200, help="seconds after which a run is stopped")
    add(
        "--directory",
        type=Path,
        default=stores.ROOT / "target/reduce-peers",
        help="directory of the objects",
    )
    out = stores.ROOT / f"target/reduce-peers-{started}.json"
    add("--out", type=Path, default=out, help="every sample")
    add("--json", action="store_true", help="print that instead of tables")
    options = parser.parse_args(arguments)
    if options.rounds < 1 or options.iterations < 2:
        parser.error(
            "--rounds: at least one; --iterations: at least two, because the first is cold"
        )
    return options


def _size(text: str) -> int:
    found = bytes_of(text)
    if found is None or found < 1 << 20:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a size of 1MiB or more: write it like 64MB"
        )
    return found


def by_turns(systems: Sequence[System], rounds: int) -> Iterator[tuple[int, System]]:
    """A B C, C B A: a change of the machine's speed affects everyone; slow systems run once."""
    for number in range(rounds):
        for system in systems if number % 2 == 0 else reversed(systems):
            if number == 0 or not system.slow:
                yield number, system


def document(
    options: argparse.Namespace, versions: dict[str, str], table: Sequence[Row]
) -> dict[str, Any]:
    """Return all results as JSON values, with the raw samples."""
    return {
        "benchmark": "reduce_peers",
        "environment": to_builtins(capture([])),
        "options": {name: str(value) for name, value in vars(options).items()},
        "versions": versions,
        "claims": [dataclasses.asdict(claim) for claim in claims(table)],
        "runs": [dataclasses.asdict(run) for row in table for run in row.runs],
    }


def main() -> int:
    """Run all systems, alternating; print a table for each job, and the claims."""
    options = parse(sys.argv[1:])
    systems = [system for system in ROSTER if system.name in options.systems]
    found = {system.name: system.version() for system in systems}
    if absent := [name for name, version in found.items() if version is None]:
        raise Unready(
            f"not installed: {', '.join(absent)}: run make -C benches/reduce_peers (and make for "
            "tonnage), or select others with --systems"
        )
    versions = {name: version for name, version in found.items() if version is not None}
    adopt_orphans()
    runs: list[Run] = []
    if not stores.SERVER.exists():
        raise Unready("the S3 server is not built: tools/setup-tests builds it, and needs Go")
    options.directory.mkdir(parents=True, exist_ok=True)
    with stores.served(options.directory) as endpoint:
        data = Data(endpoint, options.directory, options.bytes)
        print("making inputs and answers, unless they exist", file=sys.stderr)
        data.lay_out()
        leave = {each.pid for each in descendants()}
        rules = Rules(data, leave, options.workers, options.iterations, options.timeout)
        for job in options.jobs:
            able = [system for system in systems if job in system.jobs]
            for number, system in by_turns(able, options.rounds):
                run = run_once(system, job, number, rules)
                runs.append(run)
                table = rows(systems, options.jobs, versions, runs)
                # After each run, so that a killed bench leaves its results.
                whole = json.dumps(document(options, versions, table), indent=1)
                write_atomically(options.out, whole.encode())
                warm = ", ".join(f"{each.seconds:.2f}" for each in run.warm) or "-"
                how = f" ({run.failure})" if run.failure else ""
                print(f"{job}, {system.name}: {warm} s{how}", file=sys.stderr, flush=True)
    stated = claims(table)
    print(options.out.read_text() if options.json else render(table, stated))
    bad = any(run.failure for run in runs) or any(claim.holds is False for claim in stated)
    return 1 if bad else 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # So that SIGTERM cleans up, too.
    try:
        sys.exit(main())
    except Unready as why:
        sys.exit(f"bench.py: {why}")
