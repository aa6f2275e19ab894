"""Efficiency of a sort on a cluster, and how it changes with the number of machines.

    sudo .venv/bin/python benches/cluster_sort/bench.py
    sudo .venv/bin/python benches/cluster_sort/bench.py --nodes 1 2 4 8 --durability none

Each number of machines has its own lab, in which each machine has its own link and disk, and the
same number of bytes. The bench measures disks and links, sorts the same input ``--rounds`` times
for each ``--durability``, and validates the output. The limit is what `tonnage run sort
--capacities` computes from the measured capacities. Needs root, Ray and what a lab needs; for
objects also the tests' S3 server.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import signal
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path

from machines import OBJECTS, Run, Setting, standing

from tonnage.base.records import write_atomically
from tonnage.base.records.base import to_builtins
from tonnage.measure.trial.environment import capture

MIN_EFFICIENCY = {"none": 0.90, "replicated": 0.85, OBJECTS: 0.85}
MAX_CPU_SECONDS = 3.0
"""For each GB, of all machines together, without replicas."""
MAX_GROWTH = 1.1
"""How much the ratio of both passes' seconds to their limit may grow, from two machines on.

Each of n machines sends (n - 1) / n of its data to others, so the limit itself grows, ever less.
"""


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0], formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    add = parser.add_argument
    add("--nodes", type=int, nargs="+", default=[4])
    add("--durability", nargs="+", choices=[*MIN_EFFICIENCY], default=["none", "replicated"])
    add("--rounds", type=int, default=3)
    add(
        "--gigabytes-per-node",
        type=float,
        default=2.0,
        help="GB (1e9 bytes) of input for each node",
    )
    add("--memory", default="1GiB", help="of each machine, as in tonnage run sort")
    add("--connections", type=int, default=None, help="as in tonnage run sort")
    add("--link-mb-per-s", type=float, default=60)
    add("--disk-mb-per-s", type=float, default=120)
    add("--out", type=Path, default=Path("target/cluster-sort.json"), help="every sample")
    add("--json", action="store_true", help="print that instead of a table")
    options = parser.parse_args(arguments)
    if options.out.exists():
        parser.error(f"--out {options.out} exists: move it, or name another file")
    return options


def missed(runs: Sequence[Run]) -> list[str]:
    """List the claims that the medians miss."""
    found = []
    groups: dict[tuple[int, str], list[Run]] = {}
    for run in runs:
        groups.setdefault((run.nodes, run.durability), []).append(run)
    for (nodes, durability), of_them in groups.items():
        what = f"{nodes} x {durability}"
        efficiency = statistics.median(run.compared["phase_efficiency"] for run in of_them)
        if efficiency < MIN_EFFICIENCY[durability]:
            found.append(f"{what}: {efficiency:.3f} of its limit")
        cpu = statistics.median(run.cpu_seconds_a_gb for run in of_them)
        if durability == "none" and cpu > MAX_CPU_SECONDS:
            found.append(f"{what}: {cpu:.2f} core seconds a GB")
        for phase in of_them[0].compared["phases"]:
            if not phase["as_limited"]:
                found.append(f"{what}: {phase['name']} is limited by {phase['bottleneck']}")
    for durability in MIN_EFFICIENCY:
        # With one machine there is no network.
        shares = {
            nodes: statistics.median(run.compared["phase_efficiency"] for run in of_them)
            for (nodes, kind), of_them in groups.items()
            if kind == durability and nodes > 1
        }
        if len(shares) > 1 and max(shares.values()) > MAX_GROWTH * min(shares.values()):
            found.append(
                f"{durability}: from {max(shares.values()):.3f} of the limit down to "
                f"{min(shares.values()):.3f}"
            )
    return found


def render(runs: Sequence[Run]) -> str:
    """Return a row for each run, then the missed claims."""
    lines = [
        "nodes durability  pass one: s, limit,  share  pass two: s, limit,  share  both    all s,"
        " share  CPU s/GB  driver: CPU s, MiB  stolen"
    ]
    for run in runs:
        phases = {phase["name"]: phase for phase in run.compared["phases"]}
        cells = "".join(
            f"{phase['seconds']:14.1f} {phase['limit_seconds']:6.1f} {phase['efficiency']:6.3f}"
            for phase in (phases["pass_one"], phases["pass_two"])
        )
        whole = run.record["seconds"]
        lines.append(
            f"{run.nodes:5} {run.durability:10}{cells}  {run.compared['phase_efficiency']:6.3f}  "
            f"{whole:5.1f} {run.efficiency:5.3f}  {run.cpu_seconds_a_gb:8.2f}  "
            f"{run.driver_cpu_seconds:12.1f} {run.driver_memory_bytes >> 20:6}  "
            f"{run.stolen_share:6.2f}"
        )
    return "\n".join([*lines, f"missed: {'; '.join(missed(runs)) or 'nothing'}"])


def main() -> int:
    """Run all, print the table; return 1 if a claim does not hold."""
    options = parse(sys.argv[1:])
    known = {
        "benchmark": "cluster_sort",
        "environment": to_builtins(capture([])),
        "options": {name: str(value) for name, value in vars(options).items()},
    }
    setting = Setting(
        gigabytes_per_node=options.gigabytes_per_node,
        memory=options.memory,
        connections=options.connections,
        link_mb_per_s=options.link_mb_per_s,
        disk_mb_per_s=options.disk_mb_per_s,
        has_store=OBJECTS in options.durability,
    )
    runs: list[Run] = []
    for count in options.nodes:
        durabilities = [each for each in options.durability if count > 1 or each != "replicated"]
        with standing(count, setting) as cluster:
            cluster.lay_out()
            capacities = cluster.measure()
            for _ in range(options.rounds):
                for durability in durabilities:
                    runs.append(cluster.sort(durability, capacities))
                    print(render(runs[-1:]).splitlines()[1], file=sys.stderr)
                    # After each run, so that a killed bench leaves its results.
                    told = known | {"runs": [dataclasses.asdict(run) for run in runs]}
                    told |= {"missed": missed(runs)}
                    write_atomically(options.out, json.dumps(told, indent=1).encode())
    print(options.out.read_text() if options.json else render(runs))
    return 1 if missed(runs) else 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # So that SIGTERM cleans up, too.
    sys.exit(main())
