"""Azure: its zeros of throughput, and figures that no machine can have, mean unknown.

A temporary disk of a machine whose published local disks are NVMe is those disks, unless the table
lists NVMe disks, too; the published size counts. Next to NVMe disks, a temporary disk is small and
slow, and left to the system. Types without an "s" in their name do not take premium volumes. Its
tables have no network rates. The published ones are what to expect, not what is promised, so they
are peaks.
"""

import re

from tonnage.catalog.csv_rows import CsvRow
from tonnage.catalog.offer import GIB, Billing, Disks, Network, Offer, VolumeLink
from tonnage.catalog.providers.schema import GB, MB, Schema, on_demand_price, single_spot_price
from tonnage.catalog.published.machine_types import machine_type

NO_VOLUMES: tuple[str, ...] = ()
"""The kinds that are not premium are in no table."""
MAX_BYTES_PER_SECOND = 12 * GB
"""Some rows give kB/s for MB/s; no real machine exceeds this. Others repeat the operations."""


def _offer(row: CsvRow, _: str | None) -> Offer:
    name = row.required("vm_size")
    # In Microsoft's names, a "p" among the small letters after the vCPUs means Arm.
    features = re.match(r"(?:[A-Z][a-z]+_)?([A-Z]+)\d+(?:-\d+)?([a-z]*)", name)
    premium = features is None or "S" in features[1] or "s" in features[2]
    temporary = row.integer("temp_disk_gib", GIB)
    nvme = row.integer("nvme_total_gib", GIB)
    accelerated = row.flag("accelerated_networking")
    published = machine_type("azure", name)
    is_nvme = bool(nvme) or (published is not None and published.disk_kind == "nvme")
    return Offer(
        provider="azure",
        region=row.required("region"),
        type=name,
        arch=None if features is None else "arm64" if "p" in features[2] else "x86_64",
        vcpus=row.number("vcpu"),
        cores=None,
        memory_bytes=row.memory("memory_gib"),
        disks=(
            *(
                ()
                if temporary == 0 or is_nvme
                else (
                    Disks(
                        kind="temporary",
                        count=1 if temporary else None,
                        bytes_each=temporary,
                        total_bytes=temporary,
                        read_bytes_per_second=_rate(row, "cached_read_mb_s"),
                        write_bytes_per_second=_rate(row, "cached_write_mb_s"),
                    ),
                )
            ),
            Disks(kind="nvme", count=None, bytes_each=None, total_bytes=nvme),
        ),
        network=Network(
            baseline_bytes_per_second=None,
            peak_bytes_per_second=published.network_peak if published else None,
            words=None
            if accelerated is None
            else f"{'with' if accelerated else 'without'} accelerated networking",
        ),
        volume_link=VolumeLink(
            baseline_bytes_per_second=_rate(row, "uncached_disk_mb_s"),
            baseline_iops=row.number("uncached_disk_iops") or None,
            volume_kinds=None if premium else NO_VOLUMES,
        ),
        placement_groups=None,
        on_demand=on_demand_price(row, "price_od_hour", "price_date", "source"),
        spot=single_spot_price(row),
        spec_source=row.required("source"),
    )


def _rate(row: CsvRow, column: str) -> float | None:
    found = row.number(column, MB)
    repeats_operations = row.number(column) == row.number("cached_iops")
    return found if found and found <= MAX_BYTES_PER_SECOND and not repeats_operations else None


SCHEMA = Schema(
    provider="azure",
    columns=(
        *("vm_size", "vcpu", "memory_gib", "temp_disk_gib", "nvme_total_gib"),
        *("cached_read_mb_s", "cached_write_mb_s", "cached_iops", "uncached_disk_iops"),
        *("uncached_disk_mb_s", "accelerated_networking", "price_od_hour"),
        *("price_spot_hour", "region", "price_date", "source"),
    ),
    optional=(),
    billing=Billing(
        granularity_seconds=60,
        least_seconds=60,
        hours_per_month=730,
        source="Azure bills whole minutes of virtual machines: as published, but not stated in "
        "the snapshots; check",
    ),
    offer=_offer,
)
