"""Single operations at random places of one file, directly: by Tonnage, and by fio.

Both go to the same file, with blocks of the same size at multiples of it, T outstanding all the
time, until the time is up; the beginning is warm-up. Each write is durable before it counts, on
both sides: fio's file is opened so (``--sync=dsync``), Tonnage says so with each write
(RWF_DSYNC), for which the kernel does the same.

fio has its fastest engine (io_uring) with registered buffers and file, no map of what it has been
at (Tonnage has none either), sends the same bytes again and again, as Tonnage does, and has huge
pages as Tonnage has (`huge_pages.py`). Latencies are those of fio's ``lat``, from before an
operation is submitted to when it was seen done, of which its histogram keeps 6 bits: a percentile
is off by at most 1/128 (Tonnage's by 1/1000). In the warm-up of either side no latency and no
operation counts, but the kernel counts its CPU; that is divided by all operations, at the rate of
the time that counts.
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
    """An operation, and how many of it at once."""

    operation: Operation
    outstanding: int


@dataclass(frozen=True)
class Method:
    """How both sides do it."""

    file: Path
    warm_up: float
    batched: bool


@dataclass(frozen=True)
class Sample:
    """What a run found."""

    per_second: float
    p50_seconds: float
    p99_seconds: float
    count: float
    """All operations, those of the warm-up too."""
    cpu_seconds: float


def parse(text: str) -> Case:
    """``read4k:16`` as a case."""
    name, _, outstanding = text.partition(":")
    if name not in OPERATIONS or not outstanding.isdigit() or not int(outstanding):
        raise ValueError(f"{text!r}: write it like read4k:16, of {', '.join(OPERATIONS)}")
    return Case(OPERATIONS[name], int(outstanding))


def lay_out(directory: Path, size: int) -> Path:
    """The file, written unless it is there."""
    room = directory / FILE
    room.mkdir(exist_ok=True)
    if not (room / "file").exists() or (room / "file").stat().st_size < size:
        measure.write_test_file(room, size, None)
    return room / "file"


def ours(case: Case, method: Method, seconds: float) -> Sample:
    """Tonnage; in no time it does each operation that is outstanding once."""
    warm_up = method.warm_up if seconds else 0.0
    config = {
        "files": [str(method.file)],
        "writes": case.operation.writes,
        "durable_one_in": case.operation.durable_one_in,
        "block_bytes": case.operation.block_bytes,
        "outstanding": case.outstanding,
        "blocking": False,
        "batched": method.batched,
        "seconds": warm_up + seconds,
        "warm_up_seconds": warm_up,
        "seed": 1,
    }
    command = Command([sys.executable, str(JOB), "ops_bench"], json.dumps(config).encode())
    (done,) = run(command)
    outcome = json.loads(done.out)
    mode = outcome["phases"][0]["disk_modes"][0]
    if not (mode["direct"] and mode["registered"] and mode["engine"] == "io_uring"):
        raise SystemExit(f"not fio's equal: {mode}")
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


def fio(case: Case, method: Method, seconds: float) -> Sample:
    """The peer; in no time it does one operation."""
    block = case.operation.block_bytes
    options: dict[str, object] = {
        "name": "peer",
        "filename": method.file,
        "size": method.file.stat().st_size // block * block,
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
        # In whole milliseconds: it takes no fractions.
        runtime, ramp = (f"{round(1000 * each)}ms" for each in (seconds, method.warm_up))
        options |= {"time_based": 1, "runtime": runtime, "ramp_time": ramp}
    else:
        options["number_ios"] = 1
    line = ["fio", *(f"--{name}={value}" for name, value in options.items())]
    (done,) = run(Command([*huge_pages.TOLD, *line]))
    (job,) = json.loads(done.out[done.out.index("{") :])["jobs"]
    side = job["write" if case.operation.writes else "read"]
    if not seconds:
        return Sample(0.0, 0.0, 0.0, side["total_ios"], done.cpu_seconds)
    percentiles = side["lat_ns"]["percentile"]
    return Sample(
        per_second=side["iops"],
        p50_seconds=percentiles["50.000000"] / 1e9,
        p99_seconds=percentiles["99.000000"] / 1e9,
        count=side["total_ios"] + side["iops"] * method.warm_up,
        cpu_seconds=done.cpu_seconds,
    )
