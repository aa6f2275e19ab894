"""How much a cluster of a machine type can sort in two passes, by the memory of its nodes.

A sort opens a block for each partition and thread in its first pass, and holds whole partitions in
its second. A larger input needs more partitions or larger ones, so beyond some size both do not
fit, and partitions are read and written a third time. That size hardly depends on the number of
nodes: with more of them each has less data, but opens the blocks of all nodes' partitions. The
core's own division of memory is asked, for a large cluster, where the size is least.
"""

from functools import cache

from tonnage.base import core
from tonnage.base.records.job import Job
from tonnage.catalog import Offer

MEMORY_SHARE = 2
"""A sort gets one part in so many of a node's memory."""
MIN_BLOCK = 16 << 10
"""No shorter block is planned; what needs more of them needs larger partitions."""
TWO_PASS = ("sort", "mapreduce")
NODES = 1_000
FILL = 0.76
"""The core fills partitions to 75 % of what fits; the rest is rounding."""
LARGEST, EXACT = 1 << 60, 1.01
"""The bounds of the bisection: bytes, and the factor between its last steps."""


def has_memory_limit(offer: Offer) -> bool:
    """Whether both its memory and its vCPUs are known."""
    return bool(offer.memory_bytes and offer.vcpus)


def local_devices(offer: Offer) -> int:
    """The number of its local disks, as far as it is known; one without any."""
    return sum(each.count or 1 for each in offer.disks or ()) or 1


def largest_sort(offer: Offer, devices: int) -> int:
    """The most bytes that nodes of this type, with so many disks, sort in two passes."""
    return _largest(offer.memory_bytes or 0, max(int(offer.vcpus or 0), 1), devices)


@cache
def _largest(memory_bytes: int, threads: int, devices: int) -> int:
    least, most = 1, LARGEST
    if not _fits(least, memory_bytes, threads, devices):
        return 0
    while most / least > EXACT:
        middle = int((least * most) ** 0.5)
        if _fits(middle, memory_bytes, threads, devices):
            least = middle
        else:
            most = middle
    return least


def intermediate_share(job: Job) -> float | None:
    """Bytes that are sorted for each byte of input; ``None`` if the job is not of two passes."""
    if job.name not in TWO_PASS:
        return None
    return float(job.settings.get("map_share", 1.0))


def _fits(size: int, memory_bytes: int, threads: int, devices: int) -> bool:
    share = -(-size // NODES)
    shape = {
        "bytes": share,
        "record_bytes": 100,
        "memory_bytes": memory_bytes // MEMORY_SHARE,
        "workers": threads,
        "devices": (1, devices, devices),
        "endpoints": NODES,
    }
    try:
        plan = core.plan(shape)
    except core.UsageError:
        return False
    fits = share / int(plan["partitions"]) <= int(plan["slot_bytes"]) * FILL
    return int(plan["block_bytes"]) >= MIN_BLOCK and fits
