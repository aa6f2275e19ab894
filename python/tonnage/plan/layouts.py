"""Every way to lay out every offer for a job, in groups of machines that have the same shape.

``local``: everything on the node's own disks. ``local + 2 x gp3``: input and output on so many
volumes for each node. ``2 x gp3``: everything on volumes. ``diskless``: the job keeps nothing.

What nobody measured is taken from what is advertised, times the share of such figures that measured
offers reached. A local disk's figure is in no catalog, so an offer whose disks nobody measured
cannot be planned with: it is left to the survey. What is missing stays missing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import numpy.typing as npt

from tonnage.base import formatting
from tonnage.base.records.job import Job
from tonnage.catalog import Catalog, Offer
from tonnage.model.profiles.repository import NO_CAPACITY, OfferCapacity, ProfileIndex
from tonnage.plan.block_volumes import GIB, BlockVolumes, is_usable
from tonnage.plan.calibration import NO_MATCH, match_calibration
from tonnage.plan.demand import LayoutDemand, ResourceClass, layout_demand
from tonnage.plan.machines import Machine, Machines, Purchase, priced_machine

Network = Literal["scaled", "baseline", "infinite"]
NETWORKS: tuple[Network, ...] = ("scaled", "baseline", "infinite")
VOLUME_COUNTS = (1, 2, 4, 8, 16)
IMPOSSIBLE_NODES = 1 << 62
"""So many nodes as there cannot be."""
Floats = npt.NDArray[np.float64]
UNKNOWN_FIGURES: dict[ResourceClass, str] = {
    "object storage": "its network",
    "network": "its network",
    "volumes": "its link to volumes",
    "cpu": "what lasts of its cores",
}


@dataclass(frozen=True, eq=False)
class OfferGroup:
    """Machines of one catalog with the same shape; with what each can begin to hold the job."""

    demand: LayoutDemand
    machines: Machines
    min_nodes: npt.NDArray[np.int64]
    catalog: Catalog
    outside_usd: float
    """Of requests of object storage, and of what leaves the provider."""

    @cached_property
    def distinct_machines(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """One machine of each kind that takes the same time, and of what kind each machine is."""
        figures = [self.machines.buckets[thing] for thing in sorted(self.demand.advertised_classes)]
        columns = [each for one in figures for each in (one.baseline, one.burst, one.credit)]
        if not columns:
            return np.zeros(1, dtype=np.int64), np.zeros(len(self.machines), dtype=np.int64)
        rows = list(zip(*(column.tolist() for column in columns), strict=True))
        numbers: dict[tuple[float, ...], int] = {}
        alike = np.array([numbers.setdefault(row, len(numbers)) for row in rows])
        return np.unique(alike, return_index=True)[1], alike


@dataclass(frozen=True)
class RefusedOffer:
    """An offer's layout that cannot be planned with, and why."""

    catalog: str
    offer: Offer
    why: str


@dataclass(frozen=True)
class LayoutOptions:
    """What can be planned with; what could be, if its disks were measured; what cannot."""

    groups: list[OfferGroup]
    unmeasured: list[OfferGroup]
    refused: list[RefusedOffer]


def layout_options(
    job: Job,
    size: int,
    catalogs: Sequence[Catalog],
    known: ProfileIndex,
    *,
    network: Network = "scaled",
    purchase: Purchase = "on-demand",
    providers: Sequence[str] = (),
    arch: str | None = None,
    placement: bool | None = None,
    measured: bool = False,
) -> LayoutOptions:
    """Every layout of every offer for ``size`` bytes; ``measured``: with no other figures."""
    found = LayoutOptions([], [], [])
    number = 0
    for catalog in catalogs:
        if providers and catalog.provider not in providers:
            continue
        alike: dict[int, tuple[OfferCapacity, list[Machine]]] = {}
        for offer in catalog.offers:
            if arch is not None and offer.arch != arch:
                if offer.arch is None:
                    found.refused.append(
                        RefusedOffer(catalog.name, offer, "its architecture is unknown")
                    )
                continue
            for place in _placements(catalog.name, offer, known, placement):
                if isinstance(place, RefusedOffer):
                    found.refused.append(place)
                    continue
                placed, laws = place
                made = priced_machine(catalog, offer, placed, purchase, number)
                if isinstance(made, str):
                    found.refused.append(RefusedOffer(catalog.name, offer, made))
                    continue
                alike.setdefault(id(laws), (laws, []))[1].append(made)
                number += 1
        for laws, some in alike.values():
            machines = Machines.of(some)
            shapes = list(_shapes(job, size, catalog, laws, known, network))
            for each in shapes:
                _sort_out(job, size, catalog, each, machines, measured, found)
            if not shapes:
                why = f"{catalog.name} has no volumes"
                found.refused.extend(RefusedOffer(catalog.name, each.offer, why) for each in some)
    return found


def _placements(
    catalog: str, offer: Offer, known: ProfileIndex, wanted: bool | None
) -> Iterator[tuple[bool, OfferCapacity] | RefusedOffer]:
    """Where the offer's nodes can be, and what was measured of them there."""
    measured = known.offers.get((offer.provider, offer.type), {})
    if wanted is None:
        yield from measured.items() if measured else [(False, NO_CAPACITY)]
    elif wanted in measured:
        yield wanted, measured[wanted]
    elif wanted and not offer.placement_groups:
        of = "unknown" if offer.placement_groups is None else "impossible"
        yield RefusedOffer(catalog, offer, f"placing its nodes close together is {of}")
    else:
        yield wanted, known.apart_from_placement(offer.provider, offer.type)


def _shapes(
    job: Job,
    size: int,
    catalog: Catalog,
    laws: OfferCapacity,
    known: ProfileIndex,
    network: Network,
) -> Iterator[LayoutDemand]:
    """The layouts of machines of which so much is known."""
    used = {demand.resource for phase in job.phases for demand in phase.demands}
    locally = any(resource.startswith("local") for resource in used)
    outside = any(resource.startswith("volume") for resource in used)
    kept = {where: _kept(job, where) * size for where in ("local", "volume")}

    runs = match_calibration(job, laws.calibrations)

    def made(name: str, own_disks: bool, volumes: BlockVolumes | None) -> LayoutDemand:
        # Where runs had what they kept locally, that is kept here, too; which volumes they had, no
        # record tells.
        return layout_demand(
            job,
            name,
            own_disks=own_disks,
            volumes=volumes,
            laws=laws,
            shares=known.shares,
            network=network,
            calibration_match=runs if volumes is None and (own_disks or not locally) else NO_MATCH,
        )

    if not locally and not outside:
        yield made("diskless", False, None)
        return
    if not outside:
        yield made("local", True, None)
    for kind in filter(is_usable, catalog.volume_kinds):
        for count in VOLUME_COUNTS:
            several = f"{count} x {kind.name}"
            hours = catalog.billing.hours_per_month
            if outside and locally:
                volumes = BlockVolumes(kind, count, kept["volume"], hours)
                yield made(f"local + {several}", True, volumes)
            yield made(several, False, BlockVolumes(kind, count, sum(kept.values()), hours))


def _sort_out(
    job: Job,
    size: int,
    catalog: Catalog,
    shape: LayoutDemand,
    machines: Machines,
    measured: bool,
    found: LayoutOptions,
) -> None:
    """Puts machines where they belong: plannable, unmeasured, or refused."""
    if measured and not shape.unknown_classes and shape.evidence != "measured":
        why = "not all that the job needs of it was measured"
        found.refused.extend(RefusedOffer(catalog.name, each.offer, why) for each in machines)
        return
    good = _refuse(job, shape, machines, found)
    if not len(good):
        return
    if shape.unknown_classes and shape.unknown_classes != ("local disks",):
        others = " and ".join(thing for thing in shape.unknown_classes if thing != "local disks")
        why = f"{others}: neither measured, nor known what share of the advertised is reached"
        found.refused.extend(RefusedOffer(catalog.name, each.offer, why) for each in good)
        return
    outside = _outside_usd(job, size, catalog)
    if isinstance(outside, str):
        found.refused.extend(RefusedOffer(catalog.name, each.offer, outside) for each in good)
        return
    group = OfferGroup(shape, good, min_nodes(job, size, shape, good), catalog, outside)
    (found.unmeasured if shape.unknown_classes else found.groups).append(group)


def _refuse(job: Job, shape: LayoutDemand, machines: Machines, found: LayoutOptions) -> Machines:
    """The machines that can have this layout; the others are refused."""
    reasons = []
    if least := job.least_memory_bytes:
        reasons += [
            (np.isnan(machines.memory_bytes), "its memory is unknown"),
            (machines.memory_bytes < least, f"it has less memory than {formatting.memory(least)}"),
        ]
    if shape.own_disks:
        catalog = machines[0].catalog
        instead = (
            "" if any(map(is_usable, catalog.volume_kinds)) else f", and {catalog.name} no volumes"
        )
        reasons += [
            (machines.local_bytes == 0, f"it has no disks of its own{instead}"),
            (np.isnan(machines.local_bytes), "what its disks hold is unknown"),
        ]
    if shape.volumes:
        link = np.isnan(machines.link_usd_per_hour)
        reasons.append((link, "the price of its link to volumes is unknown"))
    for thing in shape.advertised_classes:
        why = f"{UNKNOWN_FIGURES[thing]} was not measured, and no figure is advertised"
        reasons.append((np.isnan(machines.buckets[thing].baseline), why))
    good = np.ones(len(machines), dtype=bool)
    for bad, why in reasons:
        new = np.flatnonzero(good & bad)
        some = (machines[place] for place in new.tolist())
        found.refused.extend(RefusedOffer(each.catalog.name, each.offer, why) for each in some)
        good[new] = False
    return machines if good.all() else machines.at(np.flatnonzero(good))


def min_nodes(
    job: Job, size: int, shape: LayoutDemand, machines: Machines
) -> npt.NDArray[np.int64]:
    """The fewest nodes of each machine that hold the job."""
    least = np.full(len(machines), float(shape.volumes.min_nodes if shape.volumes else 1))
    if shape.own_disks:
        least = np.maximum(least, _nodes_for(_kept(job, "local") * size, machines.local_bytes))
    least = np.maximum(least, _nodes_for(_kept(job, "memory") * size, machines.memory_bytes))
    return np.asarray(np.minimum(least, IMPOSSIBLE_NODES), dtype=np.int64)


def _nodes_for(needed: float, each: Floats) -> Floats:
    """How many nodes hold so much, if each holds as much; unknown is nothing."""
    if not needed:
        return np.ones_like(each)
    with np.errstate(divide="ignore"):
        return np.ceil(needed / np.nan_to_num(each))


def storage_fit(
    job: Job, size: int, shape: LayoutDemand, machine: Machine, nodes: int
) -> tuple[int, int]:
    """Bytes that must be held at once on nodes and volumes, and bytes that there are."""
    needed, had = 0.0, 0
    if shape.own_disks:
        needed += _kept(job, "local") * size
        had += nodes * (machine.offer.local_bytes or 0)
    if shape.volumes:
        needed += shape.volumes.stored_bytes
        had += nodes * shape.volumes.count * shape.volumes.gib_of_one(nodes) * GIB
    if memory := _kept(job, "memory"):
        needed += memory * size
        had += nodes * (machine.offer.memory_bytes or 0)
    return math.ceil(needed), had


def _kept(job: Job, where: str) -> float:
    """Bytes for each byte of input that are held at once."""
    return sum(room.per_byte for room in job.room if room.where == where)


def _outside_usd(job: Job, size: int, catalog: Catalog) -> float | str:
    """What requests of object storage and leaving the provider cost; or which price is unknown."""
    total = 0.0
    if catalog.provider == "lab":
        return total  # Its stores are programs on the machine itself, which nobody bills.
    store = catalog.object_store
    for request in job.requests:
        price = None
        if store:
            gets = request.kind == "get"
            price = store.usd_per_1000_gets if gets else store.usd_per_1000_puts
        if price is None:
            return f"{catalog.name} has no price of object storage's requests"
        total += request.per_byte * size / 1000 * price
    if job.taken_out_per_byte:
        if store is None or store.usd_per_gb_to_internet is None:
            return f"{catalog.name} has no price of what leaves the provider"
        total += job.taken_out_per_byte * size / 1e9 * store.usd_per_gb_to_internet
    return total
