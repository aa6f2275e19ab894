"""Plan a job of which only past runs are known: clusters by the cost that they predict."""

import datetime
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from msgspec import structs

from tonnage.base import formatting
from tonnage.base.records.job import Job, JobPhase
from tonnage.base.records.past_run import PastRuns
from tonnage.base.records.plan import (
    UNKNOWN,
    Candidate,
    CostLine,
    CurrentCluster,
    ExcludedOffer,
    Plan,
    PlannedPhase,
    Range,
    SignedRange,
    SpaceFit,
)
from tonnage.catalog import OFFER_KINDS, Catalog, Offer
from tonnage.catalog.own_prices import with_own_prices
from tonnage.model.past_runs.choice import IN_TIME
from tonnage.model.past_runs.clusters import Flags, Floats
from tonnage.model.past_runs.posterior import Times
from tonnage.plan.candidates import CLOSE
from tonnage.plan.cost_model import NodePrice, bill, interruption_work
from tonnage.plan.monte_carlo import CONFIDENCE, HIGH, LOW
from tonnage.plan.past_runs.clusters import node_numbers, worthwhile
from tonnage.plan.past_runs.failed_runs import FailedRuns
from tonnage.plan.past_runs.known_runs import KnownRuns
from tonnage.plan.past_runs.run_machines import Machines as RunMachines
from tonnage.plan.planner import PlanError, PlanRequest
from tonnage.plan.recommendations.current_cluster import Cluster
from tonnage.plan.recommendations.sure import SURE
from tonnage.plan.resources.machines import Machine, priced_machine
from tonnage.plan.search import LONGEST_SECONDS, Limits

RUN = "run"
INTERVAL_RULE = (
    "the middle 90 % of what draws of the job's demands predict that explain its runs, with what "
    "such predictions are usually off by, and with the variation from run to run"
)
NOT_INCLUDED = "not included: volumes, object storage, start-up of the nodes, account quotas"
BY_TIMES = (
    "times alone do not tell what limits a job; an event log or what sar sampled does (tonnage "
    "import)"
)
NO_MACHINE = "no machine of the catalogs can be priced within these restrictions"
NO_MEMORY = "a run failed on a cluster with as much memory"
NOT_WORTH = "another gives more cores, memory, disk and network for a dollar"


@dataclass(frozen=True)
class PricedCluster:
    machine: Machine
    nodes: int

    @property
    def price(self) -> NodePrice:
        return NodePrice(self.machine.usd_per_hour, 0.0, self.machine.address_usd_per_hour)


@dataclass(frozen=True)
class PricedTimes:
    """Clusters, draws of their times, and of what a run costs there: draws by clusters."""

    clusters: Sequence[PricedCluster]
    times: Times
    usd: Floats
    bytes: int
    """Of the input; 0 if nobody states it."""
    failed: FailedRuns

    @property
    def usd_per_second(self) -> Floats:
        """Of each cluster, without what is billed at least."""
        found: Floats = np.array(
            [
                each.nodes * (each.machine.usd_per_hour + each.machine.address_usd_per_hour) / 3600
                for each in self.clusters
            ]
        )
        return found


def price_clusters(
    request: PlanRequest,
    past: PastRuns,
    size: int | None,
    catalogs: Sequence[Catalog],
    now: Cluster | None,
    known_machines: Sequence[Catalog],
) -> tuple[PricedTimes, list[ExcludedOffer]]:
    """Predict the clusters that a request allows, and ``now``, which is the last if given.

    ``known_machines`` are the catalogs, older first, in which the runs' machines are looked up.

    Raises:
        PlanError: No machine can be planned.
    """
    priced = [with_own_prices(each, request.own_prices) for each in catalogs]
    known = KnownRuns(past, RunMachines([*known_machines, *priced]))
    machines, excluded = _machines(request, priced, past)
    seen = {(run.provider, run.machine_type) for run in known.job.runs}
    good = worthwhile(machines, known.machines, seen)
    vcpus = known.job.clusters.nodes * known.job.clusters.vcpus
    span = float(vcpus.min()), float(vcpus.max())
    limits = request.limits
    clusters = [
        PricedCluster(machine, nodes)
        for machine in good
        for nodes in (
            [limits.min_nodes]
            if limits.min_nodes == limits.max_nodes
            else node_numbers(machine.offer, span, limits.max_nodes)
        )
        if not request.quota_vcpus or nodes * (machine.offer.vcpus or 0) <= request.quota_vcpus
    ]
    if not clusters:
        raise PlanError(NO_MACHINE)
    input_bytes = size or known.usual_bytes or 0
    failed = FailedRuns.of_job(known.job)
    offers = [(each.machine.offer, each.nodes) for each in clusters]
    ruled_out = failed.rule_out(known.machines.clusters(offers), input_bytes or 1.0)
    lacking = {each.machine.offer.type for each in _where(clusters, ruled_out)}
    clusters = _where(clusters, ~ruled_out)
    if not clusters:
        raise PlanError(
            f"no cluster within these restrictions has more memory than {failed.names[0]}, on "
            "which a run failed"
        )
    if now is not None:
        clusters.append(_current(request, now))
    times = known.times([(each.machine.offer, each.nodes) for each in clusters], size)
    times = _with_interruptions(clusters, times)
    used = {each.machine.offer.type for each in clusters}
    excluded += [
        ExcludedOffer(
            offer=each.offer.type,
            why=NO_MEMORY if each.offer.type in lacking else NOT_WORTH,
            catalog=each.catalog.name,
        )
        for each in machines
        if each.offer.type not in used
    ]
    usd = _usd(request, clusters, times)
    return PricedTimes(clusters, times, usd, input_bytes, failed), excluded


def plan_past_runs(
    request: PlanRequest,
    past: PastRuns,
    size: int | None,
    catalogs: Sequence[Catalog],
    now: Cluster | None = None,
    runs_per_month: float | None = None,
    known_machines: Sequence[Catalog] = (),
) -> Plan:
    """Plan the job of these runs; ``request.job`` and ``request.size`` do not matter.

    Raises:
        PlanError: No machine can be planned.
    """
    priced, excluded = price_clusters(request, past, size, catalogs, now, known_machines)
    limits = request.limits
    deadline = limits.deadline_seconds
    last = len(priced.clusters) - 1
    if now is not None and math.isinf(deadline):
        deadline = min(float(priced.times.seconds[last]), LONGEST_SECONDS)
    chance = priced.times.in_time(deadline)
    candidates = [
        _candidate(priced, at, float(chance[at]) if math.isfinite(deadline) else None)
        for at in range(len(priced.clusters))
    ]
    value = np.log(priced.usd if request.limits.objective == "cost" else priced.times.single)
    order = _ranked(value.mean(axis=0), [each.nodes for each in priced.clusters])
    allowed = [
        int(at)
        for at in order
        if (math.isinf(deadline) or chance[at] >= IN_TIME)
        and candidates[at].cost_usd.median <= request.limits.most_usd
        and not (now is not None and at == last)
    ]
    first_of_offer: dict[str, int] = {}
    for at in allowed:
        first_of_offer.setdefault(candidates[at].offer, at)
    shown = allowed if request.all_sizes else [*first_of_offer.values()]
    current = None
    if now is not None:
        current = _current_cluster(priced, candidates, shown, past, size, runs_per_month)
    return Plan(
        job=Job(name=past.job, phases=[JobPhase(name=RUN, demands=[])], room=[]),
        bytes=priced.bytes,
        settings=_settings(request, deadline),
        made_at=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        catalogs=[each.name for each in catalogs],
        profiles=[],
        confidence=CONFIDENCE,
        interval_rule=INTERVAL_RULE,
        candidates=[candidates[at] for at in shown],
        pareto=[],
        excluded=excluded,
        survey=[],
        sure=_sure(candidates, shown) if math.isfinite(deadline) else None,
        nearest=None if shown else _nearest(candidates[: len(candidates) - bool(now)], limits),
        current=current,
        notes=_notes(past, request, priced.failed),
    )


def _where(clusters: Sequence[PricedCluster], flags: Flags) -> list[PricedCluster]:
    return [each for each, flag in zip(clusters, flags, strict=True) if flag]


def _machines(
    request: PlanRequest, catalogs: Sequence[Catalog], past: PastRuns
) -> tuple[list[Machine], list[ExcludedOffer]]:
    """The machines that the request allows, and why others are not."""
    machines: list[Machine] = []
    excluded: list[ExcludedOffer] = []
    for catalog in catalogs:
        if request.providers and catalog.provider not in request.providers:
            continue
        for offer in catalog.offers:
            kinds = [kind for kind in offer.kinds if kind not in request.include]
            found: Machine | str
            if request.arch is not None and offer.arch != request.arch:
                continue
            if kinds:
                found = f"{OFFER_KINDS[kinds[0]]}; --include {' '.join(kinds)} plans it, too"
            else:
                found = priced_machine(
                    *(catalog, offer, False, request.purchase, len(machines)),
                    public_address=request.public_addresses,
                    today=request.today,
                )
            if not isinstance(found, str) and _lacks_memory_for_tasks(offer, past):
                found = "its memory for each vCPU is less than a task of a run took"
            if isinstance(found, str):
                excluded.append(ExcludedOffer(offer=offer.type, why=found, catalog=catalog.name))
            else:
                machines.append(found)
    return machines, excluded


def _lacks_memory_for_tasks(offer: Offer, past: PastRuns) -> bool:
    needed = past.demands.memory_per_vcpu if past.demands else None
    if not needed or not offer.memory_bytes or not offer.vcpus:
        return False
    return offer.memory_bytes / offer.vcpus < needed


def _current(request: PlanRequest, now: Cluster) -> PricedCluster:
    catalog = with_own_prices(now.catalog, request.own_prices)
    offer = next(each for each in catalog.offers if each.type == now.offer.type)
    machine = priced_machine(
        *(catalog, offer, False, "on-demand", 0),
        public_address=request.public_addresses,
        today=request.today,
    )
    if isinstance(machine, str):
        raise PlanError(f"{now.offer.type}: {machine}")
    if offer.memory_bytes is None:
        raise PlanError(f"{now.offer.type}: its memory is unknown")
    return PricedCluster(machine, now.nodes)


def _with_interruptions(clusters: Sequence[PricedCluster], times: Times) -> Times:
    """With the time that interruptions of spot machines are expected to add."""
    rates = np.array([each.machine.interruptions_per_second or 0.0 for each in clusters])
    nodes = np.array([float(each.nodes) for each in clusters])

    def longer(log_seconds: Floats) -> Floats:
        work = np.exp(log_seconds) * nodes
        total: Floats = log_seconds + np.log1p(interruption_work(work, nodes, rates) / work)
        return total

    return Times(longer(times.expected), longer(times.single))


def _usd(request: PlanRequest, clusters: Sequence[PricedCluster], times: Times) -> Floats:
    """What a run costs by each draw on each cluster."""
    columns = []
    for at, each in enumerate(clusters):
        nodes = np.full(len(times.single), float(each.nodes))
        lines = bill(
            np.exp(times.single[:, at]) * nodes,
            nodes,
            each.price,
            each.machine.catalog.billing,
            request.limits.billing_unit,
        )
        columns.append(sum(lines.values()))
    return np.stack(columns, axis=1)


def _candidate(priced: PricedTimes, at: int, chance: float | None) -> Candidate:
    each = priced.clusters[at]
    machine, usd = each.machine, priced.usd[:, at]
    middle = float(np.median(usd))
    seconds = _range(np.exp(priced.times.single[:, at]))
    price = machine.usd_per_hour + machine.address_usd_per_hour
    share = machine.usd_per_hour / price
    own_disks = bool(machine.offer.local_bytes)
    return Candidate(
        catalog=machine.catalog.name,
        provider=machine.offer.provider,
        offer=machine.offer.type,
        layout="local" if own_disks else "volumes",
        placement=False,
        nodes=each.nodes,
        seconds=seconds,
        cost_usd=_range(usd),
        usd_per_hour=price,
        phases=[PlannedPhase(name=RUN, seconds=seconds.median, bottleneck=UNKNOWN)],
        capacity=SpaceFit(needed_bytes=0, have_bytes=0),
        evidence="mixed",
        deadline_probability=chance,
        own_disks=own_disks,
        costs=[
            CostLine(item="machines", usd=middle * share),
            CostLine(item="public addresses", usd=middle * (1 - share)),
        ],
        notes=list(machine.purchase_notes),
    )


def _sure(candidates: Sequence[Candidate], shown: Sequence[int]) -> Candidate | None:
    """The best that keeps the deadline for sure."""
    for at in shown:
        if (candidates[at].deadline_probability or 0.0) >= SURE:
            return candidates[at]
    return None


def _nearest(candidates: Sequence[Candidate], limits: Limits) -> Candidate | None:
    """The one that exceeds the limits least."""
    return min(
        candidates,
        key=lambda each: max(
            each.seconds.median / limits.deadline_seconds, each.cost_usd.median / limits.budget_usd
        ),
        default=None,
    )


def _ranked(values: Floats, nodes: Sequence[int]) -> list[int]:
    """Places by logarithms; of those within 2 % of the least, fewer nodes come first."""
    order = [int(at) for at in np.argsort(values, kind="stable")]
    close = [at for at in order if values[at] <= values[order[0]] + math.log(CLOSE)]
    return sorted(close, key=lambda at: nodes[at]) + order[len(close) :]


def _range(drawn: Floats) -> Range:
    low, middle, high = np.quantile(drawn, [LOW, 0.5, HIGH])
    return Range(low=float(low), median=float(middle), high=float(high))


def _current_cluster(
    priced: PricedTimes,
    candidates: Sequence[Candidate],
    shown: Sequence[int],
    past: PastRuns,
    size: int | None,
    runs_per_month: float | None,
) -> CurrentCluster:
    last = len(priced.clusters) - 1
    now = candidates[last]
    saves = None
    if shown:
        drawn = priced.usd[:, last] - priced.usd[:, shown[0]]
        low, middle, high = (float(each) for each in np.quantile(drawn, [LOW, 0.5, HIGH]))
        saves = SignedRange(low=low, median=middle, high=high)
    failed = any(
        (run.name, run.machine_type, run.nodes, run.outcome)
        == (past.job, now.offer, now.nodes, "failed")
        for run in past.runs
    )
    if failed:
        now = structs.replace(now, notes=[*now.notes, "a run failed on it"])
    seen = [
        run.seconds
        for run in past.runs
        if (run.name, run.machine_type, run.nodes, run.outcome)
        == (past.job, now.offer, now.nodes, "ok")
        and (size is None or run.data_bytes in (None, size))
    ]
    return CurrentCluster(
        candidate=now,
        seen_seconds=float(np.median(seen)) if seen else None,
        saves_usd=saves,
        runs_per_month=runs_per_month,
    )


def _notes(past: PastRuns, request: PlanRequest, failed: FailedRuns) -> list[str]:
    finished = [run for run in past.runs if run.name == past.job and run.outcome == "ok"]
    types = {run.machine_type for run in finished}
    known = formatting.several(len(finished), "finished run")
    kinds = formatting.several(len(types), "machine type")
    notes = [f"predicted from {known} on {kinds}"]
    if failed.names:
        notes.append(
            f"left out are clusters with no more memory than {formatting.listing(failed.names)}, "
            "where a run failed"
        )
    notes += [NOT_INCLUDED] if past.demands else [BY_TIMES, NOT_INCLUDED]
    return notes


def _settings(request: PlanRequest, deadline: float) -> dict[str, object]:
    limits = request.limits
    return {
        "deadline_seconds": deadline if math.isfinite(deadline) else None,
        "budget_usd": limits.budget_usd if math.isfinite(limits.budget_usd) else None,
        "least_nodes": limits.min_nodes,
        "most_nodes": limits.max_nodes,
        "objective": limits.objective,
        "charged": limits.billing_unit,
        "purchase": request.purchase,
        "providers": list(request.providers),
        "arch": request.arch,
        "include": sorted(request.include),
        "quota_vcpus": request.quota_vcpus,
        "public_addresses": request.public_addresses,
        **request.own_prices.to_settings(),
    }
