"""A lab's own catalog: the disks' bytes and rates are those of all disks of one machine."""

from tonnage.catalog.csv_rows import CsvRow
from tonnage.catalog.offer import Billing, Disks, Network, Offer, VolumeLink
from tonnage.catalog.providers.schema import MB, Schema, on_demand_price


def _offer(row: CsvRow, _: str | None) -> Offer:
    link, cores = row.number("link_mb_per_s", MB), row.number("cores")
    count, total = row.integer("disks"), row.integer("disk_bytes_total")
    same = None if count is None or total is None or not count else total // count
    return Offer(
        provider="lab",
        region=row.required("lab"),
        type=row.required("machine"),
        arch=row.text("arch"),
        vcpus=cores,
        cores=cores,
        memory_bytes=row.integer("memory_bytes"),  # None: they share their host's.
        disks=()
        if count == 0
        else (
            Disks(
                kind="loop",
                count=count,
                bytes_each=same if row.flag("disks_alike") else None,
                total_bytes=total,
                read_bytes_per_second=row.number("disks_read_mb_per_s", MB),
                write_bytes_per_second=row.number("disks_write_mb_per_s", MB),
            ),
        ),
        network=Network(
            baseline_bytes_per_second=link,
            peak_bytes_per_second=link,
            words="as TCP payload, each way" if link else None,
        ),
        volume_link=VolumeLink(),
        placement_groups=None,
        on_demand=on_demand_price(row, "price_usd_per_hour", "date", "source"),
        spot=None,
        spec_source=row.required("source"),
    )


SCHEMA = Schema(
    provider="lab",
    columns=(
        *("machine", "cores", "link_mb_per_s", "disks", "disk_bytes_total", "disks_alike"),
        *("disks_read_mb_per_s", "disks_write_mb_per_s", "arch", "price_usd_per_hour", "lab"),
        *("date", "source"),
    ),
    optional=("memory_bytes",),
    billing=Billing(
        granularity_seconds=1,
        least_seconds=0,
        hours_per_month=730,
        source="a lab's prices are what its file says, by the second",
    ),
    offer=_offer,
)
