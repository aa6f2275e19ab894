"""`tonnage measure object` on a store of known speed: bandwidth, first byte, knee.

    .venv/bin/python benches/shaped_object/bench.py

The tests' S3 server delays each request, and limits the rate of each and of all together, like a
cloud store seen from one machine. T threads with chunks of C bytes then get

    min(T x C / (wait + C / rate), total)      bytes a second

in either direction. The claim: the median of the rounds is within 5 % of that for every operation,
chunk and number of threads; the time to the first byte is the wait plus at most the time of 64 KiB,
within 5 ms; and the knee is where the formula puts it. The rates are far below the machine's own,
so they measure the server. Trials should last for several of the longest requests (1.7 s): the last
requests are faster, because no new ones start alongside them.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
TONNAGE = Path(sys.executable).parent / "tonnage"
SERVER = ROOT / ".tools" / "s3server"
KEYS = {"AWS_ACCESS_KEY_ID": "tester", "AWS_SECRET_ACCESS_KEY": "a secret for tests"}
WAIT_SECONDS, RATE, TOTAL = 0.04, 10e6, 50e6
THREADS = (1, 2, 4, 8, 16)
CHUNKS = [1 << 20, 5 << 20]
FIRST_BYTE_SECONDS = (WAIT_SECONDS, WAIT_SECONDS + (64 << 10) / RATE)
MAX_OFF = 0.05
MAX_OFF_SECONDS = 0.005


def expected(chunk_bytes: int, threads: int) -> float:
    """Return the bandwidth that the server's shape allows, in bytes a second."""
    return min(threads * chunk_bytes / (WAIT_SECONDS + chunk_bytes / RATE), TOTAL)


def measured(operations: list[str], chunks: list[int], options: Any) -> dict[str, Any]:
    """Start a shaped server and measure it."""
    command: list[str | Path] = [TONNAGE, "measure", "object", "s3://bench/shaped", "--json"]
    command += ["--operation", *operations, "--chunk-size", *map(str, chunks)]
    command += ["--requests", *map(str, THREADS), "--repetitions", str(options.rounds)]
    command += ["--seconds", str(options.seconds), "--output", options.out / "-".join(operations)]
    with tempfile.TemporaryDirectory(dir=options.dir) as directory:
        shape = ["-first-byte", f"{WAIT_SECONDS}s", "-rate", str(RATE), "-total", str(TOTAL)]
        serve: list[str | Path] = [SERVER, "-root", directory, "-bucket", "bench", *shape]
        with subprocess.Popen(
            serve,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as server:
            try:
                assert server.stdout
                lines = (line.strip() for line in server.stdout)
                endpoint = next(line for line in lines if line.startswith("http://"))
                done = subprocess.run(
                    [*command, "--endpoint-url", endpoint],
                    check=True,
                    stdout=subprocess.PIPE,
                    text=True,
                    env=os.environ | KEYS,
                )
            finally:
                server.kill()
    measurement: dict[str, Any] = json.loads(done.stdout)
    return measurement


def main() -> int:
    """Measure, and print each figure with its expected value."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--dir", type=Path, default=ROOT / "target", help="directory on a real disk"
    )
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=Path, default=ROOT / "target" / "shaped_object")
    options = parser.parse_args()
    if options.out.exists():
        parser.error(f"--out {options.out} exists: move it, or name another directory")
    results = [
        measured(["get", "put"], CHUNKS, options),
        measured(["multipart"], CHUNKS[1:], options),
    ]
    missed = False
    found: dict[tuple[str, int, int], list[float]] = {}
    for trial in (trial for result in results for trial in result["trials"]):
        reading, step = trial["reading"], trial["step"]
        key = (step["operation"], reading["block_bytes"], step["outstanding"])
        found.setdefault(key, []).append(trial["bytes_per_second"])
        first = reading["details"]["first_byte_seconds"].get("p50")
        alone = (
            expected(key[1], key[2]) < TOTAL
        )  # Otherwise the first byte also waits for other requests.
        soonest, latest = FIRST_BYTE_SECONDS
        off = MAX_OFF_SECONDS
        if alone and first is not None and not soonest - off <= first <= latest + off:
            print(f"{trial['name']}: first byte after {first:.4f} s")
            missed = True
    for (operation, chunk_bytes, threads), rates in sorted(found.items()):
        middle, wanted = statistics.median(rates), expected(chunk_bytes, threads)
        off = middle / wanted - 1
        missed = missed or abs(off) > MAX_OFF
        print(
            f"{operation} {chunk_bytes >> 20}MiB x{threads}: {middle / 1e6:.1f} MB/s, "
            f"{wanted / 1e6:.1f} expected ({off:+.1%})"
        )
    for at in (at for result in results for at in result["knees"]):
        speeds = {threads: expected(at["chunk_bytes"], threads) for threads in THREADS}
        wanted = min(t for t, speed in speeds.items() if speed >= 0.95 * max(speeds.values()))
        missed = missed or at["threads"] != wanted
        print(
            f"{at['operation']} {at['chunk_bytes'] >> 20}MiB: knee at {at['threads']} threads, "
            f"{wanted} expected"
        )
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
