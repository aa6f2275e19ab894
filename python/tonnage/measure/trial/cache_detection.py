"""The rules by which a speed is believed to be a cache's: stated here once, for all tools and us.

Of our own trials the device's counters tell: what was asked for and it did not move, a cache gave.
Where it cannot be watched, and of other tools, the speed tells. What bypassed the page cache
(``direct``), as the tool says, never is a cache's. Of the rest it is said

1. of a speed above `FASTEST_DEVICE`, which no single storage device reaches, but memory does;
2. of a run that reads again what it has just read or written itself, without leaving its machine,
   if that is at most `FITS_IN_MEMORY`: any machine's page cache holds it;
3. of a run that writes no more than that, and does not wait until it is durable.

A tool says the sizes or not; where it does not, only the first holds. That a speed is not called
cached therefore does not prove that a device gave it.
"""

from __future__ import annotations

from tonnage.base.credibility import NOT_PROVED
from tonnage.base.records import SystemActivity

FASTEST_DEVICE = 20e9
FITS_IN_MEMORY = 1 << 30
UNCACHED_SHARE = 0.9
"""Of the bytes that were asked for: if the device moved fewer, a cache gave the rest."""


def cache_reason(
    direct: bool | None,
    bytes_per_second: float | None,
    *,
    reread_bytes: float | None = None,
    unflushed_bytes: float | None = None,
) -> str | None:
    """Why only a cache can give this speed, or None.

    ``again_bytes`` is the size of the data, if the run had it in memory before; ``unflushed_bytes``
    that of data written and not waited for.
    """
    if direct:
        return None
    if bytes_per_second is not None and bytes_per_second > FASTEST_DEVICE:
        return (
            f"{bytes_per_second / 1e9:.1f} GB/s: no single device gives more than "
            f"{FASTEST_DEVICE / 1e9:.0f} GB/s"
        )
    if reread_bytes is not None and reread_bytes <= FITS_IN_MEMORY:
        return f"the run itself had these {_size(reread_bytes)} in the page cache before"
    if unflushed_bytes is not None and unflushed_bytes <= FITS_IN_MEMORY:
        return f"{_size(unflushed_bytes)} written, and not waited for: the page cache holds them"
    return None


def cache_evidence(
    happened: SystemActivity | None, writes: bool, asked_bytes: int, bytes_per_second: float
) -> str | None:
    """Why a cache must have been in the way of a trial of ours, or None."""
    if happened is None:
        return None
    moved_bytes = happened.device_written_bytes if writes else happened.device_read_bytes
    if moved_bytes is None:
        return cache_reason(None, bytes_per_second)  # Whatever the kernel says of direct.
    if moved_bytes >= UNCACHED_SHARE * asked_bytes:
        return None
    moved = "wrote" if writes else "read"
    return f"{happened.device} {moved} {moved_bytes} of {asked_bytes} bytes meanwhile"


def unproved_detail(happened: SystemActivity | None) -> dict[str, str]:
    """What a reading of ours is to say if nobody counted what its device moved."""
    if happened is None or happened.device_read_bytes is not None:
        return {}
    return {NOT_PROVED: f"the device ({happened.device}) cannot be watched"}


def _size(number: float) -> str:
    return f"{number / 1e6:.1f} MB"
