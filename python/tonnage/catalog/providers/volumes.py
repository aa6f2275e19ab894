"""A catalog's companion tables: its kinds of volumes, and its object storage."""

from tonnage.catalog.csv_rows import CsvRow
from tonnage.catalog.offer import GIB, Grant, ObjectStore, VolumeKind
from tonnage.catalog.providers.schema import MIB

VOLUME_COLUMNS = (
    *("volume_type", "media", "price_gb_month", "price_iops_month", "iops_included"),
    *("iops_per_gib", "iops_least", "iops_burst", "iops_credit", "price_mibps_month"),
    *("mibps_included", "mibps_per_tib", "mibps_burst", "mibps_burst_per_tib"),
    *("mib_credit_per_tib", "largest_io_kib", "max_iops_per_volume", "max_mib_s_per_volume"),
    *("min_size_gib", "max_size_gib", "date", "price_evidence", "limit_evidence"),
)

PROVISIONING_COLUMNS = ("max_iops_per_gib", "max_mibps_per_iops")
"""Of volumes, in addition; tables of earlier versions lack them."""
OBJECT_COLUMNS = (
    *("name", "price_gb_month", "price_1000_puts", "price_1000_gets", "price_gb_to_internet"),
    *("price_gb_in_region", "date", "source"),
)


def volume_kind(row: CsvRow) -> VolumeKind:
    faster = row.price("price_mibps_month")
    least_bytes, most_bytes = (row.integer(each, GIB) for each in ("min_size_gib", "max_size_gib"))
    if least_bytes is not None and most_bytes is not None and least_bytes > most_bytes:
        raise row.error("min_size_gib", "is above max_size_gib")
    return VolumeKind(
        name=row.required("volume_type"),
        media=row.required("media"),
        usd_per_gib_month=row.price("price_gb_month"),
        most_bytes=most_bytes,
        least_bytes=least_bytes,
        largest_operation_bytes=row.integer("largest_io_kib", 1024),
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
        date=row.date("date"),
        price_source=row.required("price_evidence"),
        limit_source=row.required("limit_evidence"),
        most_iops_per_gib=row.number("max_iops_per_gib"),
        most_bytes_per_operation=row.number("max_mibps_per_iops", MIB),
    )


def object_store(row: CsvRow) -> ObjectStore:
    """The object storage in a row of `OBJECT_COLUMNS`; here 0 means free."""
    return ObjectStore(
        name=row.required("name"),
        usd_per_gb_month=row.number("price_gb_month"),
        usd_per_1000_puts=row.number("price_1000_puts"),
        usd_per_1000_gets=row.number("price_1000_gets"),
        usd_per_gb_to_internet=row.number("price_gb_to_internet"),
        usd_per_gb_in_region=row.number("price_gb_in_region"),
        date=row.date("date"),
        source=row.required("source"),
    )
