"""Plan each run of a job from the event log of another, and compare with what it took.

A directory has event logs, and ``runs.csv`` says where each ran: ``log, machine_type, nodes``, and
``provider`` (default aws). Runs of applications of the same name are of one job. From each run in
turn the others are planned: other machine types, other numbers of machines.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tonnage.base.records.application import Application
from tonnage.base.records.location import Location
from tonnage.base.records.plan import Candidate
from tonnage.catalog import Catalog, CatalogError
from tonnage.catalog.csv_rows import CsvRow, read_rows
from tonnage.model.past_runs.baselines import BASELINES
from tonnage.model.past_runs.choice import cheapest_in_time
from tonnage.model.past_runs.clusters import Floats
from tonnage.model.profiles.repository import ProfileIndex
from tonnage.plan.backtest.runs import OfBaseline, Tested
from tonnage.plan.past_runs.run_machines import Machines
from tonnage.plan.planner import PlanError, PlanRequest
from tonnage.plan.recommendations.current_cluster import Cluster, plan_on
from tonnage.plan.recommendations.seen_application import job_seen_on

TABLE = "runs.csv"
NEEDED = ("log", "machine_type", "nodes")


@dataclass(frozen=True)
class LoggedRun:
    application: Application
    cluster: Cluster

    @property
    def usd_per_second(self) -> float:
        price = self.cluster.offer.on_demand
        return self.cluster.nodes * (price.usd_per_hour if price else 1.0) / 3600

    @property
    def paid(self) -> float:
        return self.application.seconds * self.usd_per_second


def read_logged_runs(
    directory: Path, catalogs: Sequence[Catalog], read: Callable[[Path], Application]
) -> list[LoggedRun]:
    """The runs of a directory, whose logs ``read`` reads.

    Raises:
        CatalogError: The table is missing or wrong, or a machine type is unknown.
    """
    table = directory / TABLE
    header, rows = read_rows(table)
    missing = [name for name in NEEDED if name not in header]
    if missing:
        raise CatalogError(
            f"{table}, row 1: missing column {', '.join(missing)}; it has {', '.join(NEEDED)}, and "
            "provider"
        )
    return [
        LoggedRun(read(directory / row.required("log")), _cluster(row, catalogs)) for row in rows
    ]


def _cluster(row: CsvRow, catalogs: Sequence[Catalog]) -> Cluster:
    provider, name = row.text("provider") or "aws", row.required("machine_type")
    nodes = row.integer("nodes")
    if not nodes:
        raise row.error("nodes", "a number of machines is needed")
    for catalog in reversed(catalogs):
        for offer in catalog.offers if catalog.provider == provider else ():
            if offer.type == name:
                return Cluster(catalog, offer, nodes)
    raise row.error("machine_type", f"no catalog has {name} of {provider}")


def judge_logged_runs(
    runs: Sequence[LoggedRun], known: ProfileIndex, read_from: Location | None
) -> list[Tested]:
    """Plan the runs of each job from each of them; what cannot be planned is left out."""
    jobs: dict[str, list[LoggedRun]] = defaultdict(list)
    for run in runs:
        jobs[run.application.name].append(run)
    return [
        tested
        for name, some in jobs.items()
        for at in range(len(some))
        if (tested := _tested(name, at, some, known, read_from)) is not None
    ]


def plan_from(
    seen: LoggedRun, other: LoggedRun, known: ProfileIndex, read_from: Location | None
) -> Candidate:
    """The job of a run, planned on the cluster of another.

    Raises:
        PlanError: It cannot be planned there.
    """
    its = seen.cluster
    job = job_seen_on(seen.application, its.offer, its.nodes, read_from=read_from)
    request = PlanRequest(job=job, size=job.seen_bytes or 0)
    return plan_on(request, other.cluster, known).candidate


def _tested(
    name: str,
    at: int,
    runs: Sequence[LoggedRun],
    known: ProfileIndex,
    read_from: Location | None,
) -> Tested | None:
    others, planned = [], []
    for place, run in enumerate(runs):
        if place == at:
            continue
        with suppress(PlanError):
            planned.append(plan_from(runs[at], run, known, read_from))
            others.append(run)
    if not others:
        return None
    true = np.array([run.application.seconds for run in others])
    low, middle, high = (
        np.array([getattr(each.seconds, name) for each in planned])
        for name in ("low", "median", "high")
    )
    deadline = float(np.median(true))
    usd_per_second = np.array([run.usd_per_second for run in others])
    in_time = cheapest_in_time(middle, usd_per_second, deadline)
    return Tested(
        job=name,
        program=(name, "spark"),
        errors=np.abs(middle / true - 1),
        inside=(low <= true) & (true <= high),
        widths=high / low,
        regret=_regret(others, middle),
        missed=bool(true[in_time] > deadline),
        deadline_regret=_above_cheapest_in_time(others, in_time, deadline),
        baselines=_baselines(runs[at], others, true),
    )


def _baselines(
    seen: LoggedRun, others: Sequence[LoggedRun], true: Floats
) -> Mapping[str, OfBaseline]:
    machines = Machines([run.cluster.catalog for run in (seen, *others)])
    known, targets = (
        machines.clusters((run.cluster.offer, run.cluster.nodes) for run in some)
        for some in ([seen], others)
    )
    found = {}
    deadline = float(np.median(true))
    usd_per_second = np.array([run.usd_per_second for run in others])
    for name, law in BASELINES.items():
        trained = known, np.ones(1), np.array([seen.application.seconds])
        seconds = law(*trained, targets, np.ones(len(others)))
        in_time = cheapest_in_time(seconds, usd_per_second, deadline)
        found[name] = OfBaseline(
            errors=np.abs(seconds / true - 1),
            regret=_regret(others, seconds),
            missed=bool(true[in_time] > deadline),
            deadline_regret=_above_cheapest_in_time(others, in_time, deadline),
        )
    return found


def _regret(runs: Sequence[LoggedRun], seconds: Floats) -> float:
    """Of the run that is predicted to be cheapest, above the cheapest."""
    dollars = [each * run.usd_per_second for each, run in zip(seconds, runs, strict=True)]
    paid = [run.paid for run in runs]
    return paid[int(np.argmin(dollars))] / min(paid) - 1


def _above_cheapest_in_time(
    runs: Sequence[LoggedRun], choice: int, deadline: float
) -> float | None:
    """``None`` if the choice is late."""
    if runs[choice].application.seconds > deadline:
        return None
    in_time = [run.paid for run in runs if run.application.seconds <= deadline]
    return runs[choice].paid / min(in_time) - 1
