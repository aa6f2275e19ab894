"""A lab's machines with an input, their measurement, and sorts of the input; optionally a store.

The store is a machine of the lab whose link and disk have no limit, with the tests' S3 server on
it. Its file system can share blocks (xfs), so an upload is completed without copying its parts, as
in real stores. Its clients run on machines of the lab.
"""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import stores

from tonnage.base.records import RunRecord
from tonnage.base.system.procfs import core_seconds
from tonnage.provision import lab as labs
from tonnage.provision.lab.nodes import Node

UPLOAD = Path(__file__).with_name("upload.py")
LAB = "sorts"
OBJECTS = "objects"
STORE = "store-0"
DISK_TIMES = 5
"""A disk's size over a machine's input, which is read, spilled, written, and replicated."""
STORE_TIMES = 3
"""The store's disk over all input: for the input, the output and leftovers."""
MEASURED_OFTEN = 4
"""With more machines, links are measured only once."""
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
STORE_MACHINE = """
[[machine]]
type = "store"
price_usd_per_hour = 1
disks = [{{ size = {size}, fs = "xfs" }}]
"""


@dataclasses.dataclass(frozen=True)
class Setting:
    """The options of all runs."""

    gigabytes_per_node: float
    memory: str
    connections: int | None
    link_mb_per_s: float
    disk_mb_per_s: float
    has_store: bool


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
    """Peak of the driver's own process."""
    stolen_share: float
    """Steal: the share of the cores' time that this machine's host gave to others."""
    record: dict[str, Any]

    @property
    def compared(self) -> dict[str, Any]:
        """The run compared with its limit."""
        found: dict[str, Any] = self.record["compared"]
        return found

    @property
    def efficiency(self) -> float:
        """The phases' limits over the seconds of the whole run."""
        return float(self.compared["limit"]["seconds"]) / float(self.record["seconds"])

    @property
    def cpu_seconds_a_gb(self) -> float:
        """Core seconds of all workers for each GB."""
        return float(self.record["cpu_seconds"]) / self.gigabytes


@dataclasses.dataclass(frozen=True)
class Place:
    """Where a sort reads and writes."""

    input: str
    output: str
    outputs: Sequence[str]
    """The output of each machine, for the validation."""
    flags: Sequence[str] = ()


def tonnage(*command: str) -> str:
    """Run a command of Tonnage; return its output."""
    done = subprocess.run([*TONNAGE, *command], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"tonnage {' '.join(command)}: {done.stderr.strip()}")
    return done.stdout


class LabCluster:
    """The machines, with what runs on them."""

    def __init__(self, nodes: Sequence[Node], setting: Setting, kept: Path) -> None:
        self._nodes, self._setting, self._kept = nodes, setting, kept
        self._disk = str(labs.STATE_DIR / LAB / "{node}.disk-0")
        self._disks = [self._disk.replace("{node}", node.name) for node in nodes]
        self._count = str(len(nodes))
        self._store: tuple[str, Path] | None = None  # its address, and where its objects lie
        self.records = int(setting.gigabytes_per_node * GB) // RECORD_BYTES * len(nodes)

    def lay_out(self) -> None:
        """Write each machine's input to its own disk."""
        files = [f"{disk}/in/records" for disk in self._disks]
        for file in files:
            Path(file).parent.mkdir()
        tonnage("gensort", str(self.records), *files)
        if self._store:
            self._on(STORE, sys.executable, str(UPLOAD), self._store[0], stores.BUCKET, *files)
        os.sync()  # So that the next measurement does not include these writes.

    def use_store(self, endpoint: str, room: Path) -> None:
        """Use an object store, too."""
        self._store = endpoint, room

    def measure(self) -> list[str]:
        """Measure disks and links; return the directories of the results."""
        found = [str(self._kept / "disk")]
        self._measure(
            *("disk", "--dir", self._disk, "--output", found[0], "--nodes", self._count),
            *("--mode", "ro", "wo", "rw", "--size", "360MB", "--seconds", "6"),
        )
        if len(self._nodes) > 1:
            found.append(str(self._kept / "net"))
            self._measure(
                *("net", "--output", found[1], "--nodes", self._count, "--sizes", self._count),
                *("--seconds", "3", "--connections", str(self._setting.connections or 1)),
                # Every pair is measured by itself, so many machines are measured only once.
                *("--repetitions", "3" if len(self._nodes) <= MEASURED_OFTEN else "1"),
            )
        return found

    def sort(self, durability: str, capacities: Sequence[str]) -> Run:
        """Sort, and validate the output.

        Raises:
            RuntimeError: It failed, or the output is not the input sorted.
        """
        self._clear()
        place, setting = self._place(durability), self._setting
        with tempfile.TemporaryDirectory() as kept:
            command = [
                *("run", "sort", place.input, "--output", place.output, *place.flags),
                *("--scratch", f"{self._disk}/scratch", "--cluster", "auto", "--json"),
                *("--nodes", self._count, "--memory", setting.memory),
                *("--capacities", *capacities, "--job-dir", f"{kept}/job"),
            ]
            if setting.connections:
                command += ["--connections", str(setting.connections)]
            began, before = time.monotonic(), core_seconds()
            process = subprocess.Popen(
                self._command(self._nodes[0].name, *TONNAGE, *command),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
            )
            assert process.stderr
            why = process.stderr.read()
            _, status, used = os.wait4(process.pid, 0)
            seconds, stolen = time.monotonic() - began, core_seconds().stolen_share_since(before)
            if status:
                raise RuntimeError(why.decode().strip())
            record = RunRecord.read(Path(kept) / "job" / "run.json").to_json()
        endpoint = () if self._store is None else ("--endpoint-url", self._store[0])
        validator = self._nodes[0].name if endpoint == () else STORE
        command = [*TONNAGE, "valsort", *place.outputs, *endpoint, "--json"]
        found = json.loads(self._on(validator, *command))
        if (found["records"], found["checksum"]) != (self.records, record["checksum"]):
            raise RuntimeError(
                f"the output has {found['records']} records, the input {self.records}"
            )
        return Run(
            nodes=len(self._nodes),
            durability=durability,
            gigabytes=self.records * RECORD_BYTES / GB,
            command_seconds=seconds,
            driver_cpu_seconds=used.ru_utime + used.ru_stime,
            driver_memory_bytes=used.ru_maxrss << 10,
            stolen_share=stolen,
            record=record,
        )

    def _place(self, durability: str) -> Place:
        if durability == OBJECTS:
            assert self._store
            output = f"s3://{stores.BUCKET}/out"
            return Place(
                f"s3://{stores.BUCKET}/in/", output, [output], ["--endpoint-url", self._store[0]]
            )
        outputs = [f"{disk}/out" for disk in self._disks]
        flags = ["--durability", durability]
        return Place(f"{self._disk}/in", f"{self._disk}/out", outputs, flags)

    def _clear(self) -> None:
        """Remove the files of an earlier sort, and write back dirty pages."""
        places = [f"{disk}/{name}" for disk in self._disks for name in ("out", "scratch")]
        places += [str(self._store[1] / stores.BUCKET / "out")] if self._store else []
        for place in places:
            shutil.rmtree(place, ignore_errors=True)
        os.sync()

    def _measure(self, what: str, *more: str) -> None:
        command = [*TONNAGE, "measure", what, "--cluster", "auto", *more]
        self._on(self._nodes[0].name, *command)

    def _on(self, node: str, *command: str) -> str:
        """Run a command on a machine; return its output."""
        done = subprocess.run(self._command(node, *command), capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")
        return done.stdout

    def _command(self, node: str, *command: str) -> list[str]:
        return [*TONNAGE, "lab", "exec", "--lab", LAB, node, "--", *command]


@contextmanager
def standing(count: int, setting: Setting) -> Iterator[LabCluster]:
    """Start a lab of ``count`` machines with Ray, and a store if one is needed."""
    share = setting.gigabytes_per_node * GB
    text = FILE.format(
        lab=LAB,
        count=count,
        link=setting.link_mb_per_s,
        rate=setting.disk_mb_per_s,
        size=int(DISK_TIMES * share) + FILE_SYSTEM_BYTES,
    )
    if setting.has_store:
        size = int(STORE_TIMES * count * share) + FILE_SYSTEM_BYTES
        text += STORE_MACHINE.format(size=size)
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
        file.write(text)
        file.flush()
        tonnage("lab", "up", file.name)
    with ExitStack() as stack:
        stack.callback(tonnage, "lab", "down", "--lab", LAB)
        os.environ.update(stores.KEYS if setting.has_store else {})
        tonnage("lab", "ray", "--lab", LAB)
        kept = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        nodes = labs.require_up(labs.STATE_DIR, LAB).nodes(labs.STATE_DIR)
        cluster = LabCluster(nodes[:count], setting, kept)
        if setting.has_store:
            room = nodes[count].devices[0].mount
            cluster.use_store(stack.enter_context(stores.served_on(LAB, nodes[count], room)), room)
        yield cluster
