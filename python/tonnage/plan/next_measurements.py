"""Choose what to measure next: unmeasured offers that could still win.

Of some offers nobody published how fast their local disks are. But the speed that they need is
known: with N nodes and every other resource as planned, there is a least rate at which the offer
beats the best candidate and keeps the deadline. Offers that would lose even with infinitely fast
disks, or with any existing ones, are left out: measuring them is a waste.

The chance that a disk is fast enough is the share of measured disks that are, counted as
(reached + 1/2) / (measured + 1) since few were measured. Offers are in order of chance per dollar;
a budget is work in that order; what it buys is listed cheapest first.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tonnage.base.records.base import to_builtins
from tonnage.base.records.plan import Candidate, MeasurementProposal, Plan
from tonnage.model.profiles.repository import ProfileIndex
from tonnage.plan.capacity_samples import CapacitySamples, MedianCapacity
from tonnage.plan.cost_model import Array, BillingUnit, cost_usd, term_work
from tonnage.plan.layouts import LayoutOptions, OfferGroup
from tonnage.plan.resources.engine_memory import local_devices
from tonnage.plan.search import Limits, buckets_at, group_cost_usd, machine_usd_per_hour

SCREENING_SECONDS = 600.0
SCREENING_NODES = 2
FASTEST_BUS = 15.75e9
"""Bytes per second of four PCI Express 5.0 lanes: no disk is faster."""
MAX_RATE_BY_KIND = {"hdd": 0.3e9}
"""No rotating disk is faster."""
SIZES = 24
"""Numbers of nodes tried, geometrically spaced from the fewest that store the job."""
HALVINGS = 24
SLOWEST, FASTEST = 1.0, 1e13
"""Bounds of the bisection, bytes per second."""
RULE = "the share of measured offers with this rate per local disk, (n + 1/2) / (all + 1)"


def next_measurements(
    options: LayoutOptions,
    size: int,
    samples: CapacitySamples,
    limits: Limits,
    best: Candidate | None,
    known: ProfileIndex,
) -> list[MeasurementProposal]:
    """Unmeasured offers that could win, the best chance per dollar first."""
    rows: dict[tuple[str, str, bool], MeasurementProposal] = {}
    per_disk_rates = _per_disk(options, known)
    for group in options.unmeasured:
        least, nodes = _least_rates(group, size, samples, limits, best)
        for place, (rate, cluster_sizes) in enumerate(zip(least, nodes, strict=True)):
            if not math.isfinite(rate) or rate > _max_disk_rate(group, place):
                continue
            row = _row(
                group, place, float(rate), int(cluster_sizes), per_disk_rates, limits.billing_unit
            )
            key = (row.provider, row.offer, group.machines[place].placement)
            if key not in rows or row.least_bytes_per_second < rows[key].least_bytes_per_second:
                rows[key] = row
    return sorted(
        rows.values(),
        key=lambda row: (-row.chance / row.usd_to_measure, row.least_bytes_per_second, row.offer),
    )


def within_budget(plan: Plan, budget: float | None) -> list[dict[str, Any]]:
    """Choose greedily from a plan's survey within a budget; cheapest first."""
    left = math.inf if budget is None else budget
    found = []
    for row in plan.survey:
        if row.usd_to_measure <= left:
            left -= row.usd_to_measure
            found.append(to_builtins(row))
    return sorted(found, key=lambda row: float(row["usd_to_measure"]))


def _row(
    group: OfferGroup,
    place: int,
    rate: float,
    nodes: int,
    per_disk_rates: Sequence[float],
    billing_unit: BillingUnit,
) -> MeasurementProposal:
    machine = group.machines[place]
    count = local_devices(group.machines[place].offer)
    reached = sum(each >= rate / count for each in per_disk_rates)
    work = np.array([SCREENING_NODES * SCREENING_SECONDS])
    price = machine_usd_per_hour(group)[[place]]
    cluster_sizes = np.array([float(SCREENING_NODES)])
    paid = cost_usd(work, cluster_sizes, price, 0.0, 0.0, group.catalog.billing, billing_unit)
    return MeasurementProposal(
        provider=machine.offer.provider,
        offer=machine.offer.type,
        layout=group.demand.layout,
        nodes=nodes,
        resource="local disks",
        least_bytes_per_second=rate,
        chance=(reached + 0.5) / (len(per_disk_rates) + 1),
        rule=RULE,
        usd_to_measure=float(paid[0]),
    )


def _max_disk_rate(group: OfferGroup, place: int) -> float:
    """The greatest possible rate of a machine's disks; infinite if their number is unknown."""
    disks = group.machines[place].offer.disks
    if not disks:
        return math.inf
    return sum(
        math.inf
        if each.count is None
        else each.count * MAX_RATE_BY_KIND.get(each.kind or "", FASTEST_BUS)
        for each in disks
    )


def _per_disk(options: LayoutOptions, known: ProfileIndex) -> list[float]:
    """The measured rate per local disk of each measured offer."""
    found = {}
    for group in options.groups:
        if group.demand.own_disks:
            for place, machine in enumerate(group.machines):
                offer = machine.offer
                laws = known.offers.get((offer.provider, offer.type), {}).get(machine.placement)
                both = laws.distributions.get("local both") if laws else None
                if both:
                    middle = sum(mode.median * mode.instances for mode in both.modes)
                    middle /= sum(mode.instances for mode in both.modes)
                    found[offer.type] = middle / local_devices(group.machines[place].offer)
    return list(found.values())


def _least_rates(
    group: OfferGroup, size: int, samples: CapacitySamples, limits: Limits, best: Candidate | None
) -> tuple[Array, Array]:
    """The least local-disk rate with which each machine would win, and its number of nodes.

    By bisection; a phase's demand on disks is the larger of both ways. 0: any rate wins.
    """
    machines = group.machines
    begin = np.clip(group.min_nodes, limits.min_nodes, limits.max_nodes)[:, None]
    steps = np.linspace(0, 1, SIZES)[None, :]
    sizes = (begin * (limits.max_nodes / begin) ** steps).round().astype(np.int64)
    cluster_sizes = sizes.astype(np.float64)
    places = np.arange(len(machines))[:, None]
    buckets, capacity = buckets_at(group, places), MedianCapacity(samples, sizes)
    shape = sizes.shape
    others: list[tuple[float, Array]] = []
    for phase in group.demand.phases:
        longest = np.zeros(shape)
        for term in phase.terms:
            if term.resource_class != "local disks":
                took = term_work(term, group.demand, size, capacity, cluster_sizes, buckets)
                longest = np.maximum(longest, took)
        others.append((size * phase.local_per_byte, longest))
    fixed = cluster_sizes * sum(phase.fixed_seconds for phase in group.demand.phases)
    fits = (sizes >= group.min_nodes[:, None]) & (sizes <= group.most_nodes[:, None])

    def wins(rate: Array) -> Array:
        work = sum((np.maximum(local / rate, longest) for local, longest in others), fixed)
        paid = group_cost_usd(group, places, work, cluster_sizes, limits.billing_unit)
        seconds = work / cluster_sizes
        better = np.ones(shape, dtype=bool)
        if best:
            by_cost = limits.objective == "cost"
            mine, its = (paid, best.cost_usd) if by_cost else (seconds, best.seconds)
            better = mine < its.median
        return np.asarray(
            fits & better & (seconds <= limits.deadline_seconds) & (paid <= limits.budget_usd)
        )

    low, high = np.full(shape, SLOWEST), np.full(shape, FASTEST)
    possible, always = wins(high), wins(low)
    if not possible.any():
        return np.full(len(machines), np.inf), np.zeros(len(machines), dtype=np.int64)
    for _ in range(HALVINGS):
        middle = np.sqrt(low * high)
        good = wins(middle)
        high, low = np.where(good, middle, high), np.where(good, low, middle)
    least = np.where(possible, np.where(always, 0.0, high), np.inf)
    at = np.argmin(least, axis=1)
    each = np.arange(len(machines))
    return least[each, at], sizes[each, at]
