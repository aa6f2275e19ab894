"""How much IP traffic a machine type's network carries whose documented figure is EFA's.

EFA is a protocol of its own. What Tonnage sends is TCP, which such a network carries at a lower
rate. Where none is documented, a type has what one of its network cards carries.
"""

from functools import cache

import msgspec

from tonnage.catalog.published.rows import Key, key_of, read

GIGABIT = 1e9 / 8  # Bytes per second


class IpBandwidth(msgspec.Struct, frozen=True):
    """Each way, of all network cards together."""

    bytes_per_second: float
    source: str


def ip_bandwidth(provider: str, kind: str) -> IpBandwidth | None:
    """``None``: the network's figure is that of IP."""
    return _table().get(key_of(provider, kind))


@cache
def _table() -> dict[Key, IpBandwidth]:
    return {
        key_of(row["provider"], row["type"]): IpBandwidth(
            float(row["ip_gbps"]) * GIGABIT, row["source"]
        )
        for row in read("ip_bandwidths.csv")
    }
