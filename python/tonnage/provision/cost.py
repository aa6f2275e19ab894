"""Compute the cost of a rented cluster as the provider bills it.

A machine is billed by started units of time with a minimum, from start to termination; volumes are
billed while they exist (`catalog.Billing`). What a launch will cost if it takes as long as planned
is the plan's own arithmetic (`planned_bill`). Not included, since they are the image's: system
disks.
"""

import math
from collections.abc import Iterable
from datetime import datetime

import numpy as np

from tonnage.base.records.launch import RentedNode, Tariff
from tonnage.base.records.plan import BilledItem, Candidate, CostLine, Plan
from tonnage.catalog import Catalog, Offer
from tonnage.plan.cost_model import NodePrice, bill, object_store_bill
from tonnage.plan.resources.engine_requests import request_sizes
from tonnage.plan.resources.machines import Machine, priced_machine
from tonnage.plan.resources.object_store import requests_of

NOT_COUNTED = "system disks are not included"
SAME = 1e-6
"""Relative difference by which a plan's price, a sum, may differ from the catalog's."""


class PriceError(Exception):
    """A price is unknown; says why in one line."""


def find_tariff(
    catalog: Catalog,
    offer: Offer,
    candidate: Candidate,
    spot: bool,
    *,
    public_address: bool = False,
) -> Tariff:
    """Find the price of a candidate's node, on demand or spot.

    Raises:
        PriceError: The catalog has no price.
    """
    made = priced_machine(
        catalog,
        offer,
        candidate.placement,
        "spot" if spot else "on-demand",
        number=0,
        public_address=public_address,
    )
    if not isinstance(made, Machine):
        raise PriceError(f"{offer.type}: {made} in catalog {catalog.name}")
    link_usd, volumes_usd = 0.0, 0.0
    if volumes := candidate.volumes:
        if made.link_usd_per_hour is None:
            raise PriceError(
                f"the price of {offer.type}'s connection to network block storage is unknown"
            )
        kinds = {each.name: each.usd_per_gib_month for each in catalog.volume_kinds}
        monthly = kinds.get(volumes.kind)
        if monthly is None:
            raise PriceError(f"catalog {catalog.name} has no price for {volumes.kind} volumes")
        link_usd = made.link_usd_per_hour
        volumes_usd = monthly * volumes.count * volumes.gib_each / catalog.billing.hours_per_month
    return Tariff(
        machine_usd_per_hour=made.usd_per_hour + link_usd,
        machine_most_usd_per_hour=_most_usd(made) + link_usd,
        volumes_usd_per_hour=volumes_usd,
        granularity_seconds=catalog.billing.granularity_seconds,
        least_seconds=catalog.billing.least_seconds,
        address_usd_per_hour=made.address_usd_per_hour,
    )


def _most_usd(machine: Machine) -> float:
    """The highest price that is paid: for a spot machine no less than that on demand.

    AWS charges the market's price whatever the bid, and ends a machine whose bid is below it.
    """
    on_demand = machine.offer.on_demand
    return max(machine.usd_range[1], on_demand.usd_per_hour if on_demand else 0.0)


def planned_bill(
    made: Plan, candidate: Candidate, tariff: Tariff, catalog: Catalog
) -> list[CostLine]:
    """The bill of a launch of this candidate, at this tariff, that takes as long as planned.

    Raises:
        PriceError: The catalog has no price of object storage.
    """
    nodes = np.array([float(candidate.nodes)])
    billed: dict[BilledItem, float] = {
        item: float(usd[0])
        for item, usd in bill(
            candidate.seconds.median * nodes,
            nodes,
            NodePrice(
                tariff.machine_usd_per_hour,
                tariff.volumes_usd_per_hour,
                tariff.address_usd_per_hour,
            ),
            catalog.billing,
            made.settings.get("charged", "seconds"),
        ).items()
    }
    (offer,) = (each for each in catalog.offers if each.type == candidate.offer)
    sizes = request_sizes(offer)
    outside = object_store_bill(
        made.job,
        made.bytes,
        catalog,
        requests_of(made.job),
        {"get bytes": np.array([sizes.get]), "put bytes": np.array([sizes.put])} if sizes else {},
    )
    if isinstance(outside, str):
        raise PriceError(outside)
    billed |= {item: float(usd[0]) for item, usd in outside.items()}
    return [CostLine(item=item, usd=usd) for item, usd in billed.items() if usd]


def usd_per_hour(tariff: Tariff) -> float:
    """The usual hourly price of a node."""
    machine = tariff.machine_usd_per_hour + tariff.address_usd_per_hour
    return machine + tariff.volumes_usd_per_hour


def matches_plan(tariff: Tariff, candidate: Candidate) -> bool:
    return math.isclose(usd_per_hour(tariff), candidate.usd_per_hour, rel_tol=SAME)


def node_usd(tariff: Tariff, seconds: float, *, at_highest_price: bool = False) -> float:
    units = math.ceil(seconds / tariff.granularity_seconds) * tariff.granularity_seconds
    hourly = tariff.machine_most_usd_per_hour if at_highest_price else tariff.machine_usd_per_hour
    machine_usd = max(units, tariff.least_seconds) * (hourly + tariff.address_usd_per_hour)
    return (machine_usd + seconds * tariff.volumes_usd_per_hour) / 3600


def cost_usd(
    tariff: Tariff, nodes: Iterable[RentedNode], until: datetime, *, at_highest_price: bool = False
) -> float:
    """The cost of nodes until then; of terminated ones, until their end."""
    return sum(
        node_usd(tariff, _seconds(node, until), at_highest_price=at_highest_price) for node in nodes
    )


def _seconds(node: RentedNode, until: datetime) -> float:
    began = datetime.fromisoformat(node.began_at)
    ended = datetime.fromisoformat(node.ended_at) if node.ended_at else until
    return max((ended - began).total_seconds(), 0.0)
