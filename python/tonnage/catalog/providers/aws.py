"""AWS, as of 2026: the table that ``catalog refresh`` writes.

A spot average outside its own range is of another time, and is dropped. One that is a whole
percentage of the on-demand price is no price that anybody paid: it is the saving that the Spot
Instance Advisor states, rounded. It is marked.
"""

from tonnage.catalog.csv_rows import CsvRow
from tonnage.catalog.offer import Billing, Burst, Network, Offer, Price, Spot, VolumeLink
from tonnage.catalog.providers.schema import GB, GIGABIT, MB, Schema, local_disks, on_demand_price

LINK_BURST = Burst(
    lasts_seconds=1800, every_seconds=86400, source="AWS, Amazon EBS-optimized instance types"
)
"""Of the types whose maximum is above their baseline; the others sustain it."""


ROUNDED = "the average is a whole percentage of the on-demand price, so a rounded saving"
PERCENT_DIGITS = 2
"""Digits after the point of a percentage, as exactly as a price has them."""


def _is_rounded(usd: float | None, on_demand: Price | None) -> bool:
    if usd is None or on_demand is None:
        return False
    return round(100 * usd / on_demand.usd_per_hour, PERCENT_DIGITS).is_integer()


def _offer(row: CsvRow, region: str | None) -> Offer:
    archs = (row.text("arch") or "").split("|")
    baseline, most = row.number("ebs_base_mbytes_s", MB), row.number("ebs_max_mbytes_s", MB)
    low, high = row.price("spot_min_hour"), row.price("spot_max_hour")
    average = row.price("spot_avg_hour")
    if low is not None and high is not None and low > high:
        raise row.error("spot_min_hour", f"{low} is above spot_max_hour ({high})")
    typical = average if average and low and high and low <= average <= high else None
    on_demand = on_demand_price(row, "price_od_hour", "price_od_date", "price_od_source")
    return Offer(
        provider="aws",
        region=region,
        type=row.required("instance_type"),
        # A type that also runs 32-bit systems is listed with both architectures.
        arch="x86_64" if "x86_64" in archs else archs[0] or None,
        vcpus=row.number("vcpu"),
        cores=row.number("cores"),
        memory_bytes=row.memory("memory_gib"),
        disks=local_disks(
            row.text("disk_kind"),
            row.integer("disk_count"),
            row.integer("disk_gb_each", GB),
            row.integer("disk_total_gb", GB),
        ),
        network=Network(
            baseline_bytes_per_second=row.rate("net_baseline_gbps", GIGABIT),
            peak_bytes_per_second=row.number("net_peak_gbps", GIGABIT),
            words=row.text("net_desc"),
        ),
        volume_link=VolumeLink(
            baseline_bytes_per_second=baseline,
            most_bytes_per_second=most,
            baseline_iops=row.number("ebs_base_iops"),
            most_iops=row.number("ebs_max_iops"),
            burst=LINK_BURST
            if baseline is not None and most is not None and baseline < most
            else None,
        ),
        placement_groups=row.flag("placement_cluster"),
        on_demand=on_demand,
        spot=None
        if low is None or high is None
        else Spot(
            low_usd_per_hour=low,
            typical_usd_per_hour=typical,
            high_usd_per_hour=high,
            date=row.text("spot_date"),
            source=row.text("spot_source"),
            interrupted=row.text("spot_interrupt_pct"),
            caution=ROUNDED
            if row.text("spot_source") is None and _is_rounded(typical, on_demand)
            else None,
        ),
        spec_source=row.required("spec_source"),
    )


SCHEMA = Schema(
    provider="aws",
    columns=(
        *("instance_type", "vcpu", "cores", "memory_gib", "arch", "disk_count", "disk_gb_each"),
        *("disk_total_gb", "disk_kind", "net_desc", "net_baseline_gbps", "net_peak_gbps"),
        *("net_cards", "ebs_base_mbytes_s", "ebs_max_mbytes_s", "ebs_base_iops"),
        *("ebs_max_iops", "placement_cluster", "current_gen", "price_od_hour"),
        *("price_od_date", "price_od_source", "spot_avg_hour", "spot_min_hour"),
        *("spot_max_hour", "spot_interrupt_pct", "spot_date", "spec_source"),
    ),
    optional=("spot_source",),
    billing=Billing(
        granularity_seconds=1,
        least_seconds=60,
        hours_per_month=730,
        source="EC2 bills Linux by the second, a minute at least, since 2017-10-02 (AWS, "
        "What's New)",
    ),
    offer=_offer,
)
