"""Reductions on a cluster of two kinds of machines, compared with the optimum.

    sudo .venv/bin/python benches/reduce_cluster/bench.py

MATE-EC2's heterogeneous clusters: eight machines of a lab, from eight small ones (0L/8S) to eight
large ones (8L/0S), where a large one has a link of twice the rate. All objects are in a store
without a limit of its own, also a machine of the lab. k-means and PCA run `--repeats` times on each
cluster. Each reduction's record is stored in `--out`, and finished ones are not repeated.

The rate of each kind comes from the clusters of one kind, so the optimum of a mixed cluster is its
bytes divided by the sum of its machines' rates. The claim, of medians: a mixed cluster takes at
most 3 % more than that for k-means, and 5 % for PCA. For clusters of one kind the share of their
links' rates is printed, without a claim. Needs root, Ray, what a lab needs, and the tests' S3
server.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import stores

from tonnage.base.records import ReductionRecord
from tonnage.provision import lab as labs

TONNAGE = (sys.executable, "-m", "tonnage")
LAB = "mixes"
MACHINES = 8
MIXES = (0, 2, 4, 6, 8)
"""Numbers of large machines."""
JOBS = {"kmeans": ("--k", "16", "--iterations", "3"), "pca": ("--components", "8")}
MAX_OVER = {"kmeans": 0.03, "pca": 0.05}
OBJECTS, COLUMNS = 16, 8
SPARE_BYTES = 400_000_000
FILE = """
[lab]
name = "{lab}"
{machines}
[[machine]]
type = "store"
price_usd_per_hour = 1
disks = [{{ size = {size}, fs = "xfs" }}]
"""
MACHINE = """
[[machine]]
type = "{kind}"
count = {count}
price_usd_per_hour = 1
link_mb_per_s = {rate}
"""


def tonnage(*command: str) -> str:
    """Run a command of Tonnage; return its output."""
    done = subprocess.run([*TONNAGE, *command], stdout=subprocess.PIPE, check=True, text=True)
    return done.stdout


@contextmanager
def standing(large: int, options: argparse.Namespace) -> Iterator[tuple[str, str]]:
    """Start a lab with Ray and a store with the input; yields its first machine and the address."""
    counts = {"large": large, "small": MACHINES - large}
    rates = {"large": 2 * options.small_mb_per_s, "small": options.small_mb_per_s}
    machines = "".join(
        MACHINE.format(kind=kind, count=count, rate=rates[kind])
        for kind, count in counts.items()
        if count
    )
    text = FILE.format(lab=LAB, machines=machines, size=options.bytes + SPARE_BYTES)
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
        file.write(text)
        file.flush()
        tonnage("lab", "up", file.name)
    with ExitStack() as stack:
        stack.callback(tonnage, "lab", "down", "--lab", LAB)
        tonnage("lab", "ray", "--lab", LAB)
        nodes = labs.require_up(labs.STATE_DIR, LAB).nodes(labs.STATE_DIR)
        room = nodes[MACHINES].devices[0].mount
        with stores.served(room) as endpoint:
            draw = np.random.default_rng(1)
            for number in range(OBJECTS):
                rows = draw.random((options.bytes // OBJECTS // (8 * COLUMNS), COLUMNS))
                stores.put(endpoint, f"in/{number}", rows.tobytes())
        yield nodes[0].name, stack.enter_context(stores.served_on(LAB, nodes[MACHINES], room))


def reduced(node: str, endpoint: str, job: str) -> dict[str, Any]:
    """Run a reduction; return its record."""
    with tempfile.TemporaryDirectory() as kept:
        command = ["lab", "exec", "--lab", LAB, node, "--", *TONNAGE, "run", "reduce", job]
        command += [f"s3://{stores.BUCKET}/in/", "--dtype", f"{COLUMNS}f8", *JOBS[job]]
        command += ["--cluster", "auto", "--nodes", str(MACHINES), "--workers", "1"]
        command += ["--endpoint-url", endpoint, "--job-dir", f"{kept}/job", "--json"]
        record: dict[str, Any] = json.loads(tonnage(*command))
    record["settings"]["inputs"] = ["store"]  # The same on every machine.
    return record


def report(records: dict[tuple[str, int], list[ReductionRecord]], small: float) -> bool:
    """Print the rate of each cluster; return whether a claim was missed."""
    missed = False
    for job in JOBS:
        bytes_a_second = {
            large: statistics.median(
                each.bytes * each.rounds_here / each.seconds for each in records[job, large]
            )
            for large in MIXES
            if (job, large) in records
        }
        for large, rate in bytes_a_second.items():
            links = (large + MACHINES) * small * 1e6
            line = f"{job} {large}L/{MACHINES - large}S: {rate / 1e6:.0f} MB/s, "
            line += f"{rate / links:.3f} of links"
            if 0 < large < MACHINES and {0, MACHINES} <= set(bytes_a_second):
                ends = bytes_a_second[0], bytes_a_second[MACHINES]
                optimum = (ends[0] * (MACHINES - large) + ends[1] * large) / MACHINES
                over = optimum / rate - 1
                line += f", {over:+.1%} over the optimum"
                if over > MAX_OVER[job]:
                    missed, line = True, line + " MISSED"
            print(line)
    return missed


def main() -> int:
    """Run what is missing, and print the distance from the optimum."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=stores.ROOT / "target" / "reduce_cluster")
    parser.add_argument("--bytes", type=int, default=1 << 30, help="bytes of input, in 16 objects")
    parser.add_argument("--small-mb-per-s", type=float, default=10, help="link of a small machine")
    parser.add_argument(
        "--large", type=int, nargs="+", default=MIXES, help="numbers of large machines"
    )
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    os.environ.update(stores.KEYS)

    def kept(job: str, large: int, number: int) -> Path:
        return Path(options.out / f"{job}-{large}L-{number}.json")

    for large in options.large:
        wanted = [
            (job, place)
            for number in range(options.repeats)
            for job in JOBS
            if not (place := kept(job, large, number)).exists()
        ]
        if wanted:
            with standing(large, options) as (node, endpoint):
                for job, place in wanted:
                    ReductionRecord.from_json(reduced(node, endpoint, job)).write(place)
    records: dict[tuple[str, int], list[ReductionRecord]] = {}
    for job in JOBS:
        for large in MIXES:
            for number in range(options.repeats):
                if (place := kept(job, large, number)).exists():
                    records.setdefault((job, large), []).append(ReductionRecord.read(place))
    return int(report(records, options.small_mb_per_s))


if __name__ == "__main__":
    sys.exit(main())
