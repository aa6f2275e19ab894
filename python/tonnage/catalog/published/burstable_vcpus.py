"""The vCPUs that machine types with burstable or shared cores sustain, as documented.

AWS documents a share of each vCPU (5 to 40 %), Google Cloud the vCPUs of its shared cores.
"""

from functools import cache

from tonnage.catalog.published.machine_types import SOURCE
from tonnage.catalog.published.rows import key_of, read

BASELINE_SOURCE = f"documented: {SOURCE}"


def baseline_vcpus(provider: str, kind: str) -> float | None:
    """Of all vCPUs together; ``None`` if nobody documented it, or the type has no such cores."""
    return _table().get(key_of(provider, kind))


@cache
def _table() -> dict[tuple[str, str], float]:
    return {
        key_of(row["provider"], row["type"]): float(row["baseline_vcpus"])
        for row in read("burstable_vcpus.csv")
    }
