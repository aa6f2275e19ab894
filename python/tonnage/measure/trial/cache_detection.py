"""Decide whether a cache served a result; one set of rules for our trials and for other tools'.

For our own trials the device's counters decide: a cache served the bytes that were requested and
that the device did not move. Where the device has no counters, and for other tools, the speed
decides. A result that bypassed the page cache (``direct``, as the tool says) is never cached. Any
other is called cached if

1. its speed exceeds `FASTEST_DEVICE`, which memory reaches, but no single storage device;
2. it re-reads what the run itself has just read or written on this machine, at most
   `FITS_IN_MEMORY`: any machine's page cache holds that;
3. it writes no more than that, and does not wait until it is durable.

If a tool does not state the sizes, only the first rule applies. So a result that is not called
cached may still have been served by a cache.
"""

from tonnage.base.credibility import NOT_PROVED
from tonnage.base.records import SystemActivity

FASTEST_DEVICE = 20e9
FITS_IN_MEMORY = 1 << 30
UNCACHED_SHARE = 0.9
"""Of the requested bytes: if the device moved fewer, a cache served the rest."""


def cache_reason(
    direct: bool | None,
    bytes_per_second: float | None,
    *,
    reread_bytes: float | None = None,
    unflushed_bytes: float | None = None,
) -> str | None:
    """Why only a cache can have served this result, or None.

    ``reread_bytes`` is the size of the data, if the run had it in memory before;
    ``unflushed_bytes`` is the size of data written without waiting until it is durable.
    """
    if direct:
        return None
    if bytes_per_second is not None and bytes_per_second > FASTEST_DEVICE:
        return (
            f"{bytes_per_second / 1e9:.1f} GB/s: no single device exceeds "
            f"{FASTEST_DEVICE / 1e9:.0f} GB/s"
        )
    if reread_bytes is not None and reread_bytes <= FITS_IN_MEMORY:
        return f"the same run had put these {_size(reread_bytes)} into the page cache before"
    if unflushed_bytes is not None and unflushed_bytes <= FITS_IN_MEMORY:
        return f"the {_size(unflushed_bytes)} written without a flush fit in the page cache"
    return None


def cache_evidence(
    activity: SystemActivity | None, writes: bool, requested_bytes: int, bytes_per_second: float
) -> str | None:
    """Why a cache must have served a trial of ours, or None."""
    if activity is None:
        return None
    moved_bytes = activity.device_written_bytes if writes else activity.device_read_bytes
    if moved_bytes is None:
        return cache_reason(None, bytes_per_second)  # Even if the kernel accepted direct I/O.
    if moved_bytes >= UNCACHED_SHARE * requested_bytes:
        return None
    moved = "wrote" if writes else "read"
    return f"{activity.device} {moved} only {moved_bytes} of {requested_bytes} requested bytes"


def unproved_detail(activity: SystemActivity | None) -> dict[str, str]:
    """The detail of a metric whose device has no counters."""
    if activity is None or activity.device_read_bytes is not None:
        return {}
    return {NOT_PROVED: f"the device ({activity.device}) has no counters"}


def _size(number: float) -> str:
    return f"{number / 1e6:.1f} MB"
