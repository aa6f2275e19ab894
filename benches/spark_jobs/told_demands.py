"""What an event log adds to the times of past runs, on the runs of `bench.py`.

    .venv/bin/python benches/spark_jobs/told_demands.py --out DIR

Each run in turn is the first that is known, with others at random. The rest are predicted from the
times alone, as `tonnage import RUNS.csv` and `tonnage plan` do it, and with the demands of the
first's event log, as with `--demands`. Claim: with the log the median error is at least a quarter
less, after one run and after two.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))

from bench import USUAL_OUT, lab_catalog

from tonnage.base.records.past_run import PastRun, PastRuns
from tonnage.catalog import Catalog
from tonnage.measure.importers.spark.log_files import local_log
from tonnage.measure.importers.spark.read import read_event_log
from tonnage.model.jobs.application import cached_bytes
from tonnage.model.past_runs.run_demands import run_demands
from tonnage.plan.backtest.logged_runs import LoggedRun, read_logged_runs
from tonnage.plan.past_runs.known_runs import KnownRuns
from tonnage.plan.past_runs.run_machines import Machines
from tonnage.plan.recommendations.seen_application import job_seen_on

COUNTS = (1, 2, 3)
LESS = 0.75
CONFIDENCE = 0.9
BY_TIMES, BY_LOG = "times alone", "and a log"


@dataclass
class Found:
    errors: list[float] = field(default_factory=list)
    inside: list[bool] = field(default_factory=list)
    widths: list[float] = field(default_factory=list)

    def __str__(self) -> str:
        median, p90 = np.quantile(self.errors, [0.5, 0.9])
        return (
            f"error {median:.1%} (90 %: {p90:.0%}), {np.mean(self.inside):.0%} inside, "
            f"high/low {np.median(self.widths):.2f}"
        )


def past_run(run: LoggedRun) -> PastRun:
    its = run.cluster
    return PastRun(
        job=run.application.name,
        framework="spark",
        provider=its.catalog.provider,
        machine_type=its.offer.type,
        nodes=its.nodes,
        seconds=run.application.seconds,
        disks="local",
    )


def predict(past: PastRuns, hidden: Sequence[LoggedRun], world: Catalog, found: Found) -> None:
    clusters = [(each.cluster.offer, each.cluster.nodes) for each in hidden]
    times = KnownRuns(past, Machines([world])).times(clusters, None)
    true = np.array([each.application.seconds for each in hidden])
    low, high = times.interval(CONFIDENCE)
    found.errors += np.abs(times.seconds / true - 1).tolist()
    found.inside += ((low <= true) & (true <= high)).tolist()
    found.widths += (high / low).tolist()


def predict_all(
    jobs: Mapping[str, Sequence[LoggedRun]], world: Catalog, count: int
) -> dict[str, Found]:
    dice = random.Random(count)
    found = {BY_TIMES: Found(), BY_LOG: Found()}
    for runs in jobs.values():
        for first in runs:
            others = [each for each in runs if each is not first]
            known = [first, *dice.sample(others, count - 1)]
            hidden = [each for each in others if each not in known]
            past = [past_run(each) for each in known]
            told = {
                "demands": run_demands(
                    job_seen_on(first.application, first.cluster.offer, first.cluster.nodes),
                    past[0],
                ),
                "cached_bytes": cached_bytes(first.application),
            }
            predict(PastRuns(job=past[0].name, runs=past), hidden, world, found[BY_TIMES])
            predict(PastRuns(job=past[0].name, runs=past, **told), hidden, world, found[BY_LOG])
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=USUAL_OUT)
    directory = parser.parse_args().out
    world = lab_catalog()
    jobs: dict[str, list[LoggedRun]] = defaultdict(list)
    for run in read_logged_runs(directory, [world], lambda log: read_event_log(local_log(log))):
        jobs[run.application.name].append(run)
    holds = True
    for count in COUNTS:
        found = predict_all(jobs, world, count)
        for name, its in found.items():
            print(f"{count} known, {name}: {its}")
        by_log, by_times = (np.median(found[name].errors) for name in (BY_LOG, BY_TIMES))
        holds &= count > 2 or bool(by_log <= LESS * by_times)
    print("holds" if holds else "MISSED")
    return int(not holds)


if __name__ == "__main__":
    sys.exit(main())
