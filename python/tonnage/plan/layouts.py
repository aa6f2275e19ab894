"""Enumerate every storage layout of every offer for a job, in groups with equal demand.

``local``: everything on local disks. ``local + 2 x gp3``: input and output on two volumes a node.
``2 x gp3``: everything on volumes. ``diskless``: the job stores nothing.

An unmeasured resource is estimated: its advertised rate times the share of such rates that
measured offers reached. An offer whose local disks nobody measured, and whose operations are not
documented, cannot be planned; `next_measurements` considers it.
"""

import datetime
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import Literal

import numpy as np
import numpy.typing as npt

from tonnage.base import formatting
from tonnage.base.records.job import Job
from tonnage.base.records.plan import BilledItem, SpaceFit
from tonnage.catalog import OFFER_KINDS, Catalog, Offer, OfferKind
from tonnage.model.jobs.mapreduce import third_pass_job
from tonnage.model.profiles.repository import NO_CAPACITY, OfferCapacity, ProfileIndex
from tonnage.plan.calibration import NO_MATCH, CalibrationMatch, match_calibration
from tonnage.plan.cost_model import object_store_bill
from tonnage.plan.demand import AdvertisedResource, LayoutDemand, layout_demand
from tonnage.plan.resources.block_volumes import GIB, BlockVolumes, is_usable
from tonnage.plan.resources.engine_memory import (
    divides_once_more,
    intermediate_share,
    largest_share,
    local_devices,
    suffices,
)
from tonnage.plan.resources.engine_sockets import most_connected
from tonnage.plan.resources.machines import Machine, Machines, Purchase, priced_machine
from tonnage.plan.resources.object_store import SIZES, Requests, requests_of
from tonnage.plan.resources.startup import Startup

Network = Literal["scaled", "baseline", "infinite"]
NETWORKS: tuple[Network, ...] = ("scaled", "baseline", "infinite")
VOLUME_COUNTS = (1, 2, 4, 8, 16)
IMPOSSIBLE_NODES = 1 << 62
"""More nodes than anybody has."""
Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
UNKNOWN_FIGURES: dict[AdvertisedResource, str] = {
    "local read": "its local disks",
    "local write": "its local disks",
    "network": "its network",
    "volumes": "its volume link",
    "cpu": "its sustained CPU",
    "cores": "the sustained speed of its cores",
    "requests": "its number of requests",
    "threads": "its number of threads",
    "slots": "its number of vCPUs",
    "core speed": "the sustained speed of its cores",
    "get bytes": "the memory for its requests",
    "put bytes": "the memory for its requests",
}


@dataclass(frozen=True, eq=False)
class OfferGroup:
    """Machines of one catalog with equal demand, and each one's fewest nodes that store the job."""

    demand: LayoutDemand
    machines: Machines
    min_nodes: Integers
    catalog: Catalog
    outside: Mapping[BilledItem, Floats]
    """The cost of object storage requests and egress, by machine."""
    most_nodes: Integers
    """The most nodes of each machine within the quota of vCPUs, and that can exchange data; with a
    third pass, fewer than allow two passes."""
    most_connected: int | None = None
    """The most nodes that can exchange data; ``None``: any number."""
    quota_vcpus: int | None = None
    """The most vCPUs of all nodes together; ``None``: any number."""

    def allows(self, place: int, nodes: int) -> bool:
        """Whether so many of this machine store the job, in as many passes."""
        return bool(self.min_nodes[place] <= nodes <= self.most_nodes[place])

    @property
    def outside_usd(self) -> Floats:
        return sum(self.outside.values(), np.zeros(len(self.machines)))

    @cached_property
    def distinct_machines(self) -> tuple[Integers, Integers]:
        """One machine of each set that takes equally long, and each machine's set."""
        figures = [
            self.machines.buckets[thing] for thing in sorted(self.demand.advertised_resources)
        ]
        columns = [each for one in figures for each in (one.baseline, one.burst, one.credit)]
        if self.machines.interruptions_per_second.any():
            columns.append(self.machines.interruptions_per_second)
        if not columns:
            return np.zeros(1, dtype=np.int64), np.zeros(len(self.machines), dtype=np.int64)
        rows = list(zip(*(column.tolist() for column in columns), strict=True))
        numbers: dict[tuple[float, ...], int] = {}
        alike = np.array([numbers.setdefault(row, len(numbers)) for row in rows])
        return np.unique(alike, return_index=True)[1], alike


@dataclass(frozen=True)
class RefusedOffer:
    catalog: str
    offer: Offer
    why: str


@dataclass(frozen=True)
class LayoutOptions:
    """Groups that can be planned, groups that lack only disk measurements, and refused offers."""

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
    include: Collection[OfferKind] = (),
    startup: Startup = MappingProxyType({}),
    memory: bool = False,
    quota_vcpus: int | None = None,
    descriptors: int | None = None,
    public_addresses: bool = False,
    today: datetime.date | None = None,
) -> LayoutOptions:
    """Enumerate all offers' layouts for ``size`` bytes.

    ``measured``: without advertised rates; ``include``: kinds that are otherwise left out;
    ``startup``: how long machines take to start; ``memory``: whether too little costs a third pass;
    ``quota_vcpus``: the most vCPUs of all nodes together; ``descriptors``: how many files and
    sockets a process may open; ``public_addresses``: whether each node has one, which is paid for;
    ``today``: from when spot prices may be too old.
    """
    options = LayoutOptions([], [], [])
    requests = requests_of(job)
    connected = most_connected(job, descriptors)
    number = 0
    for catalog in catalogs:
        if providers and catalog.provider not in providers:
            continue
        alike: dict[tuple[int, bool], tuple[OfferCapacity, list[Machine]]] = {}
        for offer in catalog.offers:
            if arch is not None and offer.arch != arch:
                if offer.arch is None:
                    options.refused.append(
                        RefusedOffer(catalog.name, offer, "its architecture is unknown")
                    )
                continue
            if kinds := [kind for kind in offer.kinds if kind not in include]:
                why = f"{OFFER_KINDS[kinds[0]]}; --include {' '.join(kinds)} plans it, too"
                options.refused.append(RefusedOffer(catalog.name, offer, why))
                continue
            for place in _placements(catalog.name, offer, known, placement):
                if isinstance(place, RefusedOffer):
                    options.refused.append(place)
                    continue
                placed, laws = place
                made = priced_machine(
                    *(catalog, offer, placed, purchase, number),
                    public_address=public_addresses,
                    today=today,
                )
                if isinstance(made, str):
                    options.refused.append(RefusedOffer(catalog.name, offer, made))
                    continue
                known_disks = "local read" in made.buckets
                alike.setdefault((id(laws), known_disks), (laws, []))[1].append(made)
                number += 1
        for (_, known_disks), (laws, some) in alike.items():
            machines = Machines.of(some)
            shares = known.shares if known_disks else without_local_disks(known.shares)
            demands = list(_demands(job, size, catalog, laws, shares, network, startup, requests))
            for each in demands:
                _classify(
                    *(job, size, catalog, each, machines, measured, memory, quota_vcpus),
                    *(connected, requests, options),
                )
            if not demands:
                why = f"catalog {catalog.name} lists no network block storage"
                options.refused.extend(RefusedOffer(catalog.name, each.offer, why) for each in some)
    return options


def without_local_disks(shares: OfferCapacity) -> OfferCapacity:
    """The shares for machines whose local disks have no known rate."""
    kept = {name: law for name, law in shares.distributions.items() if not name.startswith("local")}
    return replace(shares, distributions=kept)


def _placements(
    catalog: str, offer: Offer, known: ProfileIndex, wanted: bool | None
) -> Iterator[tuple[bool, OfferCapacity] | RefusedOffer]:
    """The placements that the offer allows, and what was measured in each."""
    measured = known.offers.get((offer.provider, offer.type), {})
    if wanted is None:
        yield from measured.items() if measured else [(False, NO_CAPACITY)]
    elif wanted in measured:
        yield wanted, measured[wanted]
    elif wanted and not offer.placement_groups:
        why = "the offer does not support placement groups"
        if offer.placement_groups is None:
            why = "the catalog does not state whether the offer supports placement groups"
        yield RefusedOffer(catalog, offer, why)
    else:
        yield wanted, known.apart_from_placement(offer.provider, offer.type)


def _demands(
    job: Job,
    size: int,
    catalog: Catalog,
    laws: OfferCapacity,
    shares: OfferCapacity,
    network: Network,
    startup: Startup,
    requests: Sequence[Requests],
) -> Iterator[LayoutDemand]:
    used = {demand.resource for phase in job.phases for demand in phase.demands}
    locally = any(resource.startswith("local") for resource in used)
    outside = any(resource.startswith("volume") for resource in used)
    stored = {where: _stored_per_byte(job, where) * size for where in ("local", "volume")}

    runs = match_calibration(job, laws.calibrations)
    divided = None if intermediate_share(job) is None else third_pass_job(job)

    def of_job(
        job: Job,
        name: str,
        own_disks: bool,
        volumes: BlockVolumes | None,
        calibrating: CalibrationMatch,
    ) -> LayoutDemand:
        return layout_demand(
            job,
            name,
            own_disks=own_disks,
            volumes=volumes,
            laws=laws,
            shares=shares,
            network=network,
            calibration_match=calibrating,
            startup=startup.get(catalog.provider, ()),
            store=catalog.object_store.limits if catalog.object_store else None,
            requests=requests,
        )

    def build(name: str, own_disks: bool, volumes: BlockVolumes | None) -> LayoutDemand:
        # Runs apply where local data is on local disks as it was there; records do not name
        # their volumes.
        alike = volumes is None and (own_disks or not locally)
        made = of_job(job, name, own_disks, volumes, runs if alike else NO_MATCH)
        if divided is None or not own_disks:
            return made
        # No run is known that needed a third pass.
        more = of_job(divided, name, own_disks, volumes, NO_MATCH)
        return replace(made, with_third_pass=more)

    if not locally and not outside:
        yield build("diskless", False, None)
        return
    if not outside:
        yield build("local", True, None)
    for kind in filter(is_usable, catalog.volume_kinds):
        for count in VOLUME_COUNTS:
            several = f"{count} x {kind.name}"
            hours = catalog.billing.hours_per_month
            if outside and locally:
                volumes = BlockVolumes(kind, count, stored["volume"], hours)
                yield build(f"local + {several}", True, volumes)
            if kind.media == "hdd" and divided:
                continue  # Blocks of intermediate data are read one by one.
            yield build(several, False, BlockVolumes(kind, count, sum(stored.values()), hours))


def _classify(
    job: Job,
    size: int,
    catalog: Catalog,
    demand: LayoutDemand,
    machines: Machines,
    measured: bool,
    memory: bool,
    quota_vcpus: int | None,
    connected: int | None,
    requests: Sequence[Requests],
    options: LayoutOptions,
) -> None:
    """Sort machines into plannable, unmeasured and refused ones."""
    if measured and not demand.unknown_classes and demand.evidence != "measured":
        why = "not every resource that the job uses was measured"
        options.refused.extend(RefusedOffer(catalog.name, each.offer, why) for each in machines)
        return
    good = _refuse(job, demand, machines, quota_vcpus is not None, options)
    if not len(good):
        return
    if demand.unknown_classes and demand.unknown_classes != ("local disks",):
        others = " and ".join(thing for thing in demand.unknown_classes if thing != "local disks")
        why = f"{others}: neither measured nor estimable from its advertised rate"
        options.refused.extend(RefusedOffer(catalog.name, each.offer, why) for each in good)
        return
    sizes = {size: good.buckets[size].baseline for size in SIZES.values()}
    outside = object_store_bill(job, size, catalog, requests, sizes)
    if isinstance(outside, str):
        options.refused.extend(RefusedOffer(catalog.name, each.offer, outside) for each in good)
        return
    groups = options.unmeasured if demand.unknown_classes else options.groups
    most = most_nodes(good, quota_vcpus, connected)
    for needed, some, least, most_of in _passes(job, size, demand, good, most, memory):
        groups.append(
            OfferGroup(
                demand=needed,
                machines=good if some.all() else good.at(np.flatnonzero(some)),
                min_nodes=least[some],
                catalog=catalog,
                outside={
                    item: np.broadcast_to(usd, some.shape)[some] for item, usd in outside.items()
                },
                most_nodes=most_of[some],
                most_connected=connected,
                quota_vcpus=quota_vcpus,
            )
        )


def _passes(
    job: Job, size: int, demand: LayoutDemand, machines: Machines, most: Integers, memory: bool
) -> Iterator[tuple[LayoutDemand, npt.NDArray[np.bool_], Integers, Integers]]:
    """The demand in two passes and in three, which machines have it, and their fewest and most
    nodes: on fewer nodes than two passes need, a third one."""
    stores = min_nodes(job, size, demand, machines)
    enough = np.maximum(stores, two_pass_nodes(job, size, demand, machines) if memory else 0)
    three = demand.with_third_pass
    divides = np.zeros(len(machines), dtype=bool)
    if three:
        divides = stores < enough
        divides &= [divides_once_more(machine.offer) for machine in machines]
    two_passes = (enough < IMPOSSIBLE_NODES) | ~divides
    if two_passes.any():
        yield demand, two_passes, enough, most
    if three and divides.any():
        yield three, divides, stores, np.minimum(most, enough - 1)


def _refuse(
    job: Job, demand: LayoutDemand, machines: Machines, has_quota: bool, options: LayoutOptions
) -> Machines:
    """Refuse machines that cannot have this layout, and return the others."""
    reasons = []
    if has_quota:
        reasons.append((np.isnan(machines.vcpus), "its number of vCPUs is unknown"))
    if least := job.least_memory_bytes:
        reasons += [
            (np.isnan(machines.memory_bytes), "its memory is unknown"),
            (machines.memory_bytes < least, f"it has less memory than {formatting.memory(least)}"),
        ]
    if least := job.least_memory_per_vcpu:
        few = machines.memory_bytes < least * machines.vcpus
        reasons.append(
            (few, f"it has less memory per vCPU than a task took, {formatting.memory(least)}")
        )
    if demand.own_disks:
        catalog = machines[0].catalog
        instead = (
            ""
            if any(map(is_usable, catalog.volume_kinds))
            else f", and {catalog.name} has no volumes"
        )
        reasons += [
            (machines.local_bytes == 0, f"it has no local disks{instead}"),
            (np.isnan(machines.local_bytes), "the size of its local disks is unknown"),
        ]
    if demand.volumes:
        link = np.isnan(machines.link_usd_per_hour)
        reasons.append((link, "the price of its volume link is unknown"))
        kind = demand.volumes.kind.name
        kinds = (machine.offer.volume_link.volume_kinds for machine in machines)
        other = np.array([some is not None and kind not in some for some in kinds])
        reasons.append((other, f"{kind} volumes cannot be attached to it"))
        few = machines.data_volumes < demand.volumes.count
        reasons.append((few, f"fewer than {demand.volumes.count} volumes can be attached to it"))
    for thing in sorted(demand.advertised_resources):
        why = f"{UNKNOWN_FIGURES[thing]} was not measured, and no rate is advertised"
        reasons.append((np.isnan(machines.buckets[thing].baseline), why))
    good = np.ones(len(machines), dtype=bool)
    for bad, why in reasons:
        new = np.flatnonzero(good & bad)
        some = (machines[place] for place in new.tolist())
        options.refused.extend(RefusedOffer(each.catalog.name, each.offer, why) for each in some)
        good[new] = False
    return machines if good.all() else machines.at(np.flatnonzero(good))


def min_nodes(job: Job, size: int, demand: LayoutDemand, machines: Machines) -> Integers:
    """The fewest nodes of each machine that can store the job."""
    least = np.full(len(machines), float(demand.volumes.min_nodes if demand.volumes else 1))
    if demand.own_disks:
        least = np.maximum(
            least, _nodes_for(_stored_per_byte(job, "local") * size, machines.local_bytes)
        )
    least = np.maximum(
        least, _nodes_for(_stored_per_byte(job, "memory") * size, machines.memory_bytes)
    )
    return np.asarray(np.minimum(least, IMPOSSIBLE_NODES), dtype=np.int64)


def most_nodes(machines: Machines, quota_vcpus: int | None, connected: int | None) -> Integers:
    """The most nodes of each machine whose vCPUs the quota allows, and that can exchange data."""
    most = np.full(len(machines), IMPOSSIBLE_NODES if connected is None else connected)
    if quota_vcpus is None:
        return most
    return np.asarray(np.minimum(most, quota_vcpus // machines.vcpus), dtype=np.int64)


def two_pass_nodes(job: Job, size: int, demand: LayoutDemand, machines: Machines) -> Integers:
    """The fewest nodes of each machine whose memory allows two passes; where that is unknown, it
    does."""
    count = _volumes_of_local_data(demand)
    known: dict[object, float] = {}
    found = []
    for offer in (machine.offer for machine in machines):
        # Of some thousand machines a hundred differ in this.
        figures = offer.memory_bytes, offer.vcpus, count or local_devices(offer)
        if figures not in known:
            enough = suffices(job, size, offer, count)
            known[figures] = (
                math.ceil(size / largest_share(job, offer, count)) if enough else IMPOSSIBLE_NODES
            )
        found.append(known[figures])
    return np.array(found, dtype=np.int64)


def _volumes_of_local_data(demand: LayoutDemand) -> int:
    """On how many volumes a node keeps intermediate data; 0: on its own disks."""
    return demand.volumes.count if demand.volumes and not demand.own_disks else 0


def _nodes_for(needed: float, each: Floats) -> Floats:
    """How many nodes store so much, each of this size; unknown counts as none."""
    if not needed:
        return np.ones_like(each)
    with np.errstate(divide="ignore"):
        return np.ceil(needed / np.nan_to_num(each))


def disk_fit(job: Job, size: int, demand: LayoutDemand, machine: Machine, nodes: int) -> SpaceFit:
    """What must be stored at once on local disks and volumes."""
    needed, available = 0.0, 0
    if demand.own_disks:
        needed += _stored_per_byte(job, "local") * size
        available += nodes * (machine.offer.local_bytes or 0)
    if demand.volumes:
        needed += demand.volumes.stored_bytes
        available += nodes * demand.volumes.count * demand.volumes.gib_of_one(nodes) * GIB
    return SpaceFit(needed_bytes=math.ceil(needed), have_bytes=available)


def memory_fit(job: Job, size: int, machine: Machine, nodes: int) -> SpaceFit | None:
    """What the job keeps in memory at once; ``None``: nothing."""
    needed = math.ceil(_stored_per_byte(job, "memory") * size)
    available = nodes * (machine.offer.memory_bytes or 0)
    return SpaceFit(needed_bytes=needed, have_bytes=available) if needed else None


def _stored_per_byte(job: Job, where: str) -> float:
    return sum(room.per_byte for room in job.room if room.where == where)
