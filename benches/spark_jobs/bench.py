"""Spark jobs on clusters that they did not run on, planned from the event log of one run.

    sudo .venv/bin/python benches/spark_jobs/bench.py --spark SPARK_HOME

Six programs (`programs.py`) run on labs of three types of machines, which differ in disks, links,
cores and memory, with two and with four machines: six cells for each program. From the event log of
each cell in turn the other five are planned, as `tonnage backtest DIR` does it, with the rates that
the lab was set to. Printed are the errors, how often the 90 % intervals contain the time, and the
regret: what the cell that is predicted to be cheapest costs more than the cheapest one. A time is
an application's, from its start to its end, as its own log has it.

The claims: median error at most 12 %, worst 35 %, intervals hold in 80 to 97 %, and the mean regret
is at most 5 %. The six cells of a program run after each other, since a virtual machine's own
processors may be half as fast again at another time; how fast they were is printed. Event logs are
kept in `--out`, and finished cells are not run again. Once all exist, a line is added to
`--history`. Needs root, what a lab needs, Java 17, PySpark 4 (`--spark` is the directory of its
package), 36 GB of disk in /var/lib, and an otherwise idle machine for 75 minutes.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import clusters
from clusters import Cluster, Type
from host_speed import loop_timed
from programs_by_name import PROGRAMS

from tonnage import __version__
from tonnage.base.records.profile import CapacityDistribution, Mode, Profile
from tonnage.catalog import Catalog, load_catalog
from tonnage.cli.output.planning.backtest_runs import backtest_lines
from tonnage.measure.importers.spark.log_files import local_log
from tonnage.measure.importers.spark.read import read_event_log
from tonnage.model.profiles.repository import ProfileIndex, index_profiles
from tonnage.plan.backtest.logged_runs import (
    TABLE,
    LoggedRun,
    judge_logged_runs,
    plan_from,
    read_logged_runs,
)
from tonnage.plan.backtest.summary import summary
from tonnage.provision.lab import catalog as offers
from tonnage.provision.lab.config import parse

HERE = Path(__file__).resolve().parent
USUAL_OUT = HERE.parents[1] / "target" / "spark-jobs"
TYPES = (
    Type("a", disk=60, link=40, cores=0.30, memory=2048, usd=1.00),
    Type("b", disk=25, link=60, cores=0.35, memory=1536, usd=0.95),
    Type("c", disk=120, link=12, cores=0.25, memory=3072, usd=0.85),
)
NODES = (2, 4)
CELLS = [(kind.name, nodes) for kind, nodes in itertools.product(TYPES, NODES)]
SCALE = 2.0
SETTLE_SECONDS = 5
SPEED = ".speed"
SET_WITHIN = 0.03
MEDIAN_ERROR, WORST_ERROR, INSIDE, REGRET = 0.12, 0.35, (0.80, 0.97), 0.05


def log_name(kind: str, nodes: int, program: str) -> str:
    return f"{program}-{nodes}-{kind}.log"


def run_missing(out: Path, spark_home: Path, programs: Sequence[str]) -> None:
    """Run the cells of which there is no event log, all of a program after each other."""
    missing = [
        (program, kind, nodes)
        for program, kind, nodes in itertools.product(programs, TYPES, NODES)
        if not (out / log_name(kind.name, nodes, program)).exists()
    ]
    if not missing:
        return
    with clusters.standing(TYPES, max(NODES)) as addresses:
        for program, kind, nodes in missing:
            log = out / log_name(kind.name, nodes, program)
            with Cluster(spark_home, kind, addresses, nodes) as cluster:
                time.sleep(SETTLE_SECONDS)
                with loop_timed() as seconds:
                    cluster.run(program, SCALE, log)
            log.with_suffix(SPEED).write_text(f"{statistics.median(seconds):.6f}\n")


def print_host_speeds(out: Path, programs: Sequence[str]) -> None:
    """How fast the machine was during the cells of each program, relative to all cells."""
    found = {
        program: [
            float(place.read_text())
            for kind, nodes in CELLS
            if (place := (out / log_name(kind, nodes, program)).with_suffix(SPEED)).exists()
        ]
        for program in programs
    }
    usual = statistics.median([each for some in found.values() for each in some] or [1.0])
    for program, some in found.items():
        print(f"{program}: the machine's speed was", *(f"{usual / each:.2f}" for each in some))


def write_table(out: Path, programs: Iterable[str]) -> None:
    """Say of each log where it ran."""
    with (out / TABLE).open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["log", "provider", "machine_type", "nodes"])
        for program, (kind, nodes) in itertools.product(programs, CELLS):
            name = log_name(kind, nodes, program)
            if (out / name).exists():
                rows.writerow([name, "lab", kind, nodes])


def lab_catalog() -> Catalog:
    text = clusters.lab_text(TYPES, max(NODES))
    with tempfile.TemporaryDirectory() as directory:
        return load_catalog(str(offers.write(Path(directory), parse(text, "lab.toml"))))


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
    return index_profiles(
        [Profile(name="lab", made_at="2026-11-28T00:00:00Z", offers=[], shares=laws)]
    )


def print_predictions(runs: Sequence[LoggedRun], known: ProfileIndex) -> None:
    for seen, other in itertools.permutations(runs, 2):
        if seen.application.name != other.application.name:
            continue
        candidate = plan_from(seen, other, known, "local")
        its, took = candidate.seconds, other.application.seconds
        print(
            f"{seen.application.name} from {_text(seen)}: {_text(other)} {its.median:.0f} s "
            f"[{its.low:.0f}..{its.high:.0f}], was {took:.0f} s, {its.median / took - 1:+.0%}; "
            + ", ".join(f"{each.name[:20]} {each.seconds:.0f} s" for each in candidate.phases)
        )


def _text(run: LoggedRun) -> str:
    return f"{run.cluster.nodes} x {run.cluster.offer.type}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--spark", type=Path, help="SPARK_HOME, where cells are missing")
    parser.add_argument("--programs", nargs="+", choices=PROGRAMS, default=PROGRAMS)
    parser.add_argument("--out", type=Path, default=USUAL_OUT)
    parser.add_argument("--history", type=Path, default=HERE / "history.jsonl")
    parser.add_argument("--verbose", action="store_true", help="print each prediction")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    if options.spark:
        run_missing(options.out, options.spark, options.programs)
    print_host_speeds(options.out, options.programs)
    write_table(options.out, options.programs)
    known = set_rates()
    runs = read_logged_runs(
        options.out, [lab_catalog()], lambda log: read_event_log(local_log(log))
    )
    for run in runs:
        print(f"{run.application.name} on {_text(run)}: {run.application.seconds:.1f} s")
    if options.verbose:
        print_predictions(runs, known)
    tested = judge_logged_runs(runs, known, "local")
    print("\n".join(backtest_lines({1: tested})))
    whole = summary("all", tested)
    figures = {
        "median_error": whole.median_error,
        "worst_error": max(float(each.errors.max()) for each in tested),
        "inside": whole.coverage,
        "mean_regret": whole.regret_mean,
    }
    complete = len(PROGRAMS) * len(CELLS) * (len(CELLS) - 1)
    if whole.cells == complete:
        add_to_history(options.history, figures)
    else:
        print(f"{whole.cells} of {complete} predictions")
    return int(not report(figures))


def report(figures: Mapping[str, float]) -> bool:
    """Print which claims hold; whether all do."""
    holds = {
        "median_error": figures["median_error"] <= MEDIAN_ERROR,
        "worst_error": figures["worst_error"] <= WORST_ERROR,
        "inside": INSIDE[0] <= figures["inside"] <= INSIDE[1],
        "mean_regret": figures["mean_regret"] <= REGRET,
    }
    for name, value in figures.items():
        print(f"{'holds' if holds[name] else 'MISSED'}: {name} {value:.3f}")
    return all(holds.values())


def add_to_history(history: Path, figures: Mapping[str, float]) -> None:
    line = json.dumps({"version": __version__, **figures}) + "\n"
    before = history.read_text() if history.exists() else ""
    if line not in before:
        history.write_text(before + line)


if __name__ == "__main__":
    sys.exit(main())
