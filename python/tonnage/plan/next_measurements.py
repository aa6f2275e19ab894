"""What to measure next: offers that nobody measured and that could still win.

A local disk's speed is in no catalog. But what it would have to be is known: of an offer with N
nodes, every other resource being as it is planned with, there is a least rate with which it beats
the best candidate (and keeps the deadline). That is a bound, not a guess. Where even infinitely
fast disks would not do, or none that there are, measuring is a waste of money and the offer is
left out.

How likely a disk is so fast is told by those that were measured: the share of their rates, per
disk, that reach the bound, counted as (reached + 1/2) / (measured + 1) since few were. Offers are
in the order of that chance for a dollar, and a budget is spent in that order; what it pays for is
told with the cheapest first, as that is how to begin.
"""

from __future__ import annotations

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
from tonnage.plan.search import Limits, buckets_at, machine_usd_per_hour

SCREENING_SECONDS = 600.0
SCREENING_NODES = 2
FASTEST_BUS = 15.75e9
"""Bytes a second over PCI Express 5.0 with four lanes, as disks have them: none is faster."""
MOST = {"hdd": 0.3e9}
"""And no disk that turns is faster than this."""
SIZES = 24
"""Numbers of nodes that are tried, evenly by factors from the fewest that hold the job."""
HALVINGS = 24
SLOWEST, FASTEST = 1.0, 1e13
"""Between these a rate is looked for."""
RULE = "the share of measured offers with as much for each local disk, (n + 1/2) of (all + 1)"


def next_measurements(
    offered: LayoutOptions,
    size: int,
    rates: CapacitySamples,
    limits: Limits,
    best: Candidate | None,
    known: ProfileIndex,
) -> list[MeasurementProposal]:
    """Offers that could win, the best chance for a dollar first."""
    rows: dict[tuple[str, str, bool], MeasurementProposal] = {}
    seen = _per_disk(offered, known)
    for group in offered.unmeasured:
        least, nodes = _least_rates(group, size, rates, limits, best)
        for place, (rate, fleet) in enumerate(zip(least, nodes, strict=True)):
            if not math.isfinite(rate) or rate > _most(group, place):
                continue
            row = _row(group, place, float(rate), int(fleet), seen, limits.billing_unit)
            key = (row.provider, row.offer, group.machines[place].placement)
            if key not in rows or row.least_bytes_per_second < rows[key].least_bytes_per_second:
                rows[key] = row
    return sorted(
        rows.values(),
        key=lambda row: (
            -row.chance / row.usd_to_measure,
            row.least_bytes_per_second,
            row.offer,
        ),
    )


def within_budget(plan: Plan, budget: float | None) -> list[dict[str, Any]]:
    """What of a plan's survey a budget pays for, chosen greedily; the cheapest first."""
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
    seen: Sequence[float],
    charged: BillingUnit,
) -> MeasurementProposal:
    machine = group.machines[place]
    count = _disks(group, place)
    reached = sum(each >= rate / count for each in seen)
    spent = np.array([SCREENING_NODES * SCREENING_SECONDS])
    price = machine_usd_per_hour(group)[[place]]
    fleet = np.array([float(SCREENING_NODES)])
    paid = cost_usd(spent, fleet, price, 0.0, 0.0, group.catalog.billing, charged)
    return MeasurementProposal(
        provider=machine.offer.provider,
        offer=machine.offer.type,
        layout=group.demand.layout,
        nodes=nodes,
        resource="local disks",
        least_bytes_per_second=rate,
        chance=(reached + 0.5) / (len(seen) + 1),
        rule=RULE,
        usd_to_measure=float(paid[0]),
    )


def _most(group: OfferGroup, place: int) -> float:
    """What no local disks of a machine exceed; infinite where their number is unknown."""
    disks = group.machines[place].offer.disks
    if not disks:
        return math.inf
    return sum(
        math.inf if each.count is None else each.count * MOST.get(each.kind or "", FASTEST_BUS)
        for each in disks
    )


def _disks(group: OfferGroup, place: int) -> int:
    """How many local disks a machine has; one where that is not known, which asks more of it."""
    disks = group.machines[place].offer.disks or ()
    return sum(each.count or 1 for each in disks) or 1


def _per_disk(offered: LayoutOptions, known: ProfileIndex) -> list[float]:
    """What each measured offer carries for each of its local disks."""
    found = {}
    for group in offered.groups:
        if group.demand.own_disks:
            for place, machine in enumerate(group.machines):
                offer = machine.offer
                laws = known.offers.get((offer.provider, offer.type), {}).get(machine.placement)
                both = laws.distributions.get("local both") if laws else None
                if both:
                    middle = sum(mode.median * mode.instances for mode in both.modes)
                    middle /= sum(mode.instances for mode in both.modes)
                    found[offer.type] = middle / _disks(group, place)
    return list(found.values())


def _least_rates(
    group: OfferGroup, size: int, rates: CapacitySamples, limits: Limits, best: Candidate | None
) -> tuple[Array, Array]:
    """For each machine the least rate of local disks that would win, and with how many nodes.

    By bisection; what disks have to carry is the larger of both ways in each phase. 0: with any.
    """
    machines = group.machines
    begin = np.clip(group.min_nodes, limits.min_nodes, limits.max_nodes)[:, None]
    steps = np.linspace(0, 1, SIZES)[None, :]
    sizes = (begin * (limits.max_nodes / begin) ** steps).round().astype(np.int64)
    fleet = sizes.astype(np.float64)
    figures = buckets_at(group, np.arange(len(machines))[:, None])
    prices = machine_usd_per_hour(group)[:, None]
    volumes = group.demand.volumes
    volume_usd: Array | float = volumes.usd_per_hour(fleet) if volumes else 0.0
    shape = sizes.shape
    others: list[tuple[float, Array]] = []
    for phase in group.demand.phases:
        longest = np.zeros(shape)
        for term in phase.terms:
            if term.resource_class != "local disks":
                took = term_work(
                    term,
                    group.demand,
                    size,
                    MedianCapacity(rates, sizes),
                    fleet,
                    figures,
                )
                longest = np.maximum(longest, took)
        others.append((size * phase.local_per_byte, longest))
    fixed = fleet * sum(phase.fixed_seconds for phase in group.demand.phases)
    held = sizes >= group.min_nodes[:, None]

    def wins(rate: Array) -> Array:
        spent = sum((np.maximum(local / rate, longest) for local, longest in others), fixed)
        paid = cost_usd(
            spent,
            fleet,
            prices,
            volume_usd,
            group.outside_usd,
            group.catalog.billing,
            limits.billing_unit,
        )
        seconds = spent / fleet
        better = np.ones(shape, dtype=bool)
        if best:
            by_cost = limits.objective == "cost"
            mine, its = (paid, best.cost_usd) if by_cost else (seconds, best.seconds)
            better = mine < its.median
        return np.asarray(
            held & better & (seconds <= limits.deadline_seconds) & (paid <= limits.budget_usd)
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
