"""The nodes: those of a lab, whose links and disks have set speeds, or workers on this machine.

Each node has an address, and a directory that is its disk, with `input`, `output` and `scratch` in
it. The code that sorts is the same in both cases: a command on a lab's node has
`tonnage lab exec NODE --` in front, which puts it into the node's network and control groups. Files
are this machine's, so nothing keeps a node from reading another one's disk, past its throttle: who
reads where is for each peer to say.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from groups import Groups

from tonnage.provision import lab as labs
from tonnage.provision.lab.throttling import controllers, group_directories

RECORD_BYTES = 100
FILE = "records"
LAB = "shuffle"
TYPE = "n"
DISK_TIMES = 6
"""A disk's size over its input: inputs, shuffled and sorted blocks may all be spilled at once."""
FILE_SYSTEM_BYTES = 400_000_000
NETWORK = "127.0.1"
"""Of workers on this machine: each has an address of its own, as nodes have."""


@dataclass(frozen=True)
class Node:
    """One node."""

    name: str
    address: str
    disk: Path
    groups: tuple[Path, ...] = ()
    """A lab's control groups of it."""
    entrance: tuple[str, ...] = ()
    """What is in front of a command on it."""

    @property
    def input(self) -> Path:
        """Its records."""
        return self.disk / "input" / FILE

    @property
    def output(self) -> Path:
        """Where it writes what is sorted."""
        return self.disk / "output"

    @property
    def scratch(self) -> Path:
        """Where it spills."""
        return self.disk / "scratch"

    def command(self, groups: Groups, command: Sequence[str]) -> list[str]:
        """What runs a command here, within groups."""
        return [*self.entrance, *groups.command(command)]


@dataclass(frozen=True)
class NodeSet:
    """All nodes."""

    nodes: tuple[Node, ...]
    disks: str
    """The path of each disk, with {node} for the node's name."""

    def clear(self) -> None:
        """Nothing in the nodes' outputs and scratch directories."""
        for node in self.nodes:
            for directory in (node.output, node.scratch):
                shutil.rmtree(directory, ignore_errors=True)
                directory.mkdir(parents=True)

    def start_cold(self) -> None:
        """Writes back what is dirty, then drops the inputs' cached pages."""
        os.sync()
        for node in self.nodes:
            file = os.open(node.input, os.O_RDONLY)
            try:
                os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
            finally:
                os.close(file)


@contextmanager
def on_this_machine(count: int, where: Path) -> Iterator[NodeSet]:
    """Workers on loopback, with directories in one that is gone afterwards."""
    where.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=where, ignore_cleanup_errors=True) as made:
        names = [f"{TYPE}-{number}" for number in range(count)]
        nodes = tuple(
            Node(name, f"{NETWORK}.{number + 1}", Path(made) / name)
            for number, name in enumerate(names)
        )
        yield NodeSet(nodes, f"{made}/{{node}}")


@contextmanager
def in_a_lab(
    tonnage: Path, count: int, link_mb_per_s: float, disk_mb_per_s: float, input_bytes: int
) -> Iterator[NodeSet]:
    """A lab's nodes; it is gone afterwards.

    Args:
        tonnage: The command.
        count: How many.
        link_mb_per_s: Of each node, each way.
        disk_mb_per_s: Of each node's disk, reading and writing.
        input_bytes: What each node's input is, of which its disk holds several times as much.
    """
    text = (
        f'[lab]\nname = "{LAB}"\n[[machine]]\ntype = "{TYPE}"\ncount = {count}\n'
        f"price_usd_per_hour = 1\nlink_mb_per_s = {link_mb_per_s}\n"
        f"disks = [{{ size = {DISK_TIMES * input_bytes + FILE_SYSTEM_BYTES}, "
        f"read_mb_per_s = {disk_mb_per_s}, write_mb_per_s = {disk_mb_per_s} }}]\n"
    )
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
        file.write(text)
        file.flush()
        _run(tonnage, "lab", "up", file.name)
    try:
        told = json.loads(_run(tonnage, "lab", "status", "--lab", LAB, "--json"))
        record, known = labs.require_up(labs.STATE_DIR, LAB), list(controllers().values())
        nodes = tuple(
            Node(
                name=row["node"],
                address=row["address"],
                disk=Path(row["disks"][0]["path"]),
                groups=tuple(group_directories(labs.find_node(record, row["node"]), known)),
                entrance=(str(tonnage), "lab", "exec", "--lab", LAB, row["node"], "--"),
            )
            for row in told["nodes"]
        )
        yield NodeSet(nodes, str(nodes[0].disk).replace(nodes[0].name, "{node}"))
    finally:
        _run(tonnage, "lab", "down", "--lab", LAB)


def lay_out(tonnage: Path, node_set: NodeSet, input_bytes: int) -> None:
    """The sort benchmark's records, in order of their numbers shared out among the nodes."""
    for node in node_set.nodes:
        node.input.parent.mkdir(parents=True, exist_ok=True)
    records = input_bytes // RECORD_BYTES * len(node_set.nodes)
    _run(tonnage, "gensort", str(records), *(str(node.input) for node in node_set.nodes))


def _run(tonnage: Path, *arguments: str) -> str:
    done = subprocess.run(
        [str(tonnage), *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    if done.returncode:
        raise RuntimeError(f"tonnage {' '.join(arguments[:2])}: {done.stderr.strip()}")
    return done.stdout
