"""Measure random labs: are the measured capacities those that were set, and which node is slowest?

    sudo .venv/bin/python benches/lab_truth/bench.py [--seeds 1 2 3] [--json]

Each seed is a lab of 2 to 6 nodes of several types, with links of 20 to 100 MB/s and disks of 30 to
200 MB/s, such that one node alone has the slowest disk, in each direction, and the slowest link, by
at least 10 %. The lab is started, `tonnage measure --cluster auto` measures its disks and its
network, and it is removed. The claim: every capacity within 3 % of what was set, and the slowest
node identified correctly.

The true rate of a link is what the node can exchange with all others: its own rate, or, if that is
less, the sum of theirs. So with two nodes neither has the slower link. A disk that is read and
written at once is as fast as the slower direction.

Needs root, Ray installed with Tonnage, 25 GB of disk in /var/lib, and a disk there that is as fast
as the nodes' disks together; with --one-at-a-time, as fast as one of them.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MAX_DEVIATION = 0.03
APART = 1.1
"""The second slowest node is at least so many times as fast as the slowest."""
MB = 1_000_000
NODES, LINKS, DISKS = (2, 6), (20, 100), (30, 200)
DISK, LINK = ("ro", "wo", "rw"), ("send", "receive")
"""What is measured: reading, writing, both at once; the link of each node with all others."""
LAB = "lab-truth"
ROOM = Path("/var/lib/tonnage-lab") / LAB
FILE_SYSTEM_BYTES = 300 * MB
"""The largest overhead of a file system."""
TONNAGE = Path(sys.executable).parent / "tonnage"


@dataclass(frozen=True)
class Type:
    """A type of machine: MB/s."""

    name: str
    link: int
    read: int
    write: int

    def text(self, count: int, disk_bytes: int) -> str:
        """Return ``count`` machines of the type as a section of a lab's file."""
        return (
            f'[[machine]]\ntype = "{self.name}"\ncount = {count}\nprice_usd_per_hour = 1\n'
            f"link_mb_per_s = {self.link}\ndisks = [{{ size = {disk_bytes}, "
            f"read_mb_per_s = {self.read}, write_mb_per_s = {self.write} }}]\n"
        )


@dataclass(frozen=True)
class Row:
    """A capacity of a node; bytes a second."""

    node: str
    what: str
    truth: float
    found: float | None

    @property
    def deviation(self) -> float:
        """Relative to what was set; 1 if it was not measured."""
        return 1.0 if self.found is None else self.found / self.truth - 1


def drawn(seed: int) -> dict[str, Type]:
    """Draw the nodes of a seed's lab, each with its type."""
    dice = random.Random(seed)
    count = dice.randint(*NODES)
    while True:
        types = [
            Type(f"t{number}", dice.randint(*LINKS), dice.randint(*DISKS), dice.randint(*DISKS))
            for number in range(dice.randint(2, count))
        ]
        # Every type occurs; the other nodes may have any type.
        of = sorted([*range(len(types)), *dice.choices(range(len(types)), k=count - len(types))])
        nodes = {
            f"{types[each].name}-{number - of.index(each)}": types[each]
            for number, each in enumerate(of)
        }
        truth = truths(nodes)
        if all(_apart(truth[what]) or (what in LINK and count == 2) for what in truth):
            return nodes


def truths(nodes: Mapping[str, Type]) -> dict[str, dict[str, float]]:
    """Return the true capacities, by kind and node; bytes a second."""
    links = {
        node: float(min(own.link, sum(each.link for each in nodes.values()) - own.link))
        for node, own in nodes.items()
    }
    found = {
        "ro": {node: float(own.read) for node, own in nodes.items()},
        "wo": {node: float(own.write) for node, own in nodes.items()},
        "rw": {node: float(min(own.read, own.write)) for node, own in nodes.items()},
        "send": links,
        "receive": links,
    }
    return {what: {node: rate * MB for node, rate in of.items()} for what, of in found.items()}


def _apart(rates: Mapping[str, float]) -> bool:
    """Return whether one node is clearly the slowest."""
    first, second, *_ = sorted(rates.values())
    return second >= APART * first


@contextmanager
def lab(nodes: Mapping[str, Type], disk_bytes: int) -> Iterator[str]:
    """Start a lab of these nodes, with Ray; yields the name of its first node."""
    kinds = list(nodes.values())
    text = f'[lab]\nname = "{LAB}"\n'
    text += "".join(each.text(kinds.count(each), disk_bytes) for each in dict.fromkeys(kinds))
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
        file.write(text)
        file.flush()
        _run_json("lab", "up", file.name, "--json")
    try:
        yield _run_json("lab", "ray", "--lab", LAB, "--json")["head"]
    finally:
        _run_json("lab", "down", "--lab", LAB, "--json")


def measured(head: str, nodes: Mapping[str, Type], options: argparse.Namespace) -> Iterator[Row]:
    """Measure all capacities of a running lab."""
    truth = truths(nodes)
    on_head = ("lab", "exec", "--lab", LAB, head, "--", TONNAGE, "measure")
    with tempfile.TemporaryDirectory() as out:
        disk = (
            *("--mode", *DISK, "--repetitions", "1", "--seconds", options.seconds),
            *("--size", _trial_bytes(options), "--dir", ROOM / "{node}.disk-0"),
            *(["--one-at-a-time"] if options.one_at_a_time else []),
        )
        result = _run_json(
            *on_head, "disk", "--cluster", "auto", *disk, "--output", f"{out}/disk", "--json"
        )
        rates = {
            (row["node"], trial["name"]): trial["bytes_per_second"]
            for row in result["nodes"]
            for trial in row.get("trials", [])
        }
        if not options.no_net:
            net = ("--seconds", options.net_seconds, "--repetitions", "3", "--connections", "1")
            result = _run_json(
                *on_head, "net", "--cluster", "auto", *net, "--output", f"{out}/net", "--json"
            )
            rates |= {
                (row["node"], way): row[f"{way}_bytes_per_second"]
                for row in result["links"]
                for way in LINK
            }
    for what in DISK if options.no_net else DISK + LINK:
        for node in nodes:
            yield Row(node, what, truth[what][node], rates.get((node, what)))


def slowest(rows: Sequence[Row]) -> dict[str, tuple[str, str]]:
    """Return the slowest node and the one that was found, for each kind that has a slowest one."""
    found = {}
    for what in dict.fromkeys(row.what for row in rows):
        of = [row for row in rows if row.what == what]
        if _apart({row.node: row.truth for row in of}):
            right = min(of, key=lambda row: row.truth).node
            found[what] = right, min(of, key=lambda row: row.found or math.inf).node
    return found


def _trial_bytes(options: argparse.Namespace) -> int:
    """Return the bytes that the fastest disk moves in a trial."""
    return int(DISKS[1] * MB * options.seconds)


def _run_json(*args: Any) -> Any:
    """Run a command of Tonnage; return its JSON output."""
    done = subprocess.run(
        [TONNAGE, *map(str, args)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
    )
    if done.returncode:
        sys.exit(f"tonnage {' '.join(map(str, args))} ended with {done.returncode}")
    return json.loads(done.stdout)


def main() -> int:
    """Start, measure and remove a lab for each seed; print a table of each, and a verdict."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, nargs="+", default=list(range(1, 11)))
    parser.add_argument("--seconds", type=float, default=8.0, help="seconds of a trial of disks")
    parser.add_argument("--net-seconds", type=float, default=3.0)
    parser.add_argument(
        "--one-at-a-time", action="store_true", help="measure one node's disk at a time"
    )
    parser.add_argument("--no-net", action="store_true", help="measure disks only")
    parser.add_argument("--json", action="store_true", help="print one JSON document instead")
    options = parser.parse_args()
    if ROOM.exists():
        parser.error(f"a lab {LAB} is up: remove it with tonnage lab down --lab {LAB}")
    labs, missed = [], []
    for seed in options.seeds:
        nodes = drawn(seed)
        with lab(nodes, 2 * _trial_bytes(options) + FILE_SYSTEM_BYTES) as head:
            rows = list(measured(head, nodes, options))
        named = slowest(rows)
        far = [row for row in rows if abs(row.deviation) > MAX_DEVIATION]
        missed += [f"seed {seed}: {row.node} {row.what} {row.deviation:+.1%}" for row in far]
        missed += [
            f"seed {seed}: slowest {what} is {right}, found {found}"
            for what, (right, found) in named.items()
            if right != found
        ]
        labs.append({"seed": seed, "rows": [vars(row) for row in rows], "slowest": named})
        if not options.json:
            print("\n".join(table(seed, rows, named)), flush=True)
    if options.json:
        print(json.dumps({"labs": labs, "missed": missed}))
    else:
        print("missed: " + (", ".join(missed) or "nothing"))
    return 1 if missed else 0


def table(seed: int, rows: Sequence[Row], named: Mapping[str, tuple[str, str]]) -> Iterator[str]:
    """Return a lab in lines: each node's capacities in MB/s, as set, as measured, and the error."""
    yield f"seed {seed}"
    for node in dict.fromkeys(row.node for row in rows):
        cells = [
            f"{row.what} {row.truth / MB:g}: "
            + ("none" if row.found is None else f"{row.found / MB:.1f} ({row.deviation:+.1%})")
            for row in rows
            if row.node == node
        ]
        yield f"  {node}: {'; '.join(cells)}"
    worst = max(abs(row.deviation) for row in rows)
    right = sum(1 for one, other in named.values() if one == other)
    yield f"  at most {worst:.1%} off; {right} of {len(named)} slowest nodes identified correctly"


if __name__ == "__main__":
    sys.exit(main())
