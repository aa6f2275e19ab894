"""Index 100,000 tiny objects in less than 30 s, and reduce them.

    .venv/bin/python benches/tiny_objects/bench.py [--objects N] [--suffix .npy]

The claim: `tonnage index` of a folder of 100,000 objects of ten rows each, on the tests' own S3
server on this machine, takes less than 30 s from the command's start to its end; `tonnage run
reduce histogram` with that index reduces every row, within its memory plus 100 MiB. Objects are
written directly to the server's directory. Rows of fixed width are cut by the objects' lengths
alone; with the suffix of another format each object is opened, for which nothing is claimed.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))
from support.cli.command import Tonnage
from support.stores.s3 import BUCKET, KEYS, server

ROWS = 10
MAX_SECONDS = 30
MEMORY = 256 << 20
SPARE = 100 << 20


def content(number: int, suffix: str) -> bytes:
    """Return an object's content."""
    rows = np.arange(2 * ROWS * number, 2 * ROWS * (number + 1), dtype=np.float64).reshape(-1, 2)
    file = io.BytesIO()
    if suffix == ".npy":
        np.save(file, rows)
    elif suffix == ".parquet":
        pq.write_table(pa.table({"x": rows[:, 0], "y": rows[:, 1]}), file)
    else:
        file.write(rows.tobytes())
    return file.getvalue()


def timed(command: Callable[[], str], what: str) -> tuple[float, dict[str, Any]]:
    """Run a command; return its seconds and its JSON output."""
    before, began = os.times(), time.perf_counter()
    told = json.loads(command())
    seconds, after = time.perf_counter() - began, os.times()
    cores = after.children_user + after.children_system
    cores -= before.children_user + before.children_system
    print(f"{what}: {seconds:.1f} s, {cores:.1f} core seconds", flush=True)
    return seconds, told


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--objects", type=int, default=100_000)
    parser.add_argument(
        "--suffix", default="", help=".npy or .parquet; by default rows of fixed width"
    )
    asked = parser.parse_args()
    os.environ.update(KEYS | {"AWS_REGION": "us-east-1"})
    tonnage, missed = Tonnage(), []
    with server() as running:
        folder = running.directory / BUCKET / "tiny"
        folder.mkdir()
        for number in range(asked.objects):
            (folder / f"{number:06}{asked.suffix}").write_bytes(content(number, asked.suffix))
        url = f"s3://{BUCKET}/tiny/"
        more = ("--endpoint-url", running.endpoint, "--json")
        typed = () if asked.suffix else ("--dtype", "2f8")

        def run(*args: str) -> Callable[[], str]:
            return lambda: tonnage.run(*args, *more, check=True, timeout=3600).stdout

        seconds, told = timed(run("index", url, *typed), "index")
        rows = ROWS * asked.objects
        if seconds > MAX_SECONDS and not asked.suffix:
            missed.append(f"index took {seconds:.1f} s, more than {MAX_SECONDS} s")
        if (told["files"], told["rows"]) != (asked.objects, rows):
            missed.append(f"the index has {told['files']} files and {told['rows']} rows")
        _, again = timed(run("index", url), "index again, without changes")
        if again["known"] != asked.objects:
            missed.append(f"the second index found {again['known']} objects unchanged")
        _, record = timed(
            run("run", "reduce", "histogram", url, "--memory", str(MEMORY)), "run reduce"
        )
        found = [column["rows"] for column in record["result"]]
        print(
            f"of that {record['seconds']:.1f} s reducing, {record['requests']['requests']} "
            f"requests, {record['peak_memory_bytes'] >> 20} MiB at most"
        )
        if found != [rows, rows] or record["result"][1]["most"] != 2 * rows - 1:
            missed.append(f"{found} values were reduced, of {rows} in each column")
        if record["peak_memory_bytes"] > MEMORY + SPARE:
            missed.append(f"the reduction used {record['peak_memory_bytes'] >> 20} MiB")
    print("\n".join(["missed:", *missed]) if missed else "All claims hold.")
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main())
