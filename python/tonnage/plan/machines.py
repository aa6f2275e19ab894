"""What can be rented, as a planner sees it: its price, what it holds, and what is advertised of it.

A network's peak is a burst whose credits nobody publishes, so its baseline is planned with; of a
link to volumes some providers say how long its maximum lasts. Of cores that burst no catalog tells
what lasts, so they are unknown.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from tonnage.catalog import Catalog, Offer, VolumeLink
from tonnage.model.token_bucket import TokenBucket
from tonnage.plan.demand import ResourceClass

Purchase = Literal["on-demand", "spot"]
PURCHASES: tuple[Purchase, ...] = ("on-demand", "spot")
ADVERTISED_CLASSES: tuple[ResourceClass, ...] = ("network", "volumes", "cpu")
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False, slots=True)
class Machine:
    """An offer, placed close together or not, bought in a way."""

    catalog: Catalog
    offer: Offer
    placement: bool
    number: int
    """Different for each offer and placement of a plan."""
    purchase: Purchase
    usd_per_hour: float
    usd_range: tuple[float, float]
    """The lowest and the highest that it may be."""
    link_usd_per_hour: float | None
    """Of its link to volumes; ``None``: has a price, which is unknown."""
    buckets: Mapping[ResourceClass, TokenBucket]


@dataclass(frozen=True, eq=False)
class Machines:
    """Several machines, and their figures as arrays; what is unknown is not a number."""

    items: Sequence[Machine]
    numbers: npt.NDArray[np.int64]
    usd_per_hour: Floats
    usd_range: Floats
    """The lowest and the highest, shape ``(2, machines)``."""
    link_usd_per_hour: Floats
    local_bytes: Floats
    memory_bytes: Floats
    buckets: Mapping[ResourceClass, TokenBucket]

    @classmethod
    def of(cls, some: Sequence[Machine]) -> Machines:
        """These machines, at least one."""
        unknown = TokenBucket.constant(math.nan)
        figures: dict[ResourceClass, TokenBucket] = {}
        for thing in ADVERTISED_CLASSES:
            buckets = [each.buckets.get(thing, unknown) for each in some]
            figures[thing] = TokenBucket(
                np.array([each.baseline for each in buckets]),
                np.array([each.burst for each in buckets]),
                np.array([each.credit for each in buckets]),
            )
        return cls(
            some,
            numbers=np.array([each.number for each in some]),
            usd_per_hour=np.array([each.usd_per_hour for each in some]),
            usd_range=np.array([each.usd_range for each in some]).T,
            link_usd_per_hour=_known(each.link_usd_per_hour for each in some),
            local_bytes=_known(each.offer.local_bytes for each in some),
            memory_bytes=_known(each.offer.memory_bytes for each in some),
            buckets=figures,
        )

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[Machine]:
        return iter(self.items)

    def __getitem__(self, place: int) -> Machine:
        return self.items[place]

    def at(self, places: npt.NDArray[np.int64]) -> Machines:
        """Those at these places."""
        return Machines(
            [self.items[place] for place in places.tolist()],
            self.numbers[places],
            self.usd_per_hour[places],
            self.usd_range[:, places],
            self.link_usd_per_hour[places],
            self.local_bytes[places],
            self.memory_bytes[places],
            {thing: each.select(places) for thing, each in self.buckets.items()},
        )


def priced_machine(
    catalog: Catalog, offer: Offer, placed: bool, purchase: Purchase, number: int
) -> Machine | str:
    """The machine; or why it has no price."""
    figures: dict[ResourceClass, TokenBucket] = {}
    lasting = sustained_network(offer)
    if lasting:
        figures["network"] = TokenBucket.constant(lasting)
    if link := _link(offer.volume_link):
        figures["volumes"] = link
    if offer.vcpus and not offer.cores_burst:
        figures["cpu"] = TokenBucket.constant(offer.vcpus)
    prices = _prices(offer, purchase)
    if prices is None:
        return f"its {purchase} price is unknown"
    link_usd: float | None = 0.0
    if offer.volume_link.optional:
        extra = offer.volume_link.extra
        link_usd = extra.usd_per_hour if extra else None
    low, usual, high = prices
    return Machine(catalog, offer, placed, number, purchase, usual, (low, high), link_usd, figures)


def sustained_network(offer: Offer) -> float | None:
    """What the network is planned with: the baseline, or the only figure that there is."""
    return offer.network.baseline_bytes_per_second or offer.network.peak_bytes_per_second


def _prices(offer: Offer, purchase: Purchase) -> tuple[float, float, float] | None:
    """The lowest, the usual and the highest price by the hour.

    A spot price whose usual is not of the same time as its range has the middle of the range, by
    factors.
    """
    if purchase == "on-demand":
        price = offer.on_demand
        return (price.usd_per_hour,) * 3 if price else None
    spot = offer.spot
    if spot is None:
        return None
    low, high = spot.low_usd_per_hour, spot.high_usd_per_hour
    return low, spot.typical_usd_per_hour or math.sqrt(low * high), high


def _link(link: VolumeLink) -> TokenBucket | None:
    """What the link to volumes carries; its maximum only where it is told how long that lasts."""
    lasting, most = link.baseline_bytes_per_second, link.most_bytes_per_second
    if not lasting:
        return None
    if not most or most <= lasting or link.burst is None:
        return TokenBucket.constant(lasting)
    credit = (most - lasting) * link.burst.lasts_seconds
    return TokenBucket(np.asarray(lasting), np.asarray(most), np.asarray(credit))


def _known(values: Iterable[float | None]) -> Floats:
    return np.array([math.nan if value is None else float(value) for value in values])
