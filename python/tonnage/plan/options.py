"""Every way to lay out every offer for a job, in groups of machines that have the same shape.

``local``: everything on the node's own disks. ``local + 2 x gp3``: input and output on so many
volumes for each node. ``2 x gp3``: everything on volumes. ``diskless``: the job keeps nothing.

What nobody measured is taken from what is advertised, times the share of such figures that measured
offers reached. A local disk's figure is in no catalog, so an offer whose disks nobody measured
cannot be planned with: it is left to the survey. What is missing stays missing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from tonnage.artifacts.job import Job
from tonnage.catalog import Catalog, Offer
from tonnage.model.known import Known, Laws
from tonnage.plan.shapes import Shape, Thing, shape
from tonnage.plan.volumes import Volumes, usable

Network = Literal["scaled", "baseline", "infinite"]
NETWORKS: tuple[Network, ...] = ("scaled", "baseline", "infinite")
VOLUME_COUNTS = (1, 2, 4, 8)
NEVER = 1 << 62
"""So many nodes as there cannot be."""


@dataclass(frozen=True, eq=False, slots=True)
class Machine:
    """An offer, placed close together or not, and what is advertised of it."""

    catalog: Catalog
    offer: Offer
    placement: bool
    usd_per_hour: float
    link_usd_per_hour: float | None
    """Of its link to volumes; ``None``: has a price, which is unknown."""
    figures: Mapping[Thing, float]
    local_bytes: int | None
    """On its own disks; ``None`` is unknown."""


@dataclass(frozen=True, eq=False)
class Group:
    """Machines of one catalog with the same shape; with what each can begin to hold the job."""

    shape: Shape
    machines: Sequence[Machine]
    least_nodes: Sequence[int]
    catalog: Catalog
    request_usd: float = 0.0


@dataclass(frozen=True)
class Refused:
    """An offer's layout that cannot be planned with, and why."""

    offer: Offer
    why: str


@dataclass(frozen=True)
class Options:
    """What can be planned with; what could be, if its disks were measured; what cannot."""

    groups: list[Group]
    unmeasured: list[Group]
    refused: list[Refused]


def options(
    job: Job,
    size: int,
    catalogs: Sequence[Catalog],
    known: Known,
    *,
    network: Network = "scaled",
    providers: Sequence[str] = (),
    arch: str | None = None,
    placement: bool | None = None,
) -> Options:
    """Every layout of every offer for ``size`` bytes of input."""
    found = Options([], [], [])
    for catalog in catalogs:
        if providers and catalog.provider not in providers:
            continue
        alike: dict[int, tuple[Laws, list[Machine]]] = {}
        for offer in catalog.offers:
            if arch is not None and offer.arch is not None and offer.arch != arch:
                continue
            if offer.on_demand is None:
                found.refused.append(Refused(offer, "its price is unknown"))
                continue
            for placed, laws in _placements(offer, known, placement):
                _, machines = alike.setdefault(id(laws), (laws, []))
                machines.append(_machine(catalog, offer, placed, network))
        for laws, machines in alike.values():
            for each in _shapes(job, size, catalog, laws, known, network):
                _sort_out(job, size, catalog, each, machines, found)
    return found


UNMEASURED = Laws({})


def _placements(offer: Offer, known: Known, wanted: bool | None) -> Iterator[tuple[bool, Laws]]:
    """Where the offer's nodes can be, and what was measured of them there."""
    measured = known.offers.get((offer.provider, offer.type))
    if measured:
        yield from (each for each in measured.items() if wanted in (None, each[0]))
    elif not wanted or offer.placement_groups:
        yield bool(wanted), UNMEASURED


def _machine(catalog: Catalog, offer: Offer, placed: bool, network: Network) -> Machine:
    assert offer.on_demand is not None
    figures: dict[Thing, float] = {}
    advertised = offer.network
    lasting = advertised.baseline_bytes_per_second or advertised.peak_bytes_per_second
    if network == "infinite":
        lasting = math.inf
    link = offer.volume_link
    for thing, figure in (
        ("network", lasting),
        ("volumes", link.baseline_bytes_per_second),
        ("cpu", offer.vcpus),
    ):
        if figure:
            figures[thing] = figure  # type: ignore[index]
    link_usd = (link.extra.usd_per_hour if link.extra else None) if link.optional else 0.0
    return Machine(
        catalog, offer, placed, offer.on_demand.usd_per_hour, link_usd, figures, offer.local_bytes
    )


def _shapes(
    job: Job, size: int, catalog: Catalog, laws: Laws, known: Known, network: Network
) -> Iterator[Shape]:
    """The layouts of machines of which so much is known."""
    used = {demand.resource for phase in job.phases for demand in phase.demands}
    locally = any(resource.startswith("local") for resource in used)
    outside = any(resource.startswith("volume") for resource in used)
    kept = {where: _kept(job, where) * size for where in ("local", "volume")}

    def made(name: str, own_disks: bool, volumes: Volumes | None) -> Shape:
        return shape(
            job,
            name,
            own_disks=own_disks,
            volumes=volumes,
            laws=laws,
            shares=known.shares,
            network=network,
        )

    if not locally and not outside:
        yield made("diskless", False, None)
        return
    if not outside:
        yield made("local", True, None)
    for kind in filter(usable, catalog.volume_kinds):
        for count in VOLUME_COUNTS:
            several = f"{count} x {kind.name}"
            hours = catalog.billing.hours_per_month
            if outside and locally:
                volumes = Volumes(kind, count, kept["volume"], hours)
                yield made(f"local + {several}", True, volumes)
            yield made(several, False, Volumes(kind, count, sum(kept.values()), hours))


def _sort_out(
    job: Job, size: int, catalog: Catalog, shape: Shape, machines: list[Machine], found: Options
) -> None:
    """Puts machines where they belong: plannable, unmeasured, or refused."""
    good: list[Machine] = []
    for machine in machines:
        why = _refusal(shape, machine)
        if why:
            found.refused.append(Refused(machine.offer, why))
        else:
            good.append(machine)
    if not good:
        return
    if shape.missing and shape.missing != ("local disks",):
        others = " and ".join(thing for thing in shape.missing if thing != "local disks")
        why = f"{others}: neither measured, nor known what share of the advertised is reached"
        found.refused.extend(Refused(machine.offer, why) for machine in good)
        return
    requests = _request_usd(job, size, catalog)
    if requests is None:
        why = f"{catalog.name} has no price of object storage's requests"
        found.refused.extend(Refused(machine.offer, why) for machine in good)
        return
    least = [least_nodes(job, size, shape, machine) for machine in good]
    group = Group(shape, good, least, catalog, requests)
    (found.unmeasured if shape.missing else found.groups).append(group)


def _refusal(shape: Shape, machine: Machine) -> str | None:
    """Why this machine cannot have this layout."""
    if shape.own_disks:
        if machine.local_bytes == 0:
            return "it has no disks of its own"
        if machine.local_bytes is None:
            return "what its disks hold is unknown"
    if shape.volumes and machine.link_usd_per_hour is None:
        return "the price of its link to volumes is unknown"
    for thing in shape.figures:
        if thing not in machine.figures:
            what = {"volumes": "its link to volumes", "cpu": "its number of vCPUs"}
            return f"{what.get(thing, 'its network')} was not measured, and no figure is advertised"
    return None


def least_nodes(job: Job, size: int, shape: Shape, machine: Machine) -> int:
    """The fewest nodes that hold the job."""
    least = shape.volumes.least_nodes if shape.volumes else 1
    if shape.own_disks:
        least = max(least, _nodes_for(_kept(job, "local") * size, machine.local_bytes))
    return max(least, _nodes_for(_kept(job, "memory") * size, machine.offer.memory_bytes))


def _nodes_for(needed: float, each: int | None) -> int:
    """How many nodes hold so much, if each holds as much."""
    if not needed:
        return 1
    return math.ceil(needed / each) if each else NEVER


def needed_and_had(
    job: Job, size: int, shape: Shape, machine: Machine, nodes: int
) -> tuple[int, int]:
    """Bytes that must be held at once on nodes and volumes, and bytes that there are."""
    needed, had = 0.0, 0
    if shape.own_disks:
        needed += _kept(job, "local") * size
        had += nodes * (machine.local_bytes or 0)
    if shape.volumes:
        needed += shape.volumes.kept_bytes
        gib = float(shape.volumes.gib_each(np.array([float(nodes)]))[0])
        had += nodes * shape.volumes.count * round(gib * (1 << 30))
    if memory := _kept(job, "memory"):
        needed += memory * size
        had += nodes * (machine.offer.memory_bytes or 0)
    return math.ceil(needed), had


def _kept(job: Job, where: str) -> float:
    """Bytes for each byte of input that are held at once."""
    return sum(room.per_byte for room in job.room if room.where == where)


def _request_usd(job: Job, size: int, catalog: Catalog) -> float | None:
    """What the job's requests of object storage cost; ``None``: a price is unknown."""
    total = 0.0
    for request in job.requests:
        store = catalog.object_store
        if store is None:
            return None
        gets = request.kind == "get"
        price = store.usd_per_1000_gets if gets else store.usd_per_1000_puts
        if price is None:
            return None
        total += request.per_byte * size / 1000 * price
    return total
