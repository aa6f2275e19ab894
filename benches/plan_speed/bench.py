"""Time of a plan, and how it grows with the number of offers.

    .venv/bin/python benches/plan_speed/bench.py

The claim: `tonnage plan sort --data 100TB --json` over the whole AWS catalog of 2026, with every
layout on volumes and 1 to 1,000 nodes of each, takes less than 1 s from the command's start to its
end, intervals included; over all providers less than 2 s. Each runs several times, and the median
counts. The growth is that of planning alone, in this process, over parts of the catalog and over
copies of it; the claim is that four times the offers take at most five times as long.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

from msgspec import structs

from tonnage.catalog import Catalog, load_catalog
from tonnage.model.jobs.mapreduce import sort_job
from tonnage.model.profiles.repository import index_profiles, read_profiles
from tonnage.plan.planner import PlanRequest, plan

AWS = "aws-us-east-1-2026"
COMMAND = [sys.executable, "-m", "tonnage", "plan", "sort", "--data", "100TB", "--json"]
ENVIRONMENT = {
    name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"
}
"""The first run compiles modules and caches them, which is Python's default."""
CLAIMS = {
    "aws, data in objects": (["--catalog", AWS], 1.0),
    "aws, data on volumes": (["--catalog", AWS, "--from", "volumes"], 1.0),
    "aws, deadline": (["--catalog", AWS, "--deadline", "30min"], 1.0),
    "all providers": ([], 2.0),
}
SHARES = (0.125, 0.25, 0.5, 1, 2, 4)
MAX_GROWTH = 5.0
DATA = 100 * 10**12


def timed(arguments: list[str]) -> tuple[float, float, int]:
    """Run the command once; return seconds, core seconds and the number of candidates."""
    before = os.times()
    begun = time.perf_counter()
    done = subprocess.run([*COMMAND, *arguments], check=True, capture_output=True, env=ENVIRONMENT)
    seconds = time.perf_counter() - begun
    after = os.times()
    cores = after.children_user + after.children_system
    cores -= before.children_user + before.children_system
    return seconds, cores, len(json.loads(done.stdout)["candidates"])


def part(catalog: Catalog, share: float) -> Catalog:
    """Return a share of the catalog: every n-th offer, or several copies with other names."""
    offers = catalog.offers
    if share < 1:
        return structs.replace(catalog, offers=offers[:: round(1 / share)])
    copies = [
        structs.replace(offer, type=f"{offer.type}-{copy}") if copy else offer
        for copy in range(int(share))
        for offer in offers
    ]
    return structs.replace(catalog, offers=tuple(copies))


def growth(rounds: int) -> list[dict[str, float]]:
    """Time planning for each number of offers."""
    catalog, study = load_catalog(AWS), index_profiles(read_profiles("themis-2014"))
    found = []
    for share in SHARES:
        some = part(catalog, share)
        took = []
        for _ in range(rounds):
            begun = time.perf_counter()
            plan(PlanRequest(job=sort_job(), size=DATA), [some], study)
            took.append(time.perf_counter() - begun)
        found.append({"offers": len(some.offers), "seconds": statistics.median(took)})
        print(f"{len(some.offers)} offers: {found[-1]['seconds']:.3f} s", flush=True)
    return found


def main() -> None:
    """Run all, check the claims, write the samples."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--out", type=Path, help="JSON file for the raw samples")
    options = parser.parse_args()
    missed = []
    kept: dict[str, object] = {"cores": os.cpu_count(), "load": os.getloadavg()}
    for name, (arguments, most) in CLAIMS.items():
        runs = [timed(arguments) for _ in range(options.rounds)]
        middle = statistics.median(seconds for seconds, _, _ in runs)
        cores = statistics.median(cores for _, cores, _ in runs)
        print(f"{name}: {middle:.2f} s ({cores:.2f} core s), {runs[0][2]} candidates", flush=True)
        kept[name] = runs
        if middle > most:
            missed.append(f"{name}: {middle:.2f} s, not {most} s")
    grown = kept["growth"] = growth(options.rounds)
    whole, fourfold = (grown[SHARES.index(share)]["seconds"] for share in (1, 4))
    if fourfold > MAX_GROWTH * whole:
        missed.append(f"four times the offers take {fourfold / whole:.1f} times as long")
    if options.out:
        options.out.write_text(json.dumps(kept, indent=1) + "\n")
    print("\n".join(missed) if missed else "All claims hold.")
    sys.exit(bool(missed))


if __name__ == "__main__":
    main()
