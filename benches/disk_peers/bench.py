"""The disk engine compared with fio on the same disk.

    .venv/bin/python benches/disk_peers/bench.py --dir DIR --rounds 5

Each round runs, in turn, fio and `tonnage measure disk` in the same directory: both write a new
file of the same size once, then both read such a file once; sequential, direct, by io_uring with
registered buffers, 1 MiB transfers, the same queue depth, space reserved before the file is
written. The ratio is taken within a round's pair, because a disk's speed drifts; all samples and
the version of fio are stored. The claim: the median is at least 0.8 of fio's in both directions. A
higher rate is printed as such: fio counts its own start, which matters less in a longer run.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

TONNAGE = Path(sys.executable).parent / "tonnage"
DEPTH = 16
"""The default depth of Tonnage's queues (crates/io/disk/src/disk.rs)."""
MODES = {"wo": "write", "ro": "read"}
"""In this order, because fio reads the file that it wrote."""
MIN_RATIO = 0.8
NO_LIMIT_SECONDS = 1e6
"""So that a trial ends with its data, not with its time."""


def tonnage(directory: Path, mode: str, size: int) -> dict[str, Any]:
    """Measure one trial with Tonnage; return the measurement."""
    command = [TONNAGE, "measure", "disk", "--json", "--dir", directory, "--mode", mode]
    command += ["--seconds", str(NO_LIMIT_SECONDS), "--repetitions", "1", "--size", str(size)]
    with tempfile.TemporaryDirectory() as kept:
        command += ["--output", Path(kept, "measured")]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
    measurement: dict[str, Any] = json.loads(done.stdout)
    return measurement


def fio(file: Path, mode: str, size: int) -> float:
    """Return fio's bytes per second, writing a new file or reading the one it wrote."""
    if mode == "wo":
        file.unlink(missing_ok=True)  # Existing blocks cost less to write.
    options = {
        "name": "peer",
        "filename": file,
        "rw": MODES[mode],
        "size": size,
        "ioengine": "io_uring",
        "fixedbufs": 1,
        "direct": 1,
        "bs": "1M",
        "iodepth": DEPTH,
        "fallocate": "native",
        "output-format": "json",
    }
    command = ["fio", *(f"--{name}={value}" for name, value in options.items())]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    rate: int = json.loads(done.stdout)["jobs"][0][MODES[mode]]["bw_bytes"]
    return float(rate)


def main() -> int:
    """Run the rounds and print the ratios."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dir", type=Path, default=Path("target"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--size", type=int, default=4_000_000_000)
    parser.add_argument("--out", type=Path, default=Path("target/disk_peers.json"))
    options = parser.parse_args()
    version = subprocess.run(["fio", "--version"], check=True, capture_output=True, text=True)
    peer = options.dir / "fio-peer"
    result: dict[str, Any] = {"fio": version.stdout.strip(), "samples": []}
    samples = result["samples"]
    try:
        for number in range(1, options.rounds + 1):
            for mode in MODES:
                theirs = fio(peer, mode, options.size)
                measured = tonnage(options.dir, mode, options.size)
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
        missed = missed or middle < MIN_RATIO
        spread = f"[{min(ratios):.2f} .. {max(ratios):.2f}]"
        ahead = f", ahead by {middle - 1:.0%}" if middle > 1 else ""
        print(f"{mode}: median ratio {middle:.2f} {spread}{ahead}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
