"""The tables that are known, one schema each: which columns they have, and how a row is an offer.

What sources get wrong is put right here, and nowhere else:

* "Up to 10 Gigabit" is a burst, and so is its figure; only a baseline lasts.
* A spot average outside its own range is of another time, and is dropped.
* Azure's zeros of throughput, and figures no machine can have, are figures that were not known.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from tonnage.catalog.csv_rows import Row
from tonnage.catalog.offer import (
    GIB,
    Billing,
    Burst,
    Disks,
    Grant,
    Network,
    ObjectStore,
    Offer,
    Price,
    Spot,
    VolumeKind,
    VolumeLink,
)

GIGABIT = 1e9 / 8
"""Bytes per second."""
MB, MIB, GB = 1e6, 1 << 20, 1e9
MOST_AZURE_BYTES_PER_SECOND = 12 * GB
"""Some rows tell operations for MB/s, some kB/s; the largest that is true of a machine is below."""
DEDICATED = re.compile(r"\(Dedicated tenancy; may be \+(\d+)-(\d+)%\)")
ARM_PLATFORMS = ("Ampere", "Axion")
AWS_LINK_BURST = Burst(
    lasts_seconds=1800, every_seconds=86400, source="AWS, Amazon EBS-optimized instance types"
)
"""Of the types whose maximum is above their baseline; the others have it for good."""


@dataclass(frozen=True)
class Schema:
    """One known table of offers.

    ``offer`` makes a row an offer of a region that the table itself may not tell.
    """

    provider: str
    columns: tuple[str, ...]
    optional: tuple[str, ...]
    billing: Billing
    offer: Callable[[Row, str | None], Offer]

    @property
    def key(self) -> str:
        """The column that names the type."""
        return self.columns[0]


def _aws_2014(row: Row, region: str | None) -> Offer:
    words = row.text("network_performance")
    gigabits = re.fullmatch(r"([\d.]+) Gigabit", words or "")
    count = row.whole("disks")
    solid = row.flag("disk_ssd")
    surcharge = row.price("ebs_optimized_price_hour")
    return Offer(
        provider="aws",
        region=region,
        type=row.required("instance_type"),
        arch="x86_64",  # EC2 had nothing else before 2018.
        vcpus=row.number("vcpu"),
        cores=None,
        memory_bytes=row.whole("memory_gib", GIB),
        disks=_disks(
            None if solid is None else "ssd" if solid else "hdd",
            count,
            row.whole("disk_gb_each", GB),
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
                date=row.text("date"),
                source=row.required("ebs_optimized_price_source"),
            ),
        ),
        placement_groups=None,
        on_demand=_price(row, "price_hour_linux_ondemand", "date", "source"),
        spot=None,
        spec_source=row.required("source"),
    )


def _aws(row: Row, region: str | None) -> Offer:
    archs = (row.text("arch") or "").split("|")
    baseline, most = row.number("ebs_base_mbytes_s", MB), row.number("ebs_max_mbytes_s", MB)
    low, high = row.price("spot_min_hour"), row.price("spot_max_hour")
    average = row.price("spot_avg_hour")
    if low is not None and high is not None and low > high:
        raise row.error("spot_min_hour", f"{low} is above spot_max_hour, {high}")
    return Offer(
        provider="aws",
        region=region,
        type=row.required("instance_type"),
        # What also runs 32-bit systems is not another machine.
        arch="x86_64" if "x86_64" in archs else archs[0] or None,
        vcpus=row.number("vcpu"),
        cores=row.number("cores"),
        memory_bytes=row.whole("memory_gib", GIB),
        disks=_disks(
            row.text("disk_kind"),
            row.whole("disk_count"),
            row.whole("disk_gb_each", GB),
            row.whole("disk_total_gb", GB),
        ),
        network=Network(
            baseline_bytes_per_second=row.number("net_baseline_gbps", GIGABIT),
            peak_bytes_per_second=row.number("net_peak_gbps", GIGABIT),
            words=row.text("net_desc"),
        ),
        volume_link=VolumeLink(
            baseline_bytes_per_second=baseline,
            most_bytes_per_second=most,
            baseline_iops=row.number("ebs_base_iops"),
            most_iops=row.number("ebs_max_iops"),
            burst=AWS_LINK_BURST
            if baseline is not None and most is not None and baseline < most
            else None,
        ),
        placement_groups=row.flag("placement_cluster"),
        on_demand=_price(row, "price_od_hour", "price_od_date", "price_od_source"),
        spot=None
        if low is None or high is None
        else Spot(
            low_usd_per_hour=low,
            typical_usd_per_hour=average if average and low <= average <= high else None,
            high_usd_per_hour=high,
            date=row.text("spot_date"),
            source=row.text("spot_source"),
            interrupted=row.text("spot_interrupt_pct"),
        ),
        spec_source=row.required("spec_source"),
    )


def _gcp(row: Row, _: str | None) -> Offer:
    platform = row.text("cpu_platform")
    limit, faster = row.number("egress_gbps"), row.number("egress_tier1_gbps")
    words = None if limit is None else f"egress up to {limit:g} Gbit/s"
    if words and faster is not None:
        words += f", {faster:g} Gbit/s with Tier 1 networking, which costs more"
    bundled = row.whole("bundled_local_ssd_gib", GIB)
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
        memory_bytes=row.whole("memory_gib", GIB),
        # What could be attached is not part of the machine, nor of its price.
        disks=_disks("ssd", None if bundled else 0, None, bundled),
        network=Network(
            baseline_bytes_per_second=None,  # The egress figure is a limit without a promise.
            peak_bytes_per_second=None if limit is None else limit * GIGABIT,
            words=words,
        ),
        volume_link=VolumeLink(),
        placement_groups=None,
        on_demand=_price(row, "price_od_hour", "price_date", "source"),
        spot=_only_spot(row),
        spec_source=row.required("source"),
    )


def _azure(row: Row, _: str | None) -> Offer:
    name = row.required("vm_size")
    # Microsoft's names tell it: of the small letters after the vCPUs, p is Arm.
    features = re.match(r"(?:[A-Z][a-z]+_)?[A-Z]+\d+(?:-\d+)?([a-z]*)", name)
    temporary = row.whole("temp_disk_gib", GIB)
    nvme = row.whole("nvme_total_gib", GIB)
    accelerated = row.flag("accelerated_networking")
    return Offer(
        provider="azure",
        region=row.required("region"),
        type=name,
        arch=None if features is None else "arm64" if "p" in features[1] else "x86_64",
        vcpus=row.number("vcpu"),
        cores=None,
        memory_bytes=row.whole("memory_gib", GIB),
        disks=(
            *(
                ()
                if temporary == 0
                else (
                    Disks(
                        kind="temporary",
                        count=1 if temporary else None,
                        bytes_each=temporary,
                        total_bytes=temporary,
                        read_bytes_per_second=_azure_rate(row, "cached_read_mb_s"),
                        write_bytes_per_second=_azure_rate(row, "cached_write_mb_s"),
                    ),
                )
            ),
            Disks(kind="nvme", count=None, bytes_each=None, total_bytes=nvme),
        ),
        network=Network(
            baseline_bytes_per_second=None,
            peak_bytes_per_second=None,
            words=None
            if accelerated is None
            else f"{'with' if accelerated else 'without'} accelerated networking",
        ),
        volume_link=VolumeLink(
            baseline_bytes_per_second=_azure_rate(row, "uncached_disk_mb_s"),
            baseline_iops=row.number("uncached_disk_iops") or None,
        ),
        placement_groups=None,
        on_demand=_price(row, "price_od_hour", "price_date", "source"),
        spot=_only_spot(row),
        spec_source=row.required("source"),
    )


def _lab(row: Row, _: str | None) -> Offer:
    link, cores = row.number("link_mb_per_s", MB), row.number("cores")
    count, total = row.whole("disks"), row.whole("disk_bytes_total")
    same = None if count is None or total is None or not count else total // count
    return Offer(
        provider="lab",
        region=row.required("lab"),
        type=row.required("machine"),
        arch=row.text("arch"),
        vcpus=cores,
        cores=cores,
        memory_bytes=None,  # The machines of a lab share their host's.
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
        on_demand=_price(row, "price_usd_per_hour", "date", "source"),
        spot=None,
        spec_source=row.required("source"),
    )


def _azure_rate(row: Row, column: str) -> float | None:
    found = row.number(column, MB)
    return found if found and found <= MOST_AZURE_BYTES_PER_SECOND else None


def _disks(
    kind: str | None, count: int | None, bytes_each: int | None, total: int | None = None
) -> tuple[Disks, ...] | None:
    """Disks that are alike; none of them where the table says 0, unknown where it says nothing."""
    if count == 0:
        return ()
    if count is None and total is None:
        return None
    if total is None and count is not None and bytes_each is not None:
        total = count * bytes_each
    return (Disks(kind=kind, count=count, bytes_each=bytes_each, total_bytes=total),)


def _price(row: Row, price: str, date: str, source: str) -> Price | None:
    usd = row.price(price)
    if usd is None:
        return None
    said = row.required(source)
    dedicated = DEDICATED.search(said)
    return Price(
        usd_per_hour=usd,
        date=row.text(date),
        source=DEDICATED.sub("", said).strip(),
        caution=f"of dedicated tenancy, which may be {dedicated[1]} to {dedicated[2]} % high"
        if dedicated
        else None,
    )


def _only_spot(row: Row) -> Spot | None:
    usd = row.price("price_spot_hour")
    return (
        None
        if usd is None
        else Spot(
            low_usd_per_hour=usd,
            typical_usd_per_hour=usd,
            high_usd_per_hour=usd,
            date=row.text("price_date"),
            source=row.required("source"),
        )
    )


LAB = Schema(
    provider="lab",
    columns=(
        *("machine", "cores", "link_mb_per_s", "disks", "disk_bytes_total", "disks_alike"),
        *("disks_read_mb_per_s", "disks_write_mb_per_s", "arch", "price_usd_per_hour", "lab"),
        *("date", "source"),
    ),
    optional=(),
    billing=Billing(
        granularity_seconds=1,
        least_seconds=0,
        hours_per_month=730,
        source="a lab's prices are what its file says, by the second",
    ),
    offer=_lab,
)
"""What a lab writes of its machines: its disks' bytes and rates are those of all of one machine."""

SCHEMAS = (
    Schema(
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
            source="EC2 billed begun hours until 2017-10-02 (AWS, What's New); a month of 720 h is "
            "the Themis study's, which itself counts seconds",
        ),
        offer=_aws_2014,
    ),
    Schema(
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
        offer=_aws,
    ),
    Schema(
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
            source="Compute Engine bills by the second, a minute at least: as published, not in "
            "the snapshots given; check",
        ),
        offer=_gcp,
    ),
    Schema(
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
            source="Azure bills whole minutes of virtual machines: as published, not in the "
            "snapshots given; check",
        ),
        offer=_azure,
    ),
    LAB,
)
"""Tables of offers."""

AWS = SCHEMAS[1]
"""What a refresh writes."""

VOLUME_COLUMNS = (
    *("volume_type", "media", "price_gb_month", "price_iops_month", "iops_included"),
    *("iops_per_gib", "iops_least", "iops_burst", "iops_credit", "price_mibps_month"),
    *("mibps_included", "mibps_per_tib", "mibps_burst", "mibps_burst_per_tib"),
    *("mib_credit_per_tib", "largest_io_kib", "max_iops_per_volume", "max_mib_s_per_volume"),
    *("min_size_gib", "max_size_gib", "date", "price_evidence", "limit_evidence"),
)

OBJECT_COLUMNS = (
    *("name", "price_gb_month", "price_1000_puts", "price_1000_gets", "price_gb_to_internet"),
    *("price_gb_in_region", "date", "source"),
)


def volume_kind(row: Row) -> VolumeKind:
    """The kind of volume in a row of `VOLUME_COLUMNS`."""
    faster = row.price("price_mibps_month")
    return VolumeKind(
        name=row.required("volume_type"),
        media=row.required("media"),
        usd_per_gib_month=row.price("price_gb_month"),
        most_bytes=row.whole("max_size_gib", GIB),
        least_bytes=row.whole("min_size_gib", GIB),
        largest_operation_bytes=row.whole("largest_io_kib", 1024),
        operations=Grant(
            included=row.number("iops_included"),
            per_gib=row.number("iops_per_gib"),
            least=row.number("iops_least"),
            most=row.number("max_iops_per_volume"),
            burst=row.number("iops_burst"),
            credit=row.number("iops_credit"),
            usd_each_month=row.price("price_iops_month"),
        ),
        throughput=Grant(
            included=row.number("mibps_included", MIB),
            per_gib=row.number("mibps_per_tib", MIB / 1024),
            most=row.number("max_mib_s_per_volume", MIB),
            burst=row.number("mibps_burst", MIB),
            burst_per_gib=row.number("mibps_burst_per_tib", MIB / 1024),
            credit_per_gib=row.number("mib_credit_per_tib", MIB / 1024),
            usd_each_month=None if faster is None else faster / MIB,
        ),
        date=row.text("date"),
        price_source=row.required("price_evidence"),
        limit_source=row.required("limit_evidence"),
    )


def object_store(row: Row) -> ObjectStore:
    """The object storage in a row of `OBJECT_COLUMNS`; here what is free is told, as 0."""
    return ObjectStore(
        name=row.required("name"),
        usd_per_gb_month=row.number("price_gb_month"),
        usd_per_1000_puts=row.number("price_1000_puts"),
        usd_per_1000_gets=row.number("price_1000_gets"),
        usd_per_gb_to_internet=row.number("price_gb_to_internet"),
        usd_per_gb_in_region=row.number("price_gb_in_region"),
        date=row.text("date"),
        source=row.required("source"),
    )
