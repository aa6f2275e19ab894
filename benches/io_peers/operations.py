"""Single direct operations at random offsets of one file: by Tonnage, and by fio.

Both use the same file, with blocks of the same size at multiples of it and a constant queue depth,
until the time is up; the beginning is warm-up. Each write is durable before it counts, on both
sides: fio opens its file with ``--sync=dsync``, Tonnage sets RWF_DSYNC on each write, and the
kernel treats both the same.

fio has its fastest engine (io_uring) with registered buffers and file, no map of visited blocks
(Tonnage has none either), writes the same bytes repeatedly, as Tonnage does, and has huge pages as
Tonnage has (`huge_pages.py`). Latencies are those of fio's ``lat``, from before the submission of
an operation to its completion. fio's histogram keeps 6 bits, so a percentile is off by at most
1/128 (Tonnage's by 1/1000). No latency or operation of the warm-up counts, but the kernel counts
its CPU, which is divided by all operations, at the rate of the measured time.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path

import huge_pages
from child import Command, run

from tonnage.measure.random_io import trial as measure
from tonnage.measure.random_io.trial import OPERATIONS, Operation

CASES = ("read4k:1", "read4k:16", "read4k:64", "write4k:1", "read4m:1", "write4m:1")
JOB = Path(__file__).with_name("job.py")
FILE = "tonnage-io-peers"


@dataclass(frozen=True)
class Case:
    """An operation and its queue depth."""

    operation: Operation
    outstanding: int


@dataclass(frozen=True)
class Setup:
    """The settings of both sides."""

    file: Path
    warm_up: float
    batched: bool


@dataclass(frozen=True)
class Sample:
    """The result of a run."""

    per_second: float
    p50_seconds: float
    p99_seconds: float
    count: float
    """All operations, including the warm-up's."""
    cpu_seconds: float


def parse(text: str) -> Case:
    """Parse ``read4k:16`` as a case."""
    name, _, outstanding = text.partition(":")
    if name not in OPERATIONS or not outstanding.isdigit() or not int(outstanding):
        raise ValueError(f"{text!r}: write it like read4k:16, of {', '.join(OPERATIONS)}")
    return Case(OPERATIONS[name], int(outstanding))


def lay_out(directory: Path, size: int) -> Path:
    """Write the file, unless it exists."""
    room = directory / FILE
    room.mkdir(exist_ok=True)
    if not (room / "file").exists() or (room / "file").stat().st_size < size:
        measure.write_test_file(room, size, None)
    return room / "file"


def ours(case: Case, setup: Setup, seconds: float) -> Sample:
    """Run Tonnage; with no seconds it does one operation for each place of the queue."""
    warm_up = setup.warm_up if seconds else 0.0
    config = {
        "files": [str(setup.file)],
        "writes": case.operation.writes,
        "durable_one_in": case.operation.durable_one_in,
        "block_bytes": case.operation.block_bytes,
        "outstanding": case.outstanding,
        "blocking": False,
        "batched": setup.batched,
        "seconds": warm_up + seconds,
        "warm_up_seconds": warm_up,
        "seed": 1,
    }
    command = Command([sys.executable, str(JOB), "ops_bench"], json.dumps(config).encode())
    (done,) = run(command)
    outcome = json.loads(done.out)
    mode = outcome["phases"][0]["disk_modes"][0]
    if not (mode["direct"] and mode["registered"] and mode["engine"] == "io_uring"):
        raise SystemExit(f"not comparable with fio: {mode}")
    if not seconds:
        return Sample(0.0, 0.0, 0.0, outcome["phases"][0]["stages"][0]["records"], done.cpu_seconds)
    rate, percentiles = outcome["operations_per_second"], dict(outcome["latency"]["percentiles"])
    return Sample(
        per_second=rate,
        p50_seconds=percentiles[50.0] / 1e9,
        p99_seconds=percentiles[99.0] / 1e9,
        count=rate * (warm_up + seconds),
        cpu_seconds=done.cpu_seconds,
    )


def fio(case: Case, setup: Setup, seconds: float) -> Sample:
    """Run the peer; with no seconds it does one operation."""
    block = case.operation.block_bytes
    options: dict[str, object] = {
        "name": "peer",
        "filename": setup.file,
        "size": setup.file.stat().st_size // block * block,
        "allow_file_create": 0,
        "rw": "randwrite" if case.operation.writes else "randread",
        "bs": block,
        "iodepth": case.outstanding,
        "direct": 1,
        "ioengine": "io_uring",
        "fixedbufs": 1,
        "registerfiles": 1,
        "randrepeat": 0,
        "norandommap": 1,
        "scramble_buffers": 0,
        "lat_percentiles": 1,
        "clat_percentiles": 0,
        "percentile_list": "50:99",
        "output-format": "json+",
    }
    if case.operation.durable_one_in:
        options["sync"] = "dsync"
    if seconds:
        # Whole milliseconds: it accepts no fractions.
        runtime, ramp = (f"{round(1000 * each)}ms" for each in (seconds, setup.warm_up))
        options |= {"time_based": 1, "runtime": runtime, "ramp_time": ramp}
    else:
        options["number_ios"] = 1
    line = ["fio", *(f"--{name}={value}" for name, value in options.items())]
    (done,) = run(Command([*huge_pages.MALLOC_ENVIRONMENT, *line]))
    (job,) = json.loads(done.out[done.out.index("{") :])["jobs"]
    side = job["write" if case.operation.writes else "read"]
    if not seconds:
        return Sample(0.0, 0.0, 0.0, side["total_ios"], done.cpu_seconds)
    percentiles = side["lat_ns"]["percentile"]
    return Sample(
        per_second=side["iops"],
        p50_seconds=percentiles["50.000000"] / 1e9,
        p99_seconds=percentiles["99.000000"] / 1e9,
        count=side["total_ios"] + side["iops"] * setup.warm_up,
        cpu_seconds=done.cpu_seconds,
    )
