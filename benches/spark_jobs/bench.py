"""Spark jobs on clusters that they did not run on, planned from the event log of one run.

    sudo .venv/bin/python benches/spark_jobs/bench.py --spark SPARK_HOME

Six programs (`programs.py`) run on labs of three types of machines, which differ in disks, links,
cores and memory, with two and with four machines: six cells for each program. From the event log of
each cell in turn `tonnage plan` predicts the other five, with the rates that the lab was set to.
Printed are the errors, how often the 90 % intervals contain the time, and the regret: what the cell
that is predicted to be cheapest costs more than the cheapest one. A time is an application's, from
its start to its end, as its own log has it.

The claims: median error at most 12 %, worst 35 %, intervals hold in 80 to 97 %, and the mean regret
is at most 5 %. Event logs are kept in `--out`, and finished cells are not run again. Once all
exist, a line is added to `--history`. Needs root, what a lab needs, Java 17, PySpark 4 (`--spark`
is the directory of its package), 16 GB of disk in /var/lib, and an otherwise idle machine for 45
minutes.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import clusters
import numpy as np
from clusters import Cluster, Type
from programs_by_name import PROGRAMS

from tonnage import __version__
from tonnage.base.records.application import Application
from tonnage.base.records.plan import Candidate
from tonnage.base.records.profile import CapacityDistribution, Mode, Profile
from tonnage.catalog import Catalog, find_offer, load_catalog
from tonnage.measure.importers.spark.log_files import local_log
from tonnage.measure.importers.spark.read import read_event_log
from tonnage.model.jobs.application import application_job
from tonnage.model.profiles.repository import ProfileIndex, index_profiles
from tonnage.plan.planner import PlanRequest, plan
from tonnage.plan.resources.machines import core_speed, lasting_vcpus
from tonnage.plan.search import Limits
from tonnage.provision.lab import catalog as offers
from tonnage.provision.lab.config import parse

HERE = Path(__file__).resolve().parent
TYPES = (
    Type("a", disk=60, link=40, cores=0.40, memory=2048, usd=1.00),
    Type("b", disk=25, link=60, cores=0.45, memory=1536, usd=0.95),
    Type("c", disk=120, link=12, cores=0.30, memory=3072, usd=0.85),
)
NODES = (2, 4)
SCALE = 2.0
SETTLE_SECONDS = 5
SET_WITHIN = 0.03
MEDIAN_ERROR, WORST_ERROR, INSIDE, REGRET = 0.12, 0.35, (0.80, 0.97), 0.05
Cell = tuple[str, int]


@dataclass(frozen=True)
class Predicted:
    """A cell of a program, predicted from the run of another."""

    program: str
    known: Cell
    cell: Cell
    seconds: float
    candidate: Candidate

    @property
    def error(self) -> float:
        return self.candidate.seconds.median / self.seconds - 1

    @property
    def is_inside(self) -> bool:
        its = self.candidate.seconds
        return its.low <= self.seconds <= its.high


def log_of(out: Path, cell: Cell, program: str) -> Path:
    return out / cell[0] / str(cell[1]) / f"{program}.log"


def run_missing(out: Path, spark_home: Path, programs: Sequence[str]) -> None:
    """Run the cells of which there is no event log."""
    for kind in TYPES:
        missing = {
            nodes: [each for each in programs if not log_of(out, (kind.name, nodes), each).exists()]
            for nodes in NODES
        }
        if not any(missing.values()):
            continue
        with clusters.standing(kind, max(NODES)) as addresses:
            for nodes, some in missing.items():
                if not some:
                    continue
                with Cluster(spark_home, kind, addresses, nodes) as cluster:
                    time.sleep(SETTLE_SECONDS)
                    for program in some:
                        cluster.run(program, SCALE, log_of(out, (kind.name, nodes), program))


def lab_catalog() -> Catalog:
    text = clusters.lab_text(list(TYPES), max(NODES))
    with tempfile.TemporaryDirectory() as directory:
        return load_catalog(str(offers.write(Path(directory), parse(text, "lab.toml"))))


def predict(
    program: str, known: Cell, runs: Mapping[Cell, Application], catalog: Catalog
) -> Iterator[Predicted]:
    """Predict all cells but the known one."""
    _, offer = find_offer([catalog], known[0])
    job = application_job(
        runs[known],
        core_speed=core_speed(offer),
        vcpus=known[1] * (lasting_vcpus(offer) or 0.0),
        read_from="local",
    )
    for nodes in NODES:
        request = PlanRequest(
            job=job,
            size=job.seen_bytes or 0,
            limits=Limits(min_nodes=nodes, max_nodes=nodes),
        )
        made = plan(request, [catalog], set_rates())
        for candidate in made.candidates:
            cell = candidate.offer, nodes
            if cell in runs and cell != known:
                yield Predicted(program, known, cell, runs[cell].seconds, candidate)


def set_rates() -> ProfileIndex:
    """Disks and links have the rates that they were set to, within 3 % (benches/lab_truth)."""
    laws = [
        CapacityDistribution(
            resource=resource,
            modes=[Mode(median=1.0, spread=SET_WITHIN, instances=2)],
            evidence="measured",
            source="benches/lab_truth",
            spread_source="benches/lab_truth",
        )
        for resource in ("local read", "local write", "network")
    ]
    profile = Profile(name="lab", made_at="2026-11-28T00:00:00Z", offers=[], shares=laws)
    return index_profiles([profile])


def regret(program: Sequence[Predicted], runs: Mapping[Cell, Application]) -> float:
    """Of the cell chosen by the predictions from one run, among all that were predicted."""
    usd = {each.name: each.usd for each in TYPES}

    def cost(cell: Cell) -> float:
        return runs[cell].seconds * cell[1] * usd[cell[0]]

    chosen = min(
        program, key=lambda each: each.candidate.seconds.median * each.cell[1] * usd[each.cell[0]]
    )
    return cost(chosen.cell) / min(cost(each.cell) for each in program) - 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--spark", type=Path, help="SPARK_HOME, where cells are missing")
    parser.add_argument("--programs", nargs="+", choices=PROGRAMS, default=PROGRAMS)
    parser.add_argument("--out", type=Path, default=HERE.parents[1] / "target" / "spark-jobs")
    parser.add_argument("--history", type=Path, default=HERE / "history.jsonl")
    parser.add_argument("--verbose", action="store_true", help="print each prediction")
    options = parser.parse_args()
    if options.spark:
        run_missing(options.out, options.spark, options.programs)
    catalog = lab_catalog()
    found: list[Predicted] = []
    regrets: list[float] = []
    cells = [(kind.name, nodes) for kind, nodes in itertools.product(TYPES, NODES)]
    for program in options.programs:
        runs = {
            cell: read_event_log(local_log(log_of(options.out, cell, program)))
            for cell in cells
            if log_of(options.out, cell, program).exists()
        }
        times = ", ".join(f"{n} x {kind} {run.seconds:.0f} s" for (kind, n), run in runs.items())
        print(f"{program}: {times}")
        of_program: list[Predicted] = []
        for known in runs:
            some = list(predict(program, known, runs, catalog))
            if options.verbose:
                for each in some:
                    its = each.candidate.seconds
                    print(
                        f"  from {known[1]} x {known[0]}: {each.cell[1]} x {each.cell[0]} "
                        f"{its.median:.0f} s [{its.low:.0f}..{its.high:.0f}], was "
                        f"{each.seconds:.0f} s, {each.error:+.0%}"
                    )
            of_program += some
            if some:
                regrets.append(regret(some, runs))
        print(f"  {summary(of_program)}")
        found += of_program
    print(f"all: {summary(found)}; regret {np.median(regrets):.1%}, mean {np.mean(regrets):.1%}")
    return int(not report(found, regrets, options.history))


def summary(some: Sequence[Predicted]) -> str:
    errors = np.abs([each.error for each in some])
    inside = np.mean([each.is_inside for each in some])
    widths = [each.candidate.seconds.high / each.candidate.seconds.low for each in some]
    return (
        f"{len(some)} predictions, median error {np.median(errors):.1%}, worst {errors.max():.0%}, "
        f"{inside:.0%} inside, high / low {np.median(widths):.2f}"
    )


def report(found: Sequence[Predicted], regrets: Sequence[float], history: Path) -> bool:
    """Print the claims, and add a line to the history if all cells exist; whether they hold."""
    errors = np.abs([each.error for each in found])
    figures = {
        "median_error": float(np.median(errors)),
        "worst_error": float(errors.max()),
        "inside": float(np.mean([each.is_inside for each in found])),
        "mean_regret": float(np.mean(regrets)),
    }
    holds = {
        "median_error": figures["median_error"] <= MEDIAN_ERROR,
        "worst_error": figures["worst_error"] <= WORST_ERROR,
        "inside": INSIDE[0] <= figures["inside"] <= INSIDE[1],
        "mean_regret": figures["mean_regret"] <= REGRET,
    }
    for name, value in figures.items():
        print(f"{'holds' if holds[name] else 'MISSED'}: {name} {value:.3f}")
    complete = len(PROGRAMS) * len(TYPES) * len(NODES) * (len(TYPES) * len(NODES) - 1)
    if len(found) == complete:
        line = json.dumps({"version": __version__, **figures}) + "\n"
        before = history.read_text() if history.exists() else ""
        if line not in before:
            history.write_text(before + line)
    return all(holds.values())


if __name__ == "__main__":
    sys.exit(main())
