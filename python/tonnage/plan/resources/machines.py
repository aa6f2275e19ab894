"""Price offers and turn their advertised rates into token buckets.

Local disks have the rates that others published of the type.

A network's peak is a burst: where its credit was measured, a node has it at first; elsewhere plans
use the baseline. Some providers state how long the volume link's maximum lasts. Cores that burst
count with their documented baseline; where there is none, their sustained rate is unknown.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from tonnage.base import formatting
from tonnage.catalog import Catalog, Offer, VolumeLink
from tonnage.catalog.price_age import STALE_DAYS, is_stale
from tonnage.catalog.published.burstable_vcpus import BASELINE_SOURCE
from tonnage.model.jobs.core_throughput import EPYC_SORTING
from tonnage.model.profiles.build import AdvertisedRate, AdvertisedRates
from tonnage.model.token_bucket import TokenBucket
from tonnage.plan.demand import AdvertisedResource
from tonnage.plan.resources.engine_requests import (
    concurrent_requests,
    engine_threads,
    request_sizes,
)
from tonnage.plan.resources.spot import interruptions_per_second

Purchase = Literal["on-demand", "spot"]
PURCHASES: tuple[Purchase, ...] = ("on-demand", "spot")
ADVERTISED: tuple[AdvertisedResource, ...] = (
    *("local read", "local write", "volumes", "network", "cpu", "cores"),
    *("requests", "get bytes", "put bytes", "threads", "slots", "core speed"),
)
THREADS_PER_CORE = 2
ALONE = 2 / 1.3
"""What a thread does that has a core for itself, of what it does with a sibling: two together do at
most 30 % more than one (Marr et al., Hyper-Threading Technology Architecture and Microarchitecture,
Intel Technology Journal 6(1), 2002)."""
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False, slots=True)
class Machine:
    """An offer with a placement and a way of buying it."""

    catalog: Catalog
    offer: Offer
    placement: bool
    number: int
    """Unique for each offer and placement of a plan."""
    purchase: Purchase
    usd_per_hour: float
    usd_range: tuple[float, float]
    """The lowest and the highest price."""
    link_usd_per_hour: float | None
    """The price of its volume link; ``None`` if unknown."""
    buckets: Mapping[AdvertisedResource, TokenBucket]
    address_usd_per_hour: float = 0.0
    """The price of its public address; 0 if it has none, or none is charged."""
    purchase_notes: tuple[str, ...] = ()
    """Why its price may be wrong, and what is known of its interruptions."""
    interruptions_per_second: float = 0.0
    """How often it is expected to be taken back; 0 where that is unknown."""

    @property
    def possible_burst(self) -> tuple[float, float]:
        """The rate and the credit that its network may have at most beyond ``buckets``, or 0."""
        found = self.offer.network.possible_burst
        return (found.bytes_per_second, found.credit_bytes) if found else (0.0, 0.0)


@dataclass(frozen=True, eq=False)
class Machines:
    """Several machines with their figures as arrays; NaN is unknown."""

    items: Sequence[Machine]
    numbers: npt.NDArray[np.int64]
    usd_per_hour: Floats
    usd_range: Floats
    """The lowest and the highest price, shape ``(2, machines)``."""
    link_usd_per_hour: Floats
    address_usd_per_hour: Floats
    interruptions_per_second: Floats
    local_bytes: Floats
    memory_bytes: Floats
    vcpus: Floats
    data_volumes: Floats
    """How many volumes can be attached, apart from the root volume."""
    buckets: Mapping[AdvertisedResource, TokenBucket]
    possible_burst: Floats
    """Rate and credit of bursts that nobody measured, shape ``(2, machines)``; 0 is none."""

    @classmethod
    def of(cls, some: Sequence[Machine]) -> Machines:
        """Collect at least one machine."""
        unknown = TokenBucket.constant(math.nan)
        buckets: dict[AdvertisedResource, TokenBucket] = {}
        for thing in ADVERTISED:
            known = [each.buckets.get(thing, unknown) for each in some]
            buckets[thing] = TokenBucket(
                np.array([float(each.baseline) for each in known]),
                np.array([float(each.burst) for each in known]),
                np.array([float(each.credit) for each in known]),
            )
        return cls(
            some,
            numbers=np.array([each.number for each in some]),
            usd_per_hour=np.array([each.usd_per_hour for each in some]),
            usd_range=np.array([each.usd_range for each in some]).T,
            link_usd_per_hour=_nan_if_none(each.link_usd_per_hour for each in some),
            address_usd_per_hour=np.array([each.address_usd_per_hour for each in some]),
            interruptions_per_second=np.array([each.interruptions_per_second for each in some]),
            local_bytes=_nan_if_none(each.offer.local_bytes for each in some),
            memory_bytes=_nan_if_none(each.offer.memory_bytes for each in some),
            vcpus=_nan_if_none(each.offer.vcpus for each in some),
            data_volumes=_nan_if_none(each.offer.volume_link.most_volumes for each in some) - 1,
            buckets=buckets,
            possible_burst=np.array([each.possible_burst for each in some]).T,
        )

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[Machine]:
        return iter(self.items)

    def __getitem__(self, place: int) -> Machine:
        return self.items[place]

    def at(self, places: npt.NDArray[np.int64]) -> Machines:
        return Machines(
            [self.items[place] for place in places.tolist()],
            self.numbers[places],
            self.usd_per_hour[places],
            self.usd_range[:, places],
            self.link_usd_per_hour[places],
            self.address_usd_per_hour[places],
            self.interruptions_per_second[places],
            self.local_bytes[places],
            self.memory_bytes[places],
            self.vcpus[places],
            self.data_volumes[places],
            {thing: each.select(places) for thing, each in self.buckets.items()},
            self.possible_burst[:, places],
        )


def priced_machine(
    catalog: Catalog,
    offer: Offer,
    placed: bool,
    purchase: Purchase,
    number: int,
    *,
    public_address: bool = False,
    today: datetime.date | None = None,
) -> Machine | str:
    """Price an offer; or say why it has no price. Spot prices that are old ``today`` are marked."""
    buckets: dict[AdvertisedResource, TokenBucket] = {}
    if network := _network(offer):
        buckets["network"] = network
    if link := _link(offer.volume_link):
        buckets["volumes"] = link
    if offer.local_read_bytes_per_second and offer.local_write_bytes_per_second:
        buckets["local read"] = TokenBucket.constant(offer.local_read_bytes_per_second)
        buckets["local write"] = TokenBucket.constant(offer.local_write_bytes_per_second)
    if vcpus := lasting_vcpus(offer):
        buckets["cpu"] = TokenBucket.constant(vcpus)
        buckets["cores"] = TokenBucket.constant(reference_cores(offer) or math.nan)
        buckets["core speed"] = TokenBucket.constant(slot_speed(offer) or math.nan)
        buckets["slots"] = TokenBucket.constant(task_slots(offer) or math.nan)
    threads = engine_threads(offer)
    buckets["threads"] = TokenBucket.constant(threads)
    buckets["requests"] = TokenBucket.constant(concurrent_requests(threads))
    if sizes := request_sizes(offer):
        buckets["get bytes"] = TokenBucket.constant(sizes.get)
        buckets["put bytes"] = TokenBucket.constant(sizes.put)
    prices = _prices(offer, purchase)
    if prices is None:
        return f"its {purchase} price is unknown"
    link_usd: float | None = 0.0
    if offer.volume_link.optional:
        extra = offer.volume_link.extra
        link_usd = extra.usd_per_hour if extra else None
    low, usual, high = prices
    address_usd = catalog.address.usd_per_hour if public_address and catalog.address else 0.0
    return Machine(
        *(catalog, offer, placed, number, purchase, usual, (low, high), link_usd, buckets),
        address_usd,
        _purchase_notes(offer, purchase, today),
        _interruptions(offer, purchase) or 0.0,
    )


def sustained_network(offer: Offer) -> float | None:
    """The network rate that plans use: the baseline, or the only one known."""
    return offer.network.baseline_bytes_per_second or offer.network.peak_bytes_per_second


def network_caution(offer: Offer) -> str | None:
    """What is unknown of an advertised network."""
    baseline, peak = offer.network.baseline_bytes_per_second, offer.network.peak_bytes_per_second
    if baseline is None:
        return "only the peak rate of its network is known; the sustained rate may be lower"
    if peak and peak > baseline and offer.network.burst is None:
        return (
            f"its network may burst to {formatting.rate(peak)}, but nobody published for how long: "
            "its baseline counts, and the interval allows for what others measured of its size"
            if offer.network.possible_burst
            else f"its network may burst to {formatting.rate(peak)}, but nobody published for how "
            "long: its baseline counts"
        )
    if offer.network.ip_source:
        return (
            f"its network's advertised rate is EFA's; {formatting.rate(baseline)} of IP count "
            f"({offer.network.ip_source})"
        )
    return None


def _network(offer: Offer) -> TokenBucket | None:
    baseline, burst = sustained_network(offer), offer.network.burst
    if not baseline:
        return None
    if burst is None or burst.bytes_per_second <= baseline:
        return TokenBucket.constant(baseline)
    peak, credit = np.asarray(burst.bytes_per_second), np.asarray(burst.credit_bytes)
    return TokenBucket(np.asarray(baseline), peak, credit)


def network_source(offer: Offer) -> str:
    network = offer.network
    burst = network.burst.source if network.burst else None
    return "; ".join(filter(None, (offer.spec_source, burst, network.ip_source)))


def lasting_vcpus(offer: Offer) -> float | None:
    """Its vCPUs, of those that burst the baseline; ``None`` is unknown."""
    return offer.baseline_vcpus if offer.cores_burst else offer.vcpus


def reference_cores(offer: Offer) -> float | None:
    """Its physical cores, as many as of the reference's speed do as much; ``None`` is unknown.

    Of cores that burst, the share that their baseline is. Where the number is unknown, two threads
    count as a core, and an unknown speed as the reference's.
    """
    if not offer.cores and not offer.vcpus:
        return None
    cores = offer.cores or (offer.vcpus or 0.0) / THREADS_PER_CORE
    lasting = (offer.baseline_vcpus or 0.0) / (offer.vcpus or 1.0) if offer.cores_burst else 1.0
    return cores * lasting * (offer.core_speed or EPYC_SORTING) / EPYC_SORTING


def core_speed(offer: Offer) -> float | None:
    """How much a vCPU does, in cores of the reference; ``None`` is unknown."""
    cores, vcpus = reference_cores(offer), lasting_vcpus(offer)
    return cores / vcpus if cores and vcpus else None


def busy_core_speed(offer: Offer, busy_vcpus: float) -> float | None:
    """As `core_speed`, where only so many of its vCPUs have work: a thread that shares its core
    with no other does more."""
    speed, vcpus = core_speed(offer), offer.vcpus
    if speed is None or not vcpus or not 0 < busy_vcpus < vcpus:
        return speed
    cores = offer.cores or vcpus / THREADS_PER_CORE
    return speed * min(ALONE if cores < vcpus else 1.0, vcpus / busy_vcpus)


def slot_speed(offer: Offer) -> float | None:
    """As `core_speed`, of a task's slot: a part of it where a machine has less than a vCPU, or
    lasting vCPUs that are fewer than its own."""
    speed, lasting = core_speed(offer), lasting_vcpus(offer)
    return speed * lasting / max(offer.vcpus or 1.0, 1.0) if speed and lasting else None


def task_slots(offer: Offer) -> float | None:
    """How many tasks run at once: one a vCPU, as engines of tasks have it by default."""
    return float(max(round(offer.vcpus), 1)) if offer.vcpus else None


def cores_source(offer: Offer) -> str:
    """Where the number of cores and their speed are from."""
    if offer.cores:
        number = f"{offer.cores:g} physical cores"
    elif offer.vcpus:
        number = f"half of {offer.vcpus:g} vCPUs"
    else:
        return "unknown"
    if offer.cores_burst and offer.baseline_vcpus:
        share = formatting.percent(offer.baseline_vcpus / (offer.vcpus or 1.0))
        number += f", of which the baseline of {share} counts ({BASELINE_SOURCE})"
    if offer.core_speed is None:
        return f"{number}; their speed is unknown and assumed to be the reference's"
    speed = offer.core_speed / EPYC_SORTING
    return f"{number}, each {speed:.2f} times as fast ({offer.core_speed_source})"


def advertised_rates(catalogs: Sequence[Catalog]) -> AdvertisedRates:
    """Collect advertised rates by offer; the first catalog wins."""
    by_offer: dict[tuple[str, str], dict[str, AdvertisedRate]] = {}
    for catalog in catalogs:
        for offer in catalog.offers:
            by_offer.setdefault((offer.provider, offer.type), _advertised_rates(offer))
    return by_offer


def _advertised_rates(offer: Offer) -> dict[str, AdvertisedRate]:
    network, link = sustained_network(offer), offer.volume_link
    rates = {}
    if network:
        rates["network"] = AdvertisedRate(network, offer.network.peak_bytes_per_second)
    if link.baseline_bytes_per_second:
        link_rate = AdvertisedRate(link.baseline_bytes_per_second, link.most_bytes_per_second)
        rates |= {"volume read": link_rate, "volume write": link_rate}
    read, write = offer.local_read_bytes_per_second, offer.local_write_bytes_per_second
    if read and write:
        rates |= {"local read": AdvertisedRate(read), "local write": AdvertisedRate(write)}
    return rates


def _purchase_notes(
    offer: Offer, purchase: Purchase, today: datetime.date | None
) -> tuple[str, ...]:
    if purchase == "on-demand":
        price = offer.on_demand
        return (f"its price is {price.caution}",) if price and price.caution else ()
    spot, found = offer.spot, []
    if spot and spot.caution:
        found.append(f"its spot price may be wrong: {spot.caution}")
    if spot and is_stale(spot.date, today):
        found.append(f"its spot prices are of {spot.date}, more than {STALE_DAYS} days ago")
    if spot and interruptions_per_second(spot):
        found.append(
            f"its provider took back {spot.interrupted} of such spot machines within a month; what "
            "doing their work again is expected to take is included"
        )
    else:
        found.append("how often it is taken back is unknown, and not included")
    return tuple(found)


def _interruptions(offer: Offer, purchase: Purchase) -> float | None:
    return interruptions_per_second(offer.spot) if purchase == "spot" and offer.spot else None


def _prices(offer: Offer, purchase: Purchase) -> tuple[float, float, float] | None:
    """The lowest, the usual and the highest price by the hour.

    Without a usual spot price, it is the geometric mean of the range.
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
    """The rate of the volume link; its maximum counts only with a known duration."""
    baseline, most = link.baseline_bytes_per_second, link.most_bytes_per_second
    if not baseline:
        return None
    if not most or most <= baseline or link.burst is None:
        return TokenBucket.constant(baseline)
    credit = (most - baseline) * link.burst.lasts_seconds
    return TokenBucket(np.asarray(baseline), np.asarray(most), np.asarray(credit))


def _nan_if_none(values: Iterable[float | None]) -> Floats:
    return np.array([math.nan if value is None else float(value) for value in values])
