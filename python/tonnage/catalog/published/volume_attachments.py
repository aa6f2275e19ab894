"""How many volumes can be attached to a machine type, its root volume included."""

from functools import cache

from tonnage.catalog.published.rows import key_of, read

SOURCE = "EC2's DescribeInstanceTypes, MaximumEbsAttachments, in moto 5.2.5"


def volume_attachments(provider: str, kind: str) -> int | None:
    return _table().get(key_of(provider, kind))


@cache
def _table() -> dict[tuple[str, str], int]:
    return {
        key_of(row["provider"], row["type"]): int(row["most"])
        for row in read("volume_attachments.csv")
    }
