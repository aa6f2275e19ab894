"""Choose what to measure next: unmeasured offers that could still win.

Of some offers nobody published how fast their local disks are. But the speed that they need is
known: with N nodes and every other resource as planned, there is a least rate at which the offer
beats the best candidate and keeps the deadline. Offers that would lose even with the fastest disks
that they may have are left out: measuring them is a waste. Those are as fast as the fastest of the
same kind of the provider's other machines, as measured or documented: disk by disk, and for each
vCPU, since providers divide a host's disks among its machines like its cores. No disk exceeds its
bus.

How likely an offer has the rate, nobody knows. What is known is the share of families of machine
types, of the same provider and kind of disks, that have it. Offers are in order of that share per
dollar; a budget is work in that order; what it buys is listed cheapest first.
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tonnage.base.records.base import to_builtins
from tonnage.base.records.job import Job
from tonnage.base.records.plan import Candidate, MeasurementProposal, Plan
from tonnage.catalog import Catalog, Disks, Offer
from tonnage.catalog.published.core_speeds import family_of
from tonnage.model.profiles.repository import ProfileIndex
from tonnage.plan.capacity_samples import CapacitySamples, MedianCapacity
from tonnage.plan.cost_model import Array, BillingUnit, cost_usd, interruption_work, term_work
from tonnage.plan.layouts import LayoutOptions, OfferGroup
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
RULE = (
    "the share of families of machine types of this provider, with disks of this kind, that are "
    "measured or documented to have the rate for each vCPU"
)
DiskClass = tuple[str, str | None]
"""A provider, and a kind of disks."""


@dataclass(frozen=True)
class KnownDisks:
    """What the disks of known machine types give, in bytes per second."""

    fastest_disk: dict[DiskClass, float]
    fastest_per_vcpu: dict[DiskClass, float]
    per_vcpu: dict[DiskClass, list[float]]
    """The median of each family."""

    @classmethod
    def of(cls, job: Job, catalogs: Sequence[Catalog], profiles: ProfileIndex) -> "KnownDisks":
        """Collect the slower way of each type's disks, or the only one that the job uses."""
        writes = any(
            demand.resource == "local write" for phase in job.phases for demand in phase.demands
        )
        rates: dict[DiskClass, dict[str, list[float]]] = {}
        disks: dict[DiskClass, float] = {}
        for offer in (offer for catalog in catalogs for offer in catalog.offers if offer.vcpus):
            family = family_of(offer.provider, offer.type)
            for kind, rate in _disk_rates(offer, profiles, writes).items():
                one = (offer.provider, kind)
                per_vcpu = rates.setdefault(one, {}).setdefault(family, [])
                per_vcpu.append(rate / (offer.vcpus or 1.0))
                if count := sum(each.count or 0 for each in offer.disks or () if each.kind == kind):
                    disks[one] = max(disks.get(one, 0.0), rate / count)
        fastest = {one: max(map(max, families.values())) for one, families in rates.items()}
        medians = {
            one: [*map(statistics.median, families.values())] for one, families in rates.items()
        }
        return cls(disks, fastest, medians)

    def most(self, offer: Offer) -> float:
        """The most that an offer's disks may give, in bytes per second."""
        return sum(self._most_of(offer, each) for each in offer.disks or ())

    def _most_of(self, offer: Offer, disks: Disks) -> float:
        one = (offer.provider, disks.kind)
        bus = MAX_RATE_BY_KIND.get(disks.kind or "", FASTEST_BUS)
        limits = [] if disks.count is None else [disks.count * self.fastest_disk.get(one, bus)]
        if offer.vcpus and one in self.fastest_per_vcpu:
            limits.append(offer.vcpus * self.fastest_per_vcpu[one])
        return min(limits, default=math.inf)

    def share(self, offer: Offer, rate: float) -> float | None:
        """The share of known families with this rate; ``None`` if no such disks are known."""
        kinds = {each.kind for each in offer.disks or ()}
        known = [each for kind in kinds for each in self.per_vcpu.get((offer.provider, kind), ())]
        if not known or not offer.vcpus:
            return None
        return sum(each >= rate / offer.vcpus for each in known) / len(known)


def next_measurements(
    job: Job,
    catalogs: Sequence[Catalog],
    options: LayoutOptions,
    size: int,
    samples: CapacitySamples,
    limits: Limits,
    best: Candidate | None,
    profiles: ProfileIndex,
) -> list[MeasurementProposal]:
    """Unmeasured offers that could win, the largest share of known disks per dollar first."""
    rows: dict[tuple[str, str, bool], MeasurementProposal] = {}
    known = KnownDisks.of(job, catalogs, profiles) if options.unmeasured else None
    for group in options.unmeasured:
        assert known is not None
        least, nodes = _least_rates(group, size, samples, limits, best)
        for place, (rate, cluster_size) in enumerate(zip(least, nodes, strict=True)):
            if not math.isfinite(rate) or rate > known.most(group.machines[place].offer):
                continue
            row = _row(group, place, float(rate), int(cluster_size), known, limits.billing_unit)
            key = (row.provider, row.offer, group.machines[place].placement)
            if key not in rows or row.least_bytes_per_second < rows[key].least_bytes_per_second:
                rows[key] = row
    return sorted(
        rows.values(),
        key=lambda row: (
            -(row.share_of_known or 0.0) / row.usd_to_measure,
            row.least_bytes_per_second,
            row.offer,
        ),
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
    known: KnownDisks,
    billing_unit: BillingUnit,
) -> MeasurementProposal:
    machine = group.machines[place]
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
        share_of_known=known.share(machine.offer, rate),
        rule=RULE,
        usd_to_measure=float(paid[0]),
    )


def _disk_rates(offer: Offer, profiles: ProfileIndex, writes: bool) -> dict[str | None, float]:
    """The rate of an offer's local disks by their kind, as far as it is known."""
    found: dict[str | None, float] = {}
    for each in offer.disks or ():
        read, write = each.read_bytes_per_second, each.write_bytes_per_second
        if read and write:
            found[each.kind] = min(read, write) if writes else read
    measured = profiles.offers.get((offer.provider, offer.type), {})
    laws = [each.distributions.get("local both") for each in measured.values()]
    kinds = {each.kind for each in offer.disks or ()}
    for law in laws:
        if law and len(kinds) == 1:
            modes = [(mode.median, mode.instances) for mode in law.modes]
            found[kinds.pop()] = sum(rate * count for rate, count in modes) / sum(
                count for _, count in modes
            )
            break
    return found


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
    interruptions = machines.interruptions_per_second[:, None]
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
        work = work + interruption_work(work, cluster_sizes, interruptions)
        paid = group_cost_usd(group, places, work, cluster_sizes, limits.billing_unit)
        seconds = work / cluster_sizes
        better = np.ones(shape, dtype=bool)
        if best:
            by_cost = limits.objective == "cost"
            mine, its = (paid, best.cost_usd) if by_cost else (seconds, best.seconds)
            better = mine < its.median
        return np.asarray(
            fits & better & (seconds <= limits.longest_seconds) & (paid <= limits.most_usd)
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
