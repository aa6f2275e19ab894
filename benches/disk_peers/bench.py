"""Beside fio: do our disk engine and fio's see the same disk?

    .venv/bin/python benches/disk_peers/bench.py --dir DIR --rounds 5

Each round runs, in turn, fio and `tonnage measure disk` over a file of the same size in the same
directory: sequential reading, then sequential writing, direct, by io_uring with registered
buffers, 1 MiB transfers, the same depth, the same seconds. What is compared is the ratio of a
round's pair, since a disk's speed drifts; all samples and the version of fio are kept. The claim:
the median ratio is between 0.8 and 1.25 both ways.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

TONNAGE = Path(sys.executable).parent / "tonnage"
DEPTH = 16
"""The default depth of Tonnage's queues (crates/io/disk/src/disk.rs)."""
MODES = {"ro": "read", "wo": "write"}


def tonnage(directory: Path, mode: str, seconds: float, size: int) -> dict[str, Any]:
    """What Tonnage measures: the environment, and one trial."""
    command = [TONNAGE, "measure", "disk", "--json", "--dir", directory, "--mode", mode]
    command += ["--seconds", str(seconds), "--rounds", "1", "--size", str(size)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    measurement: dict[str, Any] = json.loads(done.stdout)
    return measurement


def fio(directory: Path, mode: str, seconds: float, size: int) -> float:
    """Bytes per second that fio moves, over a laid out file as Tonnage's is."""
    options = {
        "name": "peer",
        "filename": directory / "fio-peer",
        "rw": MODES[mode],
        "size": size,
        "ioengine": "io_uring",
        "fixedbufs": 1,
        "direct": 1,
        "bs": "1M",
        "iodepth": DEPTH,
        "time_based": 1,
        "ramp_time": "500ms",
        "runtime": seconds,
        "output-format": "json",
    }
    command = ["fio", *(f"--{name}={value}" for name, value in options.items())]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    rate: int = json.loads(done.stdout)["jobs"][0][MODES[mode]]["bw_bytes"]
    return float(rate)


def main() -> int:
    """Runs the rounds and prints the ratios."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dir", type=Path, default=Path("target"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--size", type=int, default=2_000_000_000)
    parser.add_argument("--out", type=Path, default=Path("target/disk_peers.json"))
    options = parser.parse_args()
    version = subprocess.run(["fio", "--version"], check=True, capture_output=True, text=True)
    peer = options.dir / "fio-peer"
    result: dict[str, Any] = {"fio": version.stdout.strip(), "samples": []}
    samples = result["samples"]
    try:
        fio(options.dir, "wo", options.seconds, options.size)  # lays the file out
        for number in range(1, options.rounds + 1):
            for mode in MODES:
                theirs = fio(options.dir, mode, options.seconds, options.size)
                measured = tonnage(options.dir, mode, options.seconds, options.size)
                result["environment"] = measured["environment"]
                ours = measured["trials"][0]["bytes_per_second"]
                samples.append({"round": number, "mode": mode, "fio": theirs, "tonnage": ours})
                options.out.write_text(json.dumps(result))
                shown = f"fio {theirs / 1e6:.0f} MB/s, tonnage {ours / 1e6:.0f} MB/s"
                print(f"round {number} {mode}: {shown}, ratio {ours / theirs:.2f}", flush=True)
    finally:
        peer.unlink(missing_ok=True)
    missed = False
    for mode in MODES:
        ratios = [row["tonnage"] / row["fio"] for row in samples if row["mode"] == mode]
        middle = statistics.median(ratios)
        missed = missed or not 0.8 <= middle <= 1.25
        print(f"{mode}: median ratio {middle:.2f} [{min(ratios):.2f} .. {max(ratios):.2f}]")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
