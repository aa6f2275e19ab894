"""Plan a job: rank offers, layouts and numbers of nodes by cost or time.

The best number of nodes of every machine and layout is searched with every resource at its median
(`search`); intervals and the probability of keeping the deadline come from sampled clusters
(`monte_carlo`), for the best number only.
"""

import dataclasses
import datetime
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from msgspec import structs

from tonnage.base import formatting
from tonnage.base.records.job import Job
from tonnage.base.records.plan import NO_CORES, Candidate, ExcludedOffer, Plan
from tonnage.catalog import Catalog, OfferKind
from tonnage.catalog.own_prices import LIST_PRICES, OwnPrices, with_own_prices
from tonnage.catalog.price_age import age_note
from tonnage.model.profiles.repository import ProfileIndex
from tonnage.plan.candidates import Choice, best_per_layout, candidates, ranked
from tonnage.plan.capacity_samples import CapacitySamples
from tonnage.plan.demand import DemandTerm
from tonnage.plan.layouts import (
    IMPOSSIBLE_NODES,
    LayoutOptions,
    Network,
    OfferGroup,
    layout_options,
)
from tonnage.plan.monte_carlo import CONFIDENCE, INTERVAL_RULE
from tonnage.plan.recommendations.next_measurements import next_measurements
from tonnage.plan.recommendations.pareto import pareto_front
from tonnage.plan.recommendations.sure import cheapest_sure
from tonnage.plan.resources.machines import Purchase
from tonnage.plan.resources.object_store import with_prefixes
from tonnage.plan.resources.startup import Startup
from tonnage.plan.search import (
    SEARCH_ERROR,
    Limits,
    SearchResult,
    node_numbers,
    search_all,
)

FAR_BEYOND_RUN = 10
"""Demands may not extrapolate to so many times the observed input."""
MUCH_UNNAMED = 0.25
"""Of the time of an application's tasks."""
NOT_DIVISIBLE = (
    "the job was watched on one machine and is planned on one, since it is not known to divide; "
    "--divisible plans several"
)
DISKS_NOT_MEASURED = "its local disks were not measured"
MAX_CANDIDATES = 20_000
"""The most that are computed when all numbers of nodes are requested."""


class PlanError(Exception):
    """The request cannot be planned; says why in one line."""


@dataclasses.dataclass(frozen=True)
class PlanRequest:
    """A job of a size, limits, and restrictions on offers."""

    job: Job
    size: int
    limits: Limits = dataclasses.field(default_factory=Limits)
    network: Network = "scaled"
    purchase: Purchase = "on-demand"
    providers: tuple[str, ...] = ()
    arch: str | None = None
    placement: bool | None = None
    measured_only: bool = False
    """Without advertised rates."""
    include: frozenset[OfferKind] = frozenset()
    """Kinds of offers that are otherwise left out."""
    startup: Startup = dataclasses.field(default_factory=dict)
    """How long machines take until they are ready; without it they are."""
    cores: bool = True
    """Whether what the engine's own work takes of cores counts, as its benchmarks have it."""
    memory: bool = False
    """Whether memory that does not suffice for two passes costs a third one."""
    prefixes: int = 1
    """Over how many prefixes, buckets or accounts of an object store the data is spread."""
    quota_vcpus: int | None = None
    """The most vCPUs of all nodes together."""
    descriptors: int | None = None
    """How many files and sockets a process may open, 1,024 or more; ``None``: any number."""
    own_prices: OwnPrices = LIST_PRICES
    public_addresses: bool = False
    """Whether each machine has a public address, which is paid for."""
    today: datetime.date | None = None
    """From when prices may be too old; ``None``: it does not matter."""
    all_sizes: bool = False
    """All numbers of nodes, not only the best of each offer and layout."""
    sure: bool = True
    """Whether to look for the cheapest that surely keeps the deadline, if there is one."""

    def no_slower_than(self, candidate: Candidate) -> "PlanRequest":
        """The request with that candidate's time as its deadline, which none has to keep surely."""
        limits = dataclasses.replace(self.limits, deadline_seconds=candidate.seconds.median)
        return dataclasses.replace(self, limits=limits, sure=False)

    @property
    def job_limits(self) -> Limits:
        """The limits; a job that does not divide runs on one node."""
        if self.job.divisible:
            return self.limits
        return dataclasses.replace(self.limits, min_nodes=1, max_nodes=1)


def request_of(made: Plan) -> PlanRequest:
    """The question that a plan answers, for machines that run already."""
    settings = made.settings
    return PlanRequest(
        job=made.job,
        size=made.bytes,
        limits=Limits(
            min_nodes=settings["least_nodes"],
            max_nodes=settings["most_nodes"],
            billing_unit=settings.get("charged", "seconds"),
        ),
        network=settings.get("network", "scaled"),
        purchase=settings.get("purchase", "on-demand"),
        providers=tuple(settings.get("providers") or ()),
        arch=settings.get("arch"),
        placement=settings.get("placement"),
        measured_only=bool(settings.get("measured")),
        include=frozenset(settings.get("include") or ()),
        cores=settings.get("cores") is not False,
        memory=bool(settings.get("memory")),
        prefixes=settings.get("prefixes", 1),
        quota_vcpus=settings.get("quota_vcpus"),
        descriptors=settings.get("descriptors"),
    )


def find_choice(
    made: Plan, candidate: Candidate, catalogs: Sequence[Catalog], known: ProfileIndex
) -> Choice:
    """The machines, layout and demands of a plan's candidate, as these catalogs and profiles have
    them.

    Raises:
        PlanError: They have no such machines, or the job takes another time there.
    """
    of_offer = [
        structs.replace(
            each, offers=tuple(one for one in each.offers if one.type == candidate.offer)
        )
        for each in catalogs
        if each.name == candidate.catalog
    ]
    asked = request_of(made)
    if not asked.limits.min_nodes <= candidate.nodes <= asked.limits.max_nodes:
        raise PlanError(f"{candidate.nodes} nodes are not within the limits of the plan's settings")
    choices = [
        Choice(group, place, candidate.nodes)
        for group in options_for(asked, of_offer, known).groups
        for place, machine in enumerate(group.machines)
        if (group.demand.layout, machine.placement) == (candidate.layout, candidate.placement)
    ]
    if choices:
        # So many nodes may need a third pass, where more need two.
        possible = (each for each in choices if each.group.allows(each.place, each.nodes))
        choice = next(possible, choices[0])
        _refuse_other_time(made, candidate, choice)
        return choice
    raise PlanError(f"catalog {candidate.catalog} has no {candidate.offer} ({candidate.layout})")


def _refuse_other_time(made: Plan, candidate: Candidate, choice: Choice) -> None:
    limits = request_of(made).limits
    samples = CapacitySamples(limits.max_nodes, limits.min_nodes)
    (again,) = candidates(made.job, made.bytes, [choice], samples, limits)
    planned, now = (sum(phase.seconds for phase in each.job_phases) for each in (candidate, again))
    if not math.isclose(now, planned, rel_tol=SEARCH_ERROR):
        raise PlanError(
            f"by these catalogs and profiles the job takes {now:.0f} s, but {planned:.0f} s were "
            "planned"
        )


def plan(request: PlanRequest, catalogs: Sequence[Catalog], known: ProfileIndex) -> Plan:
    """Plan the request.

    Raises:
        PlanError: The job has no bytes, or too many candidates are requested.
    """
    if request.size < 1:
        raise PlanError("the input is 0 bytes, so there is nothing to plan")
    job, size, limits = request.job, request.size, request.job_limits
    options = options_for(request, catalogs, known)
    samples = CapacitySamples(limits.max_nodes, limits.min_nodes)
    results = search_all(options.groups, size, samples, limits)
    if request.all_sizes:
        some = _within_limits(
            candidates(job, size, _all_choices(options.groups, limits), samples, limits), limits
        )
    else:
        some = candidates(job, size, best_per_layout(options.groups, results), samples, limits)
    best = ranked(some, limits)
    return Plan(
        job=job,
        bytes=size,
        settings=_settings(request),
        made_at=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        catalogs=[catalog.name for catalog in catalogs],
        profiles=list(known.names),
        confidence=CONFIDENCE,
        interval_rule=INTERVAL_RULE,
        candidates=best,
        pareto=pareto_front(options.groups, results, size, samples, limits),
        excluded=_excluded(options, results, limits, best),
        survey=next_measurements(
            job, catalogs, options, size, samples, limits, best[0] if best else None, known
        ),
        sure=cheapest_sure(job, size, options.groups, results, samples, limits)
        if request.sure
        else None,
        nearest=None if best else _nearest(request, options),
        notes=plan_notes(request, catalogs, options.groups) + list(known.notes),
    )


def options_for(
    request: PlanRequest, catalogs: Sequence[Catalog], known: ProfileIndex
) -> LayoutOptions:
    if not request.cores:
        shares = dataclasses.replace(known.shares, engine={})
        known = dataclasses.replace(known, shares=shares)
    return layout_options(
        request.job,
        request.size,
        [
            with_prefixes(with_own_prices(each, request.own_prices), request.prefixes)
            for each in catalogs
        ],
        known,
        network=request.network,
        purchase=request.purchase,
        providers=request.providers,
        arch=request.arch,
        placement=request.placement,
        measured=request.measured_only,
        include=request.include,
        startup=request.startup,
        memory=request.memory,
        quota_vcpus=request.quota_vcpus,
        descriptors=request.descriptors,
        public_addresses=request.public_addresses,
        today=request.today,
    )


def _all_choices(groups: Sequence[OfferGroup], limits: Limits) -> list[Choice]:
    places = [
        (group, place, node_numbers(group, place, limits))
        for group in groups
        for place in range(len(group.machines))
    ]
    count = sum(len(numbers) for _, _, numbers in places)
    if count > MAX_CANDIDATES:
        raise PlanError(
            f"{formatting.count(count)} candidates exceed the limit of "
            f"{formatting.count(MAX_CANDIDATES)}; restrict providers, catalogs or the number of "
            "nodes"
        )
    return [
        Choice(group, place, nodes)
        for group, place, numbers in places
        for nodes in numbers.tolist()
    ]


def _within_limits(some: Sequence[Candidate], limits: Limits) -> list[Candidate]:
    return [
        each
        for each in some
        if each.seconds.median <= limits.longest_seconds and each.cost_usd.median <= limits.most_usd
    ]


def _nearest(request: PlanRequest, options: LayoutOptions) -> Candidate | None:
    """The candidate that exceeds the limits least; if none fits, the one with fewest nodes."""
    job, size, limits = request.job, request.size, request.job_limits
    limits = dataclasses.replace(limits, objective="nearest")
    least = min((int(group.min_nodes.min()) for group in options.groups), default=IMPOSSIBLE_NODES)
    if least == IMPOSSIBLE_NODES:
        return None
    if least > limits.max_nodes:
        limits = dataclasses.replace(limits, min_nodes=least, max_nodes=least)
    if math.isinf(limits.deadline_seconds) and math.isinf(limits.budget_usd):
        limits = dataclasses.replace(limits, objective=request.limits.objective)
    samples = CapacitySamples(limits.max_nodes, limits.min_nodes)
    results = search_all(options.groups, size, samples, limits)
    some = candidates(job, size, best_per_layout(options.groups, results), samples, limits)
    return next(iter(ranked(some, limits)), None)


def _excluded(
    options: LayoutOptions,
    results: Sequence[SearchResult],
    limits: Limits,
    best: Sequence[Candidate],
) -> list[ExcludedOffer]:
    """Offers with no candidate, each with its first reason."""
    planned = {(each.catalog, each.offer) for each in best}
    why: dict[tuple[str, str], str] = {}
    without = [
        (group, place, each)
        for group, each in zip(options.groups, results, strict=True)
        for place in np.flatnonzero(each.nodes == 0).tolist()
    ]
    # What another layout, or a third pass, takes says more than that this one needs more nodes.
    without.sort(key=lambda row: bool(row[0].min_nodes[row[1]] > limits.max_nodes))
    for group, place, each in without:
        of = group.catalog.name, group.machines[place].offer.type
        why.setdefault(of, exclusion_reason(group, place, each, limits))
    for group in options.unmeasured:
        for machine in group.machines:
            of = group.catalog.name, machine.offer.type
            why.setdefault(of, DISKS_NOT_MEASURED)
    for refused in options.refused:
        why.setdefault((refused.catalog, refused.offer.type), refused.why)
    return [
        ExcludedOffer(catalog=catalog, offer=offer, why=reason)
        for (catalog, offer), reason in why.items()
        if (catalog, offer) not in planned
    ]


def exclusion_reason(group: OfferGroup, place: int, result: SearchResult, limits: Limits) -> str:
    """Why no number of nodes of this machine keeps the limits."""
    least = int(group.min_nodes[place])
    if least == IMPOSSIBLE_NODES:
        return "too little memory for two passes over so much data"
    needed, connected = max(least, limits.min_nodes), group.most_connected
    if connected is not None and needed > connected:
        return (
            "too many sockets: each node has two for each other one, so at most "
            f"{connected} nodes can be connected (--descriptors)"
        )
    if least > limits.max_nodes:
        return f"too small: at least {least} nodes are needed to store the data"
    if group.quota_vcpus and needed * float(group.machines.vcpus[place]) > group.quota_vcpus:
        return "too many vCPUs for the quota"
    if needed > int(group.most_nodes[place]):
        return "so many nodes need no third pass"
    if result.fastest_seconds[place] > limits.longest_seconds:
        return f"too slow: at least {result.fastest_seconds[place]:.0f} s"
    if result.cheapest_usd[place] > limits.most_usd:
        return f"too expensive: at least {result.cheapest_usd[place]:.2f} USD"
    return "no number of nodes meets both the deadline and the budget"


def plan_notes(
    request: PlanRequest, catalogs: Sequence[Catalog], groups: Sequence[OfferGroup]
) -> list[str]:
    notes = [note for each in catalogs for note in _catalog_notes(request, each)]
    if request.job.room:
        loaded = any(room.what == "input" and room.where != "object" for room in request.job.room)
        missing = {
            "start-up of the nodes": not request.startup,
            "creating, attaching and formatting volumes": bool(request.startup),
            "loading of the input": loaded,
            "root volumes": bool(request.startup),
            "account quotas (--quota-vcpus)": not request.quota_vcpus,
        }
        if any(missing.values()):
            told = ", ".join(what for what, is_missing in missing.items() if is_missing)
            notes.append(f"not included: {told}")
    notes += _price_notes(request)
    stored = any(each.where == "object" for each in request.job.room)
    if not request.public_addresses and stored:
        notes.append(
            "without public addresses, machines reach object storage through an endpoint of their "
            "network; what a NAT gateway would charge for each GB is not included"
        )
    if not request.job.divisible:
        notes.append(NOT_DIVISIBLE)
    seen = request.job.seen_bytes
    if seen and request.size > FAR_BEYOND_RUN * seen:
        notes.append(
            f"the observed run had {formatting.size(seen)} of input; its demands may not grow in "
            "proportion"
        )
    notes += _cautions(request.job)
    waits = request.job.settings.get("waits_seconds")
    if isinstance(waits, float) and waits > 0:
        notes.append(
            f"the observed run waited {formatting.duration(waits)} without using any resource; "
            "this time is not included"
        )
    # Calibrated phases include the CPU time of their runs.
    shapes = [
        group.demand for group in groups if group.demand.calibration_match.calibration is None
    ]
    terms = [term for each in shapes for phase in each.phases for term in phase.terms]
    if terms and not any(map(_is_work_on_data, terms)):
        notes.append(NO_CORES)
    return notes


def _cautions(job: Job) -> list[str]:
    """What is not known of an application's run."""
    notes = []
    if job.settings.get("ended") is False:
        notes.append(
            "the application had not ended when its log was written: what would have come after is "
            "not planned"
        )
    if failed := job.settings.get("failed_jobs"):
        notes.append(
            f"{failed:g} of the application's jobs failed, so it may not have done all of its work"
        )
    unnamed = job.settings.get("unnamed_share")
    if isinstance(unnamed, float) and unnamed > MUCH_UNNAMED:
        notes.append(
            f"{formatting.percent(unnamed)} of its tasks' time is neither CPU time nor a wait that "
            "the log names; it is planned as computing, so other cores may matter less"
        )
    if job.settings.get("application"):
        notes.append(
            "not included: the driver's own machine, and the fees of EMR, Dataproc or Databricks"
        )
    return notes


def _is_work_on_data(term: DemandTerm) -> bool:
    """Whether it is of cores, and more than starting a process on each node."""
    return term.resource_class == "cpu" and not all(part.per_node for part in term.parts)


def _catalog_notes(request: PlanRequest, catalog: Catalog) -> list[str]:
    notes = []
    if request.limits.billing_unit == "seconds" and catalog.billing.granularity_seconds >= 3600:
        notes.append(f"{catalog.name} billed each started hour; this plan bills by the second")
    if note := age_note(catalog, request.today):
        notes.append(note)
    return notes


def _price_notes(request: PlanRequest) -> list[str]:
    own = request.own_prices
    if own == LIST_PRICES:
        return []
    if request.purchase == "spot":
        return ["your own prices and the discount are of machines on demand, so they do not apply"]
    notes = []
    if own.prices:
        notes.append(f"your own prices: {formatting.several(len(own.prices), 'machine')}")
    if own.discount_percent:
        notes.append(f"on-demand prices of machines are less {own.discount_percent:g} %")
    return notes


def _settings(request: PlanRequest) -> dict[str, Any]:
    limits = request.job_limits
    return {
        "deadline_seconds": _finite_or_none(limits.deadline_seconds),
        "budget_usd": _finite_or_none(limits.budget_usd),
        "least_nodes": limits.min_nodes,
        "most_nodes": limits.max_nodes,
        "objective": limits.objective,
        "charged": limits.billing_unit,
        "network": request.network,
        "purchase": request.purchase,
        "providers": list(request.providers),
        "arch": request.arch,
        "placement": request.placement,
        "measured": request.measured_only,
        "include": sorted(request.include),
        "startup": bool(request.startup),
        "cores": request.cores,
        "memory": request.memory,
        "prefixes": request.prefixes,
        "quota_vcpus": request.quota_vcpus,
        "descriptors": request.descriptors,
        "public_addresses": request.public_addresses,
        **request.own_prices.to_settings(),
    }


def _finite_or_none(limit: float) -> float | None:
    return limit if math.isfinite(limit) else None
