"""Google Cloud: its egress figure is a limit without a promise, so no baseline is known."""

from tonnage.catalog.csv_rows import CsvRow
from tonnage.catalog.offer import GIB, Billing, Network, Offer, VolumeLink
from tonnage.catalog.providers.schema import (
    GIGABIT,
    Schema,
    local_disks,
    on_demand_price,
    single_spot_price,
)

ARM_PLATFORMS = ("Ampere", "Axion")


def _offer(row: CsvRow, _: str | None) -> Offer:
    platform = row.text("cpu_platform")
    limit, faster = row.number("egress_gbps"), row.number("egress_tier1_gbps")
    words = None if limit is None else f"egress up to {limit:g} Gbit/s"
    if words and faster is not None:
        words += f", {faster:g} Gbit/s with Tier 1 networking, which costs more"
    bundled = row.integer("bundled_local_ssd_gib", GIB)
    return Offer(
        provider="gcp",
        region=row.required("region"),
        type=row.required("machine_type"),
        arch=None
        if platform is None
        else "arm64"
        if any(name in platform for name in ARM_PLATFORMS)
        else "x86_64",
        vcpus=row.number("vcpu"),
        cores=None,
        memory_bytes=row.memory("memory_gib"),
        # Attachable disks are not part of the machine, nor of its price.
        disks=local_disks("ssd", None if bundled else 0, None, bundled),
        network=Network(
            baseline_bytes_per_second=None,  # The egress figure is a limit without a promise.
            peak_bytes_per_second=None if limit is None else limit * GIGABIT,
            words=words,
        ),
        volume_link=VolumeLink(),
        placement_groups=None,
        on_demand=on_demand_price(row, "price_od_hour", "price_date", "source"),
        spot=single_spot_price(row),
        spec_source=row.required("source"),
    )


SCHEMA = Schema(
    provider="gcp",
    columns=(
        *("machine_type", "vcpu", "memory_gib", "bundled_local_ssd_gib"),
        *("local_ssd_attachable", "egress_gbps", "egress_tier1_gbps", "cpu_platform"),
        *("price_od_hour", "price_spot_hour", "region", "price_date", "source"),
    ),
    optional=(),
    billing=Billing(
        granularity_seconds=1,
        least_seconds=60,
        hours_per_month=730,
        source="Compute Engine bills by the second, at least one minute: as published, but "
        "not stated in the snapshots; check",
    ),
    offer=_offer,
)
