"""What a job costs on the cluster that it runs on today, and what another one would save.

A job that was seen there has as many slots there as its executors had, and varies as runs do; what
is not known of it elsewhere adds to the others' intervals. The saving is the difference of draws of
both, each with cores, networks and runs of its own: what both have in common is not taken off.
"""

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from msgspec import structs

from tonnage.base.records.job import Job, JobPhase
from tonnage.base.records.plan import Candidate, CurrentCluster, Plan, SignedRange
from tonnage.catalog import OFFER_KINDS, Catalog, Offer
from tonnage.model.past_runs.misfit import MISFIT
from tonnage.model.profiles.repository import ProfileIndex
from tonnage.plan.candidates import Choice, candidates, ranked
from tonnage.plan.capacity_samples import CapacitySamples
from tonnage.plan.cost_model import Array, BillingUnit
from tonnage.plan.monte_carlo import HIGH, LOW, sampled_seconds
from tonnage.plan.planner import PlanError, PlanRequest, options_for
from tonnage.plan.resources.machines import (
    THREADS_PER_CORE,
    busy_core_speed,
    core_speed,
    task_slots,
)
from tonnage.plan.search import Limits, group_cost_usd


@dataclass(frozen=True)
class Cluster:
    """So many machines of one type."""

    catalog: Catalog
    offer: Offer
    nodes: int


@dataclass(frozen=True)
class PlannedCluster:
    """A job on the cluster of today, with the layout that costs least on it."""

    choice: Choice
    candidate: Candidate


def with_current_cluster(
    made: Plan,
    request: PlanRequest,
    now: PlannedCluster,
    runs_per_month: float | None,
    catalogs: Sequence[Catalog],
    known: ProfileIndex,
) -> Plan:
    """The request's plan with what the job costs on ``now``, and what its best candidate saves."""
    saves = None
    if made.candidates:
        saves = _saving(request, now, made.candidates[0], catalogs, known)
    seen = made.job.settings.get("seconds") if made.bytes == made.job.seen_bytes else None
    return structs.replace(
        made,
        current=CurrentCluster(
            candidate=now.candidate,
            seen_seconds=float(seen) if isinstance(seen, int | float) else None,
            saves_usd=saves,
            runs_per_month=runs_per_month,
        ),
    )


def plan_on_current(request: PlanRequest, now: Cluster, known: ProfileIndex) -> PlannedCluster:
    """Plan the request's job on the cluster that it ran on, at its price on demand.

    Raises:
        PlanError: The job cannot be planned on it.
    """
    # It runs there, whatever memory would be enough.
    room = [each for each in request.job.room if each.where != "memory"]
    job = structs.replace(request.job, least_memory_per_vcpu=None, room=room)
    if job.core_speed is not None:
        job = structs.replace(job, spread=min(job.spread, MISFIT.noise))
    job = _with_shared_vcpus(job, now)
    offer = _with_slots(now, job.settings.get("busy_vcpus"))
    cautions = [*_cautions(now, job)]
    asked = dataclasses.replace(request, job=job, purchase="on-demand")
    planned = plan_on(asked, Cluster(now.catalog, offer, now.nodes), known)
    notes = [*planned.candidate.notes, *cautions]
    return PlannedCluster(planned.choice, structs.replace(planned.candidate, notes=notes))


def plan_on(request: PlanRequest, cluster: Cluster, known: ProfileIndex) -> PlannedCluster:
    """Plan the request's job on a cluster alone, whatever its limits.

    Raises:
        PlanError: The job cannot be planned on it.
    """
    limits = Limits(
        min_nodes=cluster.nodes,
        max_nodes=cluster.nodes,
        objective="cost",
        billing_unit=request.limits.billing_unit,
    )
    asked = dataclasses.replace(
        request,
        limits=limits,
        include=frozenset(OFFER_KINDS),
        arch=None,
        placement=None,
        measured_only=False,
        quota_vcpus=None,
    )
    catalog = structs.replace(cluster.catalog, offers=(cluster.offer,))
    options = options_for(dataclasses.replace(asked, providers=()), [catalog], known)
    choices = [
        Choice(group, place, cluster.nodes)
        for group in options.groups
        for place in range(len(group.machines))
        if group.allows(place, cluster.nodes)
    ]
    if not choices:
        why = "; ".join(dict.fromkeys(each.why for each in options.refused))
        raise PlanError(
            f"the job cannot run on {cluster.nodes} x {cluster.offer.type}, as far as is known: "
            f"{why or 'its data does not fit'}"
        )
    samples = CapacitySamples(cluster.nodes, cluster.nodes)
    planned = candidates(request.job, request.size, choices, samples, limits)
    best, *_ = ranked(planned, limits)
    at = next(place for place, each in enumerate(planned) if each is best)
    return PlannedCluster(choices[at], best)


def _with_slots(now: Cluster, slots: object) -> Offer:
    """The machine with no more vCPUs than its executors had slots."""
    vcpus = (now.offer.vcpus or 0.0) * now.nodes
    if not isinstance(slots, int | float) or not 0 < slots < vcpus:
        return now.offer
    busy = slots / now.nodes
    speed = busy_core_speed(now.offer, busy) or 1.0
    all_busy = core_speed(now.offer) or 1.0
    cores = now.offer.cores or (now.offer.vcpus or 0.0) / THREADS_PER_CORE
    return structs.replace(now.offer, vcpus=busy, cores=cores * (slots / vcpus) * speed / all_busy)


def _with_shared_vcpus(job: Job, now: Cluster) -> Job:
    """The job whose executors had more cores than their machines: each slot has a part of a vCPU,
    so what a slot does takes longer, and more of them wait at once."""
    busy = job.settings.get("busy_vcpus")
    slots = (task_slots(now.offer) or 0.0) * now.nodes
    if not isinstance(busy, int | float) or not 0 < slots < busy:
        return job
    shared = busy / slots
    return structs.replace(job, phases=[_with_more_slots(each, shared) for each in job.phases])


def _with_more_slots(phase: JobPhase, times: float) -> JobPhase:
    return structs.replace(
        phase,
        warm_up_seconds=phase.warm_up_seconds * times,
        longest_task_per_byte=phase.longest_task_per_byte * times,
        tasks=phase.tasks and max(round(phase.tasks / times), 1),
        demands=[
            structs.replace(each, per_byte=each.per_byte / times)
            if each.resource == "task wait"
            else each
            for each in phase.demands
        ],
    )


def _cautions(now: Cluster, job: Job) -> Iterator[str]:
    """Where the cluster is not what the run's log has."""
    slots, hosts = job.settings.get("busy_vcpus"), job.settings.get("hosts")
    vcpus = (now.offer.vcpus or 0.0) * now.nodes
    if isinstance(hosts, int | float) and 0 < hosts != now.nodes:
        yield f"the executors of the run were on {hosts:g} hosts, not {now.nodes}"
    if isinstance(slots, int | float) and 0 < slots < vcpus:
        yield (
            f"the executors of the run had {slots:g} slots for tasks on {vcpus:g} vCPUs: the "
            "others were idle"
        )


def _saving(
    request: PlanRequest,
    now: PlannedCluster,
    best: Candidate,
    catalogs: Sequence[Catalog],
    known: ProfileIndex,
) -> SignedRange:
    """Dollars that a run on the best candidate costs less than on ``now``."""
    unit = request.limits.billing_unit
    before = _sampled_usd(now.choice, request.size, unit)
    after = _sampled_usd(_choice_of(request, best, catalogs, known), request.size, unit)
    # In another order: a sampled cluster of one is no sampled cluster of the other.
    drawn = before - np.roll(after, len(before) // 2 + 1)
    middle = now.candidate.cost_usd.median - best.cost_usd.median
    low, high = np.quantile(drawn, [LOW, HIGH])
    return SignedRange(low=min(float(low), middle), median=middle, high=max(float(high), middle))


def _choice_of(
    request: PlanRequest, candidate: Candidate, catalogs: Sequence[Catalog], known: ProfileIndex
) -> Choice:
    """A candidate of the request's plan, with its start, prices and addresses."""
    of_offer = [
        structs.replace(
            each, offers=tuple(one for one in each.offers if one.type == candidate.offer)
        )
        for each in catalogs
        if each.name == candidate.catalog
    ]
    return next(
        Choice(group, place, candidate.nodes)
        for group in options_for(request, of_offer, known).groups
        for place, machine in enumerate(group.machines)
        if (group.demand.layout, machine.placement) == (candidate.layout, candidate.placement)
        and group.allows(place, candidate.nodes)
    )


def _sampled_usd(choice: Choice, size: int, billing_unit: BillingUnit) -> Array:
    nodes = np.array([choice.nodes])
    samples = CapacitySamples(choice.nodes, choice.nodes)
    seconds = sampled_seconds(choice.group, [choice.place], nodes, size, samples)
    usd = group_cost_usd(
        choice.group, [choice.place], seconds * choice.nodes, nodes.astype(float), billing_unit
    )
    return np.asarray(usd[:, 0])
