"""How fast the local disks of a machine type are read and written, as others measured it.

Where nobody measured a type's disks, they carry at least their documented operations: of 4 KiB, the
size that providers document. Larger ones are 1.2 to 2.5 times as fast on the types that have both.

Of operations of 4 KiB the fewer count where a type has both: what exceeds the documented number
may be throttled.
"""

import statistics
from functools import cache

import msgspec

from tonnage.catalog.published import machine_types
from tonnage.catalog.published.core_speeds import family_of
from tonnage.catalog.published.rows import key_of, read

MEASURED = "scylladb/scylla-machine-image@f25b2c5, 2026-06-11, measured by iotune"
DOCUMENTED = f"documented operations of 4 KiB ({machine_types.SOURCE})"
OPERATION_BYTES = 4096
MB = 1e6
COPIED = ("gcp",)
"""Providers whose figures in the measured table are the documented ones."""


class DiskRates(msgspec.Struct, frozen=True):
    """Bytes, and operations of 4 KiB, a second of all local disks together, each way alone."""

    read: float
    write: float
    source: str
    read_iops: float
    write_iops: float
    iops_source: str
    measured: bool


class ReachedShare(msgspec.Struct, frozen=True):
    """What measured disks reached of their documented operations, by families of types."""

    low: float
    """Five of 100 families reached less."""
    families: int


def disk_rates(provider: str, kind: str) -> DiskRates | None:
    measured = _table().get(key_of(provider, kind))
    if measured is not None:
        return measured
    iops = _documented_iops(provider, kind)
    if iops is None:
        return None
    read, write = iops
    return DiskRates(
        read=read * OPERATION_BYTES,
        write=write * OPERATION_BYTES,
        source=DOCUMENTED,
        read_iops=read,
        write_iops=write,
        iops_source=DOCUMENTED,
        measured=False,
    )


@cache
def reached_share(writes: bool) -> ReachedShare:
    """How far below the documented operations of one way disks may stay."""
    shares: dict[tuple[str, str], list[float]] = {}
    for row in read("disk_rates.csv"):
        documented = _documented_iops(row["provider"], row["type"])
        if documented and row["provider"] not in COPIED:
            family = row["provider"], family_of(row["provider"], row["type"])
            measured = float(row["write_iops" if writes else "read_iops"])
            shares.setdefault(family, []).append(measured / documented[writes])
    medians = [statistics.median(each) for each in shares.values()]
    return ReachedShare(min(statistics.quantiles(medians, n=20)[0], 1.0), len(medians))


def _documented_iops(provider: str, kind: str) -> tuple[float, float] | None:
    known = machine_types.machine_type(provider, kind)
    if known is None or known.read_iops is None or known.write_iops is None:
        return None
    return known.read_iops, known.write_iops


@cache
def _table() -> dict[tuple[str, str], DiskRates]:
    return {key_of(row["provider"], row["type"]): _rates(row) for row in read("disk_rates.csv")}


def _rates(row: dict[str, str]) -> DiskRates:
    provider, kind = row["provider"], row["type"]
    measured = float(row["read_iops"]), float(row["write_iops"])
    most = _documented_iops(provider, kind) or measured
    fewer = min(measured[0], most[0]), min(measured[1], most[1])
    return DiskRates(
        read=float(row["read_mb_per_s"]) * MB,
        write=float(row["write_mb_per_s"]) * MB,
        source=MEASURED,
        read_iops=fewer[0],
        write_iops=fewer[1],
        iops_source=DOCUMENTED if provider in COPIED else MEASURED,
        measured=provider not in COPIED,
    )
