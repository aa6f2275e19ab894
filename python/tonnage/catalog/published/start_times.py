"""How long machines take from the request until they run what they were given, as others measured.

Types with accelerators are left out: plans leave them out, too, and they wait for capacity.
"""

from functools import cache

from tonnage.catalog.published.machine_types import machine_type
from tonnage.catalog.published.rows import read

SOURCE = "SpareCores/sc-inspector-data@804d3c7, 2026-08-22"


@cache
def start_seconds(provider: str) -> tuple[float, ...]:
    """Seconds of each measured start of the provider; none if nobody measured any."""
    return tuple(
        float(row["ready_seconds"])
        for row in read("start_times.csv")
        if row["provider"] == provider and not _accelerated(provider, row["type"])
    )


def _accelerated(provider: str, kind: str) -> bool:
    known = machine_type(provider, kind)
    return known is not None and bool(known.accelerators)
