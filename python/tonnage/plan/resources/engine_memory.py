"""How much a cluster of a machine type can sort in two passes, by the memory of its nodes.

A sort opens a block for each partition and thread in its first pass, and holds whole partitions in
its second. A larger input needs more partitions or larger ones, so beyond some size both do not
fit, and partitions are read and written a third time. That size hardly depends on the number of
nodes: with more of them each has less data, but opens the blocks of all nodes' partitions. The
core's own division of memory is asked, for a large cluster, where the size is least.

A MapReduce divides its memory in its own way (`run.mapreduce.shuffle`): it has a limited number of
partitions, one may take an eighth of a thread's memory, and a thread's buffer makes a block for
each. How many there are follows from the bytes that it reads, since what a map function makes of
them is not known before.

The core divides each partition that does not fit by as many as fit into memory, some hundreds, so
three passes are enough for all inputs of today.
"""

import math
from functools import cache
from typing import NamedTuple

from tonnage.base import core
from tonnage.base.records.job import Job
from tonnage.catalog import Offer

MEMORY_SHARE = 2
"""A sort gets one part in so many of a node's memory."""
MIN_BLOCK = 16 << 10
"""The core's shortest block; what needs more of them needs larger partitions."""
MIN_VOLUME_BLOCK = 48 << 10
"""Blocks are read one by one. In shorter ones, the operations that network volumes include (3,000 a
second of gp3, hyperdisk-balanced and PremiumV2) do not carry the bytes that they include."""
TWO_PASS = ("sort", "mapreduce")
NODES = 1_000
FILL = 0.76
"""The core fills partitions to 75 % of what fits; the rest is rounding."""
MAX_PARTITIONS, MAX_NODE_PARTITIONS = 1 << 15, 1 << 12
"""Of a MapReduce (`run.mapreduce.cluster`, `run.mapreduce.shuffle`), and of each of its nodes."""
AIMED_PARTITIONS = 2
"""A MapReduce aims at so many partitions for each that would hold as many bytes of input as fit."""
LARGEST, EXACT = 1 << 60, 1.01
"""The bounds of the bisection: bytes, and the factor between its last steps."""
CLEAR = 1.05
"""What fits so much more, or does not fit so much less, needs no bisection."""


def has_memory_limit(offer: Offer) -> bool:
    """Whether both its memory and its vCPUs are known."""
    return bool(offer.memory_bytes and offer.vcpus)


def local_devices(offer: Offer) -> int:
    """The number of its local disks, as far as it is known; one without any."""
    return sum(each.count or 1 for each in offer.disks or ()) or 1


def divides_once_more(offer: Offer) -> bool:
    """Whether a third pass is possible on its local disks: rotating ones read blocks too slowly."""
    return all(each.kind != "hdd" for each in offer.disks or ())


def largest_input(job: Job, offer: Offer, volumes: int = 0) -> float:
    """The most bytes of input that nodes of this type process in two passes; infinite without a
    limit of memory. Local data is on so many volumes, or on local disks."""
    share = intermediate_share(job)
    if share is None or not has_memory_limit(offer):
        return math.inf
    if job.name == "sort":
        return largest_sort(offer, volumes) / share
    return largest_mapreduce(offer, volumes, share)


def suffices(job: Job, size: int, offer: Offer, volumes: int = 0) -> bool:
    """Whether the memory of these nodes is enough for two passes over ``size`` bytes of input."""
    if job.name == "sort" and has_memory_limit(offer):
        return fits_two_passes(offer, size, volumes)
    return size <= largest_input(job, offer, volumes)


def largest_share(job: Job, offer: Offer, volumes: int = 0) -> float:
    """The most bytes of input for each node in two passes; infinite without such a limit.

    A MapReduce has that many partitions only on eight nodes or more.
    """
    share = intermediate_share(job)
    if share is None or job.name == "sort" or not has_memory_limit(offer):
        return math.inf
    memory = _memory(offer, volumes)
    most = partition_bytes(memory.bytes // MEMORY_SHARE, memory.threads, memory.devices)
    return most * MAX_NODE_PARTITIONS / share


def largest_mapreduce(offer: Offer, volumes: int = 0, map_share: float = 1.0) -> int:
    """The most bytes of input of a MapReduce in two passes on eight nodes or more.

    It aims at partitions of half the size that a thread can take, as if its map function made as
    much as it reads, and makes larger ones if there would be too many of them. If the function
    makes more than twice as much, partitions do not fit. On volumes their blocks may not be too
    short.
    """
    if map_share > AIMED_PARTITIONS:
        return 0
    memory = _memory(offer, volumes)
    usable = memory.bytes // MEMORY_SHARE
    most = partition_bytes(usable, memory.threads, memory.devices)
    of_all = int(most * MAX_PARTITIONS / map_share)
    if not volumes:
        return of_all
    partitions = usable // (8 * memory.threads) // memory.min_block
    if partitions >= MAX_PARTITIONS:
        return of_all
    return min(of_all, most // AIMED_PARTITIONS * partitions)


def partition_bytes(memory_bytes: int, threads: int, devices: int) -> int:
    """The largest partition that a MapReduce's thread takes, of so much memory for all threads."""
    half = memory_bytes // 2
    of_half = half // max(4 * threads, devices + 1, 3)
    return min(max(of_half, memory_bytes // 64), 1 << 30)


def largest_sort(offer: Offer, volumes: int = 0) -> int:
    """The most bytes that nodes of this type sort in two passes, on so many volumes or locally."""
    return _largest(_memory(offer, volumes))


def fits_two_passes(offer: Offer, size: float, volumes: int = 0) -> bool:
    """Whether nodes of this type sort ``size`` bytes in two passes, on volumes or locally."""
    return _fits_two_passes(_memory(offer, volumes), int(size))


class _Memory(NamedTuple):
    """What the core divides."""

    bytes: int
    threads: int
    devices: int
    min_block: int


def _memory(offer: Offer, volumes: int) -> _Memory:
    return _Memory(
        offer.memory_bytes or 0,
        max(int(offer.vcpus or 0), 1),
        volumes or local_devices(offer),
        MIN_VOLUME_BLOCK if volumes else MIN_BLOCK,
    )


@cache
def _fits_two_passes(memory: _Memory, size: int) -> bool:
    if _fits(math.ceil(size * CLEAR), memory):
        return True
    if not _fits(max(int(size / CLEAR), 1), memory):
        return False
    return size <= _largest(memory)


@cache
def _largest(memory: _Memory) -> int:
    least, most = 1, LARGEST
    if not _fits(least, memory):
        return 0
    while most / least > EXACT:
        middle = int((least * most) ** 0.5)
        if _fits(middle, memory):
            least = middle
        else:
            most = middle
    return least


def intermediate_share(job: Job) -> float | None:
    """Bytes that are sorted for each byte of input; ``None`` if the job is not of two passes."""
    if job.name not in TWO_PASS:
        return None
    return float(job.settings.get("map_share", 1.0))


def _fits(size: int, memory: _Memory) -> bool:
    share = -(-size // NODES)
    shape = {
        "bytes": share,
        "record_bytes": 100,
        "memory_bytes": memory.bytes // MEMORY_SHARE,
        "workers": memory.threads,
        "devices": (1, memory.devices, memory.devices),
        "endpoints": NODES,
    }
    try:
        plan = core.plan(shape)
    except core.UsageError:
        return False
    fits = share / int(plan["partitions"]) <= int(plan["slot_bytes"]) * FILL
    return int(plan["block_bytes"]) >= memory.min_block and fits
