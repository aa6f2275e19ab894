"""Cost of losing a machine halfway through a sort on a cluster.

    sudo .venv/bin/python benches/node_lost/bench.py

In pairs: a sort undisturbed, and the same sort with a machine lost when half of all bytes are
written; every second pair in reverse order. README.md describes the machines and what "lost"
means. The claim: the median of the ratios is at most 1.6. Needs root, Ray and what a
lab needs.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tonnage.base.records import write_atomically
from tonnage.base.records.base import to_builtins
from tonnage.base.system.block_devices import loop_devices, mount_steps
from tonnage.base.system.procfs import core_seconds
from tonnage.measure.trial.environment import capture
from tonnage.provision import lab as labs
from tonnage.provision.lab.config import DiskConfig
from tonnage.provision.lab.nodes import Node
from tonnage.provision.lab.throttling import controllers, device_number, throttle_steps

MAX_RATIO = 1.6
LAB = "lost"
HEAD, OTHERS, VICTIM = "head", "n", "n-0"
DISK_TIMES = 4
"""A disk's size over a node's share of the input: scratch and output, twice each."""
FILE_SYSTEM_BYTES = 400_000_000
RECORD_BYTES = 100
SECTOR_BYTES = 512
WRITTEN = 6
"""Index of the sectors written in a device's ``stat`` (Documentation/block/stat.rst)."""
TONNAGE = (sys.executable, "-m", "tonnage")
GB = 1_000_000_000
FILE = """
[lab]
name = "{lab}"
[[machine]]
type = "{head}"
price_usd_per_hour = 1
link_mb_per_s = {link}
disks = [{disk}, {{ size = {volume} }}]
[[machine]]
type = "{others}"
count = {count}
price_usd_per_hour = 1
link_mb_per_s = {link}
disks = [{disk}]
"""
DISK = "{{ size = {size}, read_mb_per_s = {rate}, write_mb_per_s = {rate} }}"


@dataclasses.dataclass(frozen=True)
class Run:
    """One sort."""

    pair: int
    is_disturbed: bool
    seconds: float
    """From the command's start to its end."""
    killed_after_seconds: float | None
    rounds: int
    lost: list[str]
    stolen_share: float
    """Steal: the share of the cores' time that this machine's host gave to others."""


def tonnage(*command: str) -> str:
    """Run a command of Tonnage; return its output."""
    done = subprocess.run([*TONNAGE, *command], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"tonnage {' '.join(command)}: {done.stderr.strip()}")
    return done.stdout


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0], formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    add = parser.add_argument
    add("--pairs", type=int, default=3)
    add("--nodes", type=int, default=4)
    add(
        "--gigabytes-per-node",
        type=float,
        default=2.0,
        help="GB (1e9 bytes) of input for each node",
    )
    add("--memory", default="1GiB", help="of each node, as in tonnage run sort")
    add("--link-mb-per-s", type=float, default=60)
    add("--disk-mb-per-s", type=float, default=120)
    add(
        "--at",
        type=float,
        default=0.5,
        help="share of all written bytes at which the machine is lost",
    )
    add("--durability", choices=["none", "replicated"], default="none")
    add("--out", type=Path, default=Path("target/node-lost.json"), help="every sample")
    add("--json", action="store_true", help="print that instead of a table")
    options = parser.parse_args(arguments)
    if options.out.exists():
        parser.error(f"--out {options.out} exists: move it, or name another file")
    return options


class LabCluster:
    """The lab; its first node has the volume with the input, which all nodes read."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        record = labs.require_up(labs.STATE_DIR, LAB)
        self.nodes = record.nodes(labs.STATE_DIR)
        self._volume = self.nodes[0].devices[1]
        self.input = self._volume.mount / "in"
        self.records = int(options.gigabytes_per_node * GB) // RECORD_BYTES * options.nodes
        attached = loop_devices()
        self._devices = {each.name: attached[each.devices[0].image] for each in self.nodes}
        self._throttle(attached[self._volume.image])

    def _throttle(self, device: str) -> None:
        """Throttle each node's reads of the volume to its disk's rate."""
        rate = round(self._options.disk_mb_per_s * 1e6)
        disk = DiskConfig(self._volume.disk.size_bytes, "xfs", read_bytes_per_second=rate)
        for node in self.nodes:
            for step in throttle_steps(
                controllers()["io"], node.group, device_number(device), disk, 1.0
            ):
                subprocess.run(step.command, check=True)

    def lay_out(self) -> None:
        """Write the input."""
        self.input.mkdir()
        files = [str(self.input / f"f{number}") for number in range(len(self.nodes))]
        tonnage("gensort", str(self.records), *files)

    @property
    def written_bytes(self) -> int:
        """Bytes that all disks have written so far."""
        stats = (Path("/sys/block", Path(each).name, "stat") for each in self._devices.values())
        return sum(int(stat.read_text().split()[WRITTEN]) * SECTOR_BYTES for stat in stats)

    def clear(self) -> None:
        """Remove the files of an earlier sort, and write back dirty pages."""
        for node in self.nodes:
            place = node.devices[0].mount
            subprocess.run(["rm", "-rf", place / "out", place / "scratch"], check=True)
        os.sync()

    def lose(self, node: Node) -> None:
        """Kill its processes and unmount its disk."""
        subprocess.run(["umount", "--lazy", node.devices[0].mount], check=True)
        labs.inject_fault(LAB, node.name, "kill", None)

    def bring_back(self, node: Node) -> None:
        """Mount its disk and start it again."""
        each = node.devices[0]
        _, mount = mount_steps(each.disk.file_system, [self._devices[node.name]], each.mount)
        subprocess.run(mount.command, check=True)
        labs.heal_node(LAB, node.name, lambda *_: None)


@contextmanager
def standing(options: argparse.Namespace) -> Iterator[LabCluster]:
    """Start the lab with Ray."""
    share = int(options.gigabytes_per_node * GB)
    size = DISK_TIMES * share + FILE_SYSTEM_BYTES
    text = FILE.format(
        lab=LAB,
        head=HEAD,
        others=OTHERS,
        count=options.nodes - 1,
        link=options.link_mb_per_s,
        disk=DISK.format(size=size, rate=options.disk_mb_per_s),
        volume=options.nodes * share + FILE_SYSTEM_BYTES,
    )
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
        file.write(text)
        file.flush()
        tonnage("lab", "up", file.name)
    try:
        tonnage("lab", "ray", "--lab", LAB)
        yield LabCluster(options)
    finally:
        tonnage("lab", "down", "--lab", LAB)


def run_once(
    cluster: LabCluster, options: argparse.Namespace, pair: int, is_disturbed: bool
) -> Run:
    """Sort, and validate the output.

    Raises:
        RuntimeError: It failed, or the output is not the input sorted.
    """
    cluster.clear()
    disk = str(labs.STATE_DIR / LAB / "{node}.disk-0")
    (victim,) = [node for node in cluster.nodes if node.name == VICTIM]
    killed: float | None = None
    copies = 2 if options.durability == "replicated" else 1
    half = options.at * (1 + copies) * cluster.records * RECORD_BYTES
    with tempfile.TemporaryDirectory() as kept:
        command = [
            *("lab", "exec", "--lab", LAB, cluster.nodes[0].name, "--", *TONNAGE, "run", "sort"),
            *(str(cluster.input), "--output", f"{disk}/out", "--scratch", f"{disk}/scratch"),
            *("--cluster", "auto", "--memory", options.memory, "--job-dir", f"{kept}/job"),
            *("--durability", options.durability, "--json"),
        ]
        at, began, before = cluster.written_bytes + half, time.monotonic(), core_seconds()
        with subprocess.Popen(
            [*TONNAGE, *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            while is_disturbed and killed is None and process.poll() is None:
                if cluster.written_bytes >= at:
                    killed = time.monotonic() - began
                    cluster.lose(victim)
                time.sleep(0.01)
            said, why = process.communicate()
        seconds, stolen = time.monotonic() - began, core_seconds().stolen_share_since(before)
        if process.returncode:
            raise RuntimeError(why.strip())
        record: dict[str, Any] = json.loads(said)
        files = json.loads((Path(kept) / "job" / "sorted.json").read_text())
        places = sorted({str(Path(each["path"]).parent) for each in files})
        found = json.loads(tonnage("valsort", *places, "--json"))
    if (found["records"], found["checksum"]) != (cluster.records, record["checksum"]):
        raise RuntimeError(
            f"the output has {found['records']} records, the input {cluster.records}"
        )
    lost = [node["node"] for node in record["nodes"] if node["lost"]]
    if lost != ([VICTIM] if is_disturbed else []):
        raise RuntimeError(f"lost nodes: {lost or 'none'}")
    if is_disturbed:
        cluster.bring_back(victim)
    return Run(pair, is_disturbed, seconds, killed, len(record["rounds"]), lost, stolen)


def ratios(runs: Sequence[Run]) -> list[float]:
    """Return disturbed over undisturbed seconds of each complete pair."""
    seconds = {(run.pair, run.is_disturbed): run.seconds for run in runs}
    pairs = sorted({run.pair for run in runs})
    return [
        seconds[pair, True] / seconds[pair, False]
        for pair in pairs
        if {(pair, True), (pair, False)} <= seconds.keys()
    ]


def render(runs: Sequence[Run]) -> str:
    """Return a row for each run, then the claim."""
    lines = ["pair  sort         seconds  machine lost after  rounds  stolen"]
    for run in runs:
        name = "one lost" if run.is_disturbed else "undisturbed"
        gone = "" if run.killed_after_seconds is None else f"{run.killed_after_seconds:.1f} s"
        lines.append(
            f"{run.pair + 1:4}  {name:11}  {run.seconds:7.1f}  {gone:>18}  {run.rounds:6}  "
            f"{run.stolen_share:6.2f}"
        )
    found = ratios(runs)
    middle = statistics.median(found)
    held = "holds" if middle <= MAX_RATIO else "MISSED"
    lines.append(
        f"ratio: median {middle:.2f} ({min(found):.2f} to {max(found):.2f}), "
        f"at most {MAX_RATIO}: {held}"
    )
    return "\n".join(lines)


def main() -> int:
    """Run the pairs, print the table; return 1 if the claim does not hold."""
    options = parse(sys.argv[1:])
    known = {
        "benchmark": "node_lost",
        "environment": to_builtins(capture([])),
        "options": {name: str(value) for name, value in vars(options).items()},
    }
    runs: list[Run] = []
    with standing(options) as cluster:
        cluster.lay_out()
        for pair in range(options.pairs):
            for is_disturbed in (False, True) if pair % 2 == 0 else (True, False):
                runs.append(run_once(cluster, options, pair, is_disturbed))
                print(f"{len(runs)} of {2 * options.pairs}", file=sys.stderr)
                # After each run, so that a killed bench leaves its results.
                told = known | {"runs": [dataclasses.asdict(run) for run in runs]}
                told |= {"ratios": ratios(runs)}
                write_atomically(options.out, json.dumps(told, indent=1).encode())
    print(json.dumps(told) if options.json else render(runs))
    return 0 if statistics.median(ratios(runs)) <= MAX_RATIO else 1


if __name__ == "__main__":
    sys.exit(main())
