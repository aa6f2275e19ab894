"""Offers, volumes and object storage, and how they are billed.

Every figure's unit is in its name. ``None`` is unknown, never zero and never "none of it": a
machine without local disks has an empty tuple of them. In prices, a GB is decimal and a GiB binary.
Prices are US dollars, dates ISO 8601.

Offers are thousands and refer to no other object in a cycle, so the garbage collector passes them
over.
"""

import re
from collections.abc import Iterable
from typing import Literal

import msgspec

GIB = 1 << 30
BURSTING_CORES = {
    "aws": r"t\d",
    "gcp": r"e2-(micro|small|medium)|f1-|g1-",
    "azure": r"(Standard_)?B\d",
}
"""Prefixes of types that their providers call burstable, or shared-core."""
BARE_METAL = re.compile(r".*[.-]metal\b.*")

OfferKind = Literal["gpu", "burstable", "previous", "metal", "hpc"]
OFFER_KINDS: dict[OfferKind, str] = {
    "gpu": "it has accelerators",
    "burstable": "its cores burst on credits",
    "previous": "its provider calls it a previous generation",
    "metal": "it is bare metal",
    "hpc": "its fast network is for machines of its kind: AWS gives it 0.5 Gbit/s to all else",
}
"""Kinds of offers that plans leave out unless they are asked for."""


class Price(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """By the hour; a ``caution`` says why it may be wrong: some are of dedicated tenancy."""

    usd_per_hour: float
    date: str | None
    source: str
    caution: str | None = None


class Spot(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The price range of spare capacity.

    ``typical_usd_per_hour`` is the source's average, unless that lies outside the range and so is
    of another time. ``interrupted`` is the share reclaimed within a month, in the source's words;
    a ``caution`` says why the average may be wrong.
    """

    low_usd_per_hour: float
    typical_usd_per_hour: float | None
    high_usd_per_hour: float
    date: str | None
    source: str | None
    interrupted: str | None = None
    caution: str | None = None


class Disks(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Identical local disks: ``nvme``, ``ssd``, ``hdd``, or ``temporary`` of an unknown kind.

    Some sources state only the total size. Rates are those of all of them, each way alone; iops are
    operations of 4 KiB a second. They are ``measured`` by others, or documented by the provider.
    """

    kind: str | None
    count: int | None
    bytes_each: int | None
    total_bytes: int | None
    read_bytes_per_second: float | None = None
    write_bytes_per_second: float | None = None
    rate_source: str | None = None
    read_iops: float | None = None
    write_iops: float | None = None
    iops_source: str | None = None
    measured: bool = False


class NetworkBurst(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Bytes a second until the bytes of credit, beyond the baseline, are used up; as measured."""

    bytes_per_second: float
    credit_bytes: float
    source: str


class Network(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Advertised, each way: a long job gets the baseline; the peak is a burst, or only a limit.

    Without a ``burst`` nobody published how long the peak lasts; ``possible_burst`` is what it has
    at most then, if it is like other machines of its size. Rates are of IP; ``ip_source`` says
    where they are from if ``words`` count EFA.
    """

    baseline_bytes_per_second: float | None
    peak_bytes_per_second: float | None
    words: str | None
    burst: NetworkBurst | None = None
    possible_burst: NetworkBurst | None = None
    ip_source: str | None = None


class Burst(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """How long a maximum lasts at least, and how often; ``source`` is where this is promised."""

    lasts_seconds: float
    every_seconds: float
    source: str


class VolumeLink(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The machine's cap on all its network-attached volumes together.

    Without a ``burst`` it is unknown how long the maximum lasts, or there is none. An ``optional``
    link has to be requested, and costs ``extra``. One of ``most_volumes`` is the root volume; only
    ``volume_kinds`` can be attached, ``None`` is any.
    """

    baseline_bytes_per_second: float | None = None
    most_bytes_per_second: float | None = None
    baseline_iops: float | None = None
    most_iops: float | None = None
    burst: Burst | None = None
    optional: bool | None = None
    extra: Price | None = None
    most_volumes: int | None = None
    volume_kinds: tuple[str, ...] | None = None
    volumes_source: str | None = None


class Offer(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A machine type in a region; ``disks`` are ``None`` if it is unknown whether it has any.

    ``cores`` are physical. ``baseline_vcpus`` is what vCPUs that burst or are shared sustain, all
    together; ``None`` if that is unknown, or they are neither. ``core_speed`` is in thousands of
    strings that such a core, with all its threads, sorts in a second. ``current``: whether its
    provider does not call it a previous generation.
    """

    provider: str
    region: str | None
    type: str
    arch: str | None
    vcpus: float | None
    cores: float | None
    memory_bytes: int | None
    disks: tuple[Disks, ...] | None
    network: Network
    volume_link: VolumeLink
    placement_groups: bool | None
    on_demand: Price | None
    spot: Spot | None
    spec_source: str
    processor: str | None = None
    accelerators: int | None = None
    current: bool | None = None
    core_speed: float | None = None
    core_speed_source: str | None = None
    baseline_vcpus: float | None = None

    @property
    def cores_burst(self) -> bool:
        """Whether its cores burst on credits or are shared; ``baseline_vcpus`` last."""
        names = BURSTING_CORES.get(self.provider)
        return names is not None and re.match(names, self.type) is not None

    @property
    def kinds(self) -> list[OfferKind]:
        """Why a data job would hardly rent it; mostly nothing."""
        found: dict[OfferKind, bool | None] = {
            "gpu": bool(self.accelerators),
            "burstable": self.cores_burst,
            "previous": self.current is False,
            "metal": self.provider != "lab" and BARE_METAL.fullmatch(self.type) is not None,
            "hpc": self.provider == "aws" and self.type.startswith("hpc"),
        }
        return [kind for kind, is_one in found.items() if is_one]

    @property
    def local_bytes(self) -> int | None:
        """Of the known local disks; ``None`` if no size is known."""
        if self.disks is None:
            return None
        known = [each.total_bytes for each in self.disks if each.total_bytes is not None]
        return sum(known) if known or not self.disks else None

    @property
    def local_read_bytes_per_second(self) -> float | None:
        """Of all local disks together; ``None`` if the rate of one is unknown, or there is none."""
        return _sum(each.read_bytes_per_second for each in self.disks or ())

    @property
    def local_write_bytes_per_second(self) -> float | None:
        """The same for writing."""
        return _sum(each.write_bytes_per_second for each in self.disks or ())

    @property
    def all_disks_known(self) -> bool:
        return self.disks is not None and all(each.total_bytes is not None for each in self.disks)


class Grant(msgspec.Struct, frozen=True, kw_only=True):
    """What a volume gets of a rate: operations, or bytes, per second; never above ``most``.

    Either so much whatever its size (``included``), or so much for each GiB (``per_gib``, at least
    ``least``). One more per second costs ``usd_each_month``; ``None``: unknown, or not for sale.
    A bucket that is full at first, holds ``credit`` and gains the baseline, pays for a ``burst``. A
    burst of bytes without its own credit is what a burst of operations carries at most.
    """

    included: float | None = None
    per_gib: float | None = None
    least: float | None = None
    most: float | None = None
    burst: float | None = None
    burst_per_gib: float | None = None
    credit: float | None = None
    credit_per_gib: float | None = None
    usd_each_month: float | None = None

    def baseline(self, size_bytes: float) -> float | None:
        """The baseline of a volume of this size without buying more; ``None`` is unknown."""
        if self.per_gib is not None:
            found = max(self.per_gib * size_bytes / GIB, self.least or 0.0)
        elif self.included is not None:
            found = self.included
        else:
            return None
        return found if self.most is None else min(found, self.most)


class VolumeKind(msgspec.Struct, frozen=True, kw_only=True):
    """Network-attached volumes; prices are per GiB, as providers bill them.

    ``largest_operation_bytes`` bounds the throughput of the operations. For more than what is
    included, a volume may have at most ``most_iops_per_gib``, and ``most_bytes_per_operation``: so
    many bytes a second for each operation a second.
    """

    name: str
    media: str
    usd_per_gib_month: float | None
    most_bytes: int | None
    least_bytes: int | None = None
    largest_operation_bytes: int | None
    operations: Grant
    throughput: Grant
    date: str | None
    price_source: str
    limit_source: str
    most_iops_per_gib: float | None = None
    most_bytes_per_operation: float | None = None

    def bytes_per_second(self, size_bytes: float) -> float | None:
        """The baseline bytes per second without buying more; ``None`` is unknown."""
        found = self.throughput.baseline(size_bytes)
        operations = self.operations.baseline(size_bytes)
        if operations is None or self.largest_operation_bytes is None:
            return found
        carried = operations * self.largest_operation_bytes
        return min(carried, found if found is not None else (self.throughput.most or carried))


class StoreLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What a store delivers to all nodes together, and to each; ``None``: no limit known.

    That of requests is of one prefix or bucket, that of bytes of an account; a connection's is of
    one request at a time.
    """

    gets_per_second: float | None
    puts_per_second: float | None
    read_bytes_per_second: float | None
    write_bytes_per_second: float | None
    connection_bytes_per_second: tuple[float, float] | None = None
    """From the slower to the faster."""
    source: str
    node_bytes_per_second: float | None = None
    """Each way, of one machine, however fast its network is."""


class ObjectStore(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    usd_per_gb_month: float | None
    usd_per_1000_puts: float | None
    usd_per_1000_gets: float | None
    usd_per_gb_to_internet: float | None
    usd_per_gb_in_region: float | None
    date: str | None
    source: str
    limits: StoreLimits | None = None


class Billing(msgspec.Struct, frozen=True, kw_only=True):
    """How billed time is rounded up, and how many hours the provider's month has."""

    granularity_seconds: float
    least_seconds: float
    hours_per_month: float
    source: str


class Catalog(msgspec.Struct, frozen=True, kw_only=True):
    """The offers of one provider in one region on one date. Never mix two: prices change."""

    name: str
    provider: str
    region: str | None
    date: str | None
    offers: tuple[Offer, ...]
    volume_kinds: tuple[VolumeKind, ...]
    object_store: ObjectStore | None
    billing: Billing
    sources: tuple[str, ...]
    address: Price | None = None
    """The price of a public IPv4 address; ``None`` is unknown, or nothing is charged."""


def disk_rate_source(offer: Offer) -> str:
    """Where the rates of its local disks are from."""
    sources = dict.fromkeys(each.rate_source or offer.spec_source for each in offer.disks or ())
    return "; ".join(sources) or offer.spec_source


def _sum(figures: Iterable[float | None]) -> float | None:
    known = list(figures)
    if not known or None in known:
        return None
    return sum(each for each in known if each is not None)


def unknown_figures(offer: Offer) -> list[str]:
    link, network = offer.volume_link, offer.network
    unknown = {
        "on-demand price": offer.on_demand is None,
        "spot price": offer.spot is None,
        "source of the spot price": offer.spot is not None and offer.spot.source is None,
        "architecture": offer.arch is None,
        "vCPUs": offer.vcpus is None,
        "memory": offer.memory_bytes is None,
        "local disks": offer.disks is None,
        **{f"{each.kind} disks": True for each in offer.disks or () if each.total_bytes is None},
        "number of local disks": any(
            each.count is None and each.total_bytes is not None for each in offer.disks or ()
        ),
        "throughput of local disks": bool(offer.disks)
        and offer.local_read_bytes_per_second is None,
        "baseline network bandwidth": network.baseline_bytes_per_second is None,
        "peak network bandwidth": network.peak_bytes_per_second is None,
        "baseline throughput of volumes": link.baseline_bytes_per_second is None,
        "baseline operations of volumes": link.baseline_iops is None,
        "price of the link to volumes": link.optional is True and link.extra is None,
        "placement groups": offer.placement_groups is None,
    }
    return [what for what, is_unknown in unknown.items() if is_unknown]


def cautions(offer: Offer) -> list[str]:
    found = []
    if offer.on_demand and offer.on_demand.caution:
        found.append(f"on-demand price: {offer.on_demand.caution}")
    if offer.cores_burst:
        known = offer.baseline_vcpus
        lasting = f"baseline: {known:g} vCPUs" if known else "their baseline is not stated"
        found.append(f"vCPUs: burstable, on credits; {lasting}")
    if offer.spot and offer.spot.typical_usd_per_hour is None:
        found.append("spot price: the average and the range cover different times; use the range")
    return found
