"""Time and memory of importing a long event log of Spark.

    .venv/bin/python benches/event_logs/bench.py [--bytes 1000000000] [--output FILE.json]

The claim: `tonnage import` reads 1 GB of plain text in less than 20 s and in less than 500 MB of
memory, with 10 stages, and with all tasks (more than 100,000) in one. The log repeats the tasks of
one that the tests keep, with other times and numbers; the same text is read from zstd, too.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pyarrow as pa

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

from support.spark.fuzz_logs import LOGS, text_lines
from support.spark.long_log import write_long_log

SECONDS, MEMORY_BYTES = 20.0, 500e6
RECORDED = next(log for log in LOGS if log.name == "spark-4.0-skewed-join.snappy")


def timed_import(log: Path) -> tuple[float, float, int]:
    """Import a log; return seconds, core seconds and the most memory, in bytes."""
    begun = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "tonnage", "import", log, "--json"], stdout=subprocess.DEVNULL
    )
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - begun
    if os.waitstatus_to_exitcode(status):
        raise SystemExit(f"{log} was not imported")
    return seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


def compressed(log: Path) -> Path:
    path = log.with_suffix(".zstd")
    with pa.output_stream(path, compression="zstd") as stream, log.open("rb") as file:
        while chunk := file.read(1 << 20):
            stream.write(chunk)
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bytes", type=int, default=1_000_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--output", type=Path, help="samples, as JSON")
    arguments = parser.parse_args()
    samples, missed = {}, []
    with tempfile.TemporaryDirectory(prefix="event-logs-") as directory:
        recorded = Path(directory) / "recorded"
        recorded.write_bytes(b"\n".join(text_lines(RECORDED)))
        for stages in (10, 1):
            log = Path(directory) / "long"
            tasks = write_long_log(recorded, log, arguments.bytes, stages)
            for path in (log, compressed(log)):
                name = f"{tasks} tasks in {stages} stages{path.suffix.replace('.', ', ')}"
                runs = [timed_import(path) for _ in range(arguments.rounds)]
                samples[name] = runs
                seconds, cores, memory = (
                    statistics.median(each) for each in zip(*runs, strict=True)
                )
                print(
                    f"{name}: {seconds:.2f} s, {cores:.2f} core s, {memory / 1e6:.0f} MB",
                    flush=True,
                )
                if seconds > SECONDS or memory > MEMORY_BYTES:
                    missed.append(name)
    if arguments.output:
        arguments.output.write_text(json.dumps(samples, indent=1))
    if missed:
        raise SystemExit(f"missed: {', '.join(missed)}")


if __name__ == "__main__":
    main()
