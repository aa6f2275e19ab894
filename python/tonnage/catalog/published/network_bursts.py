"""How long the network of a machine type bursts, as others measured it second by second.

A bucket of credit pays for what exceeds the baseline, and is full at first. Types of a family that
differ in their disks share a bucket's size: it was measured of some and is taken for the others.
"""

from functools import cache

from msgspec import structs

from tonnage.catalog.offer import NetworkBurst
from tonnage.catalog.published.rows import key_of, read

SOURCE = "hpides/skyrise@37fbfdc, bursts of c6g and c6gd"
GIGABIT, GB = 1e9 / 8, 1e9
LARGEST = "4xlarge"
MEASURED_SIZES = {
    size: f"c6gd.{size}" for size in ("medium", "large", "xlarge", "2xlarge", LARGEST)
}


def network_burst(provider: str, kind: str) -> NetworkBurst | None:
    return _table().get(key_of(provider, kind))


def possible_burst(provider: str, kind: str, peak: float) -> NetworkBurst | None:
    """What a type that was not measured may have at most: the credit of the measured size below."""
    if provider != "aws":
        return None
    size = kind.partition(".")[2]
    measured = MEASURED_SIZES[size if size in MEASURED_SIZES else LARGEST]
    found = network_burst(provider, measured)
    return found and structs.replace(found, bytes_per_second=peak)


@cache
def _table() -> dict[tuple[str, str], NetworkBurst]:
    return {
        key_of(row["provider"], row["type"]): NetworkBurst(
            bytes_per_second=float(row["peak_gbps"]) * GIGABIT,
            credit_bytes=float(row["credit_gb"]) * GB,
            source=f"{SOURCE}: the median of {row['runs']} runs",
        )
        for row in read("network_bursts.csv")
    }
