"""The nodes: those of a lab, whose links and disks are throttled, or workers on this machine.

Each node has an address, and a directory as its disk, with `input`, `output` and `scratch` in it.
The code that sorts is the same in both cases: a command on a lab's node is prefixed with
`tonnage lab exec NODE --`, which puts it into the node's network and control groups. Files are this
machine's, so a node could read another node's disk, without its throttle: each peer has to ensure
that its readers are on the right node.
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
"""A disk's size over its input: inputs, shuffled and sorted blocks may all be on it at once."""
FILE_SYSTEM_BYTES = 400_000_000
NETWORK = "127.0.1"
"""Network of workers on this machine: each has its own address, like a node."""


@dataclass(frozen=True)
class Node:
    """One node."""

    name: str
    address: str
    disk: Path
    groups: tuple[Path, ...] = ()
    """Its control groups in a lab."""
    entrance: tuple[str, ...] = ()
    """The prefix of a command on it."""

    @property
    def input(self) -> Path:
        """Its input file."""
        return self.disk / "input" / FILE

    @property
    def output(self) -> Path:
        """Directory of its output."""
        return self.disk / "output"

    @property
    def scratch(self) -> Path:
        """Directory of its spilled data."""
        return self.disk / "scratch"

    def command(self, groups: Groups, command: Sequence[str]) -> list[str]:
        """Return a command that runs ``command`` here, within groups."""
        return [*self.entrance, *groups.command(command)]


@dataclass(frozen=True)
class NodeSet:
    """All nodes."""

    nodes: tuple[Node, ...]
    disks: str
    """The path of each disk, with {node} for the node's name."""

    def clear(self) -> None:
        """Empty the nodes' output and scratch directories."""
        for node in self.nodes:
            for directory in (node.output, node.scratch):
                shutil.rmtree(directory, ignore_errors=True)
                directory.mkdir(parents=True)

    def start_cold(self) -> None:
        """Write back dirty pages, then drop the inputs' cached pages."""
        os.sync()
        for node in self.nodes:
            file = os.open(node.input, os.O_RDONLY)
            try:
                os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
            finally:
                os.close(file)


@contextmanager
def on_this_machine(count: int, where: Path) -> Iterator[NodeSet]:
    """Yield workers on loopback, with directories in a temporary one."""
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
    """Start a lab; yields its nodes.

    Args:
        tonnage: The command.
        count: Number of nodes.
        link_mb_per_s: Rate of each node's link, each way.
        disk_mb_per_s: Rate of each node's disk, reading and writing.
        input_bytes: Size of each node's input; its disk is several times as large.
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
        status = json.loads(_run(tonnage, "lab", "status", "--lab", LAB, "--json"))
        record, known = labs.require_up(labs.STATE_DIR, LAB), list(controllers().values())
        nodes = tuple(
            Node(
                name=row["node"],
                address=row["address"],
                disk=Path(row["disks"][0]["path"]),
                groups=tuple(group_directories(labs.find_node(record, row["node"]), known)),
                entrance=(str(tonnage), "lab", "exec", "--lab", LAB, row["node"], "--"),
            )
            for row in status["nodes"]
        )
        yield NodeSet(nodes, str(nodes[0].disk).replace(nodes[0].name, "{node}"))
    finally:
        _run(tonnage, "lab", "down", "--lab", LAB)


def lay_out(tonnage: Path, node_set: NodeSet, input_bytes: int) -> None:
    """Write the sort benchmark's records, in order of their numbers, to the nodes."""
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
