"""What a rented fleet costs, as the provider's bill has it; pure functions.

A machine is paid for by begun units of time, a minimum at least, from when it is given until it is
given back; volumes by the time that they are there (`catalog.Billing`). Not counted, since no
catalog has them: the system's disk, public addresses, and what leaves the provider.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import datetime

from tonnage.base.records.launch import RentedNode, Tariff
from tonnage.base.records.plan import Candidate
from tonnage.catalog import Catalog, Offer
from tonnage.plan.machines import Machine, priced_machine

NOT_COUNTED = "the system's disks, public addresses and what leaves the provider are not counted"
SAME = 1e-6
"""By which a plan's price and the catalog's may differ: a plan has it as a sum."""


class PriceError(Exception):
    """A price that is not known; says why in one line."""


def find_tariff(catalog: Catalog, offer: Offer, candidate: Candidate, spot: bool) -> Tariff:
    """What a node of the candidate costs, spare or not.

    Raises:
        PriceError: The catalog does not tell.
    """
    made = priced_machine(
        catalog, offer, candidate.placement, "spot" if spot else "on-demand", number=0
    )
    if not isinstance(made, Machine):
        raise PriceError(f"of {offer.type} {made} in catalog {catalog.name}")
    link_usd, volumes_usd = 0.0, 0.0
    if volumes := candidate.volumes:
        if made.link_usd_per_hour is None:
            raise PriceError(f"the price of the link of {offer.type} to volumes is unknown")
        kinds = {each.name: each.usd_per_gib_month for each in catalog.volume_kinds}
        monthly = kinds.get(volumes.kind)
        if monthly is None:
            raise PriceError(f"catalog {catalog.name} has no price of volumes of {volumes.kind}")
        link_usd = made.link_usd_per_hour
        volumes_usd = monthly * volumes.count * volumes.gib_each / catalog.billing.hours_per_month
    return Tariff(
        machine_usd_per_hour=made.usd_per_hour + link_usd,
        machine_most_usd_per_hour=made.usd_range[1] + link_usd,
        volumes_usd_per_hour=volumes_usd,
        granularity_seconds=catalog.billing.granularity_seconds,
        least_seconds=catalog.billing.least_seconds,
    )


def usd_per_hour(tariff: Tariff) -> float:
    """A node's usual price by the hour."""
    return tariff.machine_usd_per_hour + tariff.volumes_usd_per_hour


def matches_plan(tariff: Tariff, candidate: Candidate) -> bool:
    """Whether it is the price that the plan was made with."""
    return math.isclose(usd_per_hour(tariff), candidate.usd_per_hour, rel_tol=SAME)


def node_usd(tariff: Tariff, seconds: float, *, at_highest_price: bool = False) -> float:
    """What a node costs that is there for so long; ``most``: at the highest price."""
    units = math.ceil(seconds / tariff.granularity_seconds) * tariff.granularity_seconds
    hourly = tariff.machine_most_usd_per_hour if at_highest_price else tariff.machine_usd_per_hour
    machine_usd = max(units, tariff.least_seconds) * hourly
    return (machine_usd + seconds * tariff.volumes_usd_per_hour) / 3600


def cost_usd(
    tariff: Tariff, nodes: Iterable[RentedNode], until: datetime, *, at_highest_price: bool = False
) -> float:
    """What these nodes have cost until then, those that were ended until their end."""
    return sum(
        node_usd(tariff, _seconds(node, until), at_highest_price=at_highest_price) for node in nodes
    )


def _seconds(node: RentedNode, until: datetime) -> float:
    began = datetime.fromisoformat(node.began_at)
    ended = datetime.fromisoformat(node.ended_at) if node.ended_at else until
    return max((ended - began).total_seconds(), 0.0)
