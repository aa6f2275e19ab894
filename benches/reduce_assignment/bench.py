"""Selective assignment of chunks, from the object with the fewest in flight, against sequential.

    .venv/bin/python benches/reduce_assignment/bench.py

MATE-EC2's selective job assignment and a sequential one, on the tests' S3 server, shaped like a
cloud store and with a cap for each object as well: reading objects one after the other is limited
by the caps of few. k-means and PCA run with both, alternating; all other settings are automatic.
The store's cap for all is less than two cores can reduce, so the optimum is the bytes divided by
that cap. The claims, of medians: selective assignment takes at most 3 % more than the optimum
for k-means, and 5 % for PCA, and is at least as fast as the sequential one (the paper has 1.01 to
1.14 times for k-means, and 1.19 to 1.68 times for PCA, on S3 of 2011).
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

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import stores

TONNAGE = (sys.executable, "-m", "tonnage")
JOBS = {"kmeans": ("--k", "16"), "pca": ("--components", "8")}
ASSIGNMENTS = ("selective", "sequential")
MAX_OVER = {"kmeans": 0.03, "pca": 0.05}
OBJECTS, COLUMNS = 16, 8


def main() -> int:
    """Measure both, print the ratio and whether the claims hold."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--dir", type=Path, default=stores.ROOT / "target", help="directory on a real disk"
    )
    parser.add_argument("--bytes", type=int, default=2 << 30, help="bytes of input, in 16 objects")
    parser.add_argument(
        "--object-cap", type=float, default=40e6, help="bytes a second of each object"
    )
    parser.add_argument("--cap", type=float, default=300e6, help="bytes a second of the store")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    seconds: dict[tuple[str, str], list[float]] = {}
    with tempfile.TemporaryDirectory(dir=options.dir) as made:
        with stores.served(Path(made)) as endpoint:
            draw = np.random.default_rng(1)
            for number in range(OBJECTS):
                rows = draw.random((options.bytes // OBJECTS // (8 * COLUMNS), COLUMNS))
                stores.put(endpoint, f"in/{number:02}", rows.tobytes())
        flags = [*stores.shaped(options.cap), "-object", str(options.object_cap)]
        with stores.served(Path(made), flags) as endpoint:
            variables = os.environ | stores.KEYS | {"AWS_ENDPOINT_URL": endpoint}
            for _ in range(options.rounds):
                for job, more in JOBS.items():
                    for assignment in ASSIGNMENTS:
                        command = [*TONNAGE, "run", "reduce", job, f"s3://{stores.BUCKET}/in/"]
                        command += ["--dtype", f"{COLUMNS}f8", *more, "--json"]
                        command += ["--assignment", assignment]
                        done = subprocess.run(
                            command, env=variables, stdout=subprocess.PIPE, check=True, text=True
                        )
                        took = json.loads(done.stdout)["seconds"]
                        seconds.setdefault((job, assignment), []).append(took)
    missed = False
    for job in JOBS:
        selective, sequential = (seconds[job, each] for each in ASSIGNMENTS)
        times = statistics.median(sequential) / statistics.median(selective)
        optimum = options.bytes / min(options.cap, OBJECTS * options.object_cap)
        over = statistics.median(selective) / optimum - 1
        misses = times < 1 or over > MAX_OVER[job]
        missed = missed or misses
        print(
            f"{job}: selective {statistics.median(selective):.2f} s "
            f"({min(selective):.2f} to {max(selective):.2f}), sequential "
            f"{statistics.median(sequential):.2f} s ({min(sequential):.2f} to "
            f"{max(sequential):.2f}): {times:.2f} times as fast, {over:+.1%} over the optimum of "
            f"{optimum:.2f} s{' MISSED' if misses else ''}"
        )
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
