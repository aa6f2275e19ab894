"""Sequential direct I/O on N files at once: by Tonnage, and by IOR.

IOR's N are processes under MPI, Tonnage's are threads that block. Both process blocks of the same
size in transfers of the same size, once; written data is durable before the time ends. The rate is
all bytes over the time from the first start to the last end.

IOR has huge pages as Tonnage has (`huge_pages.py`), and writes to files with reserved space, as
Tonnage reserves it for its own. A run processes its files once, however long that takes. Core
seconds are not compared: an MPI process that waits for the others spins.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import huge_pages
from child import Command, run

from tonnage.measure.random_io import trial as measure

CASES = ("write:1", "write:2", "read:1", "read:2")
NEEDED = ("ior", "mpirun")
JOB = Path(__file__).with_name("job.py")
FOLDER = "tonnage-io-peers-files"
TRANSFER_BYTES = 1 << 20


@dataclass(frozen=True)
class Case:
    """An operation, and the number of workers."""

    operation: str
    workers: int

    @property
    def writes(self) -> bool:
        """Whether files are written."""
        return self.operation == "write"


@dataclass(frozen=True)
class Room:
    """The directory of both sides, and the bytes of each worker."""

    path: Path
    block_bytes: int


@dataclass(frozen=True)
class Sample:
    """The result of a run."""

    bytes_per_second: float
    cpu_seconds: float


def missing_programs() -> list[str]:
    """Return the programs that are not installed."""
    return [each for each in NEEDED if not shutil.which(each)]


def parse(text: str) -> Case:
    """Parse ``read:2`` as a case."""
    operation, _, workers = text.partition(":")
    if operation not in ("write", "read") or not workers.isdigit() or not int(workers):
        raise ValueError(f"{text!r}: write it like read:2, of write, read")
    return Case(operation, int(workers))


def lay_out(directory: Path, cases: list[Case], size: int) -> Room:
    """Write the files to read, unless they exist; each worker has a quarter of the size."""
    room = Room(directory / FOLDER, size // 4 // TRANSFER_BYTES * TRANSFER_BYTES)
    room.path.mkdir(exist_ok=True)
    for file in _files(room, Case("read", max(case.workers for case in cases))):
        if not file.exists() or file.stat().st_size != room.block_bytes:
            made = measure.write_test_file(room.path, room.block_bytes, None)
            os.truncate(made, room.block_bytes)  # Whole records end a little earlier.
            made.rename(file)
    return room


def ours(case: Case, room: Room, seconds: float) -> Sample:
    """Run Tonnage; with no seconds it does nothing."""
    if not seconds:
        return Sample(0.0, 0.0)
    config = {
        "files": [str(file) for file in _files(room, case)],
        "writes": case.writes,
        "durable_one_in": 0,
        "block_bytes": TRANSFER_BYTES,
        "outstanding": case.workers,
        "blocking": True,
        "batched": False,
        "seconds": 0.0,
        "warm_up_seconds": 0.0,
        "seed": 0,
        "segments": {"count": 1, "part_bytes": room.block_bytes},
        "flush_at_end": case.writes,
    }
    command = Command([sys.executable, str(JOB), "ops_bench"], json.dumps(config).encode())
    (done,) = run(command)
    rate = json.loads(done.out)["operations_per_second"] * TRANSFER_BYTES
    return Sample(rate, done.cpu_seconds)


def ior(case: Case, room: Room, seconds: float) -> Sample:
    """Run the peer; with no seconds it does nothing."""
    if not seconds:
        return Sample(0.0, 0.0)
    if case.writes:
        for file in _files(room, case):
            _reserve(file, room.block_bytes)
    line = [*huge_pages.MALLOC_ENVIRONMENT, "mpirun", "-n", str(case.workers), "ior", "-a", "POSIX"]
    line += ["--posix.odirect", "-F", "-E", "-k", "-o", str(room.path / case.operation)]
    line += ["-b", str(room.block_bytes), "-t", str(TRANSFER_BYTES), "-s", "1", "-i", "1"]
    line += ["-w", "-e"] if case.writes else ["-r"]
    summary, cpu_seconds = _summary(line, room.path)
    (found,) = summary["tests"][0]["Results"]
    return Sample(found["bwMiB"] * (1 << 20), cpu_seconds)


def version(directory: Path) -> str:
    """Return IOR's version, which only its results contain."""
    room = directory / FOLDER
    line = ["ior", "-b", "4k", "-t", "4k", "-w", "-o", str(room / "version")]
    return f"IOR {_summary(line, room)[0]['Version']}"


def _summary(line: list[str], room: Path) -> tuple[dict[str, Any], float]:
    """Run IOR; return its results and core seconds."""
    summary = room / "summary.json"
    command = Command([*line, "-O", f"summaryFile={summary}", "-O", "summaryFormat=JSON"])
    (done,) = run(command)
    return json.loads(summary.read_text()), done.cpu_seconds


def _files(room: Room, case: Case) -> list[Path]:
    """Return the files, as IOR names them."""
    return [room.path / f"{case.operation}.{place:08}" for place in range(case.workers)]


def _reserve(file: Path, size: int) -> None:
    handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    try:
        os.posix_fallocate(handle, 0, size)
    finally:
        os.close(handle)
