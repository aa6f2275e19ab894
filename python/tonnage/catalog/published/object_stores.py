"""What the object storage of a provider delivers to all nodes together, as documented."""

from tonnage.catalog.offer import StoreLimits
from tonnage.catalog.published.rows import number, read

GIGABIT = 1e9 / 8  # Bytes per second


def store_limits(provider: str) -> StoreLimits | None:
    for row in read("object_stores.csv"):
        if row["provider"] == provider:
            return StoreLimits(
                gets_per_second=number(row["gets_per_second"]),
                puts_per_second=number(row["puts_per_second"]),
                read_bytes_per_second=number(row["read_gbps"], GIGABIT),
                write_bytes_per_second=number(row["write_gbps"], GIGABIT),
                source=row["source"],
            )
    return None
