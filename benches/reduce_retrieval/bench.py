"""Retrieval alone, compared with a bare program that reads the same ranges.

    .venv/bin/python benches/reduce_retrieval/bench.py

Tonnage retrieves objects of zeros from the tests' S3 server chunk by chunk, without processing
them. `probe`, a page of Rust over the same library, reads them without verifying, retrying or
passing them on. Both request the same ranges, as many at once, alternating, on the same server.

The claims, of medians: on a server without limits at least 95 % of the probe's bytes a second, with
at most 1.2 times its core seconds a GB; and on one that is shaped like a cloud store (40 ms to the
first byte, 85 MB/s a connection, a cap for all), with automatic chunks and requests, at least 95 %
of the cap. Core seconds are those of the whole call, which also lists objects.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import stores  # noqa: E402

PROBE = stores.ROOT / "target" / "reduce_retrieval" / "release" / "retrieval-probe"
MIN_SHARE, MAX_CPU = 0.95, 1.2
OBJECTS = 16


def built() -> None:
    """Build the probe with the versions in its lock file."""
    command = ["cargo", "build", "--quiet", "--release", "--locked"]
    command += ["--manifest-path", str(HERE / "probe" / "Cargo.toml")]
    subprocess.run([*command, "--target-dir", str(PROBE.parents[1])], check=True)


def result(endpoint: str, *command: str | Path) -> dict[str, Any]:
    """Run a program with the server in its environment; return its JSON output."""
    environment = os.environ | stores.KEYS | {"AWS_ENDPOINT_URL": endpoint}
    done = subprocess.run(
        list(map(str, command)), env=environment, stdout=subprocess.PIPE, check=True, text=True
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def main() -> int:
    """Measure, print, and check the claims."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--dir", type=Path, default=stores.ROOT / "target", help="directory on a real disk"
    )
    parser.add_argument("--object-bytes", type=int, default=256 << 20)
    parser.add_argument("--range-bytes", type=int, default=8 << 20)
    parser.add_argument("--at-once", type=int, default=16, help="concurrent ranges, for both")
    parser.add_argument("--memory-bytes", type=int, default=256 << 20)
    parser.add_argument(
        "--cap", type=float, default=1e9, help="bytes a second of the shaped server"
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path, help="file for every sample, as lines of JSON")
    options = parser.parse_args()
    built()
    url = f"s3://{stores.BUCKET}/in/"
    memory = str(options.memory_bytes)

    def ours(endpoint: str, chunk: str, at_once: str) -> dict[str, Any]:
        return result(endpoint, sys.executable, HERE / "retrieve.py", url, chunk, at_once, memory)

    def probe(endpoint: str) -> dict[str, Any]:
        each = [str(options.range_bytes), str(options.at_once), "1"]
        return result(endpoint, PROBE, stores.BUCKET, "in", *each)

    chunk = str(options.range_bytes)  # One request each, as in the default.
    programs: dict[str, Callable[[str], dict[str, Any]]] = {
        "probe": probe,
        "ours": lambda endpoint: ours(endpoint, chunk, str(options.at_once)),
        "ours, auto": lambda endpoint: ours(endpoint, "auto", "auto"),
    }
    samples: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(dir=options.dir) as directory:
        with stores.served(Path(directory)) as endpoint:
            for number in range(OBJECTS):
                stores.put(endpoint, f"in/{number}", bytes(options.object_bytes))
        for shape, flags in (("fast", stores.FAST), ("shaped", stores.shaped(options.cap))):
            with stores.served(Path(directory), flags) as endpoint:
                probe(endpoint)  # The first run finds no page in memory.
                for round_ in range(options.rounds):
                    for name, run in programs.items():
                        found = run(endpoint)
                        samples.append({"shape": shape, "name": name, "round": round_} | found)
    if options.out:
        options.out.write_text("".join(json.dumps(each) + "\n" for each in samples))

    def median(shape: str, name: str, of: Callable[[dict[str, Any]], float]) -> float:
        mine = [of(each) for each in samples if (each["shape"], each["name"]) == (shape, name)]
        return statistics.median(mine)

    def rate(each: dict[str, Any]) -> float:
        return float(each["bytes"] / each["seconds"])

    def cpu(each: dict[str, Any]) -> float:
        return float(each["cpu_seconds"] / each["bytes"] * 1e9)

    for shape in ("fast", "shaped"):
        for name in programs:
            print(
                f"{shape}, {name}: {median(shape, name, rate) / 1e6:.0f} MB/s, "
                f"{median(shape, name, cpu):.3f} core seconds a GB"
            )
    for each in samples:
        if each["name"] == "ours, auto" and each["round"] == 0:
            print(f"{each['shape']}: {each['tuning']['threads']} at once: {each['tuning']['why']}")
    checks = {
        "of the probe's bytes a second": (
            median("fast", "ours", rate) / median("fast", "probe", rate),
            lambda share: share >= MIN_SHARE,
        ),
        "of the probe's core seconds": (
            median("fast", "ours", cpu) / median("fast", "probe", cpu),
            lambda share: share <= MAX_CPU,
        ),
        "of the shaped server's cap, with auto": (
            median("shaped", "ours, auto", rate) / options.cap,
            lambda share: share >= MIN_SHARE,
        ),
    }
    for what, (share, holds) in checks.items():
        print(f"{share:.3f} {what}{'' if holds(share) else ': MISSED'}")
    return 0 if all(holds(share) for share, holds in checks.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
