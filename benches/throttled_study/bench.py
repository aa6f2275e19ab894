"""Study a device of known speed: does the sort reach its limit, is the prediction right?

    sudo .venv/bin/python benches/throttled_study/bench.py --runs 5

The kernel's blkio controller (cgroup v1) throttles a loop file with a file system of its own to the
same rate for reading and for writing, so the true rate is known. Each run is a complete `tonnage
study` in that control group, in a new process; its record is stored with the others.

Claims, for every run: efficiency at least 0.95, error at most 0.05, resident memory of the process
at most the budget plus 100 MiB, at most 2.0 core seconds a gigabyte.

Needs root, cgroup v1 with blkio, losetup and mkfs.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from throttle import join, loop_device, throttled

TONNAGE = Path(sys.executable).parent / "tonnage"


def study(group: Path, mount: Path, out: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Run a study in the control group; return its record, with its process's peak memory."""
    command = [TONNAGE, "study", "--json", "--data", options.size, "--memory", options.memory]
    command += ["--dir", mount, "--output", out]
    done = subprocess.run(
        command,
        check=True,
        stdout=subprocess.PIPE,
        preexec_fn=partial(join, group),
    )
    record: dict[str, Any] = json.loads(done.stdout)
    # The largest of all children so far; later studies are no larger than the first.
    peak_kib = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    record["process_peak_bytes"] = peak_kib * 1024
    return record


def row(record: dict[str, Any]) -> dict[str, float]:
    """Return the figures of the claims."""
    run = record["run"]
    return {
        "seconds": run["seconds"],
        "predicted": record["predicted"]["seconds"],
        "low": record["predicted"]["low_seconds"],
        "high": record["predicted"]["high_seconds"],
        "limit": record["limit"]["seconds"],
        "efficiency": record["limit"]["efficiency"],
        "error": record["error_fraction"],
        "core_seconds_per_GB": run["cpu_seconds"] / (run["bytes"] / 1e9),
        "process_MiB_over_budget": (record["process_peak_bytes"] - run["settings"]["memory_bytes"])
        / 2**20,
    }


def misses(figures: dict[str, float]) -> list[str]:
    """Return the claims that a run misses."""
    claims = {
        "efficiency": figures["efficiency"] >= 0.95,
        "error": figures["error"] <= 0.05,
        "core_seconds_per_GB": figures["core_seconds_per_GB"] <= 2.0,
        "process_MiB_over_budget": figures["process_MiB_over_budget"] <= 100,
    }
    return [name for name, holds in claims.items() if not holds]


def main() -> int:
    """Run the studies and print a row for each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--size", default="8GB")
    parser.add_argument("--memory", default="1GiB")
    parser.add_argument("--bytes-per-second", type=int, default=300_000_000)
    parser.add_argument("--device-bytes", type=int, default=32 * 2**30)
    parser.add_argument("--file-system", default="ext4")
    parser.add_argument("--where", type=Path, default=Path("target/throttled"))
    parser.add_argument("--out", type=Path, default=Path("target/throttled-results"))
    options = parser.parse_args()
    if options.out.exists():
        parser.error(f"--out {options.out} holds earlier results: name another directory")
    options.out.mkdir(parents=True)
    missed = []
    with (
        loop_device(options.where.resolve(), options.device_bytes, options.file_system) as device,
        throttled(device[0], {"bps": options.bytes_per_second}) as group,
    ):
        for number in range(1, options.runs + 1):
            record = study(group, device[1], options.out / f"study-{number}", options)
            figures = row(record)
            (options.out / f"run-{number}.json").write_text(json.dumps(figures))
            shown = "  ".join(f"{name} {value:.3f}" for name, value in figures.items())
            print(f"run {number}: {shown}", flush=True)
            missed += [f"run {number}: {name}" for name in misses(figures)]
    print("missed: " + (", ".join(missed) or "nothing"))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
