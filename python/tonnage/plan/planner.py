"""From a job, a size, offers and what is known of them to a plan.

Of every machine and layout the best number of nodes is found with every resource at its middle
(`search`); intervals and the probability of keeping the deadline come from imagined fleets
(`draws`), for the best number alone.
"""

from __future__ import annotations

import dataclasses
import datetime
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tonnage.base import formatting
from tonnage.base.records.job import Job
from tonnage.base.records.plan import Candidate, ExcludedOffer, Plan
from tonnage.catalog import Catalog
from tonnage.model.profiles.repository import ProfileIndex
from tonnage.plan.candidates import Choice, best_per_layout, candidates, rank_key
from tonnage.plan.capacity_samples import CapacitySamples
from tonnage.plan.layouts import (
    IMPOSSIBLE_NODES,
    LayoutOptions,
    Network,
    OfferGroup,
    layout_options,
)
from tonnage.plan.machines import Purchase
from tonnage.plan.monte_carlo import CONFIDENCE, INTERVAL_RULE, sample_outcome
from tonnage.plan.next_measurements import next_measurements
from tonnage.plan.pareto import pareto_front
from tonnage.plan.search import Limits, SearchResult, search_all

SURE = 0.95
ROUNDING = 1e-5
"""A search is in single precision."""
FAR = 10
"""A job of so many times the input that was watched may be another one."""
NO_CORES = "what cores have to do is not known of this job, and not counted"
MOST_CANDIDATES = 20_000
"""With every number of nodes, no more are computed."""


class PlanError(Exception):
    """What cannot be planned; says why in one line."""


@dataclasses.dataclass(frozen=True)
class PlanRequest:
    """What is asked."""

    job: Job
    size: int
    limits: Limits = dataclasses.field(default_factory=Limits)
    network: Network = "scaled"
    purchase: Purchase = "on-demand"
    providers: tuple[str, ...] = ()
    arch: str | None = None
    placement: bool | None = None
    measured_only: bool = False
    """Without what is advertised only."""
    all_sizes: bool = False
    """All numbers of nodes and volumes, not only the best of each offer and layout."""


def plan(question: PlanRequest, catalogs: Sequence[Catalog], known: ProfileIndex) -> Plan:
    """The plan.

    Raises:
        PlanError: There is nothing to move, or more candidates than can be told.
    """
    if question.size < 1:
        raise PlanError("0 bytes: there is nothing to plan")
    job, size, limits = question.job, question.size, question.limits
    offered = options_for(question, catalogs, known)
    rates = CapacitySamples(limits.max_nodes, limits.min_nodes)
    found = search_all(offered.groups, size, rates, limits)
    if question.all_sizes:
        some = _kept(candidates(job, size, _every(offered.groups, limits), rates, limits), limits)
    else:
        some = candidates(job, size, best_per_layout(offered.groups, found), rates, limits)
    best = sorted(some, key=lambda each: rank_key(each, limits))
    return Plan(
        job=job,
        bytes=size,
        settings=_settings(question),
        made_at=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        catalogs=[catalog.name for catalog in catalogs],
        profiles=list(known.names),
        confidence=CONFIDENCE,
        interval_rule=INTERVAL_RULE,
        candidates=best,
        pareto=pareto_front(offered.groups, found, size, rates, limits),
        excluded=_excluded(offered, found, limits, best),
        survey=next_measurements(offered, size, rates, limits, best[0] if best else None, known),
        sure=_sure(question, offered.groups, found, rates),
        nearest=None if best else _nearest(question, offered),
        notes=plan_notes(question, catalogs, offered.groups) + list(known.notes),
    )


def options_for(
    question: PlanRequest, catalogs: Sequence[Catalog], known: ProfileIndex
) -> LayoutOptions:
    """Every layout of every offer that is asked for."""
    return layout_options(
        question.job,
        question.size,
        catalogs,
        known,
        network=question.network,
        purchase=question.purchase,
        providers=question.providers,
        arch=question.arch,
        placement=question.placement,
        measured=question.measured_only,
    )


def _every(groups: Sequence[OfferGroup], limits: Limits) -> list[Choice]:
    count = sum(
        max(limits.max_nodes + 1 - max(least, limits.min_nodes), 0)
        for group in groups
        for least in group.min_nodes.tolist()
    )
    if count > MOST_CANDIDATES:
        raise PlanError(
            f"--all: {count} candidates, more than the {MOST_CANDIDATES} that are told: give "
            "--provider, --catalog or a smaller --max-nodes"
        )
    return [
        Choice(group, place, nodes)
        for group in groups
        for place, least in enumerate(group.min_nodes.tolist())
        for nodes in range(max(least, limits.min_nodes), limits.max_nodes + 1)
    ]


def _kept(some: Sequence[Candidate], limits: Limits) -> list[Candidate]:
    return [
        each
        for each in some
        if each.seconds.median <= limits.deadline_seconds
        and each.cost_usd.median <= limits.budget_usd
    ]


def _sure(
    question: PlanRequest,
    groups: Sequence[OfferGroup],
    found: Sequence[SearchResult],
    rates: CapacitySamples,
) -> Candidate | None:
    """The cheapest that keeps the deadline in 95 % of fleets, whatever is to be minimised else.

    The cheapest that keeps it in the middle costs no more than one that surely keeps it, so
    machines are tried in the order of that cost until it exceeds the best found.
    """
    if math.isinf(question.limits.deadline_seconds):
        return None
    job, size = question.job, question.size
    limits = dataclasses.replace(question.limits, objective="cost")
    if question.limits.objective != "cost":
        found = search_all(groups, size, rates, limits)
    bounds = [
        (float(each.value[place]) * (1 - ROUNDING), Choice(group, place, int(each.nodes[place])))
        for group, each in zip(groups, found, strict=True)
        for place in np.flatnonzero(each.nodes).tolist()
    ]
    best: tuple[float, Choice] | None = None
    for bound, choice in sorted(bounds, key=lambda pair: pair[0]):
        if best and bound >= best[0]:
            break
        least = max(int(choice.group.min_nodes[choice.place]), limits.min_nodes)
        nodes = np.arange(least, limits.max_nodes + 1)
        came = sample_outcome(
            choice.group, [choice.place] * len(nodes), nodes, size, rates, limits.billing_unit
        )
        share = came.in_time(limits.deadline_seconds)
        good = np.flatnonzero((share >= SURE) & (came.cost_usd <= limits.budget_usd))
        if len(good):
            least = came.cost_usd[good].min()
            at = good[np.argmax(came.cost_usd[good] <= least * (1 + ROUNDING))]
            if best is None or came.cost_usd[at] < best[0] * (1 - ROUNDING):
                best = float(came.cost_usd[at]), dataclasses.replace(choice, nodes=int(nodes[at]))
    if best is None:
        return None
    return candidates(job, size, [best[1]], rates, limits)[0]


def _nearest(question: PlanRequest, offered: LayoutOptions) -> Candidate | None:
    """What misses the deadline or the budget by least; or, if none fits, what fits with fewest."""
    job, size, limits = question.job, question.size, question.limits
    limits = dataclasses.replace(limits, objective="nearest")
    least = min((int(group.min_nodes.min()) for group in offered.groups), default=IMPOSSIBLE_NODES)
    if least >= 1 << 40:
        return None
    if least > limits.max_nodes:
        limits = dataclasses.replace(limits, min_nodes=least, max_nodes=least)
    if math.isinf(limits.deadline_seconds) and math.isinf(limits.budget_usd):
        limits = dataclasses.replace(limits, objective=question.limits.objective)
    rates = CapacitySamples(limits.max_nodes, limits.min_nodes)
    found = search_all(offered.groups, size, rates, limits)
    some = candidates(job, size, best_per_layout(offered.groups, found), rates, limits)
    return min(some, key=lambda each: rank_key(each, limits), default=None)


def _excluded(
    offered: LayoutOptions, found: Sequence[SearchResult], limits: Limits, best: Sequence[Candidate]
) -> list[ExcludedOffer]:
    """Offers of which no layout is a candidate, each with the first reason there is."""
    have = {(each.catalog, each.offer) for each in best}
    why: dict[tuple[str, str], str] = {}
    for group, each in zip(offered.groups, found, strict=True):
        for place in np.flatnonzero(each.nodes == 0).tolist():
            of = group.catalog.name, group.machines[place].offer.type
            why.setdefault(of, exclusion_reason(group, place, each, limits))
    for group in offered.unmeasured:
        for machine in group.machines:
            of = group.catalog.name, machine.offer.type
            why.setdefault(of, "what its disks carry was not measured")
    for refused in offered.refused:
        why.setdefault((refused.catalog, refused.offer.type), refused.why)
    return [
        ExcludedOffer(catalog=catalog, offer=offer, why=said)
        for (catalog, offer), said in why.items()
        if (catalog, offer) not in have
    ]


def exclusion_reason(group: OfferGroup, place: int, found: SearchResult, limits: Limits) -> str:
    """Why no number of nodes of this machine keeps the limits."""
    least = int(group.min_nodes[place])
    if least > limits.max_nodes:
        return f"too small: it takes {least} nodes to hold the job"
    if found.fastest_seconds[place] > limits.deadline_seconds:
        return f"too slow: {found.fastest_seconds[place]:.0f} s at best"
    if found.cheapest_usd[place] > limits.budget_usd:
        return f"too dear: {found.cheapest_usd[place]:.2f} USD at least"
    return "not both in time and within the budget"


def plan_notes(
    question: PlanRequest, catalogs: Sequence[Catalog], groups: Sequence[OfferGroup]
) -> list[str]:
    """What is to be minded of the whole plan."""
    found = [
        f"by {each.name} begun hours were billed, which is not counted (--billing hours)"
        for each in catalogs
        if question.limits.billing_unit == "seconds" and each.billing.granularity_seconds >= 3600
    ]
    if question.job.room:
        found.append(
            "not counted: starting the machines, putting the input where it lies when the job "
            "begins, and what your account may have of them"
        )
    seen = question.job.seen_bytes
    if seen and question.size > FAR * seen:
        found.append(
            f"the run that was watched had {formatting.size(seen)} of input: whether its demands grow "
            "in proportion is not known"
        )
    waits = question.job.settings.get("waits_seconds")
    if isinstance(waits, float) and waits > 0:
        found.append(
            f"the run that was watched waited for {formatting.duration(waits)}, for what it used none "
            "of: not counted"
        )
    # What runs took of cores is in their phases.
    shapes = [
        group.demand for group in groups if group.demand.calibration_match.calibration is None
    ]
    terms = [term for each in shapes for phase in each.phases for term in phase.terms]
    if terms and not any(term.resource_class == "cpu" for term in terms):
        found.append(NO_CORES)
    return found


def _settings(question: PlanRequest) -> dict[str, Any]:
    limits = question.limits
    return {
        "deadline_seconds": _told(limits.deadline_seconds),
        "budget_usd": _told(limits.budget_usd),
        "least_nodes": limits.min_nodes,
        "most_nodes": limits.max_nodes,
        "objective": limits.objective,
        "charged": limits.billing_unit,
        "network": question.network,
        "purchase": question.purchase,
        "providers": list(question.providers),
        "arch": question.arch,
        "placement": question.placement,
        "measured": question.measured_only,
    }


def _told(limit: float) -> float | None:
    return limit if math.isfinite(limit) else None
