"""Planned time against simulated time, of the clusters that a plan chooses.

    .venv/bin/python benches/simulate_plans/bench.py

The claim: for sorts and MapReduces on the providers' machines, with input and output on local
disks, volumes and objects, the chosen plan is simulated to the end, and its time without the start
is within 15 % of the plan's. Nothing is fitted: the simulation takes demands and capacities from
the plan, and its own are the schedule, what waits for what, bursts as they are used up, the sizes
of sampled partitions, and what does not fit in memory.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import json
import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from msgspec import structs

from tonnage.base.records.durability import Durability
from tonnage.base.records.job import Job
from tonnage.base.records.location import LOCATIONS, Location
from tonnage.catalog import Catalog, newest_catalogs
from tonnage.cli.options.planning import load_profiles
from tonnage.model.jobs.mapreduce import mapreduce_job, sort_job
from tonnage.plan.planner import PlanRequest, find_choice, plan
from tonnage.plan.resources.startup import default_startup
from tonnage.plan.search import Limits
from tonnage.simulate.cluster import SimulationError
from tonnage.simulate.planned import planned_scenario
from tonnage.simulate.two_pass import JobRequest, simulate

TB, CLAIM = 10**12, 0.15
SIZES = (TB, 20 * TB, 100 * TB, 1_000 * TB)
DEADLINES = (math.inf, 7_200.0, 1_800.0)
JOBS = {"sort": sort_job, "mapreduce": mapreduce_job}


@dataclass(frozen=True)
class Cell:
    provider: str
    job: str
    bytes: int
    where: Location
    """Of the input and the output."""
    deadline_seconds: float
    volumes: bool = True
    """Whether plans may keep data on volumes; otherwise intermediate data is on local disks."""
    durability: Durability = "none"
    """Replicated output is local, whatever ``where`` is, which is the input's place then."""

    @property
    def job_of_plan(self) -> Job:
        written_to = "local" if self.durability == "replicated" else self.where
        return JOBS[self.job](self.durability, read_from=self.where, written_to=written_to)


def cells() -> Iterator[Cell]:
    for job, size, where, deadline in itertools.product(JOBS, SIZES, LOCATIONS, DEADLINES):
        yield Cell("aws", job, size, where, deadline)
    on_disks: tuple[Location, ...] = ("objects", "local")
    for job, size, where in itertools.product(JOBS, SIZES, on_disks):
        yield Cell("aws", job, size, where, 7_200.0, volumes=False)
    for job, size, where in itertools.product(JOBS, SIZES, on_disks):
        yield Cell("aws", job, size, where, math.inf, durability="replicated")
    for provider, job in itertools.product(("gcp", "azure"), JOBS):
        yield Cell(provider, job, 20 * TB, "objects", 7_200.0)


def compare(catalog: Catalog, cell: Cell, seed: int) -> dict[str, Any]:
    """Plan a cell, and simulate what the plan chooses."""
    size, where = cell.bytes, cell.where
    if not cell.volumes:
        catalog = structs.replace(catalog, volume_kinds=())
    known = load_profiles(None, [catalog])
    request = PlanRequest(
        job=cell.job_of_plan,
        size=size,
        limits=Limits(deadline_seconds=cell.deadline_seconds),
        startup=default_startup(),
        memory=True,
        public_addresses=True,
    )
    made = plan(request, [catalog], known)
    if not made.candidates:
        return {"chosen": None}
    candidate = made.candidates[0]
    chosen = {"chosen": f"{candidate.nodes} x {candidate.offer} ({candidate.layout})"}
    try:
        scenario = planned_scenario(made, candidate, find_choice(made, candidate, [catalog], known))
    except SimulationError as why:
        return chosen | {"refused": str(why)}
    cluster = dataclasses.replace(scenario, seed=seed).cluster(scenario.nodes, size)
    everywhere = None if where == "objects" else 1
    asked = JobRequest.of(scenario.job, size, input_copies=everywhere, seed=seed)
    found = simulate(cluster, scenario.division, asked)
    assert scenario.planned is not None
    return chosen | {
        "planned": [round(seconds, 1) for _, seconds in scenario.planned.passes],
        "simulated": [round(step.seconds, 1) for step in found.steps],
        "bottlenecks": [phase.bottleneck for phase in candidate.job_phases],
        "difference": found.seconds / scenario.planned.run - 1,
        "block_bytes": found.block_bytes,
        "third_pass_bytes": found.repartitioned_bytes,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    seed = parser.parse_args().seed
    catalogs = {each.provider: each for each in newest_catalogs()}
    worst = 0.0
    for cell in cells():
        found = compare(catalogs[cell.provider], cell, seed)
        limit = cell.deadline_seconds if math.isfinite(cell.deadline_seconds) else None
        asked = dataclasses.asdict(cell) | {"deadline_seconds": limit}
        print(json.dumps(asked | found), flush=True)
        # Too soon a deadline has no plan, and nothing to simulate.
        worst = max(worst, abs(found.get("difference", 1.0)) if found["chosen"] else 0.0)
    print(f"at most {100 * worst:.1f} % apart: {'holds' if worst <= CLAIM else 'MISSED'}")
    return int(worst > CLAIM)


if __name__ == "__main__":
    sys.exit(main())
