"""Volumes of a machine type as documented: number, kinds, all their bytes and operations."""

from functools import cache

import msgspec

from tonnage.catalog.published.rows import key_of, number, read

MIB = 1 << 20
SOURCES = {
    "aws": "EC2's DescribeInstanceTypes, MaximumEbsAttachments, in moto 5.2.5",
    "gcp": "GoogleCloudPlatform/gcpdiag@06ec858, 2024-08-21; Hyperdisks: Google's limits, 2026-07",
}


class PublishedLink(msgspec.Struct, frozen=True):
    """``None`` is unknown; the root volume is one of ``most_volumes``."""

    most_volumes: int | None
    volume_kinds: tuple[str, ...] | None
    bytes_per_second: float | None
    iops: float | None
    """Operations a second of all of them together, on solid-state volumes."""
    source: str


def volume_link(provider: str, kind: str) -> PublishedLink | None:
    return _table().get(key_of(provider, kind))


@cache
def _table() -> dict[tuple[str, str], PublishedLink]:
    return {
        key_of(row["provider"], row["type"]): PublishedLink(
            most_volumes=int(row["most_volumes"]) if row["most_volumes"] else None,
            volume_kinds=tuple(row["volume_kinds"].split()) or None,
            bytes_per_second=number(row["mib_per_second"], MIB),
            iops=number(row["iops"]),
            source=SOURCES[row["provider"]],
        )
        for row in read("volume_links.csv")
    }
