"""Made-up catalogs and profiles for tests."""

from __future__ import annotations

from collections.abc import Sequence

from tonnage.base.records.profile import (
    CapacityDistribution,
    Mode,
    NetworkScaling,
    OfferProfile,
    Profile,
)
from tonnage.catalog import (
    Billing,
    Burst,
    Catalog,
    Disks,
    Grant,
    Network,
    ObjectStore,
    Offer,
    Price,
    Spot,
    VolumeKind,
)
from tonnage.catalog import VolumeLink as Link

MIB = 1 << 20


def offer(
    name: str,
    usd_per_hour: float | None = 1.0,
    *,
    local_bytes: int | None = 10**13,
    network: float | None = 1e9,
    link: float | None = 1e9,
    arch: str = "x86_64",
    link_most: float | None = None,
    spot: Spot | None = None,
    disk_rates: tuple[float, float] | None = None,
) -> Offer:
    """An offer; ``None`` is unknown, local disks of 0 bytes are none, and are read and written at
    these rates.

    The most of its link to volumes lasts for half an hour a day.
    """
    burst = Burst(lasts_seconds=1_800, every_seconds=86_400, source="made up")
    read, write = disk_rates or (None, None)
    disks = (
        Disks(
            kind="ssd",
            count=1,
            bytes_each=local_bytes,
            total_bytes=local_bytes,
            read_bytes_per_second=read,
            write_bytes_per_second=write,
            rate_source="made up" if disk_rates else None,
        ),
    )
    return Offer(
        provider="aws",
        region="here",
        type=name,
        arch=arch,
        vcpus=8,
        cores=4,
        memory_bytes=64 << 30,
        disks=() if local_bytes == 0 else disks,
        network=Network(baseline_bytes_per_second=network, peak_bytes_per_second=None, words=None),
        volume_link=Link(
            baseline_bytes_per_second=link,
            most_bytes_per_second=link_most,
            burst=burst if link_most else None,
        ),
        placement_groups=True,
        on_demand=None
        if usd_per_hour is None
        else Price(usd_per_hour=usd_per_hour, date="2026-01-01", source="made up"),
        spot=spot,
        spec_source="made up",
    )


STEADY = VolumeKind(
    name="steady",
    media="ssd",
    usd_per_gib_month=0.08,
    most_bytes=64 << 40,
    largest_operation_bytes=None,
    operations=Grant(),
    throughput=Grant(included=125 * MIB),
    date="2026-01-01",
    price_source="made up",
    limit_source="made up",
)
SIZED = VolumeKind(
    name="sized",
    media="ssd",
    usd_per_gib_month=0.1,
    most_bytes=16 << 40,
    largest_operation_bytes=256 << 10,
    operations=Grant(per_gib=3, least=100, most=16_000),
    throughput=Grant(most=250 * MIB),
    date="2026-01-01",
    price_source="made up",
    limit_source="made up",
)


BURSTING = VolumeKind(
    name="bursting",
    media="ssd",
    usd_per_gib_month=0.1,
    most_bytes=16 << 40,
    largest_operation_bytes=256 << 10,
    operations=Grant(per_gib=3, least=100, most=16_000, burst=3_000, credit=5_400_000),
    throughput=Grant(most=250 * MIB, burst=128 * MIB),
    date="2026-01-01",
    price_source="made up",
    limit_source="made up",
)
STORE = ObjectStore(
    name="store",
    usd_per_gb_month=0.02,
    usd_per_1000_puts=0.005,
    usd_per_1000_gets=0.0004,
    usd_per_gb_to_internet=0.09,
    usd_per_gb_in_region=0.0,
    date="2026-01-01",
    source="made up",
)


def catalog(
    offers: Sequence[Offer],
    kinds: Sequence[VolumeKind] = (STEADY, SIZED),
    *,
    least_seconds: float = 60,
    store: ObjectStore | None = None,
    address: Price | None = None,
) -> Catalog:
    """A catalog of these."""
    return Catalog(
        name="made-up",
        provider="aws",
        region="here",
        date="2026-01-01",
        offers=tuple(offers),
        volume_kinds=tuple(kinds),
        object_store=store,
        billing=Billing(
            granularity_seconds=1,
            least_seconds=least_seconds,
            hours_per_month=730,
            source="made up",
        ),
        sources=("made up",),
        address=address,
    )


def distribution(
    resource: str,
    median: float,
    spread: float = 0.05,
    instances: int = 20,
    fleet_spread: float = 0.0,
    more: Sequence[Mode] = (),
) -> CapacityDistribution:
    """A law with this mode, and more of them."""
    return CapacityDistribution(
        resource=resource,
        modes=[Mode(median=median, spread=spread, instances=instances), *more],
        fleet_spread=fleet_spread,
        fleets=4,
        evidence="measured",
        source="made up",
        spread_source="made up",
    )


def profile(
    laws: dict[str, list[CapacityDistribution]],
    scaling: list[tuple[int, float]] | None = None,
    shares: Sequence[CapacityDistribution] = (),
    provider: str = "aws",
) -> Profile:
    """What was measured of each offer."""
    return Profile(
        name="made-up",
        made_at="2026-01-01T00:00:00Z",
        offers=[
            OfferProfile(
                provider=provider,
                type=name,
                laws=each,
                scaling=NetworkScaling(points=scaling, source="made up") if scaling else None,
            )
            for name, each in laws.items()
        ],
        shares=list(shares),
    )


FAMILIES = [
    offer(f"{family}.{size}x", size * (0.1 + 0.01 * place), disk_rates=(size * 2e8, size * 1e8))
    for place, family in enumerate("abcdefgh")
    for size in (1, 2, 4)
]
"""More candidates than a table shows."""
