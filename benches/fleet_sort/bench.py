"""How near to their limit machines sort, and whether it stays so as they grow in number.

    sudo .venv/bin/python benches/fleet_sort/bench.py
    sudo .venv/bin/python benches/fleet_sort/bench.py --nodes 1 2 4 8 --durability none

For each number of machines a lab of its own, in which each machine has its own link and disk, and
as many bytes as in any other: what disks and links carry is measured, then the same input sorted
``--rounds`` times for each ``--durability``, and the output judged. The limit is what `tonnage run
sort --capacities` says of the measured capacities. Needs root, Ray and what a lab needs.
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
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tonnage import lab as labs
from tonnage.artifacts import RunRecord, write_atomically
from tonnage.measure.environment import capture

LEAST_EFFICIENCY = {"none": 0.90, "replicated": 0.85}
MOST_CPU_SECONDS = 3.0
"""A GB, of all machines together, without copies."""
MOST_GROWTH = 1.1
"""Of the seconds of both passes, from two machines to as many as there are."""
LAB = "sorts"
DISK_TIMES = 5
"""A disk's size over a machine's input, which is read, spilled, written, and copied."""
FILE_SYSTEM_BYTES = 400_000_000
RECORD_BYTES = 100
GB = 1_000_000_000
TONNAGE = (sys.executable, "-m", "tonnage")
FILE = """
[lab]
name = "{lab}"
[[machine]]
type = "n"
count = {count}
price_usd_per_hour = 1
link_mb_per_s = {link}
disks = [{{ size = {size}, read_mb_per_s = {rate}, write_mb_per_s = {rate} }}]
"""


@dataclasses.dataclass(frozen=True)
class Run:
    """One sort."""

    nodes: int
    durability: str
    gigabytes: float
    command_seconds: float
    """From the command's start to its end."""
    driver_cpu_seconds: float
    driver_memory_bytes: int
    """The driver's own process, at its most."""
    record: dict[str, Any]

    @property
    def compared(self) -> dict[str, Any]:
        """The run beside its limit."""
        found: dict[str, Any] = self.record["compared"]
        return found

    @property
    def phase_seconds(self) -> float:
        """Of both passes."""
        return float(self.compared["phase_seconds"])

    @property
    def efficiency(self) -> float:
        """The phases' limits over all of the run."""
        return float(self.compared["limit"]["seconds"]) / float(self.record["seconds"])

    @property
    def cpu_seconds_a_gb(self) -> float:
        """Of all machines' agents together."""
        return float(self.record["cpu_seconds"]) / self.gigabytes


def tonnage(*command: str) -> str:
    """What the command prints."""
    done = subprocess.run([*TONNAGE, *command], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"tonnage {' '.join(command)}: {done.stderr.strip()}")
    return done.stdout


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0], formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    add = parser.add_argument
    add("--nodes", type=int, nargs="+", default=[4])
    add("--durability", nargs="+", choices=[*LEAST_EFFICIENCY], default=["none", "replicated"])
    add("--rounds", type=int, default=3)
    add("--gigabytes-per-node", type=float, default=2.0, help="of input, 1 GB being 1e9 bytes")
    add("--memory", default="1GiB", help="of each machine, as tonnage run sort takes it")
    add("--connections", type=int, default=None, help="as tonnage run sort takes it")
    add("--link-mb-per-s", type=float, default=60)
    add("--disk-mb-per-s", type=float, default=120)
    add("--out", type=Path, default=Path("target/fleet-sort.json"), help="every sample")
    add("--json", action="store_true", help="print that instead of a table")
    options = parser.parse_args(arguments)
    if options.out.exists():
        parser.error(f"--out {options.out} is there: move it, or name another file")
    return options


class Fleet:
    """A lab's machines with an input, and what was measured of them."""

    def __init__(self, count: int, options: argparse.Namespace, kept: Path) -> None:
        self._options, self._kept = options, kept
        nodes = labs.standing(labs.ROOM, LAB).nodes(labs.ROOM)
        self._first = nodes[0].name
        self._disk = str(labs.ROOM / LAB / "{node}.disk-0")
        self._places = [self._disk.replace("{node}", node.name) for node in nodes]
        self.records = int(options.gigabytes_per_node * GB) // RECORD_BYTES * count

    def lay_out(self) -> None:
        """Writes the input: each machine's own, on its own disk."""
        for place in self._places:
            os.mkdir(f"{place}/in")
        tonnage("gensort", str(self.records), *(f"{place}/in/records" for place in self._places))
        os.sync()  # What is measured next is not what this has still to write.

    def measure(self) -> list[str]:
        """Measures disks and links; gives where that is kept."""
        found = [str(self._kept / "disk")]
        self._here(
            *("measure", "disk", "--fleet", "auto", "--dir", self._disk, "--out", found[0]),
            *("--mode", "ro", "wo", "rw", "--size", "360MB", "--seconds", "6"),
        )
        if len(self._places) > 1:
            found.append(str(self._kept / "net"))
            count = str(len(self._places))
            self._here(
                *("measure", "net", "--fleet", "auto", "--out", found[1], "--seconds", "3"),
                *("--sizes", count, "--connections", str(self._options.connections or 1)),
            )
        return found

    def sort(self, durability: str, capacities: Sequence[str]) -> Run:
        """A sort, judged.

        Raises:
            RuntimeError: It failed, or what came out is not what went in.
        """
        for place in self._places:
            subprocess.run(["rm", "-rf", f"{place}/out", f"{place}/scratch"], check=True)
        os.sync()
        disk, options = self._disk, self._options
        with tempfile.TemporaryDirectory() as kept:
            command = [
                *("run", "sort", f"{disk}/in", "--output", f"{disk}/out"),
                *("--scratch", f"{disk}/scratch", "--fleet", "auto", "--out", f"{kept}/job"),
                *("--memory", options.memory, "--durability", durability, "--json"),
                *("--capacities", *capacities),
            ]
            if options.connections:
                command += ["--connections", str(options.connections)]
            began = time.monotonic()
            process = subprocess.Popen(
                self._command(*command), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
            )
            assert process.stderr
            why = process.stderr.read()
            _, status, used = os.wait4(process.pid, 0)
            seconds = time.monotonic() - began
            if status:
                raise RuntimeError(why.decode().strip())
            record = RunRecord.read(Path(kept) / "job" / "run.json").to_json()
        found = json.loads(
            tonnage("valsort", *(f"{place}/out" for place in self._places), "--json")
        )
        if (found["records"], found["checksum"]) != (self.records, record["checksum"]):
            raise RuntimeError(f"{found['records']} records came out of {self.records}")
        return Run(
            nodes=len(self._places),
            durability=durability,
            gigabytes=self.records * RECORD_BYTES / GB,
            command_seconds=seconds,
            driver_cpu_seconds=used.ru_utime + used.ru_stime,
            driver_memory_bytes=used.ru_maxrss << 10,
            record=record,
        )

    def _here(self, *command: str) -> None:
        """Has the first machine run a command."""
        tonnage("lab", "exec", "--lab", LAB, self._first, "--", *TONNAGE, *command)

    def _command(self, *command: str) -> list[str]:
        return [*TONNAGE, "lab", "exec", "--lab", LAB, self._first, "--", *TONNAGE, *command]


@contextmanager
def standing(count: int, options: argparse.Namespace) -> Iterator[Fleet]:
    """A lab of so many machines with Ray, gone afterwards."""
    text = FILE.format(
        lab=LAB,
        count=count,
        link=options.link_mb_per_s,
        rate=options.disk_mb_per_s,
        size=int(DISK_TIMES * options.gigabytes_per_node * GB) + FILE_SYSTEM_BYTES,
    )
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
        file.write(text)
        file.flush()
        tonnage("lab", "up", file.name)
    try:
        tonnage("lab", "ray", "--lab", LAB)
        with tempfile.TemporaryDirectory() as kept:
            yield Fleet(count, options, Path(kept))
    finally:
        tonnage("lab", "down", "--lab", LAB)


def missed(runs: Sequence[Run]) -> list[str]:
    """What of the claims does not hold, of medians."""
    found = []
    groups: dict[tuple[int, str], list[Run]] = {}
    for run in runs:
        groups.setdefault((run.nodes, run.durability), []).append(run)
    for (nodes, durability), of_them in groups.items():
        what = f"{nodes} x {durability}"
        efficiency = statistics.median(run.compared["phase_efficiency"] for run in of_them)
        if efficiency < LEAST_EFFICIENCY[durability]:
            found.append(f"{what}: {efficiency:.3f} of its limit")
        cpu = statistics.median(run.cpu_seconds_a_gb for run in of_them)
        if durability == "none" and cpu > MOST_CPU_SECONDS:
            found.append(f"{what}: {cpu:.2f} core seconds a GB")
        for phase in of_them[0].compared["phases"]:
            if not phase["as_limited"]:
                found.append(f"{what}: {phase['name']} is limited by {phase['bottleneck']}")
    for durability in LEAST_EFFICIENCY:
        # With one machine there is no network.
        seconds = {
            nodes: statistics.median(run.phase_seconds for run in of_them)
            for (nodes, kind), of_them in groups.items()
            if kind == durability and nodes > 1
        }
        if len(seconds) > 1 and max(seconds.values()) > MOST_GROWTH * min(seconds.values()):
            found.append(
                f"{durability}: from {min(seconds.values()):.1f} s on to more than a tenth"
            )
    return found


def render(runs: Sequence[Run]) -> str:
    """A row for each run, then what was missed."""
    lines = [
        "nodes durability  pass one: s, limit,  share  pass two: s, limit,  share  both    all s,"
        " share  CPU s/GB  driver: CPU s, MiB"
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
            f"{run.driver_cpu_seconds:12.1f} {run.driver_memory_bytes >> 20:6}"
        )
    return "\n".join([*lines, f"missed: {'; '.join(missed(runs)) or 'nothing'}"])


def main() -> int:
    """Runs all; prints the table, and ends with 1 if a claim does not hold."""
    options = parse(sys.argv[1:])
    known = {
        "benchmark": "fleet_sort",
        "environment": dataclasses.asdict(capture([])),
        "options": {name: str(value) for name, value in vars(options).items()},
    }
    runs: list[Run] = []
    for count in options.nodes:
        durabilities = [each for each in options.durability if count > 1 or each == "none"]
        with standing(count, options) as fleet:
            fleet.lay_out()
            capacities = fleet.measure()
            for _ in range(options.rounds):
                for durability in durabilities:
                    runs.append(fleet.sort(durability, capacities))
                    print(render(runs[-1:]).splitlines()[1], file=sys.stderr)
                    # After each run: one that is killed leaves what it had.
                    told = known | {"runs": [dataclasses.asdict(run) for run in runs]}
                    told |= {"missed": missed(runs)}
                    write_atomically(options.out, json.dumps(told, indent=1).encode())
    print(options.out.read_text() if options.json else render(runs))
    return 1 if missed(runs) else 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # So that it, too, cleans up behind it.
    sys.exit(main())
