"""Sorts on a cluster, side by side: the same records on the same nodes, by Tonnage and by others.

    sudo .venv/bin/python benches/shuffle_peers/bench.py [--systems tonnage spark] [--json]

README.md describes what is measured, and how. Needs root, Ray installed with Tonnage, and what
`make -C benches/shuffle_peers` installs; without --unthrottled also what a lab needs.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

sys.path.insert(1, str(Path(__file__).resolve().parents[1] / "sort_peers"))

from groups import Unable
from nodes import NodeSet, in_a_lab, lay_out, on_this_machine
from roster import ROSTER, System
from validate import summarize

from measure import Rules, Run, run_once
from report import Row, missed, render, rows
from tonnage.base.records import write_atomically
from tonnage.base.records.base import to_builtins
from tonnage.measure.trial.environment import capture

ROOT = Path(__file__).resolve().parents[2]
GB = 1_000_000_000


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Parse the command line."""
    names = [system.name for system in ROSTER]
    parser = argparse.ArgumentParser(
        description="Sorts on a cluster, side by side.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    add = parser.add_argument
    add("--systems", nargs="+", choices=names, default=names, metavar="NAME", help="systems to run")
    add("--nodes", type=int, default=4)
    add(
        "--gigabytes-per-node",
        type=float,
        default=2.0,
        help="GB (1e9 bytes) of input for each node",
    )
    add("--rounds", type=int, default=6, help="a 95 %% interval needs six")
    add("--memory-mib", type=int, default=2560, help="of each node, page cache counted")
    add("--slots", type=int, default=2, help="concurrent tasks on a node of a peer")
    add("--timeout", type=float, default=1800, help="seconds after which a run is stopped")
    add("--link-mb-per-s", type=float, default=60)
    add("--disk-mb-per-s", type=float, default=120)
    add("--unthrottled", action="store_true", help="workers on this machine, without a lab")
    add(
        "--directory",
        type=Path,
        default=ROOT / "target",
        help="directory of their files, with --unthrottled",
    )
    add(
        "--tonnage",
        type=Path,
        default=ROOT / ".venv/bin/tonnage",
        help="the command, with Ray installed",
    )
    add("--out", type=Path, default=ROOT / "target/shuffle-peers.json", help="every sample")
    add("--json", action="store_true", help="print that instead of a table")
    options = parser.parse_args(arguments)
    if options.out.exists():
        parser.error(f"--out {options.out} exists: move it, or name another file")
    if options.nodes < 2:
        parser.error("--nodes: a shuffle needs at least two")
    return options


def standing(options: argparse.Namespace, input_bytes: int) -> AbstractContextManager[NodeSet]:
    """Start the nodes."""
    if options.unthrottled:
        return on_this_machine(options.nodes, options.directory)
    return in_a_lab(
        options.tonnage, options.nodes, options.link_mb_per_s, options.disk_mb_per_s, input_bytes
    )


def by_turns(systems: Sequence[System], rounds: int) -> Iterator[tuple[int, System]]:
    """A B C, C B A: a change of the machine's speed affects everyone."""
    for number in range(rounds):
        for system in systems if number % 2 == 0 else reversed(systems):
            yield number, system


def document(options: argparse.Namespace, table: Sequence[Row]) -> dict[str, Any]:
    """Return all results as JSON values, with the raw samples."""
    return {
        "benchmark": "shuffle_peers",
        "environment": to_builtins(capture([])),
        "options": {name: str(value) for name, value in vars(options).items()},
        "versions": {row.name: row.version for row in table},
        "missed": missed(table),
        "runs": [dataclasses.asdict(run) for row in table for run in row.runs],
    }


def main() -> int:
    """Run all systems, alternating; print a row for each, and the missed claims."""
    options = parse(sys.argv[1:])
    systems = [system for system in ROSTER if system.name in options.systems]
    versions = {system.name: system.found_version(options.tonnage) for system in systems}
    absent = [name for name, version in versions.items() if version is None]
    if absent:
        raise Unable(
            f"not installed: {', '.join(absent)}: run make -C benches/shuffle_peers (and make "
            "setup-test for tonnage), or select others with --systems"
        )
    input_bytes = int(options.gigabytes_per_node * GB)
    runs: list[Run] = []
    with standing(options, input_bytes) as node_set:
        lay_out(options.tonnage, node_set, input_bytes)
        rules = Rules(
            tonnage=options.tonnage,
            limit_bytes=options.memory_mib << 20,
            slots=options.slots,
            timeout_seconds=options.timeout,
            expected=summarize(options.tonnage, [node.input for node in node_set.nodes]),
        )
        for number, system in by_turns(systems, options.rounds):
            run = run_once(system, number, node_set, rules)
            runs.append(run)
            table = rows(versions, runs)
            # After each run, so that a killed bench leaves its results.
            write_atomically(options.out, json.dumps(document(options, table), indent=1).encode())
            how = "" if run.counts else f" (not valid: {run.verdict.reason})"
            print(f"{system.name}: {run.sample.wall_seconds:.1f} s{how}", file=sys.stderr)
    misses = missed(table)
    if options.json:
        print(options.out.read_text())
    else:
        print(render(table))
        print("\nmissed: " + ("; ".join(misses) or "nothing"))
    return 1 if misses else 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # So that SIGTERM cleans up, too.
    try:
        sys.exit(main())
    except Unable as why:
        sys.exit(f"bench.py: {why}")
