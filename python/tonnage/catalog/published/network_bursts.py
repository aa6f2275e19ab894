"""How long the network of a machine type bursts, as others measured it second by second.

A bucket of credit pays for what exceeds the baseline, and is full at first. Types of a family that
differ in their disks share a bucket's size: it was measured of some and is taken for the others.
"""

from functools import cache

from tonnage.catalog.offer import NetworkBurst
from tonnage.catalog.published.rows import key_of, read

SOURCE = "hpides/skyrise@37fbfdc, bursts of c6g and c6gd"
GIGABIT, GB = 1e9 / 8, 1e9


def network_burst(provider: str, kind: str) -> NetworkBurst | None:
    return _table().get(key_of(provider, kind))


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
