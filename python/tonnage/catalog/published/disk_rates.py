"""How fast the local disks of a machine type are read and written, as others measured it.

Where nobody measured a type's disks, they carry at least their documented operations: of 4 KiB, the
size that providers document. Larger ones are 1.2 to 2.5 times as fast on the types that have both.
"""

from dataclasses import dataclass
from functools import cache

from tonnage.catalog.published import machine_types
from tonnage.catalog.published.rows import key_of, read

MEASURED = "scylladb/scylla-machine-image@f25b2c5, 2026-06-11, measured by iotune"
DOCUMENTED = f"documented operations of 4 KiB ({machine_types.SOURCE})"
OPERATION_BYTES = 4096
MB = 1e6


@dataclass(frozen=True, slots=True)
class DiskRates:
    """Bytes a second of all local disks together, each way alone."""

    read: float
    write: float
    source: str


def disk_rates(provider: str, kind: str) -> DiskRates | None:
    measured = _table().get(key_of(provider, kind))
    if measured is not None:
        return measured
    known = machine_types.machine_type(provider, kind)
    if known is None or known.read_iops is None or known.write_iops is None:
        return None
    return DiskRates(
        known.read_iops * OPERATION_BYTES, known.write_iops * OPERATION_BYTES, DOCUMENTED
    )


@cache
def _table() -> dict[tuple[str, str], DiskRates]:
    return {
        key_of(row["provider"], row["type"]): DiskRates(
            float(row["read_mb_per_s"]) * MB, float(row["write_mb_per_s"]) * MB, MEASURED
        )
        for row in read("disk_rates.csv")
    }
