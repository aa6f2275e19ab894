"""Documented figures of machine types that no provider's price list has."""

from functools import cache

import msgspec

from tonnage.catalog.published.rows import key_of, number, read

SOURCE = "TUM-DIS/cloudspecs@0ee54cf, 2026-07-22"
GIGABIT = 1e9 / 8  # Bytes per second
GB = 10**9


class MachineType(msgspec.Struct, frozen=True, kw_only=True):
    """``None`` is unknown; rates are bytes a second, operations are of 4 KiB a second.

    Disks' bytes and operations are those of all local disks together.
    """

    cores: float | None = None
    processor: str | None = None
    accelerators: int | None = None
    current: bool | None = None
    network_peak: float | None = None
    disk_count: int | None = None
    disk_bytes: int | None = None
    disk_kind: str | None = None
    read_iops: float | None = None
    write_iops: float | None = None


UNKNOWN = MachineType()


def machine_type(provider: str, kind: str) -> MachineType | None:
    return _table().get(key_of(provider, kind))


@cache
def _table() -> dict[tuple[str, str], MachineType]:
    return {
        key_of(row["provider"], row["type"]): MachineType(
            cores=number(row["cores"]),
            processor=row["processor"] or None,
            accelerators=_integer(row["accelerators"]),
            current=None if not row["current"] else row["current"] == "True",
            network_peak=_rate(row["network_peak_gbps"]),
            disk_count=_integer(row["disk_count"]),
            disk_bytes=_integer(row["disk_gb"], GB),
            disk_kind=row["disk_kind"] or None,
            read_iops=number(row["read_iops"]),
            write_iops=number(row["write_iops"]),
        )
        for row in read("machine_types.csv")
    }


def _rate(cell: str) -> float | None:
    found = number(cell)
    return None if found is None else found * GIGABIT


def _integer(cell: str, unit: int = 1) -> int | None:
    found = number(cell)
    return None if found is None else round(found * unit)
