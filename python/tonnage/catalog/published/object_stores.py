"""What a provider's object storage delivers to all nodes together and to each, as documented."""

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
                connection_bytes_per_second=_rate_range(row["connection_mb_per_s"]),
                node_bytes_per_second=number(row["node_gbps"], GIGABIT),
                source=row["source"],
            )
    return None


def _rate_range(text: str) -> tuple[float, float] | None:
    """Two rates in MB/s, ``85-90``."""
    if not text:
        return None
    low, high = text.split("-")
    return float(low) * 1e6, float(high) * 1e6
