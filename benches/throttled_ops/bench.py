"""Single operations on a device of known speed: is the measured rate the one that was set?

    sudo .venv/bin/python benches/throttled_ops/bench.py

The kernel's blkio controller (cgroup v1) throttles a loop file with a file system of its own, in
turn to a number of bytes and of operations a second, so the true rate is known. Random reads, and
writes that are not flushed, are measured as in `tonnage measure ops`, after a warm-up, during which
the throttle allows a burst. The claim: every median of a few trials is within 2 % of the throttle.
A busy machine may miss it: a throttle that wakes late allows less, so the cores that others used
are printed.

Operations of 4 MiB are measured only with the throttle of bytes: the kernel counts the pieces that
it passes to the device, so their number of operations is not known.

Needs root, cgroup v1 with blkio, losetup and mkfs.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from throttle import loop_device, member, throttled

from tonnage.base import core
from tonnage.base.records import write_atomically
from tonnage.base.records.base import to_builtins
from tonnage.base.system.activity import ActivityMonitor
from tonnage.measure.random_io.trial import write_test_file
from tonnage.measure.trial.environment import capture

MAX_DEVIATION = 0.02
SMALL, LARGE = 4 << 10, 4 << 20
DEVICE_ROOM = 1 << 29
"""Room on the device for the file system."""


@dataclass(frozen=True)
class Case:
    """A throttle and an operation."""

    unit: str
    limit: int
    writes: bool
    block_bytes: int
    outstanding: int

    @property
    def name(self) -> str:
        """The case in words."""
        what = f"{'write' if self.writes else 'read'}{'4k' if self.block_bytes == SMALL else '4m'}"
        rate = f"{self.limit / 1e6:g} MB/s" if self.unit == "bps" else f"{self.limit} operations/s"
        return f"{what} x{self.outstanding} at {rate}"


def cases(options: argparse.Namespace) -> list[Case]:
    """Return every throttle with the operations that can measure it."""
    found = []
    for writes in (False, True):
        found += [
            Case("bps", options.bytes_per_second, writes, LARGE, 2),
            Case("bps", options.small_bytes_per_second, writes, SMALL, 32),
            Case("iops", options.operations_per_second, writes, SMALL, 16),
        ]
    return found


def ratio(file: Path, case: Case, options: argparse.Namespace, seed: int) -> float:
    """Run one trial in the control group; return the measured rate over the throttle's."""
    config: dict[str, Any] = {
        "files": [str(file)],
        "writes": case.writes,
        "durable_one_in": 0,
        "block_bytes": case.block_bytes,
        "outstanding": case.outstanding,
        "blocking": False,
        "batched": False,
        "seconds": options.warm_up_seconds + options.seconds,
        "warm_up_seconds": options.warm_up_seconds,
        "seed": seed,
    }
    rate: float = core.run("ops_bench", config)["operations_per_second"]
    return rate * (case.block_bytes if case.unit == "bps" else 1) / case.limit


def main() -> int:
    """Run the trials of all cases in random order and print a row for each case."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=15.0)
    parser.add_argument("--warm-up-seconds", type=float, default=2.0)
    parser.add_argument("--bytes-per-second", type=int, default=200_000_000)
    parser.add_argument("--small-bytes-per-second", type=int, default=40_000_000)
    parser.add_argument("--operations-per-second", type=int, default=2000)
    parser.add_argument("--file-bytes", type=int, default=2_000_000_000)
    parser.add_argument("--file-system", default="ext4")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--where", type=Path, default=Path("target/throttled-ops"))
    parser.add_argument("--out", type=Path, default=Path("target/throttled-ops.json"))
    options = parser.parse_args()
    if options.out.exists():
        parser.error(f"--out {options.out} exists: move it, or name another file")
    here = to_builtins(capture([]))
    told = {name: str(value) for name, value in vars(options).items()}
    ratios: dict[Case, list[float]] = {case: [] for case in cases(options)}
    busy: list[float] = []
    size = options.file_bytes + DEVICE_ROOM
    with loop_device(options.where.resolve(), size, options.file_system) as (device, mount):
        file = write_test_file(mount, options.file_bytes, None)
        for number in range(options.rounds):
            order = list(ratios)
            random.Random(f"{options.seed} {number}").shuffle(order)
            for case in order:
                with (
                    throttled(device, {case.unit: case.limit}) as group,
                    member(group),
                    ActivityMonitor(Path(device).name) as watch,
                ):
                    ratios[case].append(ratio(file, case, options, options.seed + number))
                seconds = options.warm_up_seconds + options.seconds
                busy.append(watch.activity.foreign_cpu_seconds / seconds if watch.activity else 0.0)
                known = {"environment": here, "options": told, "foreign_cores": busy}
                by_name = {each.name: found for each, found in ratios.items()}
                # After each trial, so that a killed bench leaves its results.
                write_atomically(options.out, json.dumps(known | {"ratios": by_name}).encode())
    missed = []
    for case, found in ratios.items():
        middle = statistics.median(found)
        print(f"{case.name}: {middle:.4f} of the throttle ({min(found):.4f} to {max(found):.4f})")
        if abs(middle - 1) > MAX_DEVIATION:
            missed.append(case.name)
    others = f"{statistics.median(busy):.2f} cores (at most {max(busy):.2f})"
    print(f"other programs used {others} during the trials")
    print("missed: " + (", ".join(missed) or "nothing"))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
