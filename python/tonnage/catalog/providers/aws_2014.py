"""AWS in 2014, when EC2 billed begun hours and sold the link to volumes separately.

"Up to 10 Gigabit" is a burst, so it has no peak here, and no baseline is known at all.
"""

import re

from tonnage.catalog.csv_rows import CsvRow
from tonnage.catalog.offer import Billing, Network, Offer, Price, VolumeLink
from tonnage.catalog.providers.schema import GB, GIGABIT, Schema, local_disks, on_demand_price


def _offer(row: CsvRow, region: str | None) -> Offer:
    words = row.text("network_performance")
    gigabits = re.fullmatch(r"([\d.]+) Gigabit", words or "")
    count = row.integer("disks")
    solid = row.flag("disk_ssd")
    surcharge = row.price("ebs_optimized_price_hour")
    return Offer(
        provider="aws",
        region=region,
        type=row.required("instance_type"),
        arch="x86_64",  # EC2 had nothing else before 2018.
        vcpus=row.number("vcpu"),
        cores=None,
        memory_bytes=row.memory("memory_gib"),
        disks=local_disks(
            None if solid is None else "ssd" if solid else "hdd",
            count,
            row.integer("disk_gb_each", GB),
        ),
        network=Network(
            baseline_bytes_per_second=None,
            peak_bytes_per_second=float(gigabits[1]) * GIGABIT if gigabits else None,
            words=words,
        ),
        volume_link=VolumeLink(
            optional=row.flag("ebs_optimized"),
            extra=None
            if surcharge is None
            else Price(
                usd_per_hour=surcharge,
                date=row.date("date"),
                source=row.required("ebs_optimized_price_source"),
            ),
        ),
        placement_groups=None,
        on_demand=on_demand_price(row, "price_hour_linux_ondemand", "date", "source"),
        spot=None,
        spec_source=row.required("source"),
        current=True,  # It was, then.
    )


SCHEMA = Schema(
    provider="aws",
    columns=(
        *("instance_type", "vcpu", "ecu", "memory_gib", "disks", "disk_gb_each", "disk_ssd"),
        *("network_performance", "ebs_optimized", "price_hour_linux_ondemand", "date"),
        "source",
    ),
    optional=("ebs_optimized_price_hour", "ebs_optimized_price_source"),
    billing=Billing(
        granularity_seconds=3600,
        least_seconds=3600,
        hours_per_month=720,
        source="EC2 billed each started hour until 2017-10-02 (AWS, What's New); the month of "
        "720 h is from the Themis study, which itself counts seconds",
    ),
    offer=_offer,
)
